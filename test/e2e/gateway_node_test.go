package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/test/e2e/mcpserver"
	"github.com/openclaw/codemode-supervisor/test/e2e/provider"
)

// The gateway of examples/gateway-node against the real programs: SPEC 21 from a language that
// is not Go.

// The versions that scripts/typescript.sh brings.
const (
	typescriptVersion = "5.9.3"
	nodeTypesVersion  = "20.19.43"
)

// nodeExample compiles examples/gateway-node, once, with tsc --strict, and gives the folder.
var nodeExample = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", errNoNode
	}
	root, err := filepath.Abs(repo)
	if err != nil {
		return "", err
	}
	compiler := filepath.Join(root, ".cache", "typescript", typescriptVersion, "lib", "tsc.js")
	types := filepath.Join(root, ".cache", "node-types", nodeTypesVersion, "node_modules", "@types")
	for _, path := range []string{compiler, filepath.Join(types, "node", "package.json")} {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("what scripts/typescript.sh brings is missing: run make deps (%w)", err)
		}
	}
	example, out := filepath.Join(root, "examples", "gateway-node"), filepath.Join(built.dir, "gateway-node")
	if said, err := exec.Command("node", compiler, "-p", example, "--typeRoots", types, "--outDir", out).CombinedOutput(); err != nil {
		return "", fmt.Errorf("tsc examples/gateway-node: %w\n%s", err, said)
	}
	about, err := os.ReadFile(filepath.Join(example, "package.json")) // it says that these are modules
	if err != nil {
		return "", err
	}
	return out, os.WriteFile(filepath.Join(out, "package.json"), about, 0o600)
})

var errNoNode = errors.New("node is not installed; examples/gateway-node was not tested")

// compiledExample is nodeExample for a test.
func compiledExample(t *testing.T) string {
	t.Helper()
	binaries(t)
	dir, err := nodeExample()
	switch {
	case errors.Is(err, errNoNode):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return dir
}

// package.json says what a user gets from npm; it must be what we test with.
func TestNodeExamplePins(t *testing.T) {
	var about struct {
		DevDependencies map[string]string
	}
	b, err := os.ReadFile(filepath.Join(repo, "examples", "gateway-node", "package.json"))
	if err == nil {
		err = json.Unmarshal(b, &about)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"typescript": typescriptVersion, "@types/node": nodeTypesVersion}, about.DevDependencies); diff != "" {
		t.Errorf("examples/gateway-node/package.json (-tested +there):\n%s", diff)
	}
}

// SPEC 21: the client against peers that are slow, broken or gone, and against a real one.
func TestNodeClient(t *testing.T) {
	dir := compiledExample(t)
	tmp := t.TempDir()
	// A client that leaves a handle behind keeps node alive; so does a test that failed.
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-reporter=tap", filepath.Join(dir, "client.test.js"))
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "XDG_CACHE_HOME="+cacheHome(t), "SUPERVISOR="+filepath.Join(binaries(t), "supervisor"))
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !bytes.Contains(out, []byte("# skipped 0\n")) || bytes.Contains(out, []byte("# pass 0\n")) {
		t.Errorf("not all tests ran:\n%s", out)
	}
	noWorkers(t, 0)
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left in TMPDIR: %v, %v", left, err)
	}
}

// report is a line of the gateway's.
type report struct {
	Ready      bool
	Session    string
	Answer     *string
	Failed     string
	Question   int
	Held       string          // of a question: the tool that somebody is asked for
	Before     string          // of a question: what the gateway is about to do
	Approve    string          // of a question: the tool that needs an approval
	Params     json.RawMessage // of the same
	Input      json.RawMessage
	Withdrawn  int
	Call       string
	CallID     string
	Result     json.RawMessage
	Output     json.RawMessage
	Hook       string
	Kind       string
	InputKind  string
	Parent     string
	Ended      string
	Status     string
	Code       string
	Transcript []struct {
		Role, Text, CallID, ParentCallID, CatalogID, State string
		IsError                                            bool
	}

	line string
}

func (r report) String() string { return r.line + "\n" }

// nodeGateway is examples/gateway-node at work.
type nodeGateway struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr bytes.Buffer
	dies   bool // it is killed by the test

	mu      sync.Mutex
	reports []report      // guarded by mu
	more    chan struct{} // guarded by mu: closed when there are more of them
	over    bool          // guarded by mu
}

