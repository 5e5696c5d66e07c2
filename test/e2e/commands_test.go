package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/test/shipped"
	"github.com/rogpeppe/go-internal/testscript"
)

// commands are what the stories have beyond testscript's own:
//
//	supervisor ARG…               runs the program; whatever its exit code is
//	exit N                        … and that is the exit code it had
//	cell ARG…                     runs `supervisor run --json ARG…` and checks the result's shape (SPEC 11.1)
//	                              (with wait as the first argument `supervisor wait --json …`)
//	completes WANT ARG…           … and that it completed with this JSON value
//	waits REASON ARG…             runs it with --no-wait: it is parked; its id is $RUN
//	fails CODE PHASE REGEXP ARG…  … and that it failed so; CODE is - for a guest's own error
//	field PATH WANT               … a field of the last result, by its path (a.0.b), is this JSON
//	match PATH REGEXP             … a text (or else its JSON) matches; with ! it does not
//	absent PATH…                  … is not there
//	keys PATH NAME…               … an object has exactly these keys
//	atmost PATH N, atleast PATH N … a number
//	bounded N                     output, value and error together take at most N bytes of JSON (SPEC 9.2)
//	within MS COMMAND…            the command's program took no longer, by its own count and by ours
//	noworkers [MS]                no worker is alive (after MS at the latest)
//	signal NAME ARG…              runs `supervisor run ARG…`, waits for its first line, sends the signal
//	inside environ|fd ARG…        runs a cell and prints what /proc has of its worker
//	gone FILE                     the process whose number is in the file is gone, or is within a second
//	repeat FILE N TEXT            appends N times TEXT to a file
//	expired DIR                   the snapshots of a state directory are gone, or are when somebody looks at it after their time
//	kill9 ARG…                    starts the program, and kills it when a run of its state directory is running
//	flip DIR                      flips a bit in each file of a folder
//	otherworker FILE              builds a worker of another protocol version
//	rpc FILE ARG…                 runs `supervisor serve --stdio ARG…` and plays a transcript with it: rpc.play
var commands map[string]func(*testscript.TestScript, bool, []string)

func init() {
	commands = map[string]func(*testscript.TestScript, bool, []string){
		"supervisor": func(ts *testscript.TestScript, neg bool, args []string) { of(ts).run(ts, args) },
		"cell":       cmdCell, "completes": cmdCompletes, "waits": cmdWaits, "fails": cmdFails,
		"exit": cmdExit, "field": cmdField, "match": cmdMatch, "absent": cmdAbsent, "keys": cmdKeys,
		"atmost": cmdAtMost, "atleast": cmdAtLeast, "bounded": cmdBounded, "within": cmdWithin,
		"noworkers": cmdNoWorkers, "signal": cmdSignal, "inside": cmdInside, "gone": cmdGone, "repeat": cmdRepeat, "otherworker": cmdOtherWorker,
		"expired": cmdExpired, "flip": cmdFlip, "kill9": cmdKill9, "rpc": cmdRPC,
	}
}

// story is what a running story remembers.
type story struct {
	t      *testing.T
	exit   int           // of the last program
	wall   time.Duration // it took
	result any           // of the last cell, as JSON with numbers as they are
}

type storyKey struct{}

func of(ts *testscript.TestScript) *story { return ts.Value(storyKey{}).(*story) }

// run runs the program. Its output is what the commands stdout, stderr and cmp look at.
func (s *story) run(ts *testscript.TestScript, args []string) {
	began := time.Now()
	err := ts.Exec("supervisor", args...)
	s.wall = time.Since(began)
	var exit *exec.ExitError
	switch {
	case err == nil:
		s.exit = 0
	case errors.As(err, &exit):
		s.exit = exit.ExitCode()
		if bytes.Contains([]byte(ts.ReadFile("stderr")), []byte("goroutine ")) {
			ts.Fatalf("the program panicked")
		}
	default:
		s.exit = -1
		ts.Fatalf("%v", err)
	}
}

