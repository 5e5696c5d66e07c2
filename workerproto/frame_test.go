package workerproto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

func TestTruncatedStreams(t *testing.T) {
	for _, m := range samples {
		frame := frameOf(t, m)
		for n := range frame {
			// Byte by byte: what a socket delivers has no frames.
			stream := iotest.OneByteReader(bytes.NewReader(frame[:n]))
			_, err := readOne(NewConn(&pipe{Reader: stream}), m.Type())
			want := io.ErrUnexpectedEOF
			if n == 0 {
				want = io.EOF
			}
			if err != want {
				t.Errorf("%s cut to %d of %d bytes: got %v, want %v", m.Type(), n, len(frame), err, want)
			}
		}
	}
}

func TestFramesFollowEachOther(t *testing.T) {
	var stream []byte
	var want []Message
	for _, m := range samples {
		if kinds[m.Type()].event {
			stream, want = append(stream, frameOf(t, m)...), append(want, m)
		}
	}
	c := NewConn(&pipe{Reader: iotest.HalfReader(bytes.NewReader(stream))})
	for _, m := range want {
		if got, err := c.ReadEvent(); err != nil || got.Type() != m.Type() {
			t.Fatalf("got %v, %v, want a %s", got, err, m.Type())
		}
	}
	if _, err := c.ReadEvent(); err != io.EOF {
		t.Errorf("after the last frame: got %v, want io.EOF", err)
	}
}

func TestEachSideReadsOnlyTheOthersTypes(t *testing.T) { // SPEC 15.5
	for n := range 256 {
		header := []byte{'c', 'm', Version, byte(n), 0, 0, 0, 0}
		_, eventErr := over(header).ReadEvent()
		_, commandErr := over(header).ReadCommand()
		unexpected := fmt.Sprintf("unexpected frame type %d", n)
		k, known := kinds[Type(n)]
		// A type that is read has a body, and this one is empty.
		event, command := unexpected, unexpected
		if known && k.event {
			event = "the body ends"
		} else if known {
			command = "the body ends"
		}
		wantViolation(t, eventErr, event)
		wantViolation(t, commandErr, command)
	}
}

func TestAnnouncedSizeIsBoundedByType(t *testing.T) { // SPEC 15.5
	for typ, k := range kinds {
		header := func(n uint32) []byte {
			return []byte{'c', 'm', Version, byte(typ), byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
		}
		if _, err := readOne(over(header(k.maxBody)), typ); err != io.ErrUnexpectedEOF {
			t.Errorf("%s: a body of %d bytes that does not come: got %v, want io.ErrUnexpectedEOF", typ, k.maxBody, err)
		}
		for _, n := range []uint32{k.maxBody + 1, 1 << 30, 1<<32 - 1} {
			_, err := readOne(over(header(n)), typ)
			wantViolation(t, err, fmt.Sprintf("announces %d bytes, at most %d are allowed", n, k.maxBody))
		}
	}
}

// allocated is how many bytes f takes from the heap.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestLengthsAloneTakeNoMemory(t *testing.T) { // SPEC 15.5
	output := func(length string, body string) []byte {
		return []byte("cm\x01\x83" + length + body)
	}
	for _, c := range []struct {
		name   string
		stream []byte
		most   uint64
	}{
		{"a body of 1 GiB, which is refused", output("\x40\x00\x00\x00", "0123456789"), 4 << 10},
		{"a body of 10 MiB, of which 10 bytes come", output("\x00\xa0\x00\x00", "0123456789"), firstRead + 8<<10},
		{"bytes of 4 GiB inside a small body", output("\x00\x00\x00\x0b", "\x82\xa4json\xc6\xff\xff\xff\xff"), 4 << 10},
		{"text of 4 GiB inside a small body", output("\x00\x00\x00\x0b", "\x82\xa4kind\xdb\xff\xff\xff\xff"), 4 << 10},
		{"a key of 4 GiB inside a small body", output("\x00\x00\x00\x06", "\x82\xdb\xff\xff\xff\xff"), 4 << 10},
		{"a map of 4 Gi pairs inside a small body", output("\x00\x00\x00\x05", "\xdf\xff\xff\xff\xff"), 4 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := over(c.stream)
			var err error
			got := allocated(func() { _, err = conn.ReadEvent() })
			if err == nil {
				t.Error("it was read")
			}
			if got > c.most {
				t.Errorf("%d bytes were allocated, want at most %d", got, c.most)
			}
		})
	}
}

