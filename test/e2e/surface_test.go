package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
)

// seen is an executor that answers with what it was called with.
type seen struct {
	mu    sync.Mutex
	calls []string
}

func (s *seen) Call(_ context.Context, call *supervisor.Call) (json.RawMessage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call.Tool.ID+" "+string(call.Input))
	return json.Marshal(map[string]any{"id": call.Tool.ID, "input": call.Input})
}

// catalogOf makes a catalog of entries that are all in order.
func catalogOf(t *testing.T, options catalog.Options, entries ...catalog.Entry) *catalog.Catalog {
	t.Helper()
	c, warnings, err := catalog.Build(entries, options)
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	return c
}

// SPEC 7.1, 6.4: names that collide, are reserved, long, or of no letter that an identifier may
// have. Nothing is hidden, all can be called, and to await what is no tool calls none.
func TestOddNames(t *testing.T) {
	s := embed(t, supervisor.Options{})
	odd := []string{"get-user", "get_user", "get.user", "then", "constructor", "__proto__", "toString", "toJSON", "delete", "$api", "search", "call", "length", "查询天气", "🚀", "🎉", strings.Repeat("x", 300), "a\nb", "a\" b", "a b"}
	entries := []catalog.Entry{{Name: "run", Source: catalog.MCP, SourceName: "a-b"}, {Name: "run", Source: catalog.MCP, SourceName: "a_b"}}
	for _, name := range odd {
		entries = append(entries, catalog.Entry{Name: name, Source: catalog.Client}, catalog.Entry{Name: name, Source: catalog.MCP, SourceName: "odd"})
	}
	c := catalogOf(t, catalog.Options{}, entries...)
	calls := &seen{}
	var native, mcp []string
	for _, tool := range c.All() {
		native = append(native, tool.ID)
	}
	for _, tool := range c.MCP() {
		mcp = append(mcp, tool.Path())
	}
	list, _ := json.Marshal([][]string{native, mcp})
	res := s.Exec(t.Context(), supervisor.Program{Catalog: c, Executor: calls, Code: `
		const [native, mcp] = ` + string(list) + `;
		await tools; await MCP; await MCP.odd; await API; JSON.stringify([tools, MCP, MCP.odd]); String(Object.keys(MCP.odd));
		const wrong = [];
		for (const id of native) { const r = await tools.call(id); if (r.id !== id) wrong.push([id, r.id]); }
		for (const path of mcp) { const [server, name] = path.split("."); const r = await MCP[server][name](); if (r.structuredContent.id.split(":").length < 3) wrong.push(path); }
		for (const name of Object.keys(tools)) if (!["search", "describe", "call"].includes(name)) { const r = await tools[name](); if (!native.includes(r.id)) wrong.push(name); }
		[wrong, typeof tools.search, typeof tools.call, typeof tools.then, typeof MCP.odd.then, typeof MCP.odd.constructor, typeof MCP.odd.$api, mcp.includes("aB.run") && mcp.includes("aB2.run")]`})
	completed(t, res, `[[],"function","function","undefined","undefined","undefined","function",true]`)
	got := map[string]int{}
	for _, call := range calls.calls {
		id, _, _ := strings.Cut(call, " {")
		got[id]++
	}
	for _, tool := range slices.Concat(c.All(), c.MCP()) {
		if got[tool.ID] == 0 {
			t.Errorf("%q was not reached", tool.ID)
		}
	}
	if len(got) != c.Len() {
		t.Errorf("%d tools were called, there are %d: %q", len(got), c.Len(), slices.Sorted(maps.Keys(got)))
	}
}