func cmdExit(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(one(ts, args))
	ts.Check(err)
	if got := of(ts).exit; got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// codes are the error codes of SPEC 11.2 with their exit codes of 19.3.
var codes = map[string]int{
	"": 1, "nested_tool_failed": 1,
	"invalid_config": 2, "invalid_input": 2, "unsupported_language": 2, "typescript_transform_failed": 2, "module_access_denied": 2,
	"timeout": 3, "memory_limit_exceeded": 3, "output_limit_exceeded": 3, "snapshot_limit_exceeded": 3, "snapshot_expired": 3,
	"too_many_pending_tool_calls": 3, "aborted": 3,
	"snapshot_restore_failed": 4, "internal_error": 4,
	"runtime_unavailable": 5,
}

// phases are the phases that a code may have (SPEC 11.1).
var phases = map[string][]string{
	"":                            {"guest"},
	"nested_tool_failed":          {"tool"},
	"invalid_config":              {"input"},
	"invalid_input":               {"input"},
	"unsupported_language":        {"input"},
	"typescript_transform_failed": {"input"},
	"module_access_denied":        {"input"},
	"timeout":                     {"limit"},
	"memory_limit_exceeded":       {"limit"},
	"output_limit_exceeded":       {"limit"},
	"snapshot_limit_exceeded":     {"limit"},
	"snapshot_expired":            {"limit"},
	"snapshot_restore_failed":     {"host"},
	"too_many_pending_tool_calls": {"limit"},
	"aborted":                     {"host"},
	"internal_error":              {"host"},
	"runtime_unavailable":         {"host"},
}

// cmdCell runs a cell, or goes on with one if the first argument is wait, and holds its
// result against SPEC 11.1, 11.2 and 19.3, whatever it is.
func cmdCell(ts *testscript.TestScript, neg bool, args []string) {
	s := of(ts)
	s.result = nil
	if args[0] == "wait" {
		s.run(ts, append([]string{"wait", "--json"}, args[1:]...))
	} else {
		s.run(ts, append([]string{"run", "--json"}, args...))
	}
	out := ts.ReadFile("stdout")
	if strings.Count(out, "\n") != 1 || !strings.HasSuffix(out, "\n") {
		ts.Fatalf("--json printed %d lines (exit code %d): %.1000q", strings.Count(out, "\n"), s.exit, out)
	}
	v, err := decode(out)
	ts.Check(err)
	s.result = v
	result, ok := v.(map[string]any)
	if !ok {
		ts.Fatalf("the result is no object: %.1000s", out)
	}
	if problem := shape(result, s.exit); problem != "" {
		ts.Fatalf("%s in %.2000s", problem, out)
	}
}

// shape says what is wrong with a result.
func shape(result map[string]any, exit int) string {
	status, _ := result["status"].(string)
	want := map[string][]string{
		"completed": {"status", "value", "output?", "telemetry"},
		"waiting":   {"status", "runId", "reason", "note?", "pendingToolCalls?", "output?", "telemetry"},
		"failed":    {"status", "error", "code?", "phase", "output?", "telemetry"},
	}[status]
	if want == nil {
		return fmt.Sprintf("status %v", result["status"])
	}
	if problem := hasKeys(result, want); problem != "" {
		return problem
	}
	if items, ok := result["output"].([]any); ok && len(items) == 0 {
		return "an empty output instead of none"
	}
	telemetry, _ := result["telemetry"].(map[string]any)
	if problem := hasKeys(telemetry, []string{"visibleTools", "catalog", "counts", "calls", "callsOmitted?", "limits", "snapshot", "timings", "worker", "cell?", "omittedBytes?"}); problem != "" {
		return "telemetry: " + problem
	}
	if _, ok := telemetry["calls"].([]any); !ok {
		return "telemetry.calls is no array"
	}
	if over, ok := map[string]int{"completed": 0, "waiting": 6}[status]; ok {
		if exit != over {
			return fmt.Sprintf("exit code %d of a %s cell", exit, status)
		}
		return ""
	}
	text, _ := result["error"].(string)
	code, _ := result["code"].(string)
	phase, _ := result["phase"].(string)
	wantExit, known := codes[code]
	switch {
	case text == "":
		return "an error without a text"
	case !known || result["code"] == "":
		return fmt.Sprintf("the code %v", result["code"])
	case exit != wantExit:
		return fmt.Sprintf("exit code %d for the code %q, want %d", exit, code, wantExit)
	case !slices.Contains(phases[code], phase):
		return fmt.Sprintf("the phase %q with the code %q", phase, code)
	}
	return ""
}

// hasKeys compares an object's keys; those with a question mark may be missing.
func hasKeys(object map[string]any, want []string) string {
	left := maps.Clone(object)
	for _, key := range want {
		key, optional := strings.CutSuffix(key, "?")
		if _, ok := left[key]; !ok && !optional {
			return fmt.Sprintf("no field %q", key)
		}
		delete(left, key)
	}
	if len(left) > 0 {
		return fmt.Sprintf("the unknown fields %v", slices.Sorted(maps.Keys(left)))
	}
	return ""
}

func cmdCompletes(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: completes WANT ARG…")
	}
	cmdCell(ts, false, args[1:])
	if got := at(ts, "status"); got != "completed" {
		ts.Fatalf("%v: %v", got, at(ts, "error"))
	}
	equal(ts, "value", args[0])
}

