package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/test/e2e/gateway"
	"github.com/openclaw/codemode-supervisor/test/e2e/provider"
)

// eachAPI runs a test with both kinds of model.
func eachAPI(t *testing.T, test func(t *testing.T, api gateway.API)) {
	for _, api := range bothAPIs {
		t.Run(string(api), func(t *testing.T) { test(t, api) })
	}
}

// turn scripts a turn of the session main/s1, and makes it.
func (r *rig) turn(says string, replies ...provider.Reply) (string, error) {
	r.provider.Script("main", replies...)
	return r.session("main", "s1").Turn(r.t.Context(), says)
}

// cell runs a cell in a turn of its own and gives its result, over as many waits as it takes.
func (r *rig) cell(code string) map[string]any {
	r.t.Helper()
	if _, err := r.turn("run it", provider.Reply{Exec: code}, provider.Reply{Text: "ok"}); err != nil {
		r.t.Fatal(err)
	}
	for {
		results := r.results("main")
		res, ok := parsed(r.t, []byte(results[len(results)-1])).(map[string]any)
		if !ok {
			r.t.Fatalf("no result: %s", results[len(results)-1])
		}
		if res["status"] != "waiting" {
			return res
		}
		if _, err := r.turn("and?", provider.Reply{Wait: true}, provider.Reply{Text: "ok"}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// ran takes the ids of the tools that were run so far, sorted.
func (r *rig) ran() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := r.executed
	r.executed = nil
	slices.Sort(ids)
	return ids
}

// Issue 6, must hold; SPEC 1.1, 2.6: the payload on the wire has exactly exec and wait, as they were
// rendered, whatever came before in the conversation, and no hidden tool in its list.
func TestPayloadOnTheWire(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		r := newRig(t, api, nil)
		r.cell(`await tools.message({to: "ann", text: "hi"}); await MCP.github.listIssues({}); ALL_TOOLS.length`)
		r.cell(`2`)
		requests := r.provider.Requests("main")
		if len(requests) != 4 {
			t.Fatalf("%d requests", len(requests))
		}
		shape := map[gateway.API]surface.Shape{gateway.OpenAI: surface.OpenAIChat, gateway.Anthropic: surface.Anthropic}[api]
		var first json.RawMessage
		for i, q := range requests {
			var body struct{ Tools json.RawMessage }
			if err := json.Unmarshal(q.Body, &body); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"exec", "wait"}, q.Tools()); diff != "" {
				t.Errorf("request %d (-want +got):\n%s", i, diff)
			}
			if err := surface.CheckPayload(q.Body, shape); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
			if first == nil {
				first = body.Tools
			} else if string(first) != string(body.Tools) { // the provider's prompt cache holds
				t.Errorf("request %d has other bytes for its tools than the first", i)
			}
			for _, denied := range []string{"drop_table", "delete_repo", "deleteRepo", "tool_search"} {
				if strings.Contains(string(body.Tools), denied) {
					t.Errorf("request %d tells the model of %s", i, denied)
				}
			}
		}
	})
}

// Issue 6, must hold; SPEC 2.6: a third tool that somebody puts into the request stops it before it is
// sent: the provider sees no request. So does everything else that is not exactly exec and wait.
func TestSmuggledToolStopsTheRequest(t *testing.T) {
	third := map[gateway.API]string{
		gateway.OpenAI:    `{"type":"function","function":{"name":"smuggled","parameters":{"type":"object"}}}`,
		gateway.Anthropic: `{"name":"smuggled","input_schema":{"type":"object"}}`,
	}
	eachAPI(t, func(t *testing.T, api gateway.API) {
		edit := func(change func(body map[string]any)) func([]byte) []byte {
			return func(b []byte) []byte {
				var body map[string]any
				if err := json.Unmarshal(b, &body); err != nil {
					t.Fatal(err)
				}
				change(body)
				return []byte(mustJSON(t, body))
			}
		}
		tools := func(change func([]any) []any) func([]byte) []byte {
			return edit(func(body map[string]any) { body["tools"] = change(body["tools"].([]any)) })
		}
		smuggled := parsed(t, []byte(third[api]))
		ways := map[string]struct {
			patch func([]byte) []byte
			named string
		}{
			"a third":           {tools(func(l []any) []any { return append(l, smuggled) }), "smuggled"},
			"in front":          {tools(func(l []any) []any { return append([]any{smuggled}, l...) }), "smuggled"},
			"instead":           {tools(func(l []any) []any { return []any{l[0], smuggled} }), "smuggled"},
			"twice":             {tools(func(l []any) []any { return append(l, l[0]) }), "exec"},
			"one is missing":    {tools(func(l []any) []any { return l[:1] }), "wait"},
			"none":              {edit(func(body map[string]any) { delete(body, "tools") }), "tools"},
			"an old list":       {edit(func(body map[string]any) { body["functions"] = []any{map[string]any{"name": "smuggled"}} }), "smuggled"},
			"a server's":        {edit(func(body map[string]any) { body["mcp_servers"] = []any{map[string]any{"name": "smuggled"}} }), "smuggled"},
			"a key twice":       {func(b []byte) []byte { return append(b[:len(b)-1], `,"tools":[`+third[api]+`]}`...) }, ""},
			"not JSON any more": {func(b []byte) []byte { return b[:len(b)-1] }, ""},
		}
		var patch func([]byte) []byte
		r := newRig(t, api, func(_ *rig, cfg *gateway.Config) {
			cfg.PatchRequest = func(b []byte) []byte {
				if patch == nil {
					return b
				}
				return patch(b)
			}
		})
		for name, way := range ways {
			patch = way.patch
			answer, err := r.turn("hello", provider.Reply{Text: "never"})
			var refused *surface.Error
			if !errors.As(err, &refused) || refused.Code != surface.RuntimeUnavailable || answer != "" || !strings.Contains(err.Error(), way.named) {
				t.Errorf("%s: the turn gave %q, %v", name, answer, err)
			}
			if n := len(r.provider.Requests("main")); n != 0 {
				t.Fatalf("%s: the provider saw %d requests", name, n)
			}
		}
		patch = nil
		if answer, err := r.turn("hello", provider.Reply{Text: "hello"}); err != nil || answer != "hello" {
			t.Errorf("an honest request afterwards: %q, %v", answer, err)
		}
	})
}