// What arrives may cost a few times its size, as the buffer doubles.
func TestMemoryGrowsWithTheBytesThatArrive(t *testing.T) {
	frame := frameOf(t, &Done{Value: []byte(`"` + long(MaxItem-2) + `"`)})
	for _, arrived := range []int{1 << 10, 100 << 10, 1 << 20, 5 << 20} {
		conn := over(frame[:arrived])
		var err error
		got := allocated(func() { _, err = conn.ReadEvent() })
		if err != io.ErrUnexpectedEOF {
			t.Fatalf("got %v, want io.ErrUnexpectedEOF", err)
		}
		if most := uint64(4*arrived + firstRead + 8<<10); got > most {
			t.Errorf("%d bytes arrived and %d were allocated, want at most %d", arrived, got, most)
		}
	}
}

// writes counts them, and fails from the nth on, half way.
type writes struct {
	pipe
	n, failAt int
	frames    [][]byte
}

func (w *writes) Write(b []byte) (int, error) {
	if w.n++; w.failAt > 0 && w.n >= w.failAt {
		w.frames = append(w.frames, bytes.Clone(b[:len(b)/2]))
		return len(b) / 2, syscall.EAGAIN
	}
	w.frames = append(w.frames, bytes.Clone(b))
	return len(b), nil
}

func TestFrameIsOneWrite(t *testing.T) {
	for _, m := range samples {
		w := new(writes)
		c := NewConn(w)
		for range 2 { // the second one finds the first one's buffer
			if err := c.Write(m); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.frames) != 2 || !bytes.Equal(w.frames[0], frameOf(t, m)) || !bytes.Equal(w.frames[1], frameOf(t, m)) {
			t.Errorf("%s went out as %d writes %.80q", m.Type(), len(w.frames), w.frames)
		}
	}
}

func TestRefusedMessageSendsNothingAndBreaksNothing(t *testing.T) {
	w := new(writes)
	c := NewConn(w)
	if err := c.Write(&ToolCall{Method: "call", Tool: "\xff"}); err == nil {
		t.Error("a tool's name that is not UTF-8 was sent")
	}
	if err := c.Write(&Idle{}); err != nil {
		t.Errorf("the next message: %v", err)
	}
	if len(w.frames) != 1 || !bytes.Equal(w.frames[0], frameOf(t, &Idle{})) {
		t.Errorf("sent %q, want one idle", w.frames)
	}
}

// Half a frame is on the wire: the peer would take the next one for its rest.
func TestNothingIsWrittenBehindHalfAFrame(t *testing.T) {
	w := &writes{failAt: 2}
	c := NewConn(w)
	if err := c.Write(&Idle{}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := c.Write(&Idle{}); !errors.Is(err, syscall.EAGAIN) {
			t.Errorf("got %v, want the error of the write that failed", err)
		}
	}
	if w.n != 2 {
		t.Errorf("%d writes reached the socket, want 2", w.n)
	}
}

func TestQueuedFramesGoOutWithTheNextWrite(t *testing.T) {
	w := new(writes)
	c := NewConn(w)
	burst := []Message{
		&ToolCall{ID: 1, Method: "call", Tool: "a", Input: []byte("{}")},
		&ToolCall{ID: 2, Method: "call", Tool: "b", Input: []byte("{}")},
	}
	var want []byte
	for _, m := range burst {
		if err := c.Queue(m); err != nil {
			t.Fatal(err)
		}
		want = append(want, frameOf(t, m)...)
	}
	if err := c.Queue(&Stage{Name: "coffee"}); err == nil {
		t.Error("a message that breaks a rule was queued")
	}
	if len(w.frames) != 0 {
		t.Errorf("queueing wrote %q", w.frames)
	}
	if err := c.Write(&Idle{Pending: 2}); err != nil {
		t.Fatal(err)
	}
	want = append(want, frameOf(t, &Idle{Pending: 2})...)
	if len(w.frames) != 1 || !bytes.Equal(w.frames[0], want) {
		t.Errorf("got %d writes %q, want one of %q", len(w.frames), w.frames, want)
	}
}

