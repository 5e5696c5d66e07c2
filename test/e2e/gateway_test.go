package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/test/e2e/gateway"
	"github.com/openclaw/codemode-supervisor/test/e2e/mcpserver"
	"github.com/openclaw/codemode-supervisor/test/e2e/provider"
	"go.uber.org/goleak"
)

// bothAPIs are those that each test with a model is run with.
var bothAPIs = []gateway.API{gateway.OpenAI, gateway.Anthropic}

const testKey = "key-of-the-provider-5f2c"

// rig is a gateway with everything around it: a scripted model, an MCP server, a client that
// answers, and ears at all places.
type rig struct {
	t        *testing.T
	plan     *provider.Plan
	provider *provider.Server
	gateway  *gateway.Gateway
	log      *lockedLog
	events   *trajectory.Memory
	dir      string // of transcripts

	mu         sync.Mutex
	hooked     []surface.HookEvent
	executed   []string // ids of tools that were really run
	held       map[string]*gateway.ClientCall
	beforeWait func(surface.HookEvent)
}

type lockedLog struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var thePlan = sync.OnceValues(func() (*provider.Plan, error) { return provider.Load(os.DirFS("testdata/plan")) })

// newRig starts a gateway with the plan's tools and an agent "main" whose model is "main". At the
// end of the test it is closed, and nothing may be left.
func newRig(t *testing.T, api gateway.API, change func(*rig, *gateway.Config)) *rig {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real workers")
	}
	plan, err := thePlan()
	if err != nil {
		t.Fatal(err)
	}
	worker, cache := filepath.Join(binaries(t), "qjs-worker"), codeCache(t)
	before, children := goleak.IgnoreCurrent(), childProcesses(t)
	tmp, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	transcripts := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	r := &rig{t: t, plan: plan, log: &lockedLog{}, events: trajectory.NewMemory(0, 0), dir: transcripts, held: map[string]*gateway.ClientCall{}}
	if r.provider, err = provider.Start(); err != nil {
		t.Fatal(err)
	}
	policy := catalog.Policy{Deny: slices.Clone(plan.MCP.Deny)}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg := gateway.Config{
		CodeMode:   json.RawMessage(`true`),
		Namespaces: r.namespaces(),
		MCP:        []gateway.MCPServer{{Name: plan.MCP.Server, Command: []string{self}, Env: []string{mcpserver.Env + "=" + plan.MCP.Server}}},
		BeforeTool: r.beforeTool,
		Supervisor: supervisor.Options{Worker: worker, CacheDir: cache, Pool: -1},
		Log:        r.log, TranscriptDir: r.dir, Trajectory: r.events, TrajectoryPolicy: trajectory.Policy{},
	}
	for _, tool := range plan.Tools {
		e := entryOf(tool)
		switch tool.Policy {
		case "deny":
			policy.Deny = append(policy.Deny, catalog.ID(e.Source, e.SourceName, e.Name))
		case "approve":
			policy.Approve = append(policy.Approve, catalog.ID(e.Source, e.SourceName, e.Name))
		}
		if e.Source != catalog.Client {
			cfg.Tools = append(cfg.Tools, gateway.Tool{Entry: e, Call: r.behave(tool)})
		}
	}
	cfg.Agents = map[string]gateway.Agent{"main": {Policy: policy, Model: r.model(api, "main")}}
	if change != nil {
		change(r, &cfg)
	}
	if r.gateway, err = gateway.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	t.Cleanup(func() {
		if err := r.gateway.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		stop()
		clients.Wait()
		if err := r.provider.Close(); err != nil {
			t.Errorf("closing the provider: %v", err)
		}
		noWorkers(t, 0)
		goleak.VerifyNone(t, before)
		if left := slices.DeleteFunc(childProcesses(t), func(pid string) bool { return slices.Contains(children, pid) }); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
		if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
			t.Errorf("left in TMPDIR: %v, %v", left, err)
		}
		os.RemoveAll(tmp)
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", r.log)
		}
	})
	s := r.session("main", "s1")
	clients.Go(func() { r.client(ctx, s) })
	return r
}

func (r *rig) model(api gateway.API, name string) gateway.Model {
	return gateway.Model{API: api, URL: r.provider.URL, Key: testKey, Name: name, Stream: api == gateway.OpenAI}
}

