package catalog

import (
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// SPEC 6.4: names of convenience functions.
func TestConvenienceName(t *testing.T) {
	for name, want := range map[string]string{
		"web_search": "web_search", "get-user": "get_user", "im.v1.message": "im_v1_message", "a b": "a_b", "$x": "$x", "_": "_",
		"9patch": "_9patch", "-x": "_x", "---": "___", "": "", "delete": "delete", "名前": "名前", "straße": "straße", "a·b": "a·b", "·a": "_·a",
		"\u0301a": "_\u0301a", "a\u0301": "a\u0301", "x🙂y": "x_y", "𝒳": "𝒳", "a\u200db": "a\u200db", "\u200d": "_\u200d", "a\x00b": "a_b",
		"StartTime<": "StartTime_", "Parameter1.Name": "Parameter1_Name", "ⅷ": "ⅷ", "²": "_", "\u2e2f": "_", "a/b:c": "a_b_c",
	} {
		if got := ConvenienceName(name); got != want {
			t.Errorf("ConvenienceName(%q) = %q, want %q", name, got, want)
		}
	}
}

// SPEC 6.4: who gets a function.
func TestFunctions(t *testing.T) {
	names := []string{"web_search", "get-user", "get_user", "a.b", "search", "describe", "call", "then", "__proto__", "constructor", "toString",
		"hasOwnProperty", "__defineGetter__", "valueOf", "delete", "_-proto__", "9", "two", "ALL_TOOLS"}
	var entries []Entry
	for _, n := range names {
		entries = append(entries, Entry{Name: n, Source: Client})
	}
	entries = append(entries,
		Entry{Name: "two", Source: Plugin, SourceName: "p"},
		Entry{Name: "a_b", Source: MCP, SourceName: "s"}, // takes no name away: it is not in tools
	)
	c, _ := build(t, entries...)
	got := map[string]string{}
	for _, tool := range c.All() {
		if f := tool.Function(); f != "" {
			got[tool.ID] = f
		}
	}
	want := map[string]string{"client:app:web_search": "web_search", "client:app:a.b": "a_b", "client:app:delete": "delete", "client:app:9": "_9", "client:app:ALL_TOOLS": "ALL_TOOLS"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}
	for id, callable := range map[string]string{
		"client:app:web_search": "tools.web_search(…)",
		"client:app:then":       `tools.call("client:app:then", …)`,
		"mcp:s:a_b":             "MCP.s.aB(…)",
	} {
		if got := c.Get(id).Callable(); got != callable {
			t.Errorf("callable of %s is %s, want %s", id, got, callable)
		}
	}
}

// Whatever a tool is called, its function has a name that JavaScript takes.
func FuzzConvenienceName(f *testing.F) {
	for _, s := range []string{"get-user", "9", "", "\xff", "a\u0301", "🙂", "__proto__", "\u2118", "ªº·"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := ConvenienceName(name)
		if (got == "") != (name == "") || !utf8.ValidString(got) {
			t.Fatalf("ConvenienceName(%q) = %q", name, got)
		}
		for i, r := range got {
			if !words.IdentifierPart(r) || i == 0 && !words.IdentifierStart(r) {
				t.Fatalf("ConvenienceName(%q) = %q: %q cannot stand at %d", name, got, r, i)
			}
		}
		if again := ConvenienceName(got); again != got {
			t.Fatalf("ConvenienceName(%q) = %q, whose is %q", name, got, again)
		}
	})
}
