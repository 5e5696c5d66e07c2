package catalog

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 6.5: exact ids, unique names, ambiguous and unknown ones.
func TestResolve(t *testing.T) {
	c, _ := build(t,
		Entry{Name: "create_issue", Source: Plugin, SourceName: "github"},
		Entry{Name: "create_issue", Source: Plugin, SourceName: "gitlab"},
		Entry{Name: "web_search", Source: OpenClaw},
		Entry{Name: "get_user", Source: Client},
		Entry{Name: "client:app:get_user", Source: Plugin, SourceName: "odd"}, // a name that is another tool's id
		Entry{Name: "hidden", Source: MCP, SourceName: "s"},
	)
	tests := []struct {
		asked, id   string
		candidates  []string
		suggestions []string
	}{
		{asked: "openclaw:core:web_search", id: "openclaw:core:web_search"},
		{asked: "web_search", id: "openclaw:core:web_search"},
		{asked: "client:app:get_user", id: "client:app:get_user"},
		{asked: "create_issue", candidates: []string{"plugin:github:create_issue", "plugin:gitlab:create_issue"}},
		{asked: "plugin:gitlab:create_issue", id: "plugin:gitlab:create_issue"},
		{asked: "websearch", suggestions: []string{"openclaw:core:web_search"}},
		{asked: "search_web", suggestions: []string{"openclaw:core:web_search"}},
		{asked: "plugin:gitlab:creat_isue", suggestions: []string{"plugin:gitlab:create_issue", "plugin:github:create_issue"}},
		{asked: " web_search", suggestions: []string{"openclaw:core:web_search"}},
		{asked: "WEB_SEARCH", suggestions: []string{"openclaw:core:web_search"}},
		{asked: "mcp:s:hidden"},
		{asked: "hidden", suggestions: []string{"MCP.s.hidden(…)"}},
		{asked: ""},
		{asked: "__proto__"},
		{asked: "zzzzzz"},
		{asked: strings.Repeat("web_search", 1000)},
	}
	for _, tt := range tests {
		tool, err := c.Resolve(tt.asked)
		if tt.id != "" {
			if err != nil || tool.ID != tt.id {
				t.Errorf("Resolve(%q) = %v, %v; want %s", tt.asked, tool, err, tt.id)
			}
			continue
		}
		var lookup *LookupError
		if !errors.As(err, &lookup) || tool != nil {
			t.Errorf("Resolve(%.40q) = %v, %v; want a *LookupError", tt.asked, tool, err)
			continue
		}
		if diff := cmp.Diff([][]string{tt.candidates, tt.suggestions}, [][]string{lookup.Candidates, lookup.Suggestions()}); diff != "" {
			t.Errorf("Resolve(%.40q): %v (-want +got):\n%s", tt.asked, err, diff)
		}
		if len(err.Error()) > 1000 {
			t.Errorf("Resolve(%.40q): a text of %d bytes", tt.asked, len(err.Error()))
		}
	}
}

// SPEC 6.5: the words that the model reads.
func TestLookupText(t *testing.T) {
	var entries []Entry
	for i := range 12 {
		entries = append(entries, Entry{Name: "run", Source: Plugin, SourceName: fmt.Sprintf("p%02d", i)})
	}
	c, _ := build(t, append(entries, Entry{Name: "web_search", Source: OpenClaw})...)
	for asked, want := range map[string]string{
		"run":        `12 tools are called "run"; use the id of one: "plugin:p00:run", "plugin:p01:run", "plugin:p02:run", "plugin:p03:run", "plugin:p04:run", "plugin:p05:run", "plugin:p06:run", "plugin:p07:run" and 4 more`,
		"web_serach": `there is no tool "web_serach"; did you mean "openclaw:core:web_search"?`,
		"xyzzy":      `there is no tool "xyzzy"; find tools with tools.search(query) or in ALL_TOOLS`,
	} {
		if _, err := c.Resolve(asked); err == nil || err.Error() != want {
			t.Errorf("Resolve(%q)\ngot  %v\nwant %s", asked, err, want)
		}
	}
}
