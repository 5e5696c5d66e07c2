package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

// TestValidation has those lines of the validation list (README.md) that need a real worker and stand
// in no other test as a whole.
func TestValidation(t *testing.T) {
	s := embed(t, supervisor.Options{})
	policy := catalog.Policy{Deny: []string{"drop_table", "mcp:github:delete_repo"}}
	entries := policy.Apply([]catalog.Entry{
		{Name: "message", Source: catalog.OpenClaw, Description: "Send a message", Parameters: json.RawMessage(`{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}`)},
		{Name: "exec", Source: catalog.OpenClaw, Description: "Run a shell command"},
		{Name: "browser_request", Source: catalog.Plugin, SourceName: "browser"},
		{Name: "drop_table", Source: catalog.Plugin, SourceName: "db"},
		{Name: "select_file", Source: catalog.Client, SourceName: "app"},
		{Name: "create_issue", Source: catalog.MCP, SourceName: "github", Parameters: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`)},
		{Name: "delete_repo", Source: catalog.MCP, SourceName: "github"},
		{ID: "openclaw:code-mode:exec", Name: "exec", Source: catalog.OpenClaw, SourceName: "code-mode", Control: true},
		{Name: "wait", Source: catalog.OpenClaw, Control: true}, {Name: "tool_search_code", Source: catalog.OpenClaw},
		{Name: "tool_search", Source: catalog.OpenClaw}, {Name: "tool_describe", Source: catalog.OpenClaw}, {Name: "tool_call", Source: catalog.OpenClaw},
	})
	decide := func(t *testing.T, entries []catalog.Entry) *surface.Decision {
		d, err := surface.Decide(surface.Run{Global: []byte("true"), Entries: entries})
		if err != nil || d.State != surface.Engaged {
			t.Fatalf("%+v, %v", d, err)
		}
		return d
	}
	d := decide(t, entries)
	run := func(t *testing.T, c *catalog.Catalog, code string) (*supervisor.Result, *seen) {
		calls := &seen{}
		return s.Exec(t.Context(), supervisor.Program{Catalog: c, Executor: calls, Code: code}), calls
	}
	effective := `["client:app:select_file","openclaw:core:exec","openclaw:core:message","plugin:browser:browser_request"]`

	// Validation 5: all effectively available tools but those of MCP are in ALL_TOOLS
	// Validation 6: denied tools are not in ALL_TOOLS
	t.Run("all tools", func(t *testing.T) {
		res, _ := run(t, d.Catalog, `ALL_TOOLS.map(t => t.id).sort()`)
		completed(t, res, effective)
	})
	// Validation 7: tools.search, tools.describe and tools.call work for OpenClaw tools
	t.Run("openclaw tools", func(t *testing.T) {
		res, calls := run(t, d.Catalog, `
			const [hit] = await tools.search("send a message");
			const about = await tools.describe(hit.id);
			[hit.id, about.parameters.required, (await tools.call(hit.id, {to: "ann"})).input]`)
		completed(t, res, `["openclaw:core:message",["to"],{"to":"ann"}]`)
		if diff := cmp.Diff([]string{`openclaw:core:message {"to":"ann"}`}, calls.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
	// Validation 9: $api() of the MCP namespace remains as an inline fallback for schemas
	t.Run("inline schemas", func(t *testing.T) {
		res, calls := run(t, d.Catalog, `
			const all = await MCP.github.$api(), one = await MCP.github.$api("createIssue", {schema: true}), servers = await MCP.$api();
			[JSON.stringify(all).includes("createIssue"), JSON.stringify(one).includes('"required":["title"]'), JSON.stringify(servers).includes("github"), JSON.stringify([all, servers]).includes("delete")]`)
		completed(t, res, `[true,true,true,false]`)
		if n := res.Telemetry.Counts; n.Call+n.Search+n.Describe != 0 || len(calls.calls) > 0 {
			t.Errorf("it took calls: %+v, %q", n, calls.calls)
		}
	})
	// Validation 11: the control tools of Tool Search are hidden from the model and from the catalog
	t.Run("control tools", func(t *testing.T) {
		if diff := cmp.Diff([]string{"exec", "wait"}, d.VisibleTools()); diff != "" {
			t.Errorf("visible (-want +got):\n%s", diff)
		}
		shown := string(d.Definitions.Render(surface.Anthropic, true))
		res, _ := run(t, d.Catalog, `[ALL_TOOLS, Object.keys(tools), await tools.search("tool search describe call wait", {limit: 50}), await API.list()]`)
		if res.Status != supervisor.Completed || strings.Contains(string(res.Value), "tool_") || strings.Contains(string(res.Value), ":wait") {
			t.Errorf("a cell sees one: %s", res.JSON())
		}
		for _, name := range []string{"tool_search", "tool_search_code", "tool_describe", "tool_call"} {
			if strings.Contains(shown, name) {
				t.Errorf("the model sees %s: %s", name, shown)
			}
			res, calls := run(t, d.Catalog, fmt.Sprintf(`await tools.call(%q, {})`, name))
			if res.Code != supervisor.NestedToolFailed || len(calls.calls) > 0 {
				t.Errorf("a call of %s: %s, executed %q", name, res.JSON(), calls.calls)
			}
		}
	})
	// Validation 13: the shell exec is hidden from the model, and callable by its catalog id if it is allowed
	t.Run("shell", func(t *testing.T) {
		const code = `(await tools.call("openclaw:core:exec", {command: "ls"})).input.command`
		res, calls := run(t, d.Catalog, code)
		completed(t, res, `"ls"`)
		if diff := cmp.Diff([]string{`openclaw:core:exec {"command":"ls"}`}, calls.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		var model []struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal(d.Definitions.Render(surface.Anthropic, true), &model); err != nil || len(model) != 2 || !strings.Contains(string(model[0].Schema), `"code"`) {
			t.Errorf("the model's exec is not code mode's: %+v, %v", model, err)
		}
		denied := decide(t, catalog.Policy{Deny: []string{"openclaw:core:exec"}}.Apply(entries))
		if res, calls := run(t, denied.Catalog, code); res.Code != supervisor.NestedToolFailed || len(calls.calls) > 0 {
			t.Errorf("denied: %s, executed %q", res.JSON(), calls.calls)
		}
	})
	// Validation 14: recursive calls of code mode's exec and wait cannot be made by guest code
	t.Run("recursion", func(t *testing.T) {
		const code = `
			const ways = {
				exec: () => tools.call("exec", {code: "1"}), execId: () => tools.call("openclaw:code-mode:exec", {code: "1"}), execCore: () => tools.call("openclaw:core:exec", {code: "1"}),
				wait: () => tools.call("wait", {runId: "x"}), waitId: () => tools.call("openclaw:core:wait", {runId: "x"}), function: () => tools.exec({code: "1"}),
				waitFunction: () => tools.wait({runId: "x"}), computed: () => tools["wa" + "it"]({}), global: () => globalThis.exec({code: "1"}), globalWait: () => wait({}),
				described: () => tools.describe("wait"), describedExec: () => tools.describe("openclaw:code-mode:exec"), inMCP: () => MCP.codeMode.exec({}), namespace: () => namespaces.exec({}),
			};
			const reached = [];
			for (const [way, f] of Object.entries(ways)) try { reached.push([way, (await f()).id]) } catch {}
			reached`
		// All that answers to exec is the shell, as one entry of the catalog.
		res, calls := run(t, d.Catalog, code)
		completed(t, res, `[["exec","openclaw:core:exec"],["execCore","openclaw:core:exec"],["function","openclaw:core:exec"]]`)
		if len(calls.calls) != 3 {
			t.Errorf("executed %q", calls.calls)
		}
		// Without a shell nothing does.
		bare := decide(t, slices.DeleteFunc(slices.Clone(entries), func(e catalog.Entry) bool { return e.Name == "exec" && !e.Control }))
		res, calls = run(t, bare.Catalog, code)
		completed(t, res, `[]`)
		if len(calls.calls) > 0 {
			t.Errorf("executed %q", calls.calls)
		}
	})
	// Validation 17: infinite loops time out and cannot block the gateway
	t.Run("loop", func(t *testing.T) {
		loop := make(chan *supervisor.Result, 1)
		began := make(chan struct{})
		go func() { // ends with its time limit
			loop <- s.Exec(t.Context(), supervisor.Program{
				Code: `text("began"); for (;;);`, Output: func(supervisor.Item) { close(began) },
				Limits: limitsWith(func(l *limits.Limits) { l.Timeout = 5 * time.Second }),
			})
		}()
		<-began
		for range 3 {
			res, _ := run(t, d.Catalog, `1 + 1`)
			completed(t, res, "2")
		}
		select {
		case res := <-loop:
			t.Fatalf("the loop ended before others were served: %s", res.JSON())
		default:
		}
		if res := <-loop; res.Code != supervisor.Timeout || res.Phase != supervisor.PhaseLimit {
			t.Errorf("the loop: %s", res.JSON())
		}
	})
}

// The tables of README.md: each line has tests, which exist and name it, and each test that names
// a line of the validation list is in its table.
func TestValidationTable(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, steps := tableRows(t, readme, "## The validation list"), tableRows(t, readme, "## The plan")
	if len(lines) != 23 || len(steps) != 16 {
		t.Fatalf("%d lines of the validation list and %d steps of the plan, want 23 and 16", len(lines), len(steps))
	}
	must := tableRows(t, readme, "## What a gateway must hold")
	if len(must) < 8 {
		t.Fatalf("%d lines of what a gateway must hold, want 8 or more", len(must))
	}
	tests := findTests(t)
	for _, table := range [][]row{lines, steps, must} {
		for i, r := range table {
			if r.number != i+1 {
				t.Errorf("line %d is number %d", i+1, r.number)
			}
		}
	}
	for _, r := range slices.Concat(lines, steps, must) {
		if len(r.tests) == 0 {
			t.Errorf("%q: no test holds it", r.line())
		}
		for _, name := range r.tests {
			if tests[name] == nil {
				t.Errorf("%q: there is no test %s", r.line(), name)
			}
		}
	}
	for _, r := range steps {
		if want := fmt.Sprintf("TestGatewayPlan/%02d_", r.number); !slices.ContainsFunc(r.tests, func(name string) bool { return strings.HasPrefix(name, want) }) {
			t.Errorf("step %d is not held by %s…", r.number, want)
		}
	}
	table := map[string][]string{} // the lines that a test holds
	for _, r := range lines {
		for _, name := range r.tests {
			if !strings.HasPrefix(name, "TestGatewayPlan/") { // whose steps say what they are about
				table[name] = append(table[name], r.line())
			}
		}
	}
	for name, says := range tests {
		slices.Sort(says)
		slices.Sort(table[name])
		if diff := cmp.Diff(table[name], says, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: the lines of the table (-), and those that the test names (+):\n%s", name, diff)
		}
	}
}

// row is a line of a table: its number, its text and the tests that hold it.
type row struct {
	number int
	text   string
	tests  []string
}

func (r row) line() string { return fmt.Sprintf("%d: %s", r.number, r.text) }

var tableRow = regexp.MustCompile(`(?m)^\| (\d+) \| (.+?) \| (.*?) ?\|$`)

// tableRows reads the table below a heading.
func tableRows(t *testing.T, readme []byte, heading string) (rows []row) {
	t.Helper()
	_, section, ok := bytes.Cut(readme, []byte("\n"+heading+"\n"))
	if !ok {
		t.Fatalf("README.md has no heading %q", heading)
	}
	section, _, _ = bytes.Cut(section, []byte("\n## "))
	for _, m := range tableRow.FindAllStringSubmatch(string(section), -1) {
		r := row{text: m[2]}
		r.number, _ = strconv.Atoi(m[1])
		for _, name := range strings.Split(m[3], ", ") {
			if name != "" {
				r.tests = append(r.tests, strings.Trim(name, "`"))
			}
		}
		rows = append(rows, r)
	}
	return rows
}