// SPEC 1.3, 2.2: code mode that is on and cannot work fails the run, and shows no tool instead.
func TestGatewayFailsClosed(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		t.Run("config", func(t *testing.T) {
			r := newRig(t, api, func(_ *rig, cfg *gateway.Config) { cfg.CodeMode = json.RawMessage(`{"enabled": true, "timeoutMS": 1}`) })
			_, err := r.turn("hello", provider.Reply{Text: "never"})
			if err == nil || !strings.Contains(err.Error(), "timeoutMs") || len(r.provider.Requests("main")) > 0 {
				t.Errorf("%v, and %d requests", err, len(r.provider.Requests("main")))
			}
		})
		t.Run("worker", func(t *testing.T) {
			r := newRig(t, api, func(_ *rig, cfg *gateway.Config) { cfg.Supervisor.Worker = filepath.Join(t.TempDir(), "no-worker") })
			res := r.cell(`1`)
			if res["code"] != "runtime_unavailable" {
				t.Errorf("%v", res)
			}
			for _, q := range r.provider.Requests("main") {
				if diff := cmp.Diff([]string{"exec", "wait"}, q.Tools()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
		t.Run("direct call", func(t *testing.T) { // the model remembers a tool from before
			r := newRig(t, api, nil)
			if _, err := r.turn("send", provider.Reply{Calls: []provider.Call{{Name: "message", Arguments: json.RawMessage(`{"to":"a","text":"b"}`)}}}, provider.Reply{Text: "ok"}); err != nil {
				t.Fatal(err)
			}
			if got := r.results("main"); len(got) != 1 || !strings.Contains(got[0], `"invalid_input"`) || len(r.ran()) > 0 {
				t.Errorf("%s, and a tool was run", got)
			}
		})
	})
}

// Validation 4: raw runs without tools, disableTools and empty allow lists trigger no payload guard
//
// SPEC 2.3: such a run shows no tools, and its requests are sent, also those that hold others.
func TestRunWithoutTools(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		r := newRig(t, api, func(_ *rig, cfg *gateway.Config) {
			main := cfg.Agents["main"]
			main.NoTools = true
			cfg.Agents["main"] = main
		})
		if answer, err := r.turn("hello", provider.Reply{Text: "hello"}); err != nil || answer != "hello" {
			t.Fatal(answer, err)
		}
		if body := string(r.provider.Requests("main")[0].Body); strings.Contains(body, `"tools"`) {
			t.Errorf("the request has tools: %s", body)
		}
	})
}

