package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// SPEC 2.5: a line a tool, declared outputs first, what does not fit is skipped and counted.
func TestQuickIndex(t *testing.T) {
	out := json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}},"required":["n"]}`)
	x, y := strings.Repeat("x", 90), strings.Repeat("y", 90)
	long := json.RawMessage(`{"type":"object","properties":{"` + x + `":{"type":"string"},"` + y + `":{"type":"string"}},"required":["` + x + `","` + y + `"]}`)
	entries := []Entry{
		{Name: "b", Source: Client}, {Name: "a", Source: Client, OutputSchema: out}, {Name: "long", Source: Client, Parameters: long, OutputSchema: out},
		{Name: "do_it", Source: MCP, SourceName: "srv", OutputSchema: out}, {Name: "then", Source: Plugin, SourceName: "p"}, {Name: "gone", Source: Client, Denied: true},
	}
	c, _ := build(t, entries...)
	want := "tools.a object -> { n: number }\ntools.long { " + x + ": string; " + y + ": string } -> { n: number }\nMCP.srv.doIt object -> { n: number }\ntools.b object -> unknown\ntools.call \"plugin:p:then\" object -> unknown\n"
	if got := c.QuickIndex(8000); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	slices.Reverse(entries)
	again, _ := build(t, entries...)
	for limit := range 700 {
		got := c.QuickIndex(limit)
		if n := utf8.RuneCountInString(got); n > limit || n > 0 && !strings.HasSuffix(got, "\n") {
			t.Fatalf("limit %d: %d characters: %q", limit, n, got)
		}
		if got != again.QuickIndex(limit) {
			t.Fatalf("limit %d: another order of the tools gives another text", limit)
		}
	}
	if got := c.QuickIndex(330); !strings.Contains(got, "(1 more: find them with tools.search(query))") || strings.Contains(got, "xxx") || !strings.Contains(got, "tools.b ") {
		t.Errorf("got\n%s", got)
	}
	if got := c.QuickIndex(0) + c.QuickIndex(-1); got != "" {
		t.Errorf("got %q", got)
	}
	none, _ := build(t)
	if got := none.QuickIndex(8000); got != "" {
		t.Errorf("got %q", got)
	}
}

// Ten thousand tools, of which few fit: the time does not go into rendering the others.
func BenchmarkQuickIndex10000(b *testing.B) {
	var entries []Entry
	for i := range 10_000 {
		entries = append(entries, Entry{Name: fmt.Sprintf("t%d", i), Source: Client, Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}`)})
	}
	c, _, _ := Build(entries, Options{})
	for b.Loop() {
		c.QuickIndex(8000)
	}
}
