package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// rpc is the other side of `supervisor serve`, with a deadline for all of it.
type rpc struct {
	lines *bufio.Reader
	to    io.Writer
	runID string // the last one that came
}

const endOfInput = "END OF INPUT"

var runIDs = regexp.MustCompile(`"runId":"([0-9a-f]{32})"`)

// play plays a transcript: a line with "> " in front is sent, those with "< " up to the next such
// are what must come then, "…" stands for anything in it; a line that begins with blanks goes on with the line
// above it, and anything else is a remark. RUN_ID is the last run id that came, END OF INPUT
// closes what the other side reads.
func (r *rpc) play(text string) error {
	var steps []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "> "), strings.HasPrefix(line, "< "), line == endOfInput:
			steps = append(steps, line)
		case strings.HasPrefix(line, "  ") && len(steps) > 0:
			steps[len(steps)-1] += strings.TrimLeft(line, " ")
		}
	}
	if len(steps) == 0 {
		return errors.New("the transcript has no lines")
	}
	for len(steps) > 0 {
		if steps[0][0] != '<' {
			if err := r.say(steps[0]); err != nil {
				return err
			}
			steps = steps[1:]
			continue
		}
		n := 1
		for n < len(steps) && steps[n][0] == '<' {
			n++
		}
		if err := r.hear(steps[:n]); err != nil {
			return err
		}
		steps = steps[n:]
	}
	return nil
}

func (r *rpc) say(step string) error {
	if step == endOfInput {
		return r.to.(io.Closer).Close()
	}
	line := strings.ReplaceAll(step[2:], "RUN_ID", r.runID)
	if _, err := io.WriteString(r.to, line+"\n"); err != nil {
		return fmt.Errorf("sending %s: %w", line, err)
	}
	return nil
}

// hear takes as many lines as there are, in any order: what different goroutines have to say
// at a time comes as it comes.
func (r *rpc) hear(want []string) error {
	want = slices.Clone(want)
	for len(want) > 0 {
		got, err := r.lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("waiting for\n%s\n%w", strings.Join(want, "\n"), err)
		}
		got = strings.TrimSuffix(got, "\n")
		i := slices.IndexFunc(want, func(w string) bool {
			return shows([]string{strings.ReplaceAll(w[2:], "RUN_ID", r.runID)}, []string{got})
		})
		if i < 0 {
			return fmt.Errorf("got:\n%s\nwant one of:\n%s", got, strings.Join(want, "\n"))
		}
		want = slices.Delete(want, i, i+1)
		if m := runIDs.FindStringSubmatch(got); m != nil {
			r.runID = m[1]
		}
	}
	return nil
}

// playStdio plays a transcript with a program, and closes its input then.
func playStdio(cmd *exec.Cmd, transcript string) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	timer := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewReader(out)
	err = (&rpc{lines: lines, to: in}).play(transcript)
	in.Close()
	if rest, _ := io.ReadAll(lines); err == nil && len(rest) > 0 {
		err = fmt.Errorf("more came than the transcript has: %s", rest)
	}
	return errors.Join(err, cmd.Wait())
}

// cmdRPC plays a transcript with `supervisor serve --stdio ARG…`.
func cmdRPC(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg {
		ts.Fatalf("usage: rpc FILE ARG…")
	}
	cmd := exec.Command(filepath.Join(binaries(of(ts).t), "supervisor"), append([]string{"serve", "--stdio"}, args[1:]...)...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "HOME=" + ts.Getenv("WORK"), "XDG_CACHE_HOME=" + ts.Getenv("XDG_CACHE_HOME"), "TMPDIR=" + os.TempDir()}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := playStdio(cmd, ts.ReadFile(args[0])); err != nil {
		ts.Fatalf("%v\n%s", err, stderr.String())
	}
	if stderr.Len() > 0 {
		ts.Fatalf("on stderr: %s", stderr.String())
	}
}

// The session in docs/serve.md is one that happens.
func TestDocsServe(t *testing.T) {
	played := 0
	for _, b := range readDoc(t, "docs/serve.md").blocks() {
		if b.info != "jsonrpc" {
			continue
		}
		played++
		cmd := exec.Command(filepath.Join(binaries(t), "supervisor"), "serve", "--stdio")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "XDG_CACHE_HOME=" + cacheHome(t), "TMPDIR=" + os.TempDir()}
		if err := playStdio(cmd, b.text); err != nil {
			t.Errorf("docs/serve.md:%d: %v", b.line, err)
		}
	}
	if played == 0 {
		t.Error("docs/serve.md has no session")
	}
	noWorkers(t, time.Second)
}

// docs/serve.md has each method, and each error, of the document of the protocol.
func TestDocsServeTables(t *testing.T) {
	var rpcDoc struct {
		Methods []struct {
			Name      string
			Direction string          `json:"x-direction"`
			Result    json.RawMessage `json:"result"`
		}
		Components struct {
			Errors map[string]struct{ Code int }
		}
	}
	b, err := os.ReadFile(filepath.Join(repo, "cmd/supervisor/internal/gatewayrpc/openrpc.json"))
	if err == nil {
		err = json.Unmarshal(b, &rpcDoc)
	}
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{}
	for _, m := range rpcDoc.Methods {
		kind := m.Direction
		if m.Result == nil {
			kind += " notification"
		}
		names[kind] = append(names[kind], m.Name)
	}
	var codes []string
	for _, e := range rpcDoc.Components.Errors {
		codes = append(codes, fmt.Sprint(e.Code))
	}
	doc := readDoc(t, "docs/serve.md")
	asks, asked := doc.tables(t, "## What clients ask"), doc.tables(t, "## What the supervisor asks")
	sameSet(t, "requests of clients", column(asks[0], 0), names["client-to-supervisor"])
	sameSet(t, "notifications of clients", column(asks[1], 0), names["client-to-supervisor notification"])
	sameSet(t, "requests of the supervisor", column(asked[0], 0), names["supervisor-to-client"])
	sameSet(t, "notifications of the supervisor", column(asked[1], 0), names["supervisor-to-client notification"])
	sameSet(t, "errors", column(doc.tables(t, "## Errors")[0], 0), codes)
}