// Validation 12: nested calls keep approvals and hooks
//
// Issue 6, must hold; SPEC 10.1: no way of naming a tool goes past an approval. Each call asks
// exactly once, runs once if it is approved, and never if it is refused.
func TestApprovalByEveryName(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		r := newRig(t, api, func(_ *rig, cfg *gateway.Config) {
			main := cfg.Agents["main"]
			main.CodeMode = json.RawMessage(`{"maxPendingToolCalls": 32}`)
			main.Policy.Approve = append(main.Policy.Approve, "plugin:notes:list_notes", "mcp:github:create_issue")
			cfg.Agents["main"] = main
		})
		// Each real way calls with the number that it has; the others name no tool.
		deploy := []string{
			`tools.call("openclaw:core:deploy", V)`, `tools.call("deploy", V)`, `tools.deploy(V)`, `tools["dep" + "loy"](V)`, `(0, tools.deploy)(V)`,
			`Reflect.apply(tools.deploy, null, [V])`, `tools.deploy.call(undefined, V)`, `(({deploy}) => deploy(V))(tools)`, `tools.call.bind(tools)("deploy", V)`,
			`(async () => tools.call((await tools.search("production"))[0].id, V))()`, `(async () => tools.call((await tools.describe("deploy")).name, V))()`,
			`tools.call(ALL_TOOLS.find(t => /deploy/.test(t.name)).id, V)`, `tools.call({toString: () => "deploy"}.toString(), V)`,
			`new Function("tools", "v", "return tools.deploy(v)")(tools, V)`,
		}
		notes := []string{`notes.list(V)`, `namespaces.notes.list(V)`, `tools.list_notes(V)`, `tools.call("plugin:notes:list_notes", V)`}
		issues := []string{`MCP.github.createIssue(V)`, `MCP["git" + "hub"]["createIssue"](V)`, `(({createIssue}) => createIssue(V))(MCP.github)`}
		var ways []string
		add := func(list []string, field string) {
			for _, way := range list {
				ways = append(ways, strings.Replace(way, "V", fmt.Sprintf("{%s: %q}", field, fmt.Sprint(len(ways))), 1))
			}
		}
		add(deploy, "version")
		add(notes, "day")
		add(issues, "title")
		none := []string{
			`tools.call("OPENCLAW:CORE:DEPLOY", {version: "x"})`, `tools.call(" deploy", {version: "x"})`, `tools.call("deploy\u0000", {version: "x"})`, `tools.call("d\u0435ploy", {version: "x"})`,
			`tools.call("openclaw::deploy", {version: "x"})`, `tools.call("mcp:github:create_issue", {title: "x"})`, `tools.create_issue({title: "x"})`, `MCP.github.create_issue({title: "x"})`,
			`namespaces.openclaw.deploy({version: "x"})`, `tools.call("__proto__", {})`, `tools.call(["deploy"], {version: "x"})`,
		}
		var functions []string
		for _, way := range append(slices.Clone(ways), none...) {
			functions = append(functions, "async () => "+way)
		}
		if _, err := r.turn("all of them", provider.Reply{Exec: "const s = await Promise.allSettled([" + strings.Join(functions, ",\n") + "].map(f => f())); return s.map(x => x.status)"}, provider.Reply{Text: "asked"}); err != nil {
			t.Fatal(err)
		}
		await(t, 10*time.Second, "the asking", func() bool { return len(r.gateway.Pending()) >= len(ways) })
		if ran := r.ran(); len(ran) > 0 {
			t.Errorf("run before anybody approved: %v", ran)
		}
		asked := map[string]int{}
		for _, p := range r.gateway.Pending() {
			number := strings.Trim(strings.SplitN(string(p.Event.Params), ":", 2)[1], `"}`)
			asked[number]++
			if p.Event.ToolCallID == "" || p.Event.ParentCallID == "" || p.Event.AgentID != "main" || p.Event.SessionID != "s1" || p.Event.Sender != "sender-of-s1" {
				t.Errorf("the question does not say who asks: %+v", p.Event)
			}
			var err error
			if len(number) > 0 && (number[len(number)-1]-'0')%2 == 0 {
				err = r.gateway.Approve(p.ID)
			} else {
				err = r.gateway.Refuse(p.ID, "odd")
			}
			if err != nil {
				t.Error(err)
			}
		}
		var want []any
		var run []string
		for i := range ways {
			if n := asked[fmt.Sprint(i)]; n != 1 {
				t.Errorf("%s asked %d times, want once", ways[i], n)
			}
			if i%2 > 0 {
				want = append(want, "rejected")
				continue
			}
			want = append(want, "fulfilled")
			switch {
			case i < len(deploy):
				run = append(run, "openclaw:core:deploy")
			case i < len(deploy)+len(notes):
				run = append(run, "plugin:notes:list_notes")
			} // and those of the MCP server, which run elsewhere
		}
		for range none {
			want = append(want, "rejected")
		}
		if len(asked) != len(ways) {
			t.Errorf("%d calls asked, want %d: %v", len(asked), len(ways), slices.Sorted(maps.Keys(asked)))
		}
		var res map[string]any
		for res == nil || res["status"] == "waiting" {
			if _, err := r.turn("and?", provider.Reply{Wait: true}, provider.Reply{Text: "ok"}); err != nil {
				t.Fatal(err)
			}
			results := r.results("main")
			res, _ = parsed(t, []byte(results[len(results)-1])).(map[string]any)
		}
		if diff := cmp.Diff(any(want), res["value"]); diff != "" {
			t.Errorf("%v\nwhat became of the calls (-want +got):\n%s", res["error"], diff)
		}
		if diff := cmp.Diff(run, r.ran()); diff != "" {
			t.Errorf("what was run (-want +got):\n%s", diff)
		}
		if left := r.gateway.Pending(); len(left) > 0 {
			t.Errorf("still pending: %+v", left)
		}
		// The server has the issues that were approved, and no others.
		res = r.cell(`(await MCP.github.listIssues({})).structuredContent.titles.sort()`)
		if diff := cmp.Diff(any([]any{"18", "20"}), res["value"]); diff != "" {
			t.Errorf("the issues (-want +got):\n%s", diff)
		}
	})
}

