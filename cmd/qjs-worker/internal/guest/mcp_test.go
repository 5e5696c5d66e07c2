package guest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

const servers = `[
	{"id":"openclaw:core:web_search","name":"web_search","source":"openclaw","fn":"web_search"},
	{"id":"mcp:github:create_issue","mcp":"github.createIssue"},
	{"id":"mcp:github:resources/list","mcp":"github.resources.list"},
	{"id":"mcp:github:resources/read","mcp":"github.resources.read"},
	{"id":"mcp:github:then","mcp":"github.then2"},
	{"id":"mcp:a-b:run","mcp":"aB.run"},
	{"id":"mcp:a_b:run","mcp":"aB2.run"}
]`

func mcpRun(t *testing.T, scopes string) *run {
	t.Helper()
	see := surface(t, servers)
	see.Files = []guest.File{
		{Path: "mcp/index.d.ts", Description: "servers", Bytes: 10, Text: guest.Packed{Data: []byte("// índex\n")}},
		{Path: "mcp/github.d.ts", Description: "GitHub", Bytes: 32, Text: guest.Packed{Data: []byte("declare namespace MCP.github {}\n")}},
	}
	return start(t, engine.Config{}, memoryLimit, guest.Options{Surface: see, Scopes: []byte(scopes)})
}

// SPEC 7.1, 7.2: what calls under MCP ask the host for.
func TestMCPCalls(t *testing.T) {
	for code, want := range map[string]guest.Call{
		`MCP.github.createIssue({title: "x"})`:              {Method: "mcp", Tool: "github.createIssue", Input: []byte(`{"title":"x"}`)},
		`MCP.github.createIssue()`:                          {Method: "mcp", Tool: "github.createIssue", Input: []byte(`{}`)},
		`const {createIssue: f} = MCP.github; f({})`:        {Method: "mcp", Tool: "github.createIssue", Input: []byte(`{}`)},
		`MCP.github.resources.read({uri: "file:///a"})`:     {Method: "mcp", Tool: "github.resources.read", Input: []byte(`{"uri":"file:///a"}`)},
		`MCP["aB2"].run()`:                                  {Method: "mcp", Tool: "aB2.run", Input: []byte(`{}`)},
		`MCP.github.then2({})`:                              {Method: "mcp", Tool: "github.then2", Input: []byte(`{}`)},
		`[{a: 1}].map(MCP.aB.run)`:                          {Method: "mcp", Tool: "aB.run", Input: []byte(`{"a":1}`)},
		`MCP.github.$api("createIssue", {schema: true})`:    {Method: "api", Tool: "$api", Input: []byte(`{"server":"github","tool":"createIssue","schema":true}`)},
		`MCP.github.$api()`:                                 {Method: "api", Tool: "$api", Input: []byte(`{"server":"github","tool":"","schema":false}`)},
		`MCP.$api()`:                                        {Method: "api", Tool: "$api", Input: []byte(`{"server":""}`)},
		`API.read("/tools/web_search.d.ts")`:                {Method: "api", Tool: "read", Input: []byte(`{"path":"tools/web_search.d.ts"}`)},
		`API.list("tools/")`:                                {Method: "api", Tool: "list", Input: []byte(`{}`)},
		`Object.prototype.toJSON = () => 1; MCP.aB.run()`:   {Method: "mcp", Tool: "aB.run", Input: []byte(`{}`)},
		`calendar.list({day: 1}, 2)`:                        {Method: "namespace", Tool: "calendar\x1flist", Input: []byte(`[{"day":1},2]`)},
		`namespaces.calendar.deep[1].go()`:                  {Method: "namespace", Tool: "calendar\x1fdeep\x1f1\x1fgo", Input: []byte(`[]`)},
		`calendar.list(undefined)`:                          {Method: "namespace", Tool: "calendar\x1flist", Input: []byte(`[]`)},
		`Array.prototype.toJSON = () => 1; calendar.list()`: {Method: "namespace", Tool: "calendar\x1flist", Input: []byte(`[]`)},
	} {
		r := mcpRun(t, scopes)
		if err := r.body(code); err != nil {
			t.Fatal(err)
		}
		want.ID = 1
		if diff := cmp.Diff([]guest.Call{want}, r.host.calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s\noutcome %s", code, diff, r.outcome())
		}
	}
}

