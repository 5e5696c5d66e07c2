package toolfile

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain makes the test binary its own child: what it does is in the first
// argument after "child".
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		actAs(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// actAs is what the binary does as a child.
func actAs(mode string) {
	switch mode {
	case "echo":
		io.Copy(os.Stdout, os.Stdin)
	case "silent":
	case "ignores-stdin":
		fmt.Println(`{"ok":true}`)
	case "env":
		fmt.Printf("%q\n", os.Getenv("TOOLFILE_TEST"))
	case "fails":
		fmt.Println(`{"ok":true}`)
		for i := range 1000 {
			fmt.Fprintln(os.Stderr, "line", i)
		}
		os.Exit(3)
	case "crashes":
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case "no-json":
		fmt.Println("hello\xff")
	case "two-values":
		fmt.Println("1 2")
	case "floods":
		signal.Ignore(syscall.SIGPIPE)
		for chunk := strings.Repeat("x", 1<<16); ; {
			os.Stdout.WriteString(chunk) // goes on whatever happens
		}
	case "floods-stderr":
		for range 200 {
			os.Stderr.WriteString(strings.Repeat("x", 1<<16))
		}
		fmt.Println("1")
	case "hangs": // says that it is there, and ignores what can be ignored
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		fmt.Fprintln(mark(), os.Getpid())
		block()
	case "forks": // leaves a grandchild behind that holds all pipes
		grandchild := exec.Command(os.Args[0], "child", "hangs", os.Args[3])
		grandchild.Stdin, grandchild.Stdout, grandchild.Stderr = os.Stdin, os.Stdout, os.Stderr
		grandchild.Start()
		waitForMark()
		fmt.Println(`"parent is done"`)
	case "forks-and-hangs":
		grandchild := exec.Command(os.Args[0], "child", "hangs", os.Args[3])
		grandchild.Start()
		block()
	default:
		os.Exit(99)
	}
}

// mark opens the named pipe that the test listens on, so that nobody needs to
// sleep to know that a program is up.
func mark() *os.File {
	f, err := os.OpenFile(os.Args[3], os.O_WRONLY, 0)
	if err != nil {
		os.Exit(98)
	}
	return f
}

// waitForMark returns when the test has seen the grandchild.
func waitForMark() {
	f, err := os.Open(os.Args[3] + ".seen") // a named pipe: blocks until the test opens it
	if err == nil {
		io.Copy(io.Discard, f)
	}
}

// block never returns: w stays open in this process.
func block() {
	r, w, _ := os.Pipe()
	io.Copy(io.Discard, r)
	w.Close()
}