// Issue 6, must hold; SPEC 6.5, 10.1: no way of naming a denied tool reaches its executor, the hook
// or a person.
func TestDenyByEveryName(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		r := newRig(t, api, func(_ *rig, cfg *gateway.Config) {
			main := cfg.Agents["main"]
			main.Policy.Deny = append(main.Policy.Deny, "openclaw:core:deploy", "plugin:notes:list_notes")
			cfg.Agents["main"] = main
		})
		b, err := os.ReadFile("testdata/plan/11_denied.js")
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range []string{string(b), `
			const out = [];
			for (const f of [() => tools.deploy({version: "1"}), () => tools.call("deploy", {version: "1"}), () => tools.call("openclaw:core:deploy", {version: "1"}), () => notes.list({}),
				() => namespaces.notes.list({}), () => tools.list_notes({}), () => tools["list" + "_notes"]({}), () => Reflect.get(tools, "deploy")({version: "1"})])
				try { out.push(await f()) } catch {}
			({reached: out, shown: /deploy|list_notes/.test(JSON.stringify([ALL_TOOLS, Object.keys(tools), typeof notes === "undefined" ? 0 : notes])), same: true})`} {
			res := r.cell(code)
			if diff := cmp.Diff(any(map[string]any{"reached": []any{}, "shown": false, "same": true}), res["value"]); diff != "" {
				t.Errorf("%v (-want +got):\n%s", res["error"], diff)
			}
		}
		if ran := r.ran(); len(ran) > 0 {
			t.Errorf("run: %v", ran)
		}
		for _, e := range r.hooked {
			if e.ToolID != "" {
				t.Errorf("the hook was asked about %s", e.ToolID)
			}
		}
		if p := r.gateway.Pending(); len(p) > 0 {
			t.Errorf("somebody is asked: %+v", p)
		}
	})
}

// Validation 12: nested calls keep approvals and hooks
//
// Issue 6, must hold; SPEC 2.7, 10.1: the hook sees the outer exec as such, and each nested call.
func TestHookSeesEveryCall(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		r := newRig(t, api, nil)
		res := r.cell("const a: number = 1;\n" + `await tools.message({to: "ann", text: "hi"}); await tools.call("openclaw:core:exec", {command: "ls"}); await notes.list({}); await MCP.github.listIssues({});
			await tools.select_file({pattern: "*"}).catch(() => 0); return a`)
		if res["status"] != "failed" { // TypeScript was not said: the hook must not be told that it was
			t.Fatal(res)
		}
		if _, err := r.turn("again", provider.Reply{Language: "typescript", Exec: "const a: number = 1;\n" + `await tools.message({to: "ann", text: "hi"}); await tools.call("openclaw:core:exec", {command: "ls"});
			await notes.list({}); await MCP.github.listIssues({}); return a`}, provider.Reply{Text: "ok"}); err != nil {
			t.Fatal(err)
		}
		type seen struct{ Name, Kind, InputKind, ToolID, Source string }
		var got []seen
		parents, ids := map[string]bool{}, map[string]bool{}
		execID := ""
		for _, e := range r.hooked {
			got = append(got, seen{e.ToolName, e.ToolKind, e.ToolInputKind, e.ToolID, string(e.Source)})
			if e.ToolKind == surface.ToolKind {
				execID = e.ToolCallID
			} else {
				parents[e.ParentCallID] = true
			}
			if ids[e.ToolCallID] || e.ToolCallID == "" || e.RunID == "" {
				t.Errorf("the ids of %+v", e)
			}
			ids[e.ToolCallID] = true
			if diff := cmp.Diff(surface.Identity{AgentID: "main", SessionID: "s1", SessionKey: "agent:main:s1", Sender: "sender-of-s1", Channel: "channel-of-s1"}, e.Identity); diff != "" {
				t.Errorf("who calls (-want +got):\n%s", diff)
			}
		}
		if diff := cmp.Diff(map[string]bool{execID: true}, parents); diff != "" {
			t.Errorf("the parents (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]seen{
			{"exec", surface.ToolKind, "javascript", "", ""}, {"exec", surface.ToolKind, "typescript", "", ""},
			{"message", "", "", "openclaw:core:message", "openclaw"}, {"exec", "", "", "openclaw:core:exec", "openclaw"},
			{"list_notes", "", "", "plugin:notes:list_notes", "plugin"}, {"list_issues", "", "", "mcp:github:list_issues", "mcp"},
		}, got); diff != "" {
			t.Errorf("what the hook saw (-want +got):\n%s", diff)
		}
	})
}