// listening is a `supervisor serve --listen` with a client.
type listening struct {
	cmd    *exec.Cmd
	stderr *bufio.Reader
	rpc
	conn net.Conn
}

func listen(t *testing.T, path string, args ...string) *listening {
	t.Helper()
	l := &listening{cmd: exec.Command(filepath.Join(binaries(t), "supervisor"), append([]string{"serve", "--listen", "unix:" + path}, args...)...)}
	l.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "XDG_CACHE_HOME=" + cacheHome(t), "TMPDIR=" + os.TempDir()}
	stderr, err := l.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.cmd.Process.Kill(); l.cmd.Wait() })
	l.stderr = bufio.NewReader(stderr)
	if line, err := l.stderr.ReadString('\n'); err != nil || !strings.Contains(line, "serving on "+path) {
		t.Fatalf("serve said %q, %v", line, err)
	}
	if l.conn, err = net.Dial("unix", path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.conn.Close() })
	_ = l.conn.SetDeadline(time.Now().Add(time.Minute))
	l.rpc = rpc{lines: bufio.NewReader(l.conn), to: l.conn}
	return l
}

const openParked = `
> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"capabilities":{"approvals":true}}}
< {"jsonrpc":"2.0","id":1,"result":…"durable":true…}
> {"jsonrpc":"2.0","id":2,"method":"run/open","params":{"scope":{"sessionId":"s"},"config":true,"tools":[{"name":"pay","source":"client","policy":"approve"}]}}
< {"jsonrpc":"2.0","id":2,"result":{"handle":"h1"…}
`

// SPEC 14.5, 16.3, 21: a gateway whose supervisor was killed starts another one on the same
// socket, and is asked for the approval again.
func TestServeSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path, state := filepath.Join(dir, "s"), filepath.Join(dir, "state")
	first := listen(t, path, "--state-dir", state)
	if err := first.play(openParked + `
> {"jsonrpc":"2.0","id":3,"method":"run/exec","params":{"handle":"h1","arguments":{"code":"await tools.pay({sum: 5})"}}}
< {"jsonrpc":"2.0","id":1,"method":"tool/approve"…"runId":"…"…}
< {"jsonrpc":"2.0","id":3,"result":{"status":"waiting"…}
`); err != nil {
		t.Fatal(err)
	}
	first.cmd.Process.Kill()
	first.cmd.Wait()
	noWorkers(t, 2*time.Second)

	second := listen(t, path, "--state-dir", state) // the old socket is stale
	second.runID = first.runID
	if err := second.play(openParked + `
> {"jsonrpc":"2.0","id":3,"method":"run/wait","params":{"handle":"h1","arguments":{"runId":"RUN_ID"}}}
< {"jsonrpc":"2.0","id":1,"method":"tool/approve"…"sum":5…}
> {"jsonrpc":"2.0","id":1,"result":{"approved":true}}
< {"jsonrpc":"2.0","id":2,"method":"tool/call"…"sum":5…}
> {"jsonrpc":"2.0","id":2,"result":{"value":"paid"}}
< {"jsonrpc":"2.0","id":3,"result":{"status":"completed","value":"paid"…}
`); err != nil {
		t.Fatal(err)
	}
}

// SPEC 14.2, 19.3, 21: SIGTERM ends the runs of all clients and the socket; who comes second to a
// socket is told who has it.
func TestServeEndsBySignal(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	l := listen(t, path, "--state-dir", filepath.Join(dir, "state"))
	if err := l.play(openParked + `
> {"jsonrpc":"2.0","id":3,"method":"run/exec","params":{"handle":"h1","arguments":{"code":"for (;;);"}}}
> {"jsonrpc":"2.0","id":4,"method":"run/abort","params":{"handle":"h1","runId":"unknown"}}
< {"jsonrpc":"2.0","id":4,"result":{"aborted":0}}
`); err != nil {
		t.Fatal(err)
	}
	s := session{dir: dir, bin: binaries(t), cache: cacheHome(t)}
	got := strings.Join(s.run(t, "supervisor serve --listen unix:"+path), "\n")
	if s.exit != 2 || !strings.Contains(got, fmt.Sprintf("in use by process %d", l.cmd.Process.Pid)) {
		t.Errorf("a second server: exit %d, %s", s.exit, got)
	}
	if err := l.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := l.play(`< {"jsonrpc":"2.0","id":3,"result":{"status":"failed"…"code":"aborted"…}`); err != nil {
		t.Error(err)
	}
	if _, err := l.lines.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the end the connection gave %v, want EOF", err)
	}
	rest, _ := io.ReadAll(l.stderr)
	var exit *exec.ExitError
	if err := l.cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 143 || len(rest) > 0 {
		t.Errorf("serve ended with %v, and said %q; want exit 143", err, rest)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the socket is still there")
	}
	noWorkers(t, time.Second)
}

// The document that --schema prints is the one in the tree.
func TestServeSchema(t *testing.T) {
	out, err := exec.Command(filepath.Join(binaries(t), "supervisor"), "serve", "--schema").Output()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(repo, "cmd/supervisor/internal/gatewayrpc/openrpc.json"))
	if err != nil || string(out) != string(want) || !json.Valid(out) {
		t.Errorf("supervisor serve --schema prints %d bytes, the file has %d, %v", len(out), len(want), err)
	}
}