// cmdWaits runs a cell that is parked, and puts its id into $RUN.
func cmdWaits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: waits REASON ARG…")
	}
	cmdCell(ts, false, append(args[1:], "--no-wait"))
	if at(ts, "status") != "waiting" || at(ts, "reason") != args[0] {
		ts.Fatalf("%v %v: %v", at(ts, "status"), encode(of(ts).result), args[0])
	}
	ts.Setenv("RUN", at(ts, "runId").(string))
}

func cmdFails(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 4 {
		ts.Fatalf("usage: fails CODE PHASE REGEXP ARG…")
	}
	cmdCell(ts, false, args[3:])
	if at(ts, "status") != "failed" {
		ts.Fatalf("it did not fail")
	}
	code, _ := at(ts, "code").(string)
	if code == "" {
		code = "-"
	}
	if code != args[0] || at(ts, "phase") != args[1] {
		ts.Fatalf("code %s, phase %v; want %s, %s: %v", code, at(ts, "phase"), args[0], args[1], at(ts, "error"))
	}
	matches(ts, false, "error", args[2])
}

func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	two(ts, args)
	equal(ts, args[0], args[1])
}

func cmdMatch(ts *testscript.TestScript, neg bool, args []string) {
	two(ts, args)
	matches(ts, neg, args[0], args[1])
}

func cmdAbsent(ts *testscript.TestScript, neg bool, args []string) {
	for _, path := range args {
		if v, ok := lookup(of(ts).result, path); ok {
			ts.Fatalf("%s is there: %s", path, encode(v))
		}
	}
}

func cmdKeys(ts *testscript.TestScript, neg bool, args []string) {
	object, ok := at(ts, args[0]).(map[string]any)
	if !ok {
		ts.Fatalf("%s is no object", args[0])
	}
	want := slices.Sorted(slices.Values(args[1:]))
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(object))); diff != "" {
		ts.Fatalf("the keys of %s (-want +got):\n%s", args[0], diff)
	}
}

func cmdAtMost(ts *testscript.TestScript, neg bool, args []string)  { bound(ts, args, true) }
func cmdAtLeast(ts *testscript.TestScript, neg bool, args []string) { bound(ts, args, false) }

func bound(ts *testscript.TestScript, args []string, upper bool) {
	two(ts, args)
	number, ok := at(ts, args[0]).(json.Number)
	want, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	got, err := number.Float64()
	if !ok || err != nil {
		ts.Fatalf("%s is no number", args[0])
	}
	if upper && got > want || !upper && got < want {
		ts.Fatalf("%s is %v, the bound is %v", args[0], got, want)
	}
}

// cmdBounded counts what a limit on output counts: the JSON of each item's content, of the
// value and of the error, as the result has it.
func cmdBounded(ts *testscript.TestScript, neg bool, args []string) {
	limit, err := strconv.Atoi(one(ts, args))
	ts.Check(err)
	var raw struct {
		Value, Error json.RawMessage
		Output       []struct{ Text, Value json.RawMessage }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &raw))
	size := len(raw.Value) + len(raw.Error)
	for _, item := range raw.Output {
		size += len(item.Text) + len(item.Value)
	}
	if string(raw.Value) == "null" {
		size -= len("null")
	}
	if code, _ := at(ts, "code").(string); code != "" {
		size -= len(raw.Error) // our own words
	}
	if size > limit {
		ts.Fatalf("output, value and error have %d bytes, the limit is %d", size, limit)
	}
}