const scopes = `[{"name":"calendar","value":{"o":[["deep",{"a":[{"v":1},{"o":[["go",{"t":true}]]}]}],["list",{"t":true}],["zone",{"v":{"name":"UTC","list":[{"a":null}]}}]]}}]`

// SPEC 7.1, 7.4, 8.4: what the cell sees without a call.
func TestMCPObjects(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"servers", `return Object.keys(MCP)`, `["$api","aB","aB2","github"]`},
		{"members", `return Object.keys(MCP.github)`, `["$api","createIssue","resources","then2"]`},
		{"operations", `return [Object.keys(MCP.github.resources), MCP.github.prompts === undefined, "prompts" in MCP.github, MCP.aB.resources === undefined]`, `[["list","read"],true,false,true]`},
		{"await calls nothing", `return [(await MCP) === MCP, (await MCP.github) === MCP.github, await Promise.resolve(MCP.aB) === MCP.aB]`, `[true,true,true]`},
		{"same object", `return [MCP.github === MCP.github, MCP.github.createIssue === MCP.github.createIssue]`, `[true,true]`},
		{"frozen", `MCP.x = 1; MCP.github.createIssue = 1; delete MCP.github; return ["x" in MCP, typeof MCP.github.createIssue, Object.isFrozen(MCP.github), Object.getPrototypeOf(MCP)]`, `[false,"function",true,null]`},
		{"not in tools", `return [Object.keys(tools), ALL_TOOLS.map(t => t.id)]`, `[["search","describe","call","web_search"],["openclaw:core:web_search"]]`},
		{"printing", `return JSON.stringify(MCP.aB)`, `"{}"`},
		{"list", `return await API.list("mcp")`, `[{"path":"mcp/index.d.ts","description":"servers","bytes":10},{"path":"mcp/github.d.ts","description":"GitHub","bytes":32}]`},
		{"list of a file", `return (await API.list("/mcp/github.d.ts/")).length`, `1`},
		{"list of nothing", `return await API.list("mc")`, `[]`},
		{"read", `return [await API.read("mcp/index.d.ts"), await API.read("//mcp/github.d.ts")]`, `["// índex\n","declare namespace MCP.github {}\n"]`},
		{"read what there is not", `try { await API.read("mcp/gihub.d.ts") } catch (e) { return e.message }`, `"API.read: there is no file \"mcp/gihub.d.ts\"; did you mean mcp/github.d.ts or mcp/index.d.ts?"`},
		{"bad paths", `const out = []; for (const p of ["mcp/../x", "./mcp", "mcp//github.d.ts", "mcp/index.d.ts/", "", 5, undefined]) try { await API.read(p); out.push("read " + p) } catch (e) { out.push(e.name) } return out`,
			`["Error","Error","Error","Error","Error","TypeError","TypeError"]`},
		{"bad prefixes", `const out = []; for (const p of ["mcp/..", ".", "a//b", "mcp//", null]) try { await API.list(p); out.push("listed " + p) } catch (e) { out.push(e.name) } return out`, `["Error","Error","Error","Error","TypeError"]`},
		{"freezing is no change", `return [Object.freeze(tools) === tools, Object.seal(MCP.github) === MCP.github, Object.preventExtensions(MCP) === MCP, Reflect.defineProperty(tools, "x", {value: 1}), Reflect.defineProperty(tools, "call", {value: 1})]`, `[true,true,true,false,false]`},
		{"Object.prototype.get", `Object.prototype.get = function () {}; return [Object.keys(tools).length, Object.getOwnPropertyDescriptor(MCP, "aB").writable]`, `[4,false]`},
		{"iteration that the cell changed", `Array.prototype[Symbol.iterator] = function* () { yield "then"; yield "toString" }; return Reflect.ownKeys(MCP.github) + ""`, `"$api,createIssue,resources,then2"`},
		{"API is frozen", `API.list = 1; return [typeof API.list, Object.isFrozen(API), Object.getPrototypeOf(API)]`, `["function",true,null]`},
		{"namespace", `return [namespaces.calendar === calendar, Object.isFrozen(calendar), Object.isFrozen(calendar.zone.list[0]), calendar.deep[0], calendar.zone, Object.getPrototypeOf(calendar.zone)]`,
			`[true,true,true,1,{"name":"UTC","list":[{"a":null}]},null]`},
		{"namespaces are read only", `calendar.list = 1; globalThis.calendar = 2; namespaces.x = 1; return [typeof calendar.list, "x" in namespaces]`, `["function",false]`},
		{"a cell may shadow one", `const calendar = 5; return calendar`, `5`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mcpRun(t, scopes)
			if err := r.body(c.code); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, r.outcome()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(r.host.calls) != 0 {
				t.Errorf("calls were made: %v", r.host.calls)
			}
		})
	}
}

