package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func build(t testing.TB, entries ...Entry) (*Catalog, []string) {
	t.Helper()
	c, warnings, err := Build(entries, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, w := range warnings {
		texts = append(texts, w.String())
	}
	return c, texts
}

func ids(tools []*Tool) []string {
	list := []string{}
	for _, t := range tools {
		list = append(list, t.ID)
	}
	return list
}

// SPEC 6.2: ids, and an order that depends on the tools alone.
func TestIDs(t *testing.T) {
	entries := []Entry{
		{Name: "message", Source: OpenClaw},
		{Name: "browser_request", Source: Plugin, SourceName: "browser"},
		{Name: "create_issue", Source: MCP, SourceName: "github"},
		{Name: "select_file", Source: Client},
		{Name: "x", Source: Plugin},
		{Name: "y", Source: MCP},
		{ID: "client:app:own", Name: "z", Source: Client},
	}
	want := []string{"client:app:own", "client:app:select_file", "openclaw:core:message", "plugin:browser:browser_request", "plugin:default:x"}
	for range 20 {
		rand.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
		c, warnings := build(t, entries...)
		if diff := cmp.Diff(want, ids(c.All())); diff != "" || len(warnings) > 0 {
			t.Fatalf("%q (-want +got):\n%s", warnings, diff)
		}
		if diff := cmp.Diff([]string{"mcp:default:y", "mcp:github:create_issue"}, ids(c.MCP())); diff != "" {
			t.Fatalf("MCP (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[Source]int{OpenClaw: 1, Plugin: 2, MCP: 2, Client: 2}, c.BySource()); diff != "" || c.Len() != 7 {
			t.Fatalf("counts (-want +got):\n%s", diff)
		}
	}
}

// SPEC 2.4, 6.4, 6.9: what is left out, and what is said about it.
// Validation 11: the control tools of Tool Search are hidden from the model and from the catalog
func TestLeftOut(t *testing.T) {
	tests := []struct {
		name    string
		entry   Entry
		in      bool
		warning string
	}{
		{"ordinary", Entry{Name: "a", Source: Client}, true, ""},
		{"shell called exec", Entry{Name: "exec", Source: OpenClaw}, true, ""},
		{"code mode's exec", Entry{Name: "exec", Source: OpenClaw, Control: true}, false, ""},
		{"wait", Entry{Name: "wait", Source: OpenClaw}, false, "control tool"},
		{"tool_call", Entry{Name: "tool_call", Source: OpenClaw}, false, "control tool"},
		{"tool_search_code", Entry{Name: "tool_search_code", Source: OpenClaw}, false, "control tool"},
		{"wait of a server", Entry{Name: "wait", Source: MCP, SourceName: "s"}, true, ""},
		{"no name", Entry{Source: Client}, false, "no name"},
		{"no source", Entry{Name: "a"}, false, `source ""`},
		{"strange source", Entry{Name: "a", Source: "other"}, false, `source "other"`},
		{"512 bytes", Entry{Name: strings.Repeat("n", 512-len("client:app:")), Source: Client}, true, ""},
		{"513 bytes", Entry{Name: strings.Repeat("n", 513-len("client:app:")), Source: Client}, false, "513 bytes"},
		{"not UTF-8", Entry{Name: "\xff", Source: Client}, false, "not UTF-8"},
		{"long description", Entry{Name: "a", Source: Client, Description: strings.Repeat("é", 10_000)}, true, "was cut"},
		{"bad schema", Entry{Name: "a", Source: Client, Parameters: json.RawMessage(`{`)}, true, "parameters schema cannot be used"},
		{"bad output schema", Entry{Name: "a", Source: Client, OutputSchema: json.RawMessage(`[]`)}, true, "outputSchema schema is neither"},
		{"null schema", Entry{Name: "a", Source: Client, Parameters: json.RawMessage(`null`)}, true, ""},
	}
	for _, tt := range tests {
		c, warnings := build(t, tt.entry)
		if (c.Len() == 1) != tt.in {
			t.Errorf("%s: %d tools", tt.name, c.Len())
		}
		all := strings.Join(warnings, "\n")
		if (all == "") != (tt.warning == "") || !strings.Contains(all, tt.warning) || len(all) > 400 {
			t.Errorf("%s: warnings %q, want %q", tt.name, all, tt.warning)
		}
		for _, tool := range slices.Concat(c.All(), c.MCP()) {
			if !json.Valid(tool.Describe()) || len(tool.Description) > maxDescriptionBytes+len("…") {
				t.Errorf("%s: describe %.200s", tt.name, tool.Describe())
			}
		}
	}
	c, warnings := build(t, Entry{Name: "a", Description: "first", Source: Client}, Entry{Name: "a", Description: "second", Source: Client})
	if c.Len() != 1 || c.Get("client:app:a").Description != "first" || len(warnings) != 1 || !strings.Contains(warnings[0], "same id") {
		t.Errorf("two with one id: %v, %q", ids(c.All()), warnings)
	}
	if _, _, err := Build(make([]Entry, MaxTools+1), Options{}); err == nil {
		t.Error("a catalog may be of any size")
	}
}

// SPEC 6.1: what a cell sees of an entry, field by field.
func TestEntryJSON(t *testing.T) {
	c, _ := build(t,
		Entry{Name: "full", Label: "Full <1>", Description: "d & d", Source: Plugin, SourceName: "p", Parameters: json.RawMessage(`{ "n" : 9007199254740993 }`), OutputSchema: json.RawMessage(`true`)},
		Entry{Name: "bare", Source: Client})
	full, bare := c.Get("plugin:p:full"), c.Get("client:app:bare")
	for _, tt := range []struct{ got, want string }{
		{string(full.Compact()), `{"id":"plugin:p:full","name":"full","label":"Full <1>","description":"d & d","source":"plugin","sourceName":"p"}`},
		{string(full.Describe()), `{"id":"plugin:p:full","name":"full","label":"Full <1>","description":"d & d","source":"plugin","sourceName":"p","parameters":{"n":9007199254740993},"outputSchema":true}`},
		{string(bare.Compact()), `{"id":"client:app:bare","name":"bare","description":"","source":"client"}`},
		{string(bare.Describe()), `{"id":"client:app:bare","name":"bare","description":"","source":"client","parameters":{}}`},
	} {
		if tt.got != tt.want {
			t.Errorf("got  %s\nwant %s", tt.got, tt.want)
		}
	}
}

// Build copies: what its caller does with the entries later changes nothing.
func TestBuildCopies(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	entries := []Entry{{Name: "a", Source: Client, Parameters: schema}}
	c, _ := build(t, entries...)
	copy(schema, "xxxxxxx")
	entries[0].Name = "b"
	if got := string(c.Get("client:app:a").Parameters); got != `{"type":"object"}` {
		t.Errorf("parameters are now %s", got)
	}
}

func manyEntries(n int) []Entry {
	entries := make([]Entry, n)
	for i := range entries {
		entries[i] = Entry{Name: fmt.Sprintf("tool_%d_do_thing", i), Description: strings.Repeat("does something with a thing ", 10), Source: Plugin, SourceName: fmt.Sprint("p", i%50),
			Parameters: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string","pattern":"^/"},"limit":{"type":"integer","default":5}},"required":["path"]}`)}
	}
	return entries
}

// A catalog is used by many goroutines at once; the race detector watches.
func TestConcurrentUse(t *testing.T) {
	c, _ := build(t, manyEntries(200)...)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 20 {
				name := fmt.Sprintf("tool_%d_do_thing", (g*7+i)%200)
				tool, err := c.Resolve(name)
				if err != nil {
					t.Error(err)
					return
				}
				tool.CheckInput(json.RawMessage(`{"path":"/x"}`))
				c.Search(name, nil)
				c.Resolve(name + "x")
				tool.Describe()
			}
		})
	}
	wg.Wait()
}

// 5,000 tools must not make the start of a run slow.
func TestHugeCatalog(t *testing.T) {
	entries := manyEntries(5000)
	start := time.Now()
	c, _ := build(t, entries...)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("Build took %v", took)
	}
	start = time.Now()
	hits, err := c.Search("tool_4321_do_thing", json.RawMessage(`1`))
	if err != nil || len(hits) != 1 || hits[0].Tool.Name != "tool_4321_do_thing" {
		t.Errorf("%v, %v", hits, err)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("the first search took %v", took)
	}
}

func BenchmarkBuild5000(b *testing.B) {
	entries := manyEntries(5000)
	for b.Loop() {
		Build(entries, Options{})
	}
}

func BenchmarkCheckInput(b *testing.B) {
	x, _ := tool(b, string(manyEntries(1)[0].Parameters))
	input := json.RawMessage(`{"path":"/tmp/x"}`)
	for b.Loop() {
		x.CheckInput(input)
	}
}