// Validation 12: nested calls keep approvals and hooks
//
// Issue 6, must hold; SPEC 2.7, 10.1: a hook rewrites, blocks, asks for an approval, and one that fails
// or panics fails closed, for the exec and for nested calls.
func TestHookDecides(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		var onExec, onCall func(surface.HookEvent) (surface.Verdict, error)
		r := newRig(t, api, func(_ *rig, cfg *gateway.Config) {
			cfg.BeforeTool = func(_ context.Context, e surface.HookEvent) (surface.Verdict, error) {
				decide := onCall
				if e.ToolKind == surface.ToolKind {
					decide = onExec
				}
				if decide == nil {
					return surface.Verdict{}, nil
				}
				return decide(e)
			}
		})
		type verdict = func(surface.HookEvent) (surface.Verdict, error)
		always := func(v surface.Verdict, err error) verdict {
			return func(surface.HookEvent) (surface.Verdict, error) { return v, err }
		}
		rewrite := func(s string) verdict { return always(surface.Verdict{Params: json.RawMessage(s)}, nil) }
		panics := func(surface.HookEvent) (surface.Verdict, error) { panic("the hook's own fault") }
		const cell = `const e = await tools.message({to: "ann", text: "hi"}).catch(e => e); return e instanceof Error ? [e.name, e.started, e.message] : e.text`
		for _, c := range []struct {
			name         string
			exec, nested verdict
			want         string // part of the result
			ran          []string
		}{
			{"nothing", nil, nil, `"value":"hi"`, []string{"openclaw:core:message"}},
			{"exec rewritten by code", rewrite(`{"code":"'rewritten'"}`), nil, `"value":"rewritten"`, nil},
			{"exec rewritten by command", rewrite(`{"command":"'rewritten'"}`), nil, `"value":"rewritten"`, nil},
			{"exec rewritten to two things", rewrite(`{"code":"1","command":"2"}`), nil, `"code":"invalid_input"`, nil},
			{"exec blanked", rewrite(`{"code":""}`), nil, `"code":"invalid_input"`, nil},
			{"exec blocked", always(surface.Verdict{Block: true, Reason: "not today"}, nil), nil, `not today`, nil},
			{"exec and an error", always(surface.Verdict{}, errors.New("the policy server is down")), nil, `"code":"runtime_unavailable"`, nil},
			{"exec and a panic", panics, nil, `"code":"runtime_unavailable"`, nil},
			{"call rewritten", nil, rewrite(`{"to":"bob","text":"changed"}`), `"value":"changed"`, []string{"openclaw:core:message"}},
			{"call rewritten to what it does not take", nil, rewrite(`{"to":"bob"}`), `["ToolError",false,`, nil},
			{"call blocked", nil, always(surface.Verdict{Block: true, Reason: "not bob"}, nil), `not bob`, nil},
			{"call and an error", nil, always(surface.Verdict{}, errors.New("the policy server is down")), `["ToolError",false,`, nil},
			{"call and a panic", nil, panics, `["ToolError",`, nil},
		} {
			onExec, onCall = c.exec, c.nested
			res := mustJSON(t, r.cell(cell))
			if !strings.Contains(res, c.want) {
				t.Errorf("%s: want %s in\n%s", c.name, c.want, res)
			}
			if diff := cmp.Diff(c.ran, r.ran()); diff != "" {
				t.Errorf("%s: what was run (-want +got):\n%s", c.name, diff)
			}
		}
		// An approval that only the hook wants, of the exec and of a call.
		for _, refuse := range []bool{false, true} {
			decide := func(p gateway.Pending) error {
				if refuse {
					return r.gateway.Refuse(p.ID, "no")
				}
				return r.gateway.Approve(p.ID)
			}
			for _, outer := range []bool{false, true} {
				onExec, onCall = nil, always(surface.Verdict{Approve: true, Reason: "look at it"}, nil)
				if outer {
					onExec, onCall = onCall, nil
				}
				asked := make(chan gateway.Pending, 1)
				stop := make(chan struct{})
				var person sync.WaitGroup
				person.Go(func() {
					for len(r.gateway.Pending()) == 0 {
						select {
						case <-stop:
							return
						default:
							pollPause()
						}
					}
					p := r.gateway.Pending()[0]
					asked <- p
					if err := decide(p); err != nil {
						t.Error(err)
					}
				})
				res := mustJSON(t, r.cell(cell))
				close(stop)
				person.Wait()
				select {
				case p := <-asked:
					if p.Reason != "look at it" || (p.Event.ToolKind == surface.ToolKind) != outer {
						t.Errorf("asked %+v", p)
					}
				default:
					t.Error("nobody was asked")
				}
				if got, want := len(r.ran()) == 1, !refuse; got != want || refuse != strings.Contains(res, "a person refused it: no") {
					t.Errorf("outer %v, refuse %v: %s", outer, refuse, res)
				}
			}
		}
	})
}