func cmdWithin(ts *testscript.TestScript, neg bool, args []string) {
	ms, err := strconv.Atoi(args[0])
	ts.Check(err)
	base := baseline()
	command := commands[args[1]]
	if command == nil {
		ts.Fatalf("unknown command %q", args[1])
	}
	command(ts, false, args[2:])
	s := of(ts)
	limit := time.Duration(ms) * time.Millisecond
	if s.wall-base > limit {
		ts.Fatalf("it took %v (and %v of starting the program), the limit is %v", s.wall-base, base, limit)
	}
	if total, ok := lookup(s.result, "telemetry.timings.total"); ok {
		if f, err := total.(json.Number).Float64(); err != nil || f > float64(ms) || f <= 0 {
			ts.Fatalf("telemetry.timings.total is %v, the limit is %d", total, ms)
		}
	}
}

func cmdNoWorkers(ts *testscript.TestScript, neg bool, args []string) {
	grace := time.Duration(0)
	if len(args) > 0 {
		ms, err := strconv.Atoi(args[0])
		ts.Check(err)
		grace = time.Duration(ms) * time.Millisecond
	}
	noWorkers(of(ts).t, grace)
}

// cmdSignal sends a signal to the program when the cell has printed its first line.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	sig, ok := map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}[args[0]]
	if !ok {
		ts.Fatalf("unknown signal %s", args[0])
	}
	of(ts).during(ts, args[1:], sig, func(int) {})
}

// cmdInside looks at the worker of a cell that runs.
func cmdInside(ts *testscript.TestScript, neg bool, args []string) {
	of(ts).during(ts, append([]string{"-e", `text("ready"); for(;;);`}, args[1:]...), syscall.SIGTERM, func(pid int) {
		name := fmt.Sprintf("/proc/%d/%s", pid, args[0])
		if args[0] == "environ" {
			b, err := os.ReadFile(name)
			ts.Check(err)
			ts.Stdout().Write(bytes.ReplaceAll(b, []byte{0}, []byte("\n")))
			return
		}
		entries, err := os.ReadDir(name)
		ts.Check(err)
		for _, e := range entries {
			target, _ := os.Readlink(filepath.Join(name, e.Name()))
			fmt.Fprintln(ts.Stdout(), e.Name(), target)
		}
	})
}