// A guest that makes calls without end must not fill the worker's memory with frames.
func TestQueueIsBounded(t *testing.T) {
	w := new(writes)
	c := NewConn(w)
	m := &ToolCall{ID: 1, Method: "call", Tool: "a", Input: make([]byte, 1<<10)}
	queued := 0
	for len(w.frames) == 0 {
		if err := c.Queue(m); err != nil {
			t.Fatal(err)
		}
		queued += len(frameOf(t, m))
		if queued > queueBytes+2<<10 {
			t.Fatalf("%d bytes are queued and none is written, want at most %d", queued, queueBytes)
		}
	}
	if len(w.frames[0]) != queued || queued < queueBytes {
		t.Errorf("%d bytes were queued and %d written, want all of at least %d", queued, len(w.frames[0]), queueBytes)
	}
}

func TestBufferedTellsOfWholeFramesOnly(t *testing.T) {
	small := frameOf(t, &Idle{})
	big := frameOf(t, &Output{Kind: "text", JSON: make([]byte, firstRead)})
	for _, c := range []struct {
		name   string
		behind []byte
		want   bool
	}{
		{"nothing", nil, false},
		{"half a header", small[:headerBytes/2], false},
		{"a header", small[:headerBytes], false},
		{"all but a byte", small[:len(small)-1], false},
		{"a frame", small, true},
		{"more than a frame", append(bytes.Clone(small), 'c'), true},
		{"a frame larger than the buffer", big, false},
		{"4 GiB announced", []byte{'c', 'm', Version, byte(TypeIdle), 0xff, 0xff, 0xff, 0xff}, false},
	} {
		conn := over(append(bytes.Clone(small), c.behind...))
		if conn.Buffered() {
			t.Errorf("%s: a frame is there before anything was read", c.name)
		}
		if _, err := conn.ReadEvent(); err != nil {
			t.Fatal(err)
		}
		if got := conn.Buffered(); got != c.want {
			t.Errorf("%s behind a frame: got %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAwait(t *testing.T) {
	// A write of 0 frames stands for the end of the worker.
	for _, c := range []struct {
		name    string
		after   time.Duration // the peer writes
		frames  int
		until   time.Duration // 0: for ever
		arrived bool
	}{
		{"a message in time", time.Second, 1, time.Minute, true},
		{"a message too late", time.Minute, 1, time.Second, false},
		{"a message, however late", time.Hour, 1, 0, true},
		{"the end in time", time.Second, 0, time.Minute, true},
		{"the end, too late", time.Minute, 0, time.Second, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				conn := NewConn(ours)
				defer conn.Close()
				var wg sync.WaitGroup
				defer wg.Wait()
				wg.Go(func() {
					defer theirs.Close()
					time.Sleep(c.after)
					for range c.frames {
						theirs.Write(frameOf(t, &Idle{}))
					}
				})
				var until time.Time
				began := time.Now()
				if c.until > 0 {
					until = began.Add(c.until)
				}
				arrived, err := conn.Await(until)
				if arrived != c.arrived || err != nil {
					t.Errorf("got %v, %v, want %v", arrived, err, c.arrived)
				}
				if took, most := time.Since(began), c.until; most > 0 && took > most {
					t.Errorf("it waited %v, want at most %v", took, most)
				}
				// Whatever it said, a read behind it waits for as long as it takes.
				_, err = conn.ReadEvent()
				if c.frames == 0 && err != io.EOF || c.frames == 1 && err != nil {
					t.Errorf("the read behind it: %v", err)
				}
			})
		})
	}
}