// Issue 6, must hold; SPEC 2.4, 12.4, 18.1: two agents and two sessions, side by side. No id, name,
// error text or event of one shows in the other.
func TestSessionsSeeNothingOfEachOther(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		who := [][2]string{{"alpha", "red"}, {"alpha", "blue"}, {"beta", "red"}} // the same agent, the same session id
		name := func(w [2]string) string { return w[0] + "-" + w[1] }
		r := newRig(t, api, func(r *rig, cfg *gateway.Config) {
			for i, agent := range []string{"alpha", "beta"} {
				own := "tool_of_" + agent
				cfg.Tools = append(cfg.Tools, gateway.Tool{
					Entry: catalog.Entry{Name: own, Source: catalog.OpenClaw, Description: "Of " + agent + " alone."},
					Call: func(_ context.Context, c *supervisor.Call) (json.RawMessage, error) {
						return nil, fmt.Errorf("the secret error of %s-%s: %s", c.Scope.AgentID, c.Scope.SessionID, c.Input)
					},
				})
				cfg.Agents[agent] = gateway.Agent{
					// The model of a session is the agent's; the sessions of one have their turns one after the other.
					Model:  r.model(api, agent),
					Policy: catalog.Policy{Deny: []string{"openclaw:core:tool_of_" + []string{"beta", "alpha"}[i]}},
				}
			}
		})
		// Each says its name in every place there is.
		type life struct {
			s         *gateway.Session
			runID     string
			exec      []byte // the requests of its turn
			forbidden []string
		}
		lives := map[string]*life{}
		for _, w := range who {
			l := &life{s: r.session(w[0], w[1])}
			lives[name(w)] = l
			mark := "mark-" + name(w)
			code := fmt.Sprintf(`
				text(%[1]q);
				const bad = await tools.tool_of_%[2]s({mark: %[1]q}).catch(e => e.message);
				json({bad, all: ALL_TOOLS.map(t => t.name), index: await API.list()});
				await tools.message({to: %[1]q, text: "hi"});
				await tools.ask_person({question: %[1]q});
				return %[1]q`, mark, w[0])
			r.provider.Script(w[0], provider.Reply{Exec: code}, provider.Reply{Text: "parked " + mark})
			before := len(r.provider.Requests(w[0]))
			if _, err := l.s.Turn(t.Context(), "I am "+mark); err != nil {
				t.Fatal(err)
			}
			for _, q := range r.provider.Requests(w[0])[before:] {
				l.exec = append(l.exec, q.Body...)
			}
			requests := r.provider.Requests(w[0])
			results := requests[len(requests)-1].Results()
			res := parsed(t, []byte(results[len(results)-1])).(map[string]any)
			if res["status"] != "waiting" {
				t.Fatalf("%s: %v", name(w), res)
			}
			l.runID = res["runId"].(string)
		}
		transcripts := map[string]string{}
		for _, w := range who {
			b, err := os.ReadFile(filepath.Join(r.dir, w[0]+"."+w[1]+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			transcripts[name(w)] = string(b)
		}
		for _, w := range who {
			for _, own := range []string{"mark-" + name(w), "the secret error of " + name(w)} { // or nothing could be found below
				if !strings.Contains(string(lives[name(w)].exec), own) || !strings.Contains(transcripts[name(w)], own) {
					t.Errorf("%s does not see its own %q", name(w), own)
				}
			}
			for _, other := range who {
				if w == other {
					continue
				}
				words := []string{"mark-" + name(other), lives[name(other)].runID, "sender-of-" + other[1], "of " + name(other), "agent:" + other[0] + ":" + other[1]}
				if w[0] != other[0] {
					words = append(words, "tool_of_"+other[0], "Of "+other[0])
				}
				for _, word := range words {
					if strings.Contains(string(lives[name(w)].exec), word) {
						t.Errorf("the model of %s is told %q", name(w), word)
					}
					if strings.Contains(transcripts[name(w)], word) {
						t.Errorf("the transcript of %s has %q", name(w), word)
					}
				}
			}
		}
		// The events of a run are of its own calls alone.
		runOf := map[string]string{}
		for _, e := range r.events.Events() {
			for _, id := range []string{e.Parent, e.CallID} {
				if id == "" {
					continue
				}
				if owner, ok := runOf[id]; ok && owner != e.RunID {
					t.Errorf("%s stands in events of the runs %s and %s", id, owner, e.RunID)
				}
				runOf[id] = e.RunID
			}
		}
		// Nobody gets at a run of somebody else, and the answer is that to an id that never was.
		for _, w := range who {
			for _, other := range who {
				if w == other {
					continue
				}
				ask := func(id string) map[string]any {
					r.provider.Script(w[0], provider.Reply{Calls: []provider.Call{{Name: "wait", Arguments: json.RawMessage(mustJSON(t, map[string]string{"runId": id}))}}}, provider.Reply{Text: "ok"})
					if _, err := lives[name(w)].s.Turn(t.Context(), "whose is it?"); err != nil {
						t.Fatal(err)
					}
					requests := r.provider.Requests(w[0])
					results := requests[len(requests)-1].Results()
					res := parsed(t, []byte(results[len(results)-1])).(map[string]any)
					delete(res["telemetry"].(map[string]any), "timings")
					return res
				}
				foreign, unknown := ask(lives[name(other)].runID), ask(strings.Repeat("0", 32))
				if diff := cmp.Diff(unknown, foreign); diff != "" || foreign["status"] != "failed" {
					t.Errorf("%s waits for a run of %s (-unknown +foreign):\n%s", name(w), name(other), diff)
				}
			}
		}
		// Abort of one session leaves the others.
		if err := lives["alpha-red"].s.AbortRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, w := range who {
			runs, err := r.gateway.Runs()
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(runs, func(i supervisor.RunInfo) bool { return i.ID == lives[name(w)].runID })
			if want := map[bool]string{true: "aborted", false: "waiting"}[name(w) == "alpha-red"]; i < 0 || string(runs[i].State) != want {
				t.Errorf("the run of %s: %+v, want %s", name(w), runs, want)
			}
		}
	})
}