// SPEC 7.9: without MCP tools there is no MCP, and the list is empty.
func TestNoMCP(t *testing.T) {
	if got := eval(t, `return [typeof MCP, await API.list("mcp"), typeof namespaces]`); got != `["undefined",[],"undefined"]` {
		t.Errorf("got %s", got)
	}
	r := newRun(t)
	if err := r.body(`MCP.github.createIssue()`); err != nil {
		t.Fatal(err)
	}
	if o, _ := r.g.Outcome(); o.Failure == nil || !strings.Contains(o.Failure.Hint, "no tool of an MCP server") {
		t.Errorf("got %+v", o.Failure)
	}
}

// Wrong arguments reject with what would have worked, and nothing is called. SPEC 6.8, 7.1
func TestWrongArguments(t *testing.T) {
	for code, want := range map[string]string{
		`tools.web_search("a", "b")`:           `tools.web_search: it takes one argument, the input object, and got 2 arguments; it was not started`,
		`tools.call("a", {}, {})`:              `tools.call: it takes an id or name, and one input object, and got 3 arguments; it was not started`,
		`MCP.github.createIssue("a")`:          `MCP.github.createIssue: it takes one object argument, not string; it was not started`,
		`MCP.github.createIssue([])`:           `MCP.github.createIssue: it takes one object argument, not an array; it was not started`,
		`MCP.github.createIssue(null)`:         `MCP.github.createIssue: it takes one object argument, not null; it was not started`,
		`MCP.github.createIssue({}, {})`:       `MCP.github.createIssue: it takes one argument, the input object, and got 2 arguments; it was not started`,
		`MCP.$api("github")`:                   `MCP.$api: it takes no arguments; MCP.<server>.$api(tool) tells of one server, and got 1 arguments; it was not started`,
		`tools.search("x", {max: 5})`:          `tools.search: the second argument must be an object such as {limit: 5}; it was not started`,
		`MCP.github.$api(5)`:                   `MCP.github.$api: the first argument must be the name of a function, not number; it was not started`,
		`MCP.github.$api("createIssue", true)`: `MCP.github.$api: the second argument must be an object such as {schema: true}; it was not started`,
	} {
		r := mcpRun(t, "")
		if err := r.body(`try { await ` + code + ` } catch (e) { return [e.name, e.code, e.started, e.toolId, e.message].join("|") }`); err != nil {
			t.Fatal(err)
		}
		if got := r.outcome(); !strings.Contains(got, want) || !strings.HasPrefix(got, `"ToolError|invalid_input|false|`) || len(r.host.calls) > 0 {
			t.Errorf("%s: got %s, calls %v; want %s", code, got, r.host.calls, want)
		}
	}
}

