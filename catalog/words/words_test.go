package words

import (
	"slices"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	for text, want := range map[string]string{
		"createIssue": "create issue", "GitHub": "git hub", "HTTPServer": "http server", "r2_list": "r 2 list", "k8s": "k 8 s",
		"get-user.name": "get user name", "listIDs": "list ids", "Straße": "straße", "web天气": "web 天气", "": "", "!?": "",
	} {
		if got := strings.Join(Split(text), " "); got != want {
			t.Errorf("Split(%q) = %q, want %q", text, got, want)
		}
	}
}

// SPEC 4.4, 6.5: what is suggested for a name that does not exist.
func TestNearest(t *testing.T) {
	known := []Candidate{
		{Name: "web_search", Show: "tools.web_search"}, {Name: "create_issue", Show: "tools.create_issue"}, {Name: "create_issue", Show: "MCP.github.createIssue", Bonus: 0.1},
		{Name: "x", Show: "x"}, {Name: "", Show: "nameless"}, {Name: strings.Repeat("long", 1000), Show: "long"},
	}
	for asked, want := range map[string][]string{
		"webSearch":                       {"tools.web_search"},
		"web_serach":                      {"tools.web_search"}, // two letters swapped
		"search_web":                      {"tools.web_search"}, // another order
		"creat_isue":                      {"MCP.github.createIssue", "tools.create_issue"},
		"createIssue":                     {"MCP.github.createIssue", "tools.create_issue"},
		"zzzzzz":                          nil,
		"":                                nil,
		"_":                               nil,
		"foo":                             nil,
		strings.Repeat("web_search", 100): nil,
		"\xff\xfe":                        nil,
	} {
		if got := Nearest(asked, 3, known); !slices.Equal(got, want) {
			t.Errorf("Nearest(%.30q) = %q, want %q", asked, got, want)
		}
	}
	if got := Nearest("createIssue", 1, known); !slices.Equal(got, []string{"MCP.github.createIssue"}) {
		t.Errorf("one: %q", got)
	}
	if got := Nearest("x", 3, nil); len(got) > 0 {
		t.Errorf("of nothing: %q", got)
	}
}

func BenchmarkNearest10000(b *testing.B) {
	known := make([]Candidate, 10_000)
	for i := range known {
		known[i] = Candidate{Name: "get_some_record_" + string(rune('a'+i%26)), Show: "x"}
	}
	for b.Loop() {
		Nearest("get_sme_record", 3, known)
	}
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true}, {"a", "ab", false}, {"a*", "ab", true}, {"*", "", true}, {"*b", "aab", true}, {"a*c", "abbc", true}, {"a*c", "abcd", false},
		{"**", "x", true}, {"", "", true}, {"", "a", false}, {"mcp:*:delete_*", "mcp:github:delete_repo", true}, {"a*b*c", "a_b_b_c", true}, {"*.*", "a", false},
		{"A", "a", false}, {"[a]", "a", false}, {"?", "a", false}, {"x*x", "x", false},
	} {
		if got := Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %t", tt.pattern, tt.name, got)
		}
	}
}
