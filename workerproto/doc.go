// Package workerproto is the language between the supervisor and its worker: frames
// of msgpack on a private socket pair, specified to the byte in PROTOCOL.md (SPEC 17).
//
// The supervisor sends commands ([Start], or [Resume] and [ResumePart]; [ToolResult],
// [Interrupt], [Park]); the worker reports events ([Ready], [Stage], [Prepared] or
// [Resumed], [Output], [ToolCall], [Idle], [Done], [Failed], or [ParkPart] and [Parked]).
// Each side has a [Conn] and reads only the other side's kind:
//
//	conn := workerproto.NewConn(socket)
//	event, err := conn.ReadEvent()   // the supervisor
//	command, err := conn.ReadCommand() // the worker
//
// Nothing that is read is trusted: a frame's size is checked against its type before
// a byte of it is kept, memory grows only with the bytes that arrive, and a message
// is checked field by field. Whatever breaks a rule is a [*Violation], after which
// the peer is to be killed. JSON of guests and tools crosses as bytes; nobody here
// parses it (SPEC 17.3).
//
// A Conn owns its socket. Close may be called twice and unblocks a read; writes may
// come from any goroutine, reads from one at a time.
package workerproto

// The cookie by which go-plugin's handshake tells a worker from a program that was
// started by mistake. It is no secret: what authenticates a worker is that it holds
// the other end of a socket pair which only it inherited.
const (
	CookieKey   = "CODEMODE_WORKER"
	CookieValue = "5f0c1f6e-6c1b-4f0e-9a34-codemode-worker"
)

// ChannelFD is the descriptor of the worker's end of the channel.
const ChannelFD = 3