// What a getter or a trap of the arguments throws rejects, too. SPEC 6.8
func TestArgumentsThatThrow(t *testing.T) {
	for _, code := range []string{
		`MCP.github.$api("x", {get schema() { throw new RangeError("mine") }})`, `MCP.github.createIssue({get a() { throw new RangeError("mine") }})`,
		`tools.search("x", {get limit() { throw new RangeError("mine") }})`,
		`tools.search("x", new Proxy({}, {ownKeys() { throw new RangeError("mine") }}))`, `calendar.list({toJSON() { throw new RangeError("mine") }})`,
	} {
		r := mcpRun(t, scopes)
		if err := r.body(`let p; try { p = ` + code + ` } catch { return "thrown" } return await p.catch(e => e instanceof RangeError || e.code === "invalid_input")`); err != nil {
			t.Fatal(err)
		}
		if got := r.outcome(); got != `true` {
			t.Errorf("%s: got %s", code, got)
		}
	}
}

// SPEC 4.4: what does not exist is named with what does, and reported.
func TestUnknownMembers(t *testing.T) {
	for code, want := range map[string][2]string{
		`MCP.githb.createIssue()`:       {`MCP.githb does not exist; did you mean MCP.github? await API.read("mcp/index.d.ts") lists the servers`, `MCP.githb`},
		`MCP.github.createIsue({})`:     {`MCP.github.createIsue does not exist; did you mean MCP.github.createIssue? await API.read("mcp/github.d.ts") lists its functions`, `MCP.github.createIsue`},
		`MCP.github.create_issue({})`:   {`MCP.github.create_issue does not exist; did you mean MCP.github.createIssue? await API.read("mcp/github.d.ts") lists its functions`, `MCP.github.create_issue`},
		`MCP.createIssue({})`:           {`MCP.createIssue does not exist; did you mean MCP.github.createIssue? await API.read("mcp/index.d.ts") lists the servers`, `MCP.createIssue`},
		`tools.create_issue({})`:        {`tools.create_issue does not exist; did you mean MCP.github.createIssue? tools.search(query) finds tools, and "name" in tools tells whether one is there`, `tools.create_issue`},
		`tools.github.createIssue({})`:  {`tools.github does not exist; did you mean MCP.github? tools.search(query) finds tools, and "name" in tools tells whether one is there`, `tools.github`},
		`MCP.zzz?.x; MCP.zzz.resources`: {`MCP.zzz does not exist; await API.read("mcp/index.d.ts") lists the servers`, `MCP.zzz`},
	} {
		r := mcpRun(t, "")
		if err := r.body(code); err != nil {
			t.Fatal(err)
		}
		o, _ := r.g.Outcome()
		if o.Failure == nil || o.Failure.Hint != want[0] {
			t.Errorf("%s: got %+v\nwant %s", code, o.Failure, want[0])
		}
		if !slices.Contains(r.host.missed, want[1]) {
			t.Errorf("%s: missed %v", code, r.host.missed)
		}
	}
	// A name that was only asked for has nothing to do with an error elsewhere, and a caught one
	// not with the next.
	for _, code := range []string{
		`const { web_search, forecast } = tools; const r = undefined; r.days.map(x => x)`, `const f = tools.weathr ?? tools.web_search; let z; z.list.length`,
		`try { tools.optional() } catch {} ; let z; z.foo`, `if ("nope" in tools) 1; let z; z()`, "const q = tools.nope;\nlet z;\nz.foo", `tools.nope; null.x`,
		`const a = MCP.nope, b = MCP.github; let f; f({})`,
	} {
		r := mcpRun(t, "")
		if err := r.body(code); err != nil {
			t.Fatal(err)
		}
		if o, _ := r.g.Outcome(); o.Failure == nil || o.Failure.Hint != "" {
			t.Errorf("%s: got %+v", code, o.Failure)
		}
	}
	for code, want := range map[string]string{
		`const x = 1; (() => { return tools.nope({a: 1}) })()`: "tools.nope does not exist",
		`await MCP.github.createIsue({title: "a\nb"})`:         "did you mean MCP.github.createIssue?",
		`[1].map(n => MCP.github.creatIssue({n}))`:             "did you mean MCP.github.createIssue?",
		`API.lst()`:                 "API.lst does not exist; API has list(prefix) and read(path)",
		`tools["a\u001b]0;x\nb"]()`: `"tools.a\u001b]0;x\nb" does not exist`,
	} {
		r := mcpRun(t, "")
		if err := r.body(code); err != nil {
			t.Fatal(err)
		}
		if o, _ := r.g.Outcome(); o.Failure == nil || !strings.Contains(o.Failure.Hint, want) {
			t.Errorf("%s: got %+v, want %s", code, o.Failure, want)
		}
	}
	r := mcpRun(t, "")
	if err := r.body(`github.createIssue({})`); err != nil {
		t.Fatal(err)
	}
	if o, _ := r.g.Outcome(); o.Failure == nil || !slices.Equal(o.Failure.Suggestions, []string{"MCP.github"}) {
		t.Errorf("got %+v", o.Failure)
	}
	r = mcpRun(t, "")
	if err := r.body(`createIssue({})`); err != nil {
		t.Fatal(err)
	}
	if o, _ := r.g.Outcome(); o.Failure == nil || !slices.Equal(o.Failure.Suggestions, []string{"MCP.github.createIssue"}) {
		t.Errorf("got %+v", o.Failure)
	}
}