// startNodeGateway starts it with a config and a process group of its own.
func startNodeGateway(t *testing.T, config map[string]any) *nodeGateway {
	t.Helper()
	dir := compiledExample(t)
	grace := time.Duration(0)
	if config["supervisor"].(map[string]any)["socket"] != nil {
		grace = 5 * time.Second // the supervisor is another's
	}
	file := filepath.Join(t.TempDir(), "gateway.json")
	b, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	g := &nodeGateway{t: t, cmd: exec.Command("node", filepath.Join(dir, "main.js"), file), more: make(chan struct{})}
	g.cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheHome(t), "TMPDIR="+t.TempDir())
	g.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	g.cmd.Stderr = &g.stderr
	out, err := g.cmd.StdoutPipe()
	if err == nil {
		g.stdin, err = g.cmd.StdinPipe()
	}
	if err == nil {
		err = g.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { // ends with the program; the cleanup waits for it
		defer close(read)
		g.read(out)
	}()
	t.Cleanup(func() {
		g.stdin.Close()
		timer := time.AfterFunc(20*time.Second, func() { syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL) })
		<-read
		if err := g.cmd.Wait(); (err != nil) != g.dies {
			t.Errorf("the gateway: %v", err)
		}
		timer.Stop()
		if g.dies {
			grace = 2 * time.Second // the others notice
		}
		gone := func() bool { return errors.Is(syscall.Kill(-g.cmd.Process.Pid, 0), syscall.ESRCH) }
		for deadline := time.Now().Add(grace); !gone(); pollPause() {
			if time.Now().After(deadline) {
				t.Error("processes of the gateway's are left")
				syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL)
				break
			}
		}
		noWorkers(t, grace)
		if t.Failed() {
			t.Logf("stderr of the gateway:\n%s", g.stderr.Bytes())
		}
	})
	g.await("its start", func(r report) bool { return r.Ready })
	return g
}

func (g *nodeGateway) read(out io.Reader) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var r report
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			g.t.Errorf("the gateway reported %.200q: %v", lines.Bytes(), err)
			continue
		}
		r.line = lines.Text()
		g.add(&r)
	}
	g.add(nil)
}

// add notes a report, or that there are no more.
func (g *nodeGateway) add(r *report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.over = r == nil; !g.over {
		g.reports = append(g.reports, *r)
	}
	close(g.more)
	g.more = make(chan struct{})
}

// all gives the reports so far for which is holds.
func (g *nodeGateway) all(is func(report) bool) (found []report) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.reports {
		if is(r) {
			found = append(found, r)
		}
	}
	return found
}

// await gives the first report for which is holds, when it is there.
func (g *nodeGateway) await(what string, is func(report) bool) report {
	g.t.Helper()
	return g.nth(0, what, is)
}

// nth gives the n-th of them, from 0.
func (g *nodeGateway) nth(n int, what string, is func(report) bool) report {
	g.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		g.mu.Lock()
		more, over, reports := g.more, g.over, g.reports
		g.mu.Unlock()
		seen := 0
		for _, r := range reports {
			if is(r) {
				if seen++; seen > n {
					return r
				}
			}
		}
		if over {
			g.t.Fatalf("the gateway ended before %s; it reported\n%v", what, reports)
		}
		select {
		case <-more:
		case <-limit:
			g.t.Fatalf("%s did not come; reported were\n%v", what, reports)
		}
	}
}

// do gives the gateway a command.
func (g *nodeGateway) do(command map[string]any) {
	g.t.Helper()
	b, _ := json.Marshal(command)
	if _, err := g.stdin.Write(append(b, '\n')); err != nil {
		g.t.Fatal(err)
	}
}

func (g *nodeGateway) answer(question int, value any) {
	g.t.Helper()
	g.do(map[string]any{"do": "answer", "question": question, "value": value})
}

// turn begins a turn of a session.
func (g *nodeGateway) turn(session, agent, text string) {
	g.t.Helper()
	g.do(map[string]any{"do": "turn", "session": session, "agent": agent, "text": text})
}

