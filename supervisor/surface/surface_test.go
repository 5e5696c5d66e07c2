package surface_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

var update = flag.Bool("update", false, "write testdata anew")

var entries = []catalog.Entry{
	{Name: "get-user", Source: catalog.Plugin, SourceName: "crm", Description: "Look a user up.", Parameters: json.RawMessage(`{"type":"object","properties":{"id":{"type":"number"}},"required":["id"]}`)},
	{Name: "weather", Source: catalog.OpenClaw, Description: "Forecast.", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"temp":{"type":"number"}},"required":["temp"]}`)},
	{Name: "then", Source: catalog.Client, Description: "A name that hides something."},
	{Name: "create_issue", Source: catalog.MCP, SourceName: "github", Parameters: json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}`)},
}

func view(t testing.TB, entries []catalog.Entry, options catalog.Options) surface.View {
	t.Helper()
	c, warnings, err := catalog.Build(entries, options)
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	return surface.View{Catalog: c, Limits: limits.Default()}
}

// SPEC 2.5, 7.8, 8.2: the whole text, byte for byte.
func TestExec(t *testing.T) {
	v := view(t, entries, catalog.Options{Unavailable: []catalog.Unavailable{{Name: "linear", Reason: "exited\nwith status 1"}}})
	v.Namespaces = []namespace.Visible{{GlobalName: "calendar", Description: "The team's calendar.", Prompt: "calendar.list({day}) lists events."}}
	got := surface.Exec(v)
	if *update {
		if err := os.WriteFile("testdata/exec.txt", []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/exec.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got; go test -update writes it anew):\n%s", diff)
	}
	slices.Reverse(entries)
	defer slices.Reverse(entries)
	again := view(t, entries, catalog.Options{Unavailable: []catalog.Unavailable{{Name: "linear", Reason: "exited\nwith status 1"}}})
	again.Namespaces = v.Namespaces
	if surface.Exec(again) != got {
		t.Error("the same tools in another order give another text")
	}
}

// SPEC 2.5: the text before the lists is short with all that can make it long, and says what the
// clause lists.
func TestGuideIsShort(t *testing.T) {
	v := view(t, entries, catalog.Options{})
	v.Limits.ToolCalls, v.Limits.QueuedToolCalls = 1_000_000, 65_536
	guide, _, _ := strings.Cut(surface.Exec(v), "\nTools (name")
	if n := utf8.RuneCountInString(guide); n >= surface.MaxGuide {
		t.Errorf("%d characters, want fewer than %d", n, surface.MaxGuide)
	}
	for _, word := range []string{"return", "expression", "function", "await", "tools.search", "tools.describe", "tools.call", "ALL_TOOLS", "API.read", "text(", "json(", "console.log",
		"yield_control", "import", "require", "under MCP only", "10 s", "64 MiB", "64 KiB", "16 tool calls", "TypeScript"} {
		if !strings.Contains(guide, word) {
			t.Errorf("the guide does not speak of %q", word)
		}
	}
}

// What a run has not is not spoken of.
func TestExecWithoutTools(t *testing.T) {
	for name, v := range map[string]surface.View{
		"no catalog": {Limits: limits.Default()}, "empty": view(t, nil, catalog.Options{}),
	} {
		text := surface.Exec(v)
		if strings.Contains(text, "MCP") || strings.Contains(text, "tools.") || !strings.Contains(text, "No tools") {
			t.Errorf("%s: %s", name, text)
		}
	}
	native := surface.Exec(view(t, entries[:1], catalog.Options{}))
	if strings.Contains(native, "MCP") && strings.Contains(native, "MCP servers") {
		t.Errorf("MCP is mentioned where there is none: %s", native)
	}
	denied := slices.Clone(entries)
	denied[3].Denied = true
	if text := surface.Exec(view(t, denied, catalog.Options{})); strings.Contains(text, "createIssue") || strings.Contains(text, "MCP servers") {
		t.Errorf("a denied tool is mentioned: %s", text)
	}
}

// SPEC 2.5: ten thousand tools, and the index stays within its bound and says what it leaves out.
func TestIndexOfManyTools(t *testing.T) {
	var many []catalog.Entry
	for i := range 3000 {
		many = append(many, catalog.Entry{Name: fmt.Sprintf("tool_%d", i), Source: catalog.Client, Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}}}`)})
		many = append(many, catalog.Entry{Name: fmt.Sprintf("tool_%d", i), Source: catalog.MCP, SourceName: "big"})
	}
	_, index, ok := strings.Cut(surface.Exec(view(t, many, catalog.Options{})), "\nTools (name")
	_, index, _ = strings.Cut(index, "\n")
	if n := utf8.RuneCountInString(index); !ok || n > surface.MaxIndex || n < surface.MaxIndex-400 {
		t.Errorf("the index has %d characters", n)
	}
	lines := strings.Split(strings.TrimSuffix(index, "\n"), "\n")
	last := lines[len(lines)-1]
	if want := fmt.Sprintf("(%d more: ", 6000-len(lines)+1); !strings.HasPrefix(last, want) {
		t.Errorf("the last line is %q, want it to begin with %q", last, want)
	}
}

// SPEC 2.5: what tools call themselves cannot break a line of the index.
func TestIndexIsOneLineATool(t *testing.T) {
	odd := []catalog.Entry{
		{Name: "a\nb", Source: catalog.Client}, {Name: "c`${d}`", Source: catalog.Client}, {Name: "e\u2028f", Source: catalog.MCP, SourceName: "g\nh"},
		{Name: "then", SourceName: "x\ny", Source: catalog.Plugin, Parameters: json.RawMessage(`{"type":"object","properties":{"a\nb":{"enum":["c\nd"]}}}`)},
	}
	_, index, _ := strings.Cut(surface.Exec(view(t, odd, catalog.Options{})), "\nTools (name")
	if n := strings.Count(index, "\n"); n != len(odd)+1 || strings.ContainsRune(index, '\u2028') {
		t.Errorf("%d lines:\n%s", n, index)
	}
}

func TestWait(t *testing.T) {
	if text := surface.Wait(); !strings.Contains(text, "runId") || !strings.Contains(text, "waiting") {
		t.Error(text)
	}
}
