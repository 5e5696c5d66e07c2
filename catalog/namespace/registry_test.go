package namespace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
)

// build makes a catalog; in it, the plugin "p" has the tools "a" and "b".
func build(t testing.TB, more ...catalog.Entry) *catalog.Catalog {
	t.Helper()
	entries := append([]catalog.Entry{
		{Name: "a", Source: catalog.Plugin, SourceName: "p"},
		{Name: "b", Source: catalog.Plugin, SourceName: "p"},
	}, more...)
	c, _, err := catalog.Build(entries, catalog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// of returns a namespace that requires a and b and has this scope.
func of(name string, scope any) Namespace {
	return Namespace{ID: name, GlobalName: name, RequiredTools: []string{"a", "b"},
		Scope: func(context.Context, Run) (any, error) { return scope, nil }}
}

func register(t testing.TB, plugin string, list ...Namespace) *Registry {
	t.Helper()
	var r Registry
	for _, n := range list {
		if err := r.Register(plugin, n); err != nil {
			t.Fatal(err)
		}
	}
	return &r
}

func names(list []Visible) []string {
	got := []string{}
	for _, v := range list {
		got = append(got, v.GlobalName)
	}
	return got
}

// SPEC 8.1, 8.3: what can be registered.
func TestRegister(t *testing.T) {
	tests := []struct {
		name   string
		plugin string
		change func(*Namespace)
		want   string // part of the error; "" if there is none
	}{
		{"ordinary", "p", func(n *Namespace) {}, ""},
		{"space around names", "p", func(n *Namespace) { n.ID, n.GlobalName, n.RequiredTools = " x\n", "\tx ", []string{" a "} }, ""},
		{"other scripts", "p", func(n *Namespace) { n.GlobalName = "名前" }, ""},
		{"dollar", "p", func(n *Namespace) { n.GlobalName = "$_9" }, ""},
		{"case matters", "p", func(n *Namespace) { n.GlobalName = "Tools" }, ""},
		{"words that only some code keeps", "p", func(n *Namespace) { n.GlobalName = "async" }, ""},
		{"longest texts", "p", func(n *Namespace) {
			n.Description, n.Prompt = strings.Repeat("é", 2000), strings.Repeat("🙂", 2000)
		}, ""},

		{"no plugin", "", func(n *Namespace) {}, "its plugin id is empty"},
		{"blank plugin", " ", func(n *Namespace) {}, `its plugin id " " has space around it`},
		{"plugin with space", "p ", func(n *Namespace) {}, `its plugin id "p " has space around it`},
		{"long plugin", strings.Repeat("p", 513), func(n *Namespace) {}, "its plugin id has 513 bytes"},
		{"plugin of broken text", "p\xff", func(n *Namespace) {}, "no valid text"},
		{"plugin like broken text", "p\ufffd", func(n *Namespace) {}, "no valid text"},
		{"no id", "p", func(n *Namespace) { n.ID = " \t" }, "its id is empty"},
		{"long id", "p", func(n *Namespace) { n.ID = strings.Repeat("x", 513) }, "its id has 513 bytes"},
		{"no name", "p", func(n *Namespace) { n.GlobalName = " " }, "its global name is empty"},
		{"long name", "p", func(n *Namespace) { n.GlobalName = strings.Repeat("x", 129) }, "its global name has 129 bytes"},
		{"digit", "p", func(n *Namespace) { n.GlobalName = "9x" }, `"9x" is no JavaScript identifier; "_9x" would be one`},
		{"dash", "p", func(n *Namespace) { n.GlobalName = "a-b" }, `"a_b" would be one`},
		{"dot", "p", func(n *Namespace) { n.GlobalName = "a.b" }, "no JavaScript identifier"},
		{"separator", "p", func(n *Namespace) { n.GlobalName = "a\x1fb" }, "no JavaScript identifier"},
		{"NUL", "p", func(n *Namespace) { n.GlobalName = "a\x00" }, "no JavaScript identifier"},
		{"broken text", "p", func(n *Namespace) { n.GlobalName = "a\xff" }, "no JavaScript identifier"},
		{"escape", "p", func(n *Namespace) { n.GlobalName = `\u0061` }, "no JavaScript identifier"},
		{"reserved", "p", func(n *Namespace) { n.GlobalName = "delete" }, "reserved word"},
		{"reserved in modules", "p", func(n *Namespace) { n.GlobalName = "await" }, "reserved word"},
		{"of functions", "p", func(n *Namespace) { n.GlobalName = "arguments" }, "reserved word"},
		{"ours", "p", func(n *Namespace) { n.GlobalName = "tools" }, "would hide a built-in"},
		{"ours, trimmed", "p", func(n *Namespace) { n.GlobalName = " MCP " }, "would hide a built-in"},
		{"constant", "p", func(n *Namespace) { n.GlobalName = "NaN" }, "would hide a built-in"},
		{"inherited", "p", func(n *Namespace) { n.GlobalName = "toString" }, "would hide a built-in"},
		{"then", "p", func(n *Namespace) { n.GlobalName = "then" }, "would hide a built-in"},
		{"prototype", "p", func(n *Namespace) { n.GlobalName = "__proto__" }, "would hide a built-in"},
		{"other hosts'", "p", func(n *Namespace) { n.GlobalName = "process" }, "would hide a built-in"},
		{"private", "p", func(n *Namespace) { n.GlobalName = "__codemode_value" }, "kept for code mode"},
		{"the gateway's", "p", func(n *Namespace) { n.GlobalName = "__openclawHost" }, "kept for code mode"},
		{"long description", "p", func(n *Namespace) { n.Description = strings.Repeat("é", 2001) }, "its description has 2001 characters"},
		{"long prompt", "p", func(n *Namespace) { n.Prompt = strings.Repeat("x", 2001) }, "its prompt has 2001 characters"},
		{"broken prompt", "p", func(n *Namespace) { n.Prompt = "\xff" }, "its prompt is not UTF-8"},
		{"nil tools", "p", func(n *Namespace) { n.RequiredTools = nil }, "requires no tools"},
		{"no tools", "p", func(n *Namespace) { n.RequiredTools = []string{} }, "requires no tools"},
		{"blank tool", "p", func(n *Namespace) { n.RequiredTools = []string{"a", " "} }, "its required tool 1 is empty"},
		{"long tool", "p", func(n *Namespace) { n.RequiredTools = []string{strings.Repeat("x", 513)} }, "has 513 bytes"},
		{"many tools", "p", func(n *Namespace) { n.RequiredTools = make([]string, 257) }, "requires 257 tools"},
		{"no function", "p", func(n *Namespace) { n.Scope = nil }, "no Scope function"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := of("x", nil)
			test.change(&n)
			var r Registry
			err := r.Register(test.plugin, n)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Fatalf("got error %v, want %q", err, test.want)
			}
			if err != nil && (len(err.Error()) > 2000 || strings.Contains(err.Error(), "\n") || len(r.all) != 0) {
				t.Errorf("%d namespaces are left, and an error of %d bytes: %v", len(r.all), len(err.Error()), err)
			}
		})
	}
}

