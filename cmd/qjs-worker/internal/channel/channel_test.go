package channel

import (
	"errors"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain switches the collector off: a goroutine in a system call that the scheduler
// does not see holds it up, which the one goroutine of a worker cannot mind.
func TestMain(m *testing.M) {
	debug.SetGCPercent(-1)
	os.Exit(m.Run())
}

func pair(t *testing.T) (a, b Conn) {
	t.Helper()
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ends := [2]Conn{}
	for i, fd := range fds {
		if ends[i], err = Open(uintptr(fd)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ends[i].Close() })
	}
	return ends[0], ends[1]
}

func TestReadWrite(t *testing.T) {
	a, b := pair(t)
	big := strings.Repeat("0123456789", 1<<17) // more than the socket holds
	go func() {
		a.Write([]byte(big))
		a.Close()
	}()
	got, err := io.ReadAll(b)
	if err != nil || string(got) != big {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestDeadline(t *testing.T) {
	a, b := pair(t)
	buf := make([]byte, 8)
	for _, d := range []time.Duration{-time.Second, 0, 20 * time.Millisecond} {
		b.SetReadDeadline(time.Now().Add(d))
		if _, err := b.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%v: got %v", d, err)
		}
	}
	a.Write([]byte("late"))
	b.SetReadDeadline(time.Now().Add(time.Minute))
	if n, err := b.Read(buf); string(buf[:n]) != "late" || err != nil {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	b.SetReadDeadline(time.Time{})
	a.Close()
	if _, err := b.Read(buf); err != io.EOF {
		t.Errorf("got %v", err)
	}
}

// A read that waits leaves the only processor to others, without a deadline at once and
// with one soon: what is left of the start must come to its end.
func TestOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, deadline := range []time.Time{{}, time.Now().Add(time.Minute)} {
		a, b := pair(t)
		b.SetReadDeadline(deadline)
		go a.Write([]byte("x")) // runs only if the read lets it
		if n, err := b.Read(make([]byte, 1)); n != 1 || err != nil {
			t.Errorf("got %d, %v", n, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Open(f.Fd()); err == nil {
		t.Error("a file was taken for the channel")
	}
}