// Validation 22: a transcript keeps the control calls of code mode when it is stored and read back
// Validation 23: transcript and telemetry show nested calls clearly
//
// SPEC 18.1: a gateway that starts anew reads the conversation back: the model gets its exec and
// its wait again, as it made them, and no nested call; the file keeps both.
func TestTranscriptOutlivesTheGateway(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		dir := t.TempDir()
		keep := func(_ *rig, cfg *gateway.Config) { cfg.TranscriptDir = dir }
		var before []provider.Request
		t.Run("first", func(t *testing.T) {
			r := newRig(t, api, keep)
			r.beforeWait = func(surface.HookEvent) { r.release() }
			_, err := r.turn("ask", provider.Reply{Exec: `const a = await tools.ask_person({question: "now?"}); return (await tools.message({to: "ann", text: a.question})).text`}, provider.Reply{Wait: true}, provider.Reply{Text: "{{value}}"})
			if err != nil {
				t.Fatal(err)
			}
			before = r.provider.Requests("main")
		})
		stored, err := os.ReadFile(filepath.Join(dir, "main.s1.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		t.Run("second", func(t *testing.T) {
			r := newRig(t, api, keep)
			if _, err := r.turn("and again", provider.Reply{Text: "as before"}); err != nil {
				t.Fatal(err)
			}
			old, now := conversation(t, before[len(before)-1].Body), conversation(t, r.provider.Requests("main")[0].Body)
			if len(now) < len(old) || cmp.Diff(old, now[:len(old)]) != "" {
				t.Errorf("the conversation is another one (-before +after):\n%s", cmp.Diff(old, now))
			}
			messages, err := r.session("main", "s1").Transcript()
			if err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, m := range messages {
				if m.CallID != "" {
					kept = append(kept, fmt.Sprintf("%s %s %v", m.Role, m.Name, m.Nested()))
				}
			}
			want := []string{
				"assistant exec false", "assistant client:app:ask_person true", "toolResult exec false", "assistant wait false",
				"toolResult client:app:ask_person true", "assistant openclaw:core:message true", "toolResult openclaw:core:message true", "toolResult wait false",
			}
			slices.Sort(want) // a call may settle between exec and wait
			slices.Sort(kept)
			if diff := cmp.Diff(want, kept); diff != "" {
				t.Errorf("the transcript (-want +got):\n%s", diff)
			}
			after, err := os.ReadFile(filepath.Join(dir, "main.s1.jsonl"))
			if err != nil || !strings.HasPrefix(string(after), string(stored)) {
				t.Errorf("what was stored has changed, %v", err)
			}
		})
	})
}

func conversation(t *testing.T, body []byte) []any {
	var v struct{ Messages []any }
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	return v.Messages
}