// SPEC 8.3: every global that the guest has is refused, as the guest's own list has it.
func TestGuestGlobals(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash("../../cmd/qjs-worker/internal/guest/testdata/globals.txt"))
	if err != nil {
		t.Fatal(err)
	}
	globals := strings.Fields(string(text))
	if len(globals) < 80 {
		t.Fatalf("only %d globals were found", len(globals))
	}
	for _, name := range append(globals, "namespaces", "MCP", "API") {
		var r Registry
		if err := r.Register("p", of(name, nil)); err == nil {
			t.Errorf("the global %q can be hidden; add it to taken", name)
		}
	}
}

// SPEC 8.1: names are unique among all plugins, and texts and tools are kept in order.
func TestRegistered(t *testing.T) {
	tools := []string{"b", " a", "b", "a "}
	r := register(t, "p", Namespace{ID: "one", GlobalName: "one", Description: " d ", Prompt: "\n", RequiredTools: tools,
		Scope: func(context.Context, Run) (any, error) { return nil, nil }})
	tools[0] = "changed"
	if got := r.all[0].RequiredTools; !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("required tools are %q", got)
	}
	if diff := cmp.Diff([]Visible{{"one", "d", ""}}, r.Visible(build(t))); diff != "" {
		t.Errorf("visible (-want +got):\n%s", diff)
	}
	for _, plugin := range []string{"p", "q"} {
		n := of("one", nil)
		n.GlobalName = "other"
		if err := r.Register(plugin, n); err == nil || !strings.Contains(err.Error(), `plugin "p" has registered this id`) {
			t.Errorf("the same id from %q: %v", plugin, err)
		}
		n = of("other", nil)
		n.GlobalName = "one"
		if err := r.Register(plugin, n); err == nil || !strings.Contains(err.Error(), `"one" of plugin "p" has the global name`) {
			t.Errorf("the same name from %q: %v", plugin, err)
		}
	}
	for i := 1; i < MaxNamespaces; i++ {
		if err := r.Register("p", of(fmt.Sprintf("n%d", i), nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Register("p", of("more", nil)); err == nil || !strings.Contains(err.Error(), "there are 64 namespaces") {
		t.Errorf("one too many: %v", err)
	}
	if !slices.IsSorted(names(r.Visible(build(t)))) {
		t.Error("visible namespaces are not sorted")
	}
}

// SPEC 8.1: a plugin is cleared alone, and what runs have goes on.
func TestClearPlugin(t *testing.T) {
	c := build(t, catalog.Entry{Name: "a", Source: catalog.Plugin, SourceName: "q"}, catalog.Entry{Name: "b", Source: catalog.Plugin, SourceName: "q"})
	r := register(t, "p", of("one", map[string]any{"f": Tool("a")}), of("three", map[string]any{}))
	if err := r.Register("q", of("two", map[string]any{"f": Tool("a")})); err != nil {
		t.Fatal(err)
	}
	s := scopes(t, r, c)
	before := string(s.JSON())
	for _, none := range []string{"", "P", "p ", "one"} {
		r.ClearPlugin(none)
	}
	if got := names(r.Visible(c)); !slices.Equal(got, []string{"one", "three", "two"}) {
		t.Fatalf("clearing others left %q", got)
	}
	r.ClearPlugin("p")
	if got := names(r.Visible(c)); !slices.Equal(got, []string{"two"}) {
		t.Fatalf("clearing p left %q", got)
	}
	if target, err := s.Resolve("one\x1ff"); err != nil || target.Tool.ID != "plugin:p:a" || string(s.JSON()) != before {
		t.Errorf("the scopes of the run changed: %v, %v", target.Tool, err)
	}
	if err := r.Register("q", of("one", map[string]any{})); err != nil {
		t.Errorf("the name is not free again: %v", err)
	}
	r.ClearPlugin("q")
	if s := scopes(t, r, c); len(s.JSON()) > 0 {
		t.Errorf("an empty registry built %s", s.JSON())
	}
}

// SPEC 8.2: only the plugin's own tools make its namespace visible, and are called.
func TestOwnership(t *testing.T) {
	tool := func(source catalog.Source, owner, name string) catalog.Entry {
		return catalog.Entry{Source: source, SourceName: owner, Name: name}
	}
	with := func(e catalog.Entry, id string) catalog.Entry { e.ID = id; return e }
	mine := tool(catalog.Plugin, "github", "create")
	tests := []struct {
		name    string
		entries []catalog.Entry
		want    string // id of the tool that is called; "" if the namespace is invisible
	}{
		{"own", []catalog.Entry{mine}, "plugin:github:create"},
		{"own, with an id of its own", []catalog.Entry{with(mine, "client:app:create")}, "client:app:create"},
		{"none", nil, ""},
		{"another plugin's", []catalog.Entry{tool(catalog.Plugin, "evil", "create")}, ""},
		{"another plugin's with the id", []catalog.Entry{with(tool(catalog.Plugin, "evil", "create"), "plugin:github:create")}, ""},
		{"another plugin's named like the id", []catalog.Entry{tool(catalog.Plugin, "evil", "plugin:github:create")}, ""},
		{"a server named like the plugin", []catalog.Entry{tool(catalog.MCP, "github", "create")}, ""},
		{"a client named like the plugin", []catalog.Entry{tool(catalog.Client, "github", "create")}, ""},
		{"the gateway's", []catalog.Entry{tool(catalog.OpenClaw, "github", "create")}, ""},
		{"in capitals", []catalog.Entry{tool(catalog.Plugin, "GitHub", "create")}, ""},
		{"with space", []catalog.Entry{tool(catalog.Plugin, "github ", "create")}, ""},
		{"the name with space", []catalog.Entry{tool(catalog.Plugin, "github", "create ")}, ""},
		{"no owner", []catalog.Entry{tool(catalog.Plugin, "", "create")}, ""},
		{"owner and name, divided elsewhere", []catalog.Entry{tool(catalog.Plugin, "github:create", ""), tool(catalog.Plugin, "", "github:create")}, ""},
		{"two of them", []catalog.Entry{mine, with(mine, "plugin:github:create2")}, ""},
		{"beside look-alikes", []catalog.Entry{
			tool(catalog.Client, "github", "create"), tool(catalog.MCP, "github", "create"), tool(catalog.Plugin, "evil", "create"), mine,
			tool(catalog.Client, "", "plugin:github:create"), with(tool(catalog.Plugin, "evil", "x"), "plugin:github:create2"),
		}, "plugin:github:create"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			called := false
			r := register(t, "github", Namespace{ID: "github", GlobalName: "github", Description: "d", RequiredTools: []string{"create"},
				Scope: func(context.Context, Run) (any, error) {
					called = true
					return map[string]any{"create": Tool("create")}, nil
				}})
			c, _, err := catalog.Build(test.entries, catalog.Options{})
			if err != nil {
				t.Fatal(err)
			}
			s := scopes(t, r, c)
			visible := len(r.Visible(c)) == 1
			target, err := s.Resolve("github\x1fcreate")
			if test.want == "" {
				if visible || called || !errors.Is(err, ErrNoTool) || len(s.JSON()) > 0 {
					t.Errorf("visible %v, called %v, resolves: %v, %s", visible, called, err, s.JSON())
				}
				return
			}
			if !visible || err != nil || target.Tool.ID != test.want || target.Tool != c.Get(test.want) {
				t.Errorf("visible %v, got %v, %v, want %q", visible, target.Tool, err, test.want)
			}
		})
	}
}

// SPEC 8.2: one missing tool hides the namespace, its texts too.
func TestPartlyMissing(t *testing.T) {
	n := of("x", map[string]any{})
	n.RequiredTools = []string{"a", "b", "c"}
	r := register(t, "p", n)
	if got := r.Visible(build(t)); len(got) != 0 {
		t.Errorf("visible without c: %v", got)
	}
	if got := r.Visible(build(t, catalog.Entry{Name: "c", Source: catalog.Plugin, SourceName: "p"})); len(got) != 1 {
		t.Error("invisible with c")
	}
}

// SPEC 8.1: a nil registry and nil scopes are empty ones.
func TestNil(t *testing.T) {
	var r *Registry
	s, err := r.Build(t.Context(), build(t), Run{})
	if err != nil || s == nil || s.JSON() != nil || r.Visible(build(t)) != nil {
		t.Errorf("a nil registry built %v, %v", s, err)
	}
	s = nil
	if _, err := s.Resolve("x"); !errors.Is(err, ErrNoTool) || s.JSON() != nil {
		t.Errorf("nil scopes resolved: %v", err)
	}
}

// Everything at once, plugins that come and go among it.
func TestConcurrent(t *testing.T) {
	c := build(t, catalog.Entry{Name: "a", Source: catalog.Plugin, SourceName: "q"}, catalog.Entry{Name: "b", Source: catalog.Plugin, SourceName: "q"})
	r := register(t, "p", of("steady", map[string]any{"f": Tool("a", func(args []jsonRaw) (jsonRaw, error) { return args[0], nil })}))
	inner := of("inner", nil)
	inner.Scope = func(context.Context, Run) (any, error) {
		r.ClearPlugin("nobody") // no lock is held while a Scope function runs
		r.Visible(c)
		return map[string]any{"list": []any{Tool("b")}}, nil
	}
	if err := r.Register("p", inner); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 100 {
				if i == 0 {
					if err := r.Register("q", of("passing", map[string]any{"f": Tool("b")})); err != nil {
						t.Error(err)
					}
					r.ClearPlugin("q")
				}
				s, err := r.Build(t.Context(), c, Run{})
				if err != nil {
					t.Error(err)
					return
				}
				target, err := s.Resolve("steady\x1ff")
				if err != nil {
					t.Error(err)
					return
				}
				if input, err := target.Input(jsonRaw(`[{"n":1}]`)); err != nil || string(input) != `{"n":1}` {
					t.Errorf("got %s, %v", input, err)
				}
			}
		})
	}
	all.Wait()
}