// SPEC 6.5: a denied tool, by every name that a cell has for it, and in the audit.
// Validation 6: denied tools are not in ALL_TOOLS
func TestDeniedByEveryName(t *testing.T) {
	var log bytes.Buffer
	s := embed(t, supervisor.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	policy := catalog.Policy{Deny: []string{"drop-table", "MCP.db.dropTable"}}
	c := catalogOf(t, catalog.Options{}, policy.Apply([]catalog.Entry{
		{Name: "drop-table", Source: catalog.Plugin, SourceName: "db"}, {Name: "drop_table", Source: catalog.MCP, SourceName: "db"}, {Name: "read", Source: catalog.MCP, SourceName: "db"},
		{ID: "plugin:db:renamed", Name: "drop-table", Source: catalog.Plugin, SourceName: "db"}, // the same under another id
	})...)
	calls := &seen{}
	res := s.Exec(t.Context(), supervisor.Program{Catalog: c, Executor: calls, Code: `
		const out = [];
		for (const f of [
			() => tools.call("plugin:db:drop-table"), () => tools.call("plugin:db:renamed"), () => tools.call("drop-table"), () => tools.call("drop_table"), () => tools.describe("drop-table"),
			() => tools.call("mcp:db:drop_table"), () => tools.drop_table({}), () => tools["drop-table"]({}), () => MCP.db.dropTable({}), () => MCP.db.drop_table({}),
			() => MCP.db.$api("dropTable"), () => API.read("tools/drop_table.d.ts"),
		]) try { out.push("reached: " + JSON.stringify(await f())) } catch (e) { out.push(e.message) }
		[out.filter(m => m.startsWith("reached") || /den|polic|forbid/i.test(m)), JSON.stringify([ALL_TOOLS, await API.list(), await API.read("mcp/db.d.ts"), await tools.search("drop table"), Object.keys(tools), Object.keys(MCP.db)]).match(/drop/i)]`})
	completed(t, res, `[[],null]`)
	if len(calls.calls) > 0 {
		t.Errorf("executed: %q", calls.calls)
	}
	for _, asked := range []string{"plugin:db:drop-table", "plugin:db:renamed", "drop-table", "drop_table", "mcp:db:drop_table", "tools.drop_table", "MCP.db.dropTable"} {
		if !strings.Contains(log.String(), "asked="+asked+"\n") {
			t.Errorf("the audit does not have %q:\n%s", asked, log.String())
		}
	}
}

// SPEC 7.2, 7.3, 7.8: operations of servers, native results, and a server that is down.
// Validation 10: calls by the MCP namespace work with an object, and direct MCP entries are not in tools
func TestMCPServers(t *testing.T) {
	s := embed(t, supervisor.Options{})
	c := catalogOf(t, catalog.Options{Unavailable: []catalog.Unavailable{{Name: "linear", Reason: "it exited with status 1 */"}}},
		catalog.Entry{Name: "fail", Source: catalog.MCP, SourceName: "github"}, catalog.Entry{Name: "break", Source: catalog.MCP, SourceName: "github"},
		catalog.Entry{Source: catalog.MCP, SourceName: "github", Operation: catalog.ResourcesList}, catalog.Entry{Source: catalog.MCP, SourceName: "github", Operation: catalog.ResourcesRead},
		catalog.Entry{Source: catalog.MCP, SourceName: "github", Operation: catalog.PromptsGet},
	)
	exec := supervisor.ExecutorFunc(func(_ context.Context, call *supervisor.Call) (json.RawMessage, error) {
		switch {
		case call.Tool.Name == "fail":
			return json.RawMessage(`{"content":[{"type":"text","text":"no"}],"isError":true,"_meta":{"x":1}}`), nil
		case call.Tool.Name == "break":
			return nil, fmt.Errorf("the connection was lost")
		}
		return json.RawMessage(fmt.Sprintf(`{"operation":%q,"input":%s,"_meta":1}`, call.Tool.Operation, call.Input)), nil
	})
	res := s.Exec(t.Context(), supervisor.Program{Catalog: c, Executor: exec, Code: `
		const broken = await MCP.github.break2({}).catch(e => [e.name, e.message, e.toolId, e.started]);
		const bad = await MCP.github.resources.read({}).catch(e => e.started);
		const index = await API.read("mcp/index.d.ts");
		[await MCP.github.fail(), broken, bad, await MCP.github.resources.list(), await MCP.github.resources.read({uri: "a:b"}), await MCP.github.prompts.get({name: "p"}), MCP.github.prompts.list === undefined,
			index.includes("linear") && index.includes("status 1"), Object.keys(MCP), (await API.read("mcp/github.d.ts")).includes("namespace resources")]`})
	completed(t, res, `[{"content":[{"type":"text","text":"no"}],"isError":true},["ToolError","the connection was lost","mcp:github:break",true],false,`+
		`{"input":{},"operation":"resources/list"},{"input":{"uri":"a:b"},"operation":"resources/read"},{"input":{"name":"p"},"operation":"prompts/get"},true,true,["$api","github"],true]`)
	// Only the index, where no server is there (SPEC 7.9).
	res = s.Exec(t.Context(), supervisor.Program{Catalog: catalogOf(t, catalog.Options{Unavailable: c.Unavailable()}), Code: `[typeof MCP, (await API.list("mcp")).map(f => f.path), (await API.list()).length]`})
	completed(t, res, `["undefined",["mcp/index.d.ts"],1]`)
	for _, c := range []*catalog.Catalog{c, catalogOf(t, catalog.Options{Unavailable: c.Unavailable()})} {
		res = s.Exec(t.Context(), supervisor.Program{Catalog: c, Executor: exec, Code: `await MCP.linear.listIssues({})`})
		if !strings.Contains(res.Error, "MCP.linear is not available") || !strings.Contains(res.Error, "status 1") {
			t.Errorf("a call of a server that is down: %s", res.Error)
		}
	}
}

// SPEC 7.4: API needs no call: it is in no count and no trajectory, and no limit of calls is its.
// Validation 8: API.list and API.read give TypeScript declarations of MCP tools without a call over the bridge
func TestAPIIsNoCall(t *testing.T) {
	s := embed(t, supervisor.Options{})
	l := limits.Default()
	l.ToolCalls = 1
	c := catalogOf(t, catalog.Options{}, catalog.Entry{Name: "x", Source: catalog.MCP, SourceName: "s"}, catalog.Entry{Name: "y", Source: catalog.Client})
	res := s.Exec(t.Context(), supervisor.Program{Catalog: c, Executor: &seen{}, Limits: l, Code: `
		for (let i = 0; i < 5; i++) await Promise.all([API.list(), API.read("mcp/s.d.ts"), API.read("tools/y.d.ts"), MCP.s.$api("x", {schema: true}), MCP.$api()]);
		(await tools.y()).id`})
	completed(t, res, `"client:app:y"`)
	if n := res.Telemetry.Counts; n.Call != 1 || n.Search+n.Describe != 0 || len(res.Telemetry.Calls) != 1 {
		t.Errorf("counts %+v, calls %+v", n, res.Telemetry.Calls)
	}
}

// SPEC 7.1, 8.4, 14.5: what a cell has of the catalog it has again in another worker, and in another
// process.
func TestSurfaceAfterResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := embed(t, supervisor.Options{StateDir: dir})
	c := catalogOf(t, catalog.Options{}, catalog.Entry{Name: "x", Source: catalog.MCP, SourceName: "srv"}, catalog.Entry{Name: "late", Source: catalog.MCP, SourceName: "srv"},
		catalog.Entry{Name: "echo", Source: catalog.Client}, catalog.Entry{Name: "list_events", Source: catalog.Plugin, SourceName: "cal"})
	registry := &namespace.Registry{}
	var builds atomic.Int32
	if err := registry.Register("cal", namespace.Namespace{
		ID: "c", GlobalName: "calendar", RequiredTools: []string{"list_events"}, Description: "d",
		Scope: func(context.Context, namespace.Run) (any, error) {
			builds.Add(1)
			return map[string]any{"list": namespace.Tool("list_events", func(args []json.RawMessage) (json.RawMessage, error) {
				return json.RawMessage(fmt.Sprintf(`{"days":%d}`, len(args))), nil
			}), "zones": []string{"UTC"}}, nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	cell := `
		const before = [await MCP.srv.x({n: 1}), await calendar.list(1, 2)];
		await yield_control("once");
		const here = [await MCP.srv.x({n: 2}), await MCP.srv.late(), (await tools.echo({v: 1})).id, await calendar.list(1), ALL_TOOLS.length, (await API.read("mcp/srv.d.ts")).length > 100, calendar.zones[0]];
		await yield_control("twice");
		[before.length, here.length, here[3].input, (await MCP.srv.late()).structuredContent.id, (await namespaces.calendar.list()).input, tools.nope === undefined, Object.keys(MCP.srv).length]`
	p := supervisor.Program{Catalog: c, Executor: &seen{}, Namespaces: registry, Code: cell}
	res := s.Exec(t.Context(), p)
	if res.Status != supervisor.Waiting {
		t.Fatalf("%s", res.JSON())
	}
	res = s.Wait(t.Context(), supervisor.WaitRequest{RunID: res.RunID})
	if res.Status != supervisor.Waiting || res.Note != "twice" {
		t.Fatalf("%s", res.JSON())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s2 := embed(t, supervisor.Options{StateDir: dir})
	res = s2.Wait(t.Context(), supervisor.WaitRequest{RunID: res.RunID, Executor: &seen{}, Namespaces: registry})
	completed(t, res, `[2,7,{"days":1},"mcp:srv:late",{"days":0},true,3]`)
	if n := builds.Load(); n != 2 {
		t.Errorf("the scope was built %d times, want once a process", n)
	}
}

// SPEC 8.2, 8.3, 8.4: a namespace from registration to call.
func TestNamespaces(t *testing.T) {
	s := embed(t, supervisor.Options{})
	registry := &namespace.Registry{}
	var builds atomic.Int32
	add := func(plugin, global string, tools ...string) {
		t.Helper()
		if err := registry.Register(plugin, namespace.Namespace{ID: plugin + global, GlobalName: global, Description: "d", RequiredTools: tools, Scope: func(context.Context, namespace.Run) (any, error) {
			builds.Add(1)
			scope := map[string]any{"info": map[string]any{"plugin": plugin, "n": 1.5}}
			for _, tool := range tools {
				scope[tool] = namespace.Tool(tool)
			}
			return scope, nil
		}}); err != nil {
			t.Fatal(err)
		}
	}
	add("cal", "calendar", "list_events")
	add("mail", "mail", "send", "missing")  // a tool is missing
	add("evil", "calendar2", "list_events") // belongs to another plugin
	c := catalogOf(t, catalog.Options{}, catalog.Entry{Name: "list_events", Source: catalog.Plugin, SourceName: "cal", Parameters: json.RawMessage(`{"type":"object","properties":{"day":{"type":"integer","default":7}}}`)},
		catalog.Entry{Name: "send", Source: catalog.Plugin, SourceName: "mail"})
	calls := &seen{}
	run := func(code string) *supervisor.Result {
		return s.Exec(t.Context(), supervisor.Program{Catalog: c, Executor: calls, Namespaces: registry, Code: code})
	}
	res := run(`
		const r = [await calendar.list_events(), await calendar.list_events({day: 1}), await calendar.list_events(undefined), calendar.info];
		const bad = await calendar.list_events({day: "x"}).catch(e => [e.name, e.toolId, e.started]);
		[r.map(x => x.input ?? x), bad, Object.keys(namespaces), typeof mail, typeof calendar2, namespaces.calendar === calendar]`)
	completed(t, res, `[[{"day":7},{"day":1},{"day":7},{"n":1.5,"plugin":"cal"}],["ToolError","plugin:cal:list_events",false],["calendar"],"undefined","undefined",true]`)
	if len(calls.calls) != 3 || res.Telemetry.Counts.Call != 4 || res.Telemetry.Calls[0].ToolID != "plugin:cal:list_events" {
		t.Errorf("calls %q, telemetry %+v", calls.calls, res.Telemetry.Calls)
	}
	// What is refused before guest code runs asks no plugin for anything.
	builds.Store(0)
	for _, code := range []string{`import "x"`, `const = 1`, "ls -la", ``} {
		if res := run(code); res.Status != supervisor.Failed || res.Phase != supervisor.PhaseInput {
			t.Errorf("%q: %s", code, res.JSON())
		}
	}
	if n := builds.Load(); n != 0 {
		t.Errorf("scopes were built %d times for sources that cannot run", n)
	}
	registry.ClearPlugin("cal")
	completed(t, run(`[typeof calendar, typeof namespaces]`), `["undefined","undefined"]`)
}

// SPEC 13.2, 8.1: a plugin that takes too long costs its run, in time.
func TestSlowScope(t *testing.T) {
	s := embed(t, supervisor.Options{})
	registry := &namespace.Registry{}
	if err := registry.Register("cal", namespace.Namespace{ID: "c", GlobalName: "calendar", Description: "d", RequiredTools: []string{"x"}, Scope: func(ctx context.Context, _ namespace.Run) (any, error) {
		<-ctx.Done()
		return map[string]any{}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	l := limits.Default()
	l.Timeout = 500 * time.Millisecond
	began := time.Now()
	res := s.Exec(t.Context(), supervisor.Program{Catalog: catalogOf(t, catalog.Options{}, catalog.Entry{Name: "x", Source: catalog.Plugin, SourceName: "cal"}), Executor: &seen{}, Namespaces: registry, Limits: l, Code: `text("ran")`})
	if res.Code != supervisor.Timeout || len(res.Output) > 0 || time.Since(began) > l.Timeout+500*time.Millisecond {
		t.Errorf("after %v: %s", time.Since(began), res.JSON())
	}
}

// Ergonomics: a result names what would have worked (SPEC 4.4).
func TestAdvice(t *testing.T) {
	s := embed(t, supervisor.Options{})
	c := catalogOf(t, catalog.Options{}, catalog.Entry{Name: "create_issue", Source: catalog.MCP, SourceName: "github"}, catalog.Entry{Name: "web_search", Source: catalog.OpenClaw})
	for code, want := range map[string]string{
		`MCP.githb.createIssue()`:                         `did you mean MCP.github?`,
		`await MCP.github.create_issue({})`:               `did you mean MCP.github.createIssue?`,
		`tools.websearch({})`:                             `did you mean tools.web_search?`,
		`createIssue({})`:                                 `MCP.github.createIssue`,
		`await tools.call("mcp:github:create_issue", {})`: `MCP.github.createIssue(…)`,
		`await tools.call("web_serach", {})`:              `openclaw:core:web_search`,
		`tools.web_search({}).results.length`:             `(await tools.web_search(…)).results`,
		`await tools.web_search("a", "b")`:                `one argument`,
		`await MCP.github.createIssue("a")`:               `one object argument`,
		`await API.read("mcp/githb.d.ts")`:                `mcp/github.d.ts`,
		`await MCP.github.$api("createIsue")`:             `MCP.github.createIssue(…)`,
	} {
		res := s.Exec(t.Context(), supervisor.Program{Catalog: c, Executor: &seen{}, Code: code})
		if res.Status != supervisor.Failed || !strings.Contains(res.Error, want) {
			t.Errorf("%s: want %q in\n%s", code, want, res.Error)
		}
	}
}