var namesLine = regexp.MustCompile(`(?m)^\s*(?://|#) Validation (\d+: .+)$`)

// says gives the lines that a text names; never nil.
func says(text string) []string {
	lines := []string{}
	for _, m := range namesLine.FindAllStringSubmatch(text, -1) {
		lines = append(lines, m[1])
	}
	return lines
}

// findTests gives all tests of the repository with the lines that they name, by names such as
// catalog.TestIDs; those of this package have no path. A subtest is found by the literal
// name in its t.Run, with the comment above that, and a story or a step of the plan by its file.
func findTests(t *testing.T) map[string][]string {
	t.Helper()
	tests := map[string][]string{}
	err := filepath.WalkDir(repo, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != repo && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		dir, err := filepath.Rel(repo, filepath.Dir(path))
		if err != nil {
			return err
		}
		prefix := filepath.ToSlash(dir) + "."
		if prefix == "test/e2e." {
			prefix = ""
		}
		return testsOfFile(tests, path, prefix)
	})
	if err != nil {
		t.Fatal(err)
	}
	for pattern, parent := range map[string]string{"testdata/*.txtar": "TestStories/", "testdata/plan/[0-9][0-9]_*.json": "TestGatewayPlan/"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		if tests[strings.TrimSuffix(parent, "/")] == nil {
			continue
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name := filepath.Base(file)
			tests[parent+strings.TrimSuffix(name, filepath.Ext(name))] = says(string(b))
		}
	}
	return tests
}

func testsOfFile(tests map[string][]string, path, prefix string) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	above := map[int]string{} // comments, by the line below them
	for _, group := range f.Comments {
		var text strings.Builder
		for _, c := range group.List {
			text.WriteString(c.Text + "\n")
		}
		above[files.Position(group.End()).Line+1] = text.String()
	}
	line := func(n ast.Node) int { return files.Position(n.Pos()).Line }
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") {
			continue
		}
		name := prefix + fn.Name.Name
		tests[name] = says(above[files.Position(fn.Name.Pos()).Line])
		ast.Inspect(fn, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 2 {
				return true
			}
			selector, isSelector := call.Fun.(*ast.SelectorExpr)
			literal, isLiteral := call.Args[0].(*ast.BasicLit)
			if isSelector && isLiteral && selector.Sel.Name == "Run" && literal.Kind == token.STRING {
				sub, _ := strconv.Unquote(literal.Value) // it was parsed
				tests[name+"/"+strings.ReplaceAll(sub, " ", "_")] = says(above[line(call)])
			}
			return true
		})
	}
	return nil
}