// SPEC 14.2: the abort of a session ends the turn and the cell that is at work; the conversation goes
// on with the next turn.
func TestAbortOfASession(t *testing.T) {
	eachAPI(t, func(t *testing.T, api gateway.API) {
		began := make(chan struct{})
		gone := make(chan error, 1)
		r := newRig(t, api, func(_ *rig, cfg *gateway.Config) {
			cfg.Tools = append(cfg.Tools, gateway.Tool{
				Entry: catalog.Entry{Name: "hang", Source: catalog.OpenClaw},
				Call: func(ctx context.Context, _ *supervisor.Call) (json.RawMessage, error) {
					close(began)
					<-ctx.Done()
					gone <- context.Cause(ctx)
					return nil, ctx.Err()
				},
			})
		})
		s := r.session("main", "s1")
		r.provider.Script("main", provider.Reply{Exec: `await tools.hang({})`}, provider.Reply{Text: "never"})
		ended := make(chan error, 1)
		go func() { // ends with the turn
			_, err := s.Turn(t.Context(), "hang")
			ended <- err
		}()
		<-began
		if err := s.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "aborted") {
			t.Errorf("the turn ended with %v", err)
		}
		<-gone
		noWorkers(t, time.Second)
		if n := r.provider.Left("main"); n != 1 {
			t.Error("the model was asked after the abort")
		}
		if answer, err := r.turn("are you there?", provider.Reply{Text: "yes"}); err != nil || answer != "yes" {
			t.Errorf("the next turn: %q, %v", answer, err)
		}
		if results := r.results("main"); len(results) != 1 || !strings.Contains(results[0], `"code":"aborted"`) {
			t.Errorf("the model is told %s", results)
		}
	})
}

// The debug variables of the reference text; SPEC 18.2, 18.3: what each logs, and that nothing ever logs the key, or
// what looks like a secret.
func TestDebugVariables(t *testing.T) {
	const (
		message = "my token is sk-planted-abcdef0123456789, keep it"
		secret  = "hunter2-planted"
	)
	cell := `const password = "` + secret + `"; await tools.message({to: "ann", text: "Bearer planted.jwt.value-0123456789"}); text("said"); return 1`
	for name, c := range map[string]struct {
		env         map[string]string
		want, never []string
	}{
		"none":                  {nil, nil, []string{"code mode surface", "model transport", "model payload", "model stream"}},
		"code mode":             {map[string]string{"OPENCLAW_DEBUG_CODE_MODE": "1"}, []string{"code mode surface", "exec wait", "engaged"}, []string{"model payload", "Send a message to a person"}},
		"transport":             {map[string]string{"OPENCLAW_DEBUG_MODEL_TRANSPORT": "1"}, []string{"model transport", "method=POST", "status=200", "127.0.0.1", "sent=", "received="}, []string{"tools=", "secret=", "model payload", "?"}},
		"payload tools":         {map[string]string{"OPENCLAW_DEBUG_MODEL_PAYLOAD": "tools"}, []string{`tools="[exec wait]"`}, []string{"keep it", "body="}},
		"payload full-redacted": {map[string]string{"OPENCLAW_DEBUG_MODEL_PAYLOAD": "full-redacted"}, []string{"body=", "keep it", "[redacted]", "messages"}, nil},
		"sse events":            {map[string]string{"OPENCLAW_DEBUG_SSE": "events"}, []string{"model stream", "events="}, []string{"data=", "said"}},
		"sse peek":              {map[string]string{"OPENCLAW_DEBUG_SSE": "peek"}, []string{"model stream", "data=", "bytes]"}, []string{"events="}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			eachAPI(t, func(t *testing.T, api gateway.API) {
				r := newRig(t, api, func(_ *rig, cfg *gateway.Config) {
					cfg.Getenv = func(name string) string { return c.env[name] }
					main := cfg.Agents["main"]
					main.Model.Stream = true
					main.Model.URL += "/?secret=" + secret
					cfg.Agents["main"] = main
				})
				if _, err := r.turn(message, provider.Reply{Exec: cell}, provider.Reply{Text: "done with {{output}}"}); err != nil {
					t.Fatal(err)
				}
				log := r.log.String()
				for _, want := range c.want {
					if !strings.Contains(log, want) {
						t.Errorf("want %q in\n%.3000s", want, log)
					}
				}
				for _, never := range append([]string{testKey, "sk-planted", secret, "planted.jwt", "Authorization", "X-Api-Key"}, c.never...) {
					if strings.Contains(log, never) {
						t.Errorf("%q is in\n%.3000s", never, log)
					}
				}
				if c.env["OPENCLAW_DEBUG_SSE"] == "peek" {
					if n := strings.Count(log, "data="); n == 0 || n > 10 { // two requests
						t.Errorf("%d events are logged", n)
					}
				}
			})
		})
	}
}

// SPEC 18.1: the export has what its policy lets through, and the transcript the contents.
func TestExportPolicy(t *testing.T) {
	r := newRig(t, gateway.OpenAI, func(_ *rig, cfg *gateway.Config) { cfg.TrajectoryPolicy = trajectory.Policy{} })
	r.cell(`(await tools.message({to: "ann", text: "between us"})).text`)
	if export := mustJSON(t, r.events.Events()); strings.Contains(export, "between us") || !strings.Contains(export, "openclaw:core:message") {
		t.Errorf("the export: %s", export)
	}
	b, err := os.ReadFile(filepath.Join(r.dir, "main.s1.jsonl"))
	if err != nil || !strings.Contains(string(b), `"text":"between us"`) {
		t.Errorf("the transcript: %s, %v", b, err)
	}
}