// A forgotten await is said where the result is used, and ordinary use of promises works.
func TestForgottenAwait(t *testing.T) {
	for code, want := range map[string]string{
		`tools.web_search({}).results`:                    `"results" is read from tools.web_search(…), which is a promise and was not awaited; write (await tools.web_search(…)).results`,
		`const r = MCP.github.createIssue({}); r.content`: `"content" is read from MCP.github.createIssue(…), which is a promise and was not awaited; write (await MCP.github.createIssue(…)).content`,
		`const {items} = tools.web_search({})`:            `"items" is read from tools.web_search(…), which is a promise and was not awaited; write (await tools.web_search(…)).items`,
		`tools.web_search({}).length`:                     `"length" is read from tools.web_search(…), which is a promise and was not awaited; write (await tools.web_search(…)).length`,
		`tools.web_search({})[0]`:                         `"0" is read from tools.web_search(…), which is a promise and was not awaited; write (await tools.web_search(…))[0]`,
		`for (const x of tools.web_search({})) text(x)`:   `the result of tools.web_search(…) is used, which is a promise and was not awaited; write (await tools.web_search(…))`,
		`[...tools.search("x")]`:                          `the result of tools.search(…) is used, which is a promise and was not awaited; write (await tools.search(…))`,
		"text(`${tools.call('x')}`)":                      `the result of tools.call(…) is used, which is a promise and was not awaited; write (await tools.call(…))`,
		`API.read("mcp/index.d.ts").split("\n")`:          `"split" is read from API.read(…), which is a promise and was not awaited; write (await API.read(…)).split`,
		`API.list("mcp").map(f => f.path)`:                `"map" is read from API.list(…), which is a promise and was not awaited; write (await API.list(…)).map`,
		`calendar.list().events`:                          `"events" is read from calendar.list(…), which is a promise and was not awaited; write (await calendar.list(…)).events`,
	} {
		r := mcpRun(t, scopes)
		if err := r.body(code); err != nil {
			t.Fatal(err)
		}
		if o, _ := r.g.Outcome(); o.Failure == nil || o.Failure.Name != "TypeError" || o.Failure.Message != want {
			t.Errorf("%s: got %+v\nwant %s", code, o.Failure, want)
		}
	}
	for _, c := range []struct{ name, code, want string }{
		{"what it is", `const p = tools.call("x"); return [p instanceof Promise, typeof p.then, p.constructor === Promise, Object.prototype.toString.call(p), p.hasOwnProperty("x"), "x" in p, Object.keys(p), p[Symbol("x")] === undefined]`,
			`[true,"function",true,"[object Promise]",false,false,[],true]`},
		{"as a value", `return [tools.call("x"), JSON.stringify({p: tools.call("y")}), Array.isArray(tools.call("z"))]`, `["[Promise: not awaited]","{\"p\":\"[Promise: not awaited]\"}",false]`},
		{"own fields", `const p = tools.call("x"); p.tag = 5; return [p.tag, delete p.tag, "tag" in p]`, `[5,true,false]`},
		{"for in", `const k = []; for (const n in tools.call("x")) k.push(n); return k`, `[]`},
		{"resolve", `const p = tools.call("x"); return [Promise.resolve(p) === p, p.catch(() => 0) !== p, p.finally(() => 0) instanceof Promise, Object.getPrototypeOf(p.then()) === Promise.prototype]`, `[true,true,true,true]`},
		{"equality", `const p = tools.call("x"); return [p === p, p == null, !p, p ? 1 : 0]`, `[true,false,false,1]`},
		{"the prototype is no way in", `const proto = Object.getPrototypeOf(tools.call("x")); proto.then = 1; try { Object.defineProperty(proto, "x", {value: 1}) } catch {} try { Object.setPrototypeOf(proto, null) } catch {} const p = tools.call("y"); return [typeof p.then, "x" in p, p instanceof Promise]`,
			`["function",false,true]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mcpRun(t, "")
			if err := r.body(c.code); err != nil {
				t.Fatal(err)
			}
			for len(r.host.calls) > 0 {
				id := r.host.calls[0].ID
				r.host.calls = r.host.calls[1:]
				if err := r.g.Settle(id, []byte(`1`), nil); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, r.outcome()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	r := mcpRun(t, "")
	if err := r.body(`const [a, b] = await Promise.all([tools.call("x"), tools.call("y").then(v => v + 1)]); return [a, b, await Promise.race([tools.call("z")])]`); err != nil {
		t.Fatal(err)
	}
	for id := range uint64(3) {
		if err := r.g.Settle(id+1, []byte(`1`), nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.outcome(); got != `[1,2,1]` {
		t.Errorf("got %s", got)
	}
}

// Ten thousand tools cost a guest nothing at its start, and what it uses is found.
func TestManyTools(t *testing.T) {
	var functions, mcp strings.Builder
	for i := range 10_000 {
		functions.WriteString("f" + name(i) + ` "client:app:f` + name(i) + "\"\n")
		mcp.WriteString("big.f" + name(i) + ` "mcp:big:f` + name(i) + "\"\n")
	}
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	pack := func(text string) guest.Packed { return guest.Packed{Data: packer.EncodeAll([]byte(text), nil)} }
	see := guest.Surface{Tools: pack("[" + strings.Repeat(`{"id":"x"},`, 9999) + `{"id":"x"}]`), Functions: pack(functions.String()), MCP: pack(mcp.String())}
	r := start(t, engine.Config{}, 8<<20, guest.Options{Surface: see})
	if err := r.body(`tools.f00000(); tools.f09999(); MCP.big.f05000(); return [Object.keys(MCP.big).length, "f10000" in tools, ALL_TOOLS.length]`); err != nil {
		t.Fatal(err)
	}
	if got := r.outcome(); got != `[10001,false,10000]` {
		t.Errorf("got %s", got)
	}
	if r.host.calls[1].Tool != "client:app:f09999" || r.host.calls[2].Tool != "big.f05000" {
		t.Errorf("calls %v", r.host.calls)
	}
}

func name(i int) string { return fmt.Sprintf("%05d", i) }