func (r *rig) namespaces() *namespace.Registry {
	registry := &namespace.Registry{}
	for _, n := range r.plan.Namespaces {
		scope := map[string]any{}
		for key, v := range n.Scope {
			if marker, ok := v.(map[string]any); ok && marker["$tool"] != nil {
				v = namespace.Tool(marker["$tool"].(string))
			}
			scope[key] = v
		}
		err := registry.Register(n.PluginID, namespace.Namespace{
			ID: n.ID, GlobalName: n.GlobalName, Description: n.Description, Prompt: n.Prompt, RequiredTools: n.RequiredTools,
			Scope: func(context.Context, namespace.Run) (any, error) { return scope, nil },
		})
		if err != nil {
			r.t.Fatal(err)
		}
	}
	return registry
}

func entryOf(t provider.Tool) catalog.Entry {
	return catalog.Entry{
		ID: t.ID, Name: t.Name, Description: t.Description, Source: catalog.Source(t.Source), SourceName: t.SourceName,
		Parameters: t.Parameters, OutputSchema: t.OutputSchema, Control: t.Control,
	}
}

// behave is what a tool of the plan does. It notes that it was reached.
func (r *rig) behave(tool provider.Tool) func(context.Context, *supervisor.Call) (json.RawMessage, error) {
	return func(_ context.Context, c *supervisor.Call) (json.RawMessage, error) {
		r.mu.Lock()
		r.executed = append(r.executed, c.Tool.ID)
		r.mu.Unlock()
		if tool.Result != nil {
			return tool.Result, nil
		}
		return c.Input, nil
	}
}

func (r *rig) clientTools() (entries []catalog.Entry) {
	for _, tool := range r.plan.Tools {
		if tool.Source == "client" {
			entries = append(entries, entryOf(tool))
		}
	}
	return entries
}

func (r *rig) session(agent, id string) *gateway.Session {
	r.t.Helper()
	s, err := r.gateway.Session(agent, id, gateway.SessionOptions{Tools: r.clientTools(), Sender: "sender-of-" + id, Channel: "channel-of-" + id})
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// client answers for the client of a session: at once, but to held tools.
func (r *rig) client(ctx context.Context, s *gateway.Session) {
	for {
		select {
		case c := <-s.Calls():
			r.mu.Lock()
			r.executed = append(r.executed, "client:app:"+c.Tool)
			hold := slices.ContainsFunc(r.plan.Tools, func(t provider.Tool) bool { return t.Name == c.Tool && t.Held })
			if hold {
				r.held[c.Tool] = c
			}
			r.mu.Unlock()
			if !hold {
				c.Answer(c.Input, nil)
			}
		case <-ctx.Done():
			return
		}
	}
}

// release lets the held tools end.
func (r *rig) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, c := range r.held {
		c.Answer(c.Input, nil)
		delete(r.held, name)
	}
}

func (r *rig) beforeTool(_ context.Context, e surface.HookEvent) (surface.Verdict, error) {
	r.mu.Lock()
	r.hooked = append(r.hooked, e)
	before := r.beforeWait
	r.mu.Unlock()
	if e.ToolName == surface.WaitName && e.ToolID == "" && before != nil {
		before(e)
	}
	return surface.Verdict{}, nil
}

// parked tells whether a run is parked.
func (r *rig) parked() bool {
	runs, err := r.gateway.Runs()
	if err != nil {
		r.t.Error(err)
	}
	return slices.ContainsFunc(runs, func(i supervisor.RunInfo) bool { return i.State == snapshot.Waiting })
}

// results are what the model got for its calls.
func (r *rig) results(model string) []string {
	requests := r.provider.Requests(model)
	if len(requests) == 0 {
		return nil
	}
	return requests[len(requests)-1].Results()
}

// childProcesses lists the children of this process that live.
func childProcesses(t testing.TB) (pids []string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	files, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(b), fmt.Sprintf("\nPPid:\t%d\n", os.Getpid())) {
			pids = append(pids, strings.Split(file, "/")[2])
		}
	}
	return pids
}

// subset tells what is missing of want in got: objects have at least the members, all else is equal.
func subset(want, got any) string {
	w, isObject := want.(map[string]any)
	g, ok := got.(map[string]any)
	if !isObject || !ok {
		return cmp.Diff(want, got)
	}
	for key, v := range w {
		if diff := cmp.Diff(v, g[key]); diff != "" {
			return fmt.Sprintf("%s (-want +got):\n%s", key, diff)
		}
	}
	return ""
}

func parsed(t testing.TB, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return v
}

// The end-to-end plan of the reference text, with both kinds of model, with the real worker and a
// real MCP server. After each step nothing is left: no process, socket, file, goroutine.
func TestGatewayPlan(t *testing.T) {
	plan, err := thePlan()
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range plan.Steps {
		t.Run(step.Name, func(t *testing.T) {
			for _, api := range bothAPIs {
				t.Run(string(api), func(t *testing.T) { runStep(t, step, api) })
			}
		})
	}
}