// during runs a cell, calls do with its worker when it has printed its first line, and ends
// the program with the signal.
func (s *story) during(ts *testscript.TestScript, args []string, sig syscall.Signal, do func(worker int)) {
	cmd := exec.Command(filepath.Join(ts.Getenv("BIN"), "supervisor"), append([]string{"run"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	for _, key := range []string{"PATH", "HOME", "XDG_CACHE_HOME", "TMPDIR", "SECRET_OF_THE_GATEWAY"} {
		cmd.Env = append(cmd.Env, key+"="+ts.Getenv(key))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdin, err := os.Open(os.Args[0]) // a file that nobody below must have open
	ts.Check(err)
	defer stdin.Close()
	cmd.Stdin = stdin
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	timer := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	defer cmd.Process.Kill() // where we give up early
	if line, err := firstLine(stdout); err != nil {
		ts.Fatalf("it said %q, then: %v\n%s", line, err, stderr.Bytes())
	}
	pids := workers(s.t)
	if len(pids) != 1 {
		ts.Fatalf("one cell runs, and the workers are %v", pids)
	}
	do(pids[0])
	began := time.Now()
	ts.Check(cmd.Process.Signal(sig))
	cmd.Wait()
	s.wall = time.Since(began)
	s.exit = cmd.ProcessState.ExitCode()
	ts.Logf("ended %v after the signal: %v\n%s", s.wall, cmd.ProcessState, stderr.Bytes())
}

func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(one(ts, args))))
	ts.Check(err)
	await(of(ts).t, time.Second, fmt.Sprintf("the end of process %d", pid), func() bool {
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // dead, and nobody has reaped it yet
		return err == nil && bytes.Contains(stat, []byte(") Z "))
	})
}

func cmdRepeat(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ts.Check(err)
	defer f.Close()
	_, err = f.WriteString(strings.Repeat(args[2], n))
	ts.Check(err)
}

// cmdOtherWorker builds a real worker whose only fault is its protocol version.
func cmdOtherWorker(ts *testscript.TestScript, neg bool, args []string) {
	root, err := filepath.Abs("../..")
	ts.Check(err)
	file := filepath.Join(root, "workerproto", "frame.go")
	source, err := os.ReadFile(file)
	ts.Check(err)
	changed := regexp.MustCompile(`(?m)^const Version = \d+$`).ReplaceAll(source, []byte("const Version = 99"))
	if bytes.Equal(source, changed) {
		ts.Fatalf("%s has no protocol version that could be changed", file)
	}
	other, overlay := ts.MkAbs("frame.go.other"), ts.MkAbs("overlay.json")
	ts.Check(os.WriteFile(other, changed, 0o600))
	ts.Check(os.WriteFile(overlay, encode(map[string]any{"Replace": map[string]string{file: other}}), 0o600))
	ts.Check(shipped.Build(ts.MkAbs(one(ts, args)), []string{"-overlay=" + overlay}, "cmd/qjs-worker"))
}

func one(ts *testscript.TestScript, args []string) string {
	if len(args) != 1 {
		ts.Fatalf("one argument is needed")
	}
	return args[0]
}

func two(ts *testscript.TestScript, args []string) {
	if len(args) != 2 {
		ts.Fatalf("two arguments are needed")
	}
}

// at gives a field of the last result.
func at(ts *testscript.TestScript, path string) any {
	v, _ := lookup(of(ts).result, path)
	return v
}

func lookup(v any, path string) (any, bool) {
	if path == "." {
		return v, true
	}
	for key := range strings.SplitSeq(path, ".") {
		switch container := v.(type) {
		case map[string]any:
			var ok bool
			if v, ok = container[key]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(key)
			if i < 0 {
				i += len(container)
			}
			if err != nil || i < 0 || i >= len(container) {
				return nil, false
			}
			v = container[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// equal compares a field with JSON, text of lone surrogates included.
func equal(ts *testscript.TestScript, path, want string) {
	w, err := decode(want)
	if err != nil {
		ts.Fatalf("%q is not JSON: %v", want, err)
	}
	got, ok := lookup(of(ts).result, path)
	if !ok {
		ts.Fatalf("there is no %s; want %s", path, want)
	}
	if diff := cmp.Diff(w, got); diff != "" {
		ts.Fatalf("%s is %.2000s, want %s", path, encode(got), want)
	}
}

func matches(ts *testscript.TestScript, neg bool, path, pattern string) {
	re, err := regexp.Compile(pattern)
	ts.Check(err)
	v, ok := lookup(of(ts).result, path)
	text, isText := v.(string)
	if !isText {
		text = string(encode(v))
	}
	switch {
	case !ok:
		ts.Fatalf("there is no %s", path)
	case re.MatchString(text) == neg:
		ts.Fatalf("%s is %.2000q, matching %q is %v", path, text, pattern, !neg)
	}
}

func decode(text string) (v any, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one value in %.200q", text)
	}
	return v, nil
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func cmdExpired(ts *testscript.TestScript, neg bool, args []string) {
	images := filepath.Join(ts.MkAbs(one(ts, args)), "images", "*")
	await(of(ts).t, 5*time.Second, "the expiry", func() bool {
		ts.Check(ts.Exec("supervisor", "runs", "list", "--state-dir", args[0]))
		left, err := filepath.Glob(images)
		ts.Check(err)
		return len(left) == 0
	})
}

func cmdFlip(ts *testscript.TestScript, neg bool, args []string) {
	files, err := filepath.Glob(filepath.Join(ts.MkAbs(one(ts, args)), "*"))
	ts.Check(err)
	if len(files) == 0 {
		ts.Fatalf("no file in %s", args[0])
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		ts.Check(err)
		b[len(b)*2/3] ^= 4
		ts.Check(os.WriteFile(file, b, 0o600))
	}
}

// cmdKill9 kills a program while its worker is at work on a run that was parked.
func cmdKill9(ts *testscript.TestScript, neg bool, args []string) {
	dir := args[slices.Index(args, "--state-dir")+1]
	cmd := exec.Command(filepath.Join(ts.Getenv("BIN"), "supervisor"), args...)
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{"HOME", "TMPDIR", "XDG_CACHE_HOME", "PATH"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	ts.Check(cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	await(of(ts).t, 10*time.Second, "an open call in a running leg", func() bool {
		ts.Check(ts.Exec("supervisor", "runs", "list", "--state-dir", dir))
		if !strings.Contains(ts.ReadFile("stdout"), " running ") {
			return false
		}
		ts.Check(ts.Exec("supervisor", "runs", "show", args[1], "--state-dir", dir))
		return strings.Contains(ts.ReadFile("stdout"), "in_flight")
	})
}
