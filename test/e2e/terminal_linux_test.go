package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// screen is a terminal of ours: what was written to it, and a way to type.
type screen struct {
	pty *os.File
	mu  sync.Mutex
	got bytes.Buffer
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

// terminal runs the program with a terminal as its stderr and its controlling one.
func terminal(t *testing.T, args ...string) (*screen, *exec.Cmd, *bytes.Buffer) {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { pty.Close() })
	n, err := unix.IoctlGetInt(int(pty.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(pty.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	defer tty.Close()
	cmd := exec.Command(filepath.Join(binaries(t), "supervisor"), args...)
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheHome(t), "TMPDIR="+t.TempDir())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 2}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &screen{pty: pty}
	go func() { // ends with the terminal
		buf := make([]byte, 4096)
		for {
			n, err := pty.Read(buf)
			s.Write(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return s, cmd, &out
}

// SPEC 10.5, 19.1, issue 3: on a terminal a person is asked, and as long as that takes the
// run is parked; a line says what is waited for, and is gone at the end.
func TestTerminal(t *testing.T) {
	dir := t.TempDir()
	toolFile := filepath.Join(dir, "t.json5")
	if err := os.WriteFile(toolFile, []byte(`{tools: [
		{name: "person", policy: "approve", result: "yes"},
		{name: "slow", echo: true, delayMs: 1500},
	]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	s, cmd, out := terminal(t, "run", "--tools", toolFile, "--state-dir", state, "--set", "timeoutMs=300",
		"-e", `const a = await tools.person({q: "May \u001b[31mI?"}); text("answered"); return [a, await tools.slow({v: 1})]`)
	await(t, 20*time.Second, "the question", func() bool { return strings.Contains(s.String(), "[y/N]") })
	parked := func() bool {
		b, err := exec.Command(filepath.Join(binaries(t), "supervisor"), "runs", "list", "--state-dir", state).CombinedOutput()
		return err == nil && strings.Contains(string(b), " waiting ")
	}
	await(t, 10*time.Second, "parking", parked)
	began := time.Now()
	await(t, 10*time.Second, "a person's time", func() bool { return time.Since(began) > 400*time.Millisecond }) // more than timeoutMs
	if !parked() {
		t.Errorf("it did not wait for the person:\n%q", s)
	}
	if _, err := s.pty.WriteString("y\n"); err != nil {
		t.Fatal(err)
	}
	await(t, 10*time.Second, "the line", func() bool { return strings.Contains(s.String(), "for client:app:slow") })
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%q", err, s)
	}
	if got := out.String(); got != "answered\n[\"yes\",{\"v\":1}]\n" {
		t.Errorf("stdout: %q", got)
	}
	await(t, 10*time.Second, "the end of the line", func() bool { return strings.HasSuffix(s.String(), "\r\x1b[K") })
	if strings.Contains(s.String(), "\x1b[31m") {
		t.Errorf("the input's control characters are on the screen: %q", s)
	}
	noWorkers(t, 0)
}

// SPEC 19.3: Ctrl-C while the run is parked ends the program and not the run.
func TestTerminalInterrupt(t *testing.T) {
	dir := t.TempDir()
	toolFile := filepath.Join(dir, "t.json5")
	if err := os.WriteFile(toolFile, []byte(`{tools: [{name: "person", policy: "approve", result: "yes"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	s, cmd, out := terminal(t, "run", "--tools", toolFile, "--state-dir", state, "-e", `return await tools.person({})`)
	await(t, 20*time.Second, "the question", func() bool { return strings.Contains(s.String(), "[y/N]") })
	program := filepath.Join(binaries(t), "supervisor")
	list := func() string {
		b, _ := exec.Command(program, "runs", "list", "--state-dir", state).CombinedOutput()
		return string(b)
	}
	await(t, 10*time.Second, "parking", func() bool { return strings.Contains(list(), " waiting ") })
	if _, err := s.pty.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || out.Len() > 0 {
		t.Errorf("exit code %d, %v, stdout %q\n%q", code, err, out, s)
	}
	noWorkers(t, 0)
	_, id, ok := strings.Cut(s.String(), "hint: supervisor wait ")
	if !ok {
		t.Fatalf("no hint: %q", s)
	}
	id, _, _ = strings.Cut(id, " ")
	// The same for a wait.
	s, cmd, out = terminal(t, "wait", id, "--json", "--tools", toolFile, "--state-dir", state)
	await(t, 20*time.Second, "the question", func() bool { return strings.Contains(s.String(), "[y/N]") })
	if _, err := s.pty.WriteString("\x03"); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.HasPrefix(out.String(), `{"status":"waiting","runId":"`+id) {
		t.Errorf("exit code %d, stdout %q\n%q", code, out, s)
	}
	wait := exec.Command(program, "wait", id, "--state-dir", state, "--tools", toolFile, "--approve", "all")
	wait.Env = cmd.Env
	if b, err := wait.CombinedOutput(); err != nil || string(b) != "yes\n" {
		t.Errorf("%v: %s", err, b)
	}
}