// answered gives the first answer of a session.
func (g *nodeGateway) answered(session string) string {
	g.t.Helper()
	return *g.await("the answer", func(r report) bool { return r.Session == session && r.Answer != nil }).Answer
}

// nodePlan is what the runs of the plan share.
type nodePlan struct {
	plan     *provider.Plan
	provider *provider.Server
	kind     string         // of provider: openai or anthropic
	reach    map[string]any // how the gateway reaches the supervisor
}

// testBinary is this program, which can be an MCP server.
func testBinary() string {
	path, err := os.Executable()
	check(err)
	return path
}

// config makes a gateway's config with some of the plan's tools, or with all and the MCP server.
func (p *nodePlan) config(model string, codeMode json.RawMessage, names []string) map[string]any {
	config := map[string]any{
		"supervisor": p.reach, "codeMode": codeMode, "step": true,
		"provider": map[string]any{"kind": p.kind, "url": p.provider.URL, "model": model, "key": "k"},
	}
	if names == nil {
		config["tools"], config["namespaces"] = p.plan.Tools, p.plan.Namespaces
		config["mcp"] = map[string]any{p.plan.MCP.Server: map[string]any{
			"command": testBinary(), "env": map[string]string{mcpserver.Env: p.plan.MCP.Server},
		}}
		config["policy"] = map[string]any{"deny": p.plan.MCP.Deny}
		return config
	}
	var tools []provider.Tool
	for _, name := range names {
		i := slices.IndexFunc(p.plan.Tools, func(t provider.Tool) bool { return t.Name == name })
		tools = append(tools, p.plan.Tools[i])
	}
	config["tools"] = tools
	return config
}

// The plan's steps 1 to 16, through serve from Node (SPEC 21, 2, 10, 12): for both providers over stdio, and over
// a socket.
func TestNodeGatewayPlan(t *testing.T) {
	p := nodePlanOf(t, "openai")
	plan, server := p.plan, p.provider
	var steps []string
	for _, s := range plan.Steps {
		steps = append(steps, s.Name[:2])
	}
	for n := 1; n <= 16; n++ {
		if !slices.Contains(steps, fmt.Sprintf("%02d", n)) {
			t.Errorf("the plan has no step %d", n)
		}
	}
	for _, kind := range []string{"openai", "anthropic"} {
		t.Run(kind+"_stdio", func(t *testing.T) {
			p := &nodePlan{plan, server, kind, p.reach}
			for _, s := range plan.Steps {
				t.Run(s.Name, func(t *testing.T) { p.run(t, s) })
			}
		})
	}
	t.Run("openai_socket", func(t *testing.T) {
		p := &nodePlan{plan, server, "openai", map[string]any{"socket": serveSocket(t)}}
		for _, s := range plan.Steps {
			switch s.Name {
			case "02_direct_turn", "05_turn", "10_mcp", "13_wait", "15_abort", "16_trajectory":
				t.Run(s.Name, func(t *testing.T) { p.run(t, s) })
			}
		}
	})
}

// run takes a new gateway through a step.
func (p *nodePlan) run(t *testing.T, s provider.Step) {
	model, session := t.Name(), "session-1"
	p.provider.Script(model, s.Replies...)
	config := p.config(model, s.Config, s.Tools)
	file := filepath.Join(t.TempDir(), "runs.jsonl")
	config["trajectory"] = file
	g := startNodeGateway(t, config)
	g.turn(session, "main", s.User)
	if s.BeforeWait != "" {
		pause := g.await("the model's wait", func(r report) bool { return r.Before == "wait" })
		held := g.await("the question", func(r report) bool { return r.Held != "" })
		switch s.BeforeWait {
		case "release":
			g.answer(held.Question, held.Input)
		case "abort":
			g.do(map[string]any{"do": "abort", "session": session})
			p.over(g, held, "aborted")
		case "expire":
			p.over(g, held, "snapshot_expired")
		default:
			t.Fatalf("beforeWait is %q", s.BeforeWait)
		}
		g.answer(pause.Question, true)
	}
	if got := g.answered(session); got != s.Answer {
		t.Errorf("the answer is\n%s\nwant\n%s", got, s.Answer)
	}

	requests := p.provider.Requests(model)
	if len(requests) != len(s.Replies) || p.provider.Left(model) > 0 {
		t.Errorf("%d requests came, want %d", len(requests), len(s.Replies))
	}
	for i, r := range requests {
		if diff := cmp.Diff(s.Visible, r.Tools()); diff != "" || r.Key != "k" || !r.Stream {
			t.Errorf("request %d, key %q, stream %v: tools (-want +got):\n%s", i, r.Key, r.Stream, diff)
		}
	}
	g.do(map[string]any{"do": "transcript", "session": session})
	transcript := g.await("the transcript", func(r report) bool { return r.Transcript != nil }).Transcript
	var results []json.RawMessage
	for _, m := range transcript {
		if m.Role == "tool" {
			results = append(results, json.RawMessage(m.Text))
		}
	}
	if len(results) != len(s.Results) {
		t.Fatalf("the model got %d results, want %d: %s", len(results), len(s.Results), results)
	}
	for i, want := range s.Results {
		if diff := subset(parsed(t, want), parsed(t, results[i])); diff != "" {
			t.Errorf("result %d: %s", i, diff)
		}
	}
	if s.Nested != nil {
		p.trajectory(t, g, file, s, session)
	}
}