func runStep(t *testing.T, step provider.Step, api gateway.API) {
	r := newRig(t, api, func(r *rig, cfg *gateway.Config) {
		cfg.CodeMode = step.Config
		main := cfg.Agents["main"]
		main.Model.Stream = (step.Name[1]%2 == 0) == (api == gateway.OpenAI) // each has both
		cfg.Agents["main"] = main
		if step.Tools != nil {
			cfg.MCP = nil
			cfg.Tools = slices.DeleteFunc(cfg.Tools, func(t gateway.Tool) bool { return !slices.Contains(step.Tools, t.Name) })
			small := *r.plan
			small.Tools = slices.DeleteFunc(slices.Clone(r.plan.Tools), func(t provider.Tool) bool { return !slices.Contains(step.Tools, t.Name) })
			r.plan = &small
		}
	})
	s := r.session("main", "s1")
	r.beforeWait = func(surface.HookEvent) {
		switch step.BeforeWait {
		case "release":
			r.release()
		case "abort":
			if err := s.AbortRuns(t.Context()); err != nil {
				t.Error(err)
			}
		case "expire":
			await(t, 10*time.Second, "the expiry", func() bool { return !r.parked() })
		}
	}
	r.provider.Script("main", step.Replies...)
	answer, err := s.Turn(t.Context(), step.User)
	if err != nil || answer != step.Answer {
		t.Errorf("the answer is %q, %v, want %q", answer, err, step.Answer)
	}
	requests := r.provider.Requests("main")
	if len(requests) != len(step.Replies) {
		t.Errorf("%d requests, want %d", len(requests), len(step.Replies))
	}
	for i, request := range requests {
		if diff := cmp.Diff(step.Visible, request.Tools()); diff != "" {
			t.Errorf("the tools of request %d (-want +got):\n%s", i, diff)
		}
	}
	results := r.results("main")
	if len(results) != len(step.Results) {
		t.Fatalf("%d results, want %d: %s", len(results), len(step.Results), results)
	}
	for i, want := range step.Results {
		if diff := subset(parsed(t, want), parsed(t, []byte(results[i]))); diff != "" {
			t.Errorf("result %d: %s\n%s", i, diff, results[i])
		}
	}
	if step.Nested != nil {
		checkNested(t, r, s, step.Nested)
	}
	switch step.Name {
	case "12_waiting":
		if !r.parked() {
			t.Error("the run is not parked")
		}
	default: // what is over leaves no snapshot and no worker, while the gateway lives
		if r.parked() {
			t.Error("a run is still parked")
		}
	}
	noWorkers(t, time.Second)
}

// checkNested checks the export: one tree, whose root is the exec call that the model made.
func checkNested(t *testing.T, r *rig, s *gateway.Session, want []string) {
	t.Helper()
	var file bytes.Buffer
	sink := trajectory.JSONLines(&file)
	for _, e := range r.events.Events() {
		if err := sink.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	log, err := trajectory.Read(&file)
	if err != nil || log.Skipped > 0 {
		t.Fatal(err, log.Skipped)
	}
	messages, err := s.Transcript()
	if err != nil {
		t.Fatal(err)
	}
	var control []string
	var shown []string
	execID := ""
	for _, m := range messages {
		switch {
		case m.Role == trajectory.RoleAssistant && m.CallID != "" && !m.Nested():
			control = append(control, m.Name)
			if m.Name == surface.ExecName {
				execID = m.CallID
			}
		case m.Role == trajectory.RoleAssistant && m.Nested():
			shown = append(shown, m.Mark.CatalogID)
			if m.Mark.ParentCallID != execID || execID == "" {
				t.Errorf("the nested call %s has the parent %q, want %q", m.CallID, m.Mark.ParentCallID, execID)
			}
		}
	}
	if diff := cmp.Diff([]string{"exec", "wait"}, control); diff != "" {
		t.Errorf("control calls of the transcript (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("nested calls of the transcript (-want +got):\n%s", diff)
	}
	tree := log.Tree()
	if len(tree.Runs) != 1 || tree.Runs[0].ExecID != execID || tree.Runs[0].State != trajectory.Completed || len(tree.Runs[0].Legs) < 2 {
		t.Fatalf("the tree: %s", mustJSON(t, tree))
	}
	var called []string
	for _, leg := range tree.Runs[0].Legs {
		for _, item := range leg.Items {
			if item.Call != nil {
				called = append(called, item.Call.ToolID)
			}
		}
	}
	if diff := cmp.Diff(want, called); diff != "" {
		t.Errorf("nested calls of the tree (-want +got):\n%s", diff)
	}
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