func TestAwaitDoesNotWaitForWhatIsThere(t *testing.T) {
	ours, theirs := socketPair(t)
	defer ours.Close()
	defer theirs.Close()
	if err := errors.Join(theirs.Queue(&Idle{}), theirs.Write(&Idle{})); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.ReadEvent(); err != nil {
		t.Fatal(err)
	}
	// The second frame came with the first; the socket has nothing left to tell.
	if arrived, err := ours.Await(time.Unix(1, 0)); !arrived || err != nil {
		t.Errorf("got %v, %v, want true", arrived, err)
	}
}

func TestAwaitNeedsDeadlines(t *testing.T) {
	if _, err := over(nil).Await(time.Time{}); err == nil {
		t.Error("it waited on what knows no deadlines")
	}
}

func TestCloseUnblocksReadAndMayBeCalledTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c := NewConn(ours)
		done := make(chan error)
		go func() { _, err := c.ReadEvent(); done <- err }()
		synctest.Wait() // it blocks in the read
		for range 2 {
			if err := c.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the read ended with %v, want io.ErrClosedPipe", err)
		}
	})
}

func TestCloseUnblocksReadOfARealSocket(t *testing.T) {
	ours, theirs := socketPair(t)
	defer theirs.Close()
	done := make(chan error)
	go func() { _, err := ours.ReadCommand(); done <- err }()
	ours.Close()
	if err := <-done; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the read ended with %v, want net.ErrClosed", err)
	}
}

type failsToClose struct{ pipe }

func (*failsToClose) Close() error { return os.ErrPermission }

func TestSecondCloseTellsWhatTheFirstDid(t *testing.T) {
	c := NewConn(new(failsToClose))
	for range 2 {
		if err := c.Close(); !errors.Is(err, os.ErrPermission) {
			t.Errorf("got %v, want what the socket said", err)
		}
	}
}

// Writers of every size, more than the socket's buffer holds among them, and a close in
// the middle: no frame is ever mixed with another.
func TestHammerWriters(t *testing.T) {
	const writers, loops = 8, 41 // the last one of each is no multiple of 3: it is written
	for _, closes := range []bool{false, true} {
		t.Run(fmt.Sprintf("closes=%v", closes), func(t *testing.T) {
			ours, theirs := socketPair(t)
			defer theirs.Close()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := range loops {
						n := 1 << (i % 20)
						m := &ToolCall{ID: uint64(w), Method: "call", Tool: fmt.Sprint(n), Input: bytes.Repeat([]byte{byte('a' + w)}, n)}
						send := theirs.Write
						if i%3 == 0 {
							send = theirs.Queue
						}
						if err := send(m); err != nil {
							if !closes {
								t.Errorf("writer %d: %v", w, err)
							}
							return
						}
					}
				})
			}
			read, failed := hammered(t, ours, closes, writers*loops)
			wg.Wait()
			if !closes && read != writers*loops {
				t.Errorf("%d frames came, want %d (%v)", read, writers*loops, failed)
			}
		})
	}
}

// hammered reads n frames and checks each; if closes, the reader hangs up half way.
func hammered(t *testing.T, c *Conn, closes bool, n int) (read int, err error) {
	defer c.Close()
	for read < n {
		if closes && read == n/2 {
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() { c.Close() })
			}
			wg.Wait()
		}
		m, err := c.ReadEvent()
		if err != nil {
			if !closes {
				t.Errorf("frame %d: %v", read, err)
			}
			return read, err
		}
		call := m.(*ToolCall)
		want := strings.Repeat(string(rune('a'+call.ID)), len(call.Input))
		if call.Tool != fmt.Sprint(len(call.Input)) || string(call.Input) != want {
			t.Errorf("frame %d of writer %d is mixed: %s bytes announced, got %d", read, call.ID, call.Tool, len(call.Input))
		}
		read++
	}
	return read, nil
}

// socketPair makes a channel as the launch does.
func socketPair(t testing.TB) (ours, theirs *Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*Conn
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "channel")
		conn, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = NewConn(conn)
	}
	return conns[0], conns[1]
}
