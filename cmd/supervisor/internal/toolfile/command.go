package toolfile

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	// maxOutput bounds what a program may print.
	maxOutput = 8 << 20

	// maxStderr is how much of the end of a program's stderr goes into an error.
	maxStderr = 1000

	// pipeGrace is how long we read on after the program and its group are dead.
	// Only a process that left the group can still hold a pipe then.
	pipeGrace = 500 * time.Millisecond
)

// runCommand runs a program with input as its stdin and returns the JSON that it
// printed; nothing printed is null. It returns when the program is reaped, its
// process group killed, and all pipes closed. Whether the program reads its stdin
// is its own affair.
func runCommand(ctx context.Context, argv []string, input json.RawMessage) (json.RawMessage, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, fmt.Errorf("program %q was not started: %w", argv[0], err)
	}
	c, err := start(argv)
	if err != nil {
		return nil, &ToolError{CodeStart, fmt.Sprintf("program %q could not be started: %v", argv[0], err)}
	}
	killed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		c.kill()
		close(killed)
	})
	c.feed(input)
	waitErr := c.finish()
	if !stop() {
		<-killed // no goroutine of ours outlives the call
	}
	switch {
	case context.Cause(ctx) != nil:
		return nil, fmt.Errorf("the call of program %q was given up: %w", argv[0], context.Cause(ctx))
	case c.flooded:
		return nil, &ToolError{CodeInvalidOutput, fmt.Sprintf("program %q was killed: it printed more than %d bytes", argv[0], maxOutput)}
	case waitErr != nil:
		return nil, &ToolError{CodeFailed, fmt.Sprintf("program %q %s%s", argv[0], ending(waitErr), c.lastWords())}
	}
	return c.result(argv[0])
}

// child is a running program with our ends of its pipes.
type child struct {
	cmd            *exec.Cmd
	stdin          *os.File
	stdout, stderr *os.File
	copies         sync.WaitGroup // the goroutines of start and feed; finish waits for them

	// The goroutines of start own these until copies is done.
	output  bytes.Buffer
	flooded bool
	tail    []byte // of stderr
}

// start runs the program in a process group of its own. The pipes are ours and not
// exec's, so that Wait returns when the program ends, whoever still holds them.
func start(argv []string) (_ *child, err error) {
	var files []*os.File
	defer func() {
		if err != nil {
			closeAll(files)
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				files = append(files, r, w)
			}
		}
		return r, w
	}
	c := &child{cmd: exec.Command(argv[0], argv[1:]...)}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	if err != nil {
		return nil, err
	}
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = inR, outW, errW
	c.stdin, c.stdout, c.stderr = inW, outR, errR
	c.cmd.SysProcAttr = attributes()
	if err = c.cmd.Start(); err != nil {
		return nil, err
	}
	closeAll([]*os.File{inR, outW, errW}) // the program has its own
	c.copies.Go(c.readOutput)
	c.copies.Go(c.readErrors)
	return c, nil
}

// feed writes the input to the program. EPIPE, from a program that does not want
// it, is no error.
func (c *child) feed(input []byte) {
	c.copies.Go(func() {
		_, _ = c.stdin.Write(input)
		_ = c.stdin.Close()
	})
}

// readOutput keeps what the program prints, and kills it when that is too much.
func (c *child) readOutput() {
	n, _ := io.Copy(&c.output, io.LimitReader(c.stdout, maxOutput+1))
	if n > maxOutput {
		c.flooded = true
		c.kill()
	}
}

// readErrors keeps the end of stderr. It reads to the end: a program must not block
// because nobody listens.
func (c *child) readErrors() {
	buf := make([]byte, 4096)
	for {
		n, err := c.stderr.Read(buf)
		c.tail = append(c.tail, buf[:n]...)
		c.tail = c.tail[max(0, len(c.tail)-maxStderr):]
		if err != nil {
			return
		}
	}
}

// kill ends the program and all that it started, at once. It may be called at any
// time and more than once.
func (c *child) kill() {
	// A group that is gone gives ESRCH, which is what we want.
	_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
}

// finish waits for the program's end and leaves nothing of it behind.
func (c *child) finish() error {
	err := c.cmd.Wait()
	// What the program left running in its group holds the pipes, and nobody waits
	// for it. The group's number cannot have been given away while it has members;
	// without members it would take a full round of all process ids.
	c.kill()
	deadline := time.Now().Add(pipeGrace)
	for _, f := range []*os.File{c.stdin, c.stdout, c.stderr} {
		_ = f.SetDeadline(deadline)
	}
	c.copies.Wait()
	closeAll([]*os.File{c.stdout, c.stderr})
	return err
}

func (c *child) result(program string) (json.RawMessage, error) {
	out := bytes.TrimSpace(c.output.Bytes())
	switch {
	case len(out) == 0:
		return json.RawMessage("null"), nil
	case !utf8.Valid(out) || !json.Valid(out):
		begin := strings.ToValidUTF8(string(out[:min(len(out), 80)]), "\ufffd")
		return nil, &ToolError{CodeInvalidOutput, fmt.Sprintf("program %q printed %d bytes that are no JSON; they begin with %q", program, len(out), begin)}
	}
	return out, nil
}

// lastWords returns the last lines of stderr for an error.
func (c *child) lastWords() string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(c.tail), "\ufffd"))
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return ": " + strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// ending says how a program ended that did not end well.
func ending(err error) string {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return "could not be waited for: " + err.Error()
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("was ended by signal %d (%v)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("ended with status %d", exit.ExitCode())
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