// over waits until a run has ended with this code, and the question of its call is withdrawn.
func (p *nodePlan) over(g *nodeGateway, held report, code string) {
	g.t.Helper()
	g.await("the end of the run", func(r report) bool { return r.Ended != "" && r.Code == code })
	g.await("the end of its call", func(r report) bool { return r.Withdrawn == held.Question })
}

// trajectory checks step 16: the events that Node wrote, and what the program draws of them.
func (p *nodePlan) trajectory(t *testing.T, g *nodeGateway, file string, s provider.Step, session string) {
	root := g.await("the exec", func(r report) bool { return r.Call == "exec" }).CallID
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, err := trajectory.Read(f)
	if err != nil || log.Skipped > 0 {
		t.Fatalf("%d lines of the trajectory are no events, %v", log.Skipped, err)
	}
	var nested []string
	kinds := map[trajectory.Kind]int{}
	for _, e := range log.Events {
		kinds[e.Kind]++
		if e.Parent != root {
			t.Errorf("the parent of %+v is not %s", e, root)
		}
		if e.Kind == trajectory.ToolCall {
			nested = append(nested, e.ToolID)
		}
	}
	if diff := cmp.Diff(s.Nested, nested); diff != "" {
		t.Errorf("nested calls (-want +got):\n%s", diff)
	}
	if kinds[trajectory.Exec] != 1 || kinds[trajectory.Park] != 1 || kinds[trajectory.Resume] != 1 || kinds[trajectory.End] != 1 {
		t.Errorf("events by kind: %v", kinds)
	}
	shown, err := exec.Command(filepath.Join(binaries(t), "supervisor"), "trajectory", "show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, shown)
	}
	lines := strings.Split(string(shown), "\n")
	if !strings.HasPrefix(lines[0], "exec "+root+"  completed") {
		t.Errorf("the root of the tree is %q, want %s", lines[0], root)
	}
	for _, id := range s.Nested {
		if n := strings.Count(string(shown), "  "+id+"  done  "); n != 1 {
			t.Errorf("%s stands in the tree %d times:\n%s", id, n, shown)
		}
	}
	// The transcript of the gateway has them, too, under the exec (SPEC 18.1).
	var kept []string
	for _, m := range g.await("the transcript", func(r report) bool { return r.Transcript != nil }).Transcript {
		if m.Role == "nested" {
			if kept = append(kept, m.CatalogID); m.ParentCallID != root || m.State != "done" {
				t.Errorf("in the transcript: %+v", m)
			}
		}
	}
	if diff := cmp.Diff(s.Nested, kept); diff != "" {
		t.Errorf("nested calls in the transcript (-want +got):\n%s", diff)
	}
}

// nodePlanOf makes a plan of our own: tools of the plan, a provider, stdio.
func nodePlanOf(t *testing.T, kind string) *nodePlan {
	t.Helper()
	compiledExample(t)
	plan, err := thePlan()
	if err != nil {
		t.Fatal(err)
	}
	server, err := provider.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return &nodePlan{plan, server, kind, map[string]any{"command": filepath.Join(binaries(t), "supervisor")}}
}

