package declare

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 7.6: text from schemas cannot close a comment.
func TestComment(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", ""}, {"plain text", "plain text"}, {"  two\n\tlines\u2028more ", "two lines more"},
		{"a */ b", "a * / b"}, {"*\u200b/", "* /"}, {"*\x00/", "* /"}, {"**/", "** /"}, {"*", "*"}, {"/*", "/*"},
		{"\u202eabc\u2066", "abc"}, {"a\xffb", "a\ufffdb"}, {"x\u00ady", "xy"},
		{"@param x", "@ param x"}, {"mail a@b.c", "mail a@b.c"}, {"x @ts-ignore", "x @ ts-ignore"}, {"/@JSX h", "/@ JSX h"},
		{"@\u200bts-nocheck", "@ ts-nocheck"},
		{strings.Repeat("é", 40), strings.Repeat("é", 25) + "…"},
	}
	for _, test := range tests {
		if got := comment(test.text, 50); got != test.want {
			t.Errorf("comment(%q) = %q, want %q", test.text, got, test.want)
		}
	}
}

func TestLines(t *testing.T) {
	got := lines(" a \r\n\r\n b\rc\u2028\td\n")
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, got); diff != "" {
		t.Error(diff)
	}
	got = lines(strings.Repeat("line\n", 20))
	if len(got) != 12 || got[11] != "line …" {
		t.Errorf("20 lines become %q", got)
	}
	got = lines(strings.Repeat("word ", 1000))
	if len(got) != 1 || len(got[0]) > 610 || !strings.HasSuffix(got[0], "…") {
		t.Errorf("a long line becomes %q", got)
	}
}

func TestIdentifier(t *testing.T) {
	for text, want := range map[string]string{
		"createIssue": "createIssue", "größe": "größe", "名前": "名前", "$api": "$api", "": "_", "1a": "_1a", "a-b": "a_b", "delete": "delete_",
		"a\u200db": "a\u200db", "a;b": "a_b", "\u0301x": "_\u0301x", "a\u2028": "a_",
	} {
		if got := identifier(text); got != want {
			t.Errorf("identifier(%q) = %q, want %q", text, got, want)
		}
	}
}
