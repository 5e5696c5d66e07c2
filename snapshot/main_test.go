package snapshot

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// The test binary is the other process: with this in its environment it does what the
// child of that name does, in the directory of its only argument.
const childEnv = "CODEMODE_SNAPSHOT_CHILD"

var children = map[string]func(dir string) error{
	"commands": childCommands,
	"saves":    childSaves,
	"key":      childKey,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(childEnv); name != "" {
		if err := children[name](os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run()) // the fuzzer's own goroutines may outlive it
	}
	goleak.VerifyTestMain(m)
}

// A child is a process that was started with start.
type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, name, dir string) *child {
	t.Helper()
	c := &child{t: t, cmd: exec.Command(os.Args[0], dir)}
	c.cmd.Env = append(os.Environ(), childEnv+"="+name)
	c.cmd.Stderr = os.Stderr
	in, inErr := c.cmd.StdinPipe()
	out, outErr := c.cmd.StdoutPipe()
	must(t, inErr, outErr, c.cmd.Start())
	c.in, c.out = in, bufio.NewReader(out)
	t.Cleanup(c.kill)
	return c
}

// ask sends a line and gives the one that answers it.
func (c *child) ask(line string) string {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Fatal(err)
	}
	return c.line()
}

func (c *child) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("the child ended: %v", err)
	}
	return strings.TrimSpace(line)
}

// kill ends the process with SIGKILL and waits for its end. What it wrote can still be read
// before. Twice is fine.
func (c *child) kill() {
	if c.cmd.ProcessState != nil {
		return
	}
	c.cmd.Process.Kill()
	c.in.Close()
	io.Copy(io.Discard, c.out)
	c.cmd.Wait()
}

// childCommands has a store open and does to it what stdin says.
func childCommands(dir string) error {
	d, err := OpenDisk(DiskOptions{Dir: dir})
	if err != nil {
		return err
	}
	defer d.Close()
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var what, id string
		fmt.Sscan(in.Text(), &what, &id)
		answer := "ok"
		switch what {
		case "park":
			err = d.Save(parked(id, 0), []byte("record"), []byte("image"))
		case "abort":
			m := over(id, 1)
			m.State = Aborted
			err = d.Save(m, nil, nil)
		case "complete":
			err = d.Save(over(id, 1), []byte("result"), nil)
		case "append":
			err = d.Append(id, []byte("entry"))
		case "run":
			err = d.SetState(id, Running)
		case "claim":
			_, err = d.Claim(id)
		case "delete":
			err = d.Delete(id)
		case "lost":
			var lost []string
			lost, err = d.Lost()
			answer = strings.Join(lost, " ")
		case "close":
			err = d.Close()
		}
		var held *HeldError
		switch {
		case errors.Is(err, ErrLost):
			answer = "lost"
		case errors.Is(err, ErrUnknown):
			answer = "unknown"
		case errors.As(err, &held):
			answer = "held by " + strconv.Itoa(held.PID)
		case err != nil:
			answer = err.Error()
		}
		fmt.Println(answer)
	}
	return in.Err()
}

// saveRuns is how many runs childSaves saves, in turn.
const saveRuns = 5

// childSaves saves and appends without an end, and prints what is done: the number of the
// save, and with a + behind it that its log entry is there, too.
func childSaves(dir string) error {
	d, err := OpenDisk(DiskOptions{Dir: dir})
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		m := parked(fmt.Sprint("r", i%saveRuns), i)
		if err := d.Save(m, []byte(strconv.Itoa(i)), savedImage(i)); err != nil {
			return err
		}
		if _, err := fmt.Println(i); err != nil {
			return err
		}
		if err := d.Append(m.ID, []byte(strconv.Itoa(i))); err != nil {
			return err
		}
		if _, err := fmt.Printf("%d+\n", i); err != nil {
			return err
		}
	}
}

func savedImage(i int) []byte { return []byte(strings.Repeat(strconv.Itoa(i)+" ", 10_000)) }

// childKey waits for a line, then loads the key, and prints it.
func childKey(path string) error {
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	k, err := LoadKey(path)
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%x\n", k.secret[:])
	return err
}