// result gives the n-th result of a session's calls, from 0, when it is there.
func (g *nodeGateway) result(session string, n int) (res struct {
	Status, RunID, Code, Phase, Error string
	Value                             json.RawMessage
}) {
	g.t.Helper()
	r := g.nth(n, fmt.Sprintf("result %d of %s", n, session), func(r report) bool { return r.Session == session && r.Result != nil })
	if err := json.Unmarshal(r.Result, &res); err != nil {
		g.t.Fatal(err)
	}
	return res
}

// SPEC 2.6: a third tool in the payload stops the request before it is sent, with both providers.
func TestNodeSmuggledTool(t *testing.T) {
	for kind, tool := range map[string]string{
		"openai":    `{"type": "function", "function": {"name": "message", "parameters": {"type": "object"}}}`,
		"anthropic": `{"name": "message", "input_schema": {"type": "object"}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			p := nodePlanOf(t, kind)
			p.provider.Script("m", provider.Reply{Text: "I saw it."})
			config := p.config("m", json.RawMessage("true"), []string{"message"})
			config["smuggle"] = json.RawMessage(tool)
			g := startNodeGateway(t, config)
			g.turn("s", "main", "Hello.")
			r := g.await("the end of the turn", func(r report) bool { return r.Session == "s" && (r.Failed != "" || r.Answer != nil) })
			if !strings.Contains(r.Failed, "the request was not sent") || !strings.Contains(r.Failed, "message") {
				t.Errorf("the turn ended with %+v", r)
			}
			if n := len(p.provider.Requests("m")); n > 0 {
				t.Errorf("%d requests were sent", n)
			}
		})
	}
}

// SPEC 2.7, 10.1, 10.5: the before-tool hook sees exec and nested calls, and can refuse both; a call that
// needs an approval parks the run until somebody has said yes, or no.
func TestNodeHooksAndApprovals(t *testing.T) {
	p := nodePlanOf(t, "anthropic")
	p.provider.Script("m",
		provider.Reply{Exec: `const refused = await tools.message({ to: "ann", text: "hi" }).catch((e) => [e.code, e.started, e.message]);
			const no: string = await tools.deploy({ version: "1" }).catch((e) => e.message);
			[refused, no, await tools.deploy({ version: "2" })]`, Language: "typescript"},
		provider.Reply{Wait: true}, provider.Reply{Wait: true}, provider.Reply{Text: "{{value}}"})
	config := p.config("m", json.RawMessage(`{"enabled": true}`), []string{"message", "deploy"})
	config["block"] = []string{"openclaw:core:message"}
	config["step"] = false
	g := startNodeGateway(t, config)
	g.turn("s", "main", "Deploy.")
	ask := func(version string) report {
		return g.await("the question about "+version, func(r report) bool {
			return r.Approve == "openclaw:core:deploy" && string(r.Params) == `{"version":"`+version+`"}`
		})
	}
	first := ask("1")
	if res := g.result("s", 0); res.Status != "waiting" {
		t.Errorf("exec gave %+v", res)
	}
	g.answer(first.Question, map[string]any{"approved": false, "reason": "not today"})
	g.answer(ask("2").Question, map[string]any{"approved": true})
	got := g.answered("s")
	for _, want := range []string{`[["blocked",false,"the before-tool hook refused tool \"openclaw:core:message\": the gateway's config blocks it`, "not today; the tool was not started", `{"version":"2"}]`} {
		if !strings.Contains(got, strings.ReplaceAll(want, `\\`, `\`)) {
			t.Errorf("the answer lacks %s:\n%s", want, got)
		}
	}
	exec := g.await("the exec", func(r report) bool { return r.Call == "exec" })
	type hook struct{ Hook, Kind, InputKind, Session, Parent string }
	var hooks []hook
	for _, r := range g.all(func(r report) bool { return r.Hook != "" }) {
		hooks = append(hooks, hook{r.Hook, r.Kind, r.InputKind, r.Session, r.Parent})
	}
	want := []hook{{"exec", "code_mode_exec", "typescript", "s", ""}, {Hook: "openclaw:core:message"}, {Hook: "openclaw:core:deploy"}, {Hook: "openclaw:core:deploy"}}
	for i := 1; i < len(want); i++ {
		want[i].Session, want[i].Parent = "s", exec.CallID
	}
	if diff := cmp.Diff(want, hooks); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

// SPEC 2.7: an exec that the hook refuses runs nothing.
func TestNodeRefusedExec(t *testing.T) {
	p := nodePlanOf(t, "openai")
	p.provider.Script("m", provider.Reply{Exec: `text("ran"); await tools.message({ to: "ann", text: "hi" })`}, provider.Reply{Text: "No."})
	config := p.config("m", json.RawMessage("true"), []string{"message"})
	config["block"] = []string{"exec"}
	g := startNodeGateway(t, config)
	g.turn("s", "main", "Run.")
	if got := g.answered("s"); got != "No." {
		t.Errorf("the answer is %s", got)
	}
	if res := g.result("s", 0); res.Code != "invalid_input" || !strings.Contains(res.Error, "the gateway's config blocks it") {
		t.Errorf("the result is %+v", res)
	}
	if ran := g.all(func(r report) bool { return r.Output != nil || r.Hook == "openclaw:core:message" }); len(ran) > 0 {
		t.Errorf("the refused cell ran: %+v", ran)
	}
}

// SPEC 14.2: a turn that is stopped aborts its cells, and leaves a transcript that a provider takes.
func TestNodeStop(t *testing.T) {
	p := nodePlanOf(t, "openai")
	config := p.config("m", json.RawMessage("true"), []string{"ask_person"})
	config["step"] = false
	g := startNodeGateway(t, config)
	p.provider.Script("m", provider.Reply{Calls: []provider.Call{
		{Name: "exec", Arguments: json.RawMessage(`{"code": "await yield_control(); tools.ask_person({ question: '?' })"}`)},
		{Name: "exec", Arguments: json.RawMessage(`{"code": "await tools.ask_person({ question: '?' })"}`)},
		{Name: "exec", Arguments: json.RawMessage(`{"code": "text('ran')"}`)},
	}}, provider.Reply{Wait: true}, provider.Reply{Text: "?"})
	g.turn("s", "main", "Go.")
	question := g.await("the question", func(r report) bool { return r.Held != "" })
	g.do(map[string]any{"do": "stop", "session": "s"})
	r := g.await("the end of the turn", func(r report) bool { return r.Failed != "" })
	if r.Failed != "the turn was stopped" {
		t.Errorf("the turn failed: %s", r.Failed)
	}
	g.await("the end of the question", func(r report) bool { return r.Withdrawn == question.Question })
	if ran := g.all(func(r report) bool { return r.Output != nil }); len(ran) > 0 {
		t.Errorf("a cell ran after the stop: %v", ran)
	}
	p.provider.Script("m", provider.Reply{Exec: "1 + 1"}, provider.Reply{Text: "{{value}}"})
	g.turn("s", "main", "And now?")
	if got := g.answered("s"); got != "2" {
		t.Errorf("the answer is %s", got)
	}
}

// SPEC 12.4, 2.1: two agents over one connection. One may not wait for the other's run, and is told
// what it is told of no run at all; an agent's own tools.codeMode is its own.
func TestNodeTwoAgents(t *testing.T) {
	p := nodePlanOf(t, "openai")
	config := p.config("", json.RawMessage(`{"enabled": true}`), []string{"message", "ask_person"})
	config["agents"] = map[string]any{"a": map[string]any{"model": "a"}, "b": map[string]any{"model": "b"}, "c": map[string]any{"model": "c", "codeMode": false}}
	g := startNodeGateway(t, config)
	p.provider.Script("a", provider.Reply{Exec: `text("secret of a"); const r = await tools.ask_person({ question: "a?" }); r.question`}, provider.Reply{Wait: true}, provider.Reply{Text: "{{value}}"})
	g.turn("session-a", "a", "Ask.")
	pause := g.await("a's wait", func(r report) bool { return r.Before == "wait" && r.Session == "session-a" })
	held := g.await("a's question", func(r report) bool { return r.Held != "" })
	a := g.result("session-a", 0)

	unknown := strings.Repeat("0", len(a.RunID))
	wait := func(id string) provider.Reply {
		return provider.Reply{Calls: []provider.Call{{Name: "wait", Arguments: json.RawMessage(`{"runId":"` + id + `"}`)}}}
	}
	p.provider.Script("b", wait(a.RunID), wait(unknown), provider.Reply{Text: "Nothing."})
	g.turn("session-b", "b", "Wait for the other's.")
	for n := range 2 {
		before := g.nth(n, "b's wait", func(r report) bool { return r.Before == "wait" && r.Session == "session-b" })
		g.answer(before.Question, true)
		g.result("session-b", n)
	}
	if got := g.answered("session-b"); got != "Nothing." {
		t.Errorf("b was told %s", got)
	}
	foreign, none := g.result("session-b", 0), g.result("session-b", 1)
	if diff := cmp.Diff(foreign, none); diff != "" || foreign.Code != "invalid_input" {
		t.Errorf("a foreign run is not like none: %s\n%+v", diff, foreign)
	}

	p.provider.Script("c", provider.Reply{Text: "Plain."})
	g.turn("session-c", "c", "Hello.")
	if got := g.answered("session-c"); got != "Plain." {
		t.Errorf("c answered %s", got)
	}
	if got := p.provider.Requests("c")[0].Tools(); !slices.Equal(got, []string{"message", "ask_person"}) {
		t.Errorf("c was shown %q", got)
	}

	g.answer(held.Question, held.Input)
	g.answer(pause.Question, true)
	if got := g.answered("session-a"); got != `"a?"` {
		t.Errorf("a answered %s", got)
	}
	for _, r := range p.provider.Requests("b") {
		if bytes.Contains(r.Body, []byte("secret of a")) || bytes.Contains(r.Body, []byte("a?")) {
			t.Errorf("b was told of a: %s", r.Body)
		}
	}
}

// SPEC 21, 16.3: whoever ends first, nothing is left. A gateway that is killed takes its supervisor and all
// workers with it; a supervisor that is killed costs the turn, with a reason, and the gateway can end.
func TestNodeGatewayDeaths(t *testing.T) {
	p := nodePlanOf(t, "openai")
	at := func(name string) (*nodeGateway, int) {
		p.provider.Script(name, provider.Reply{Exec: `text("on"); await tools.ask_person({ question: "?" })`}, provider.Reply{Wait: true}, provider.Reply{Text: "?"})
		config := p.config(name, json.RawMessage("true"), []string{"ask_person"})
		config["step"] = false
		g := startNodeGateway(t, config)
		g.turn("s", "main", "Go.")
		g.result("s", 0) // it is parked, and waited for
		out, err := exec.Command("ps", "-axo", "pid=,ppid=,args=").Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			var pid, parent int
			if n, _ := fmt.Sscan(line, &pid, &parent); n == 2 && parent == g.cmd.Process.Pid && strings.Contains(line, "serve --stdio") {
				return g, pid
			}
		}
		t.Fatalf("the gateway has no supervisor:\n%s", out)
		return nil, 0
	}
	t.Run("supervisor", func(t *testing.T) {
		g, pid := at("supervisor")
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		r := g.await("the end of the turn", func(r report) bool { return r.Failed != "" })
		if !strings.Contains(r.Failed, "the connection to the supervisor is gone") || !strings.Contains(r.Failed, "SIGKILL") {
			t.Errorf("the turn failed: %s", r.Failed)
		}
		g.await("the end of the question", func(r report) bool { return r.Withdrawn > 0 })
	})
	t.Run("gateway", func(t *testing.T) {
		g, _ := at("gateway")
		g.dies = true
		if err := g.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
	})
}

// serveSocket starts supervisor serve on a socket, which must be gone with it.
func serveSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "serve") // short: the name of a socket has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "gateway.sock")
	cmd := exec.Command(filepath.Join(binaries(t), "supervisor"), "serve", "--listen", "unix:"+socket, "--set", "supervisor.pool=0")
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheHome(t), "TMPDIR="+dir)
	stderr, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := bufio.NewReader(stderr)
	line, err := said.ReadString('\n')
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		rest, _ := io.ReadAll(said)
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 143 {
			t.Errorf("serve ended with %v, want 143; it said %s%s", err, line, rest)
		}
		noWorkers(t, 0)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
		os.RemoveAll(dir)
	})
	if err != nil || !strings.Contains(line, socket) {
		t.Fatalf("serve said %q, %v", line, err)
	}
	return socket
}
