// Package channel is the worker's end of the socket pair to its supervisor.
//
// On Linux, once a deadline is set, it reads and writes with plain system calls that the
// Go scheduler does not see. A worker that runs a cell does one thing at a time and has
// nothing else to run while it waits, and parking a goroutine for each message takes
// longer than the message.
package channel

import (
	"io"
	"time"
)

// Conn is a socket with a read deadline. It is for one goroutine.
type Conn interface {
	io.ReadWriteCloser
	// SetReadDeadline makes reads fail with os.ErrDeadlineExceeded from t on. The zero
	// time means never.
	SetReadDeadline(t time.Time) error
}
