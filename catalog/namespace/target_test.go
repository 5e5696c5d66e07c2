package namespace

import (
	"errors"
	"strings"
	"testing"

	"github.com/openclaw/codemode-supervisor/catalog"
)

// SPEC 8.5: the paths that lead to a tool, and those that a guest might forge.
func TestResolve(t *testing.T) {
	c := build(t)
	r := register(t, "p",
		of("one", map[string]any{"f": Tool("a"), "deep": map[string]any{"list": []any{1, Tool("b"), map[string]any{"0": Tool("a")}}}, "data": map[string]any{"t": true}, "a.b": Tool("a"), "ä": Tool("b"), strings.Repeat("k", 1020): Tool("a")}),
		of("two", map[string]any{"g": Tool("a"), "\x00": Tool("b"), "o": []any{[]any{"f", map[string]any{"t": true}}}}))
	s := scopes(t, r, c)
	for path, want := range map[string][2]string{
		"one|f":                            {"plugin:p:a", "one.f"},
		"one|deep|list|1":                  {"plugin:p:b", "one.deep.list[1]"},
		"one|deep|list|2|0":                {"plugin:p:a", `one.deep.list[2]["0"]`},
		"one|a.b":                          {"plugin:p:a", `one["a.b"]`},
		"one|ä":                            {"plugin:p:b", "one.ä"},
		"one|" + strings.Repeat("k", 1020): {"plugin:p:a", ""},
		"two|g":                            {"plugin:p:a", "two.g"},
		"two|\x00":                         {"plugin:p:b", `two["\x00"]`},
	} {
		target, err := s.Resolve(strings.ReplaceAll(path, "|", Separator))
		if err != nil || target.Tool != c.Get(want[0]) || want[1] != "" && target.Place != want[1] || len(target.Place) > 400 {
			t.Errorf("%q leads to %v at %q, %v, want %q", path, target.Tool, target.Place, err, want)
		}
	}
	for _, path := range []string{
		"", "|", "one", "one|", "|one|f", "one||f", "one|f|", "one|f|f", "one|f|0", "one|deep", "one|deep|list", "one|deep|list|0", "one|deep|list|2", // objects, data, around a tool
		"two|f", "one|g", "three|f", "One|f", "one|F", "one |f", " one|f", "one|f ", "one|f\n", "one|f\x00", "\x00one|f", "one|\x00", // other namespaces and spellings
		"one|deep|list|01", "one|deep|list|+1", "one|deep|list|-1", "one|deep|list|1.0", "one|deep|list|1e0", "one|deep|list|length", "one|deep|list|9999999999999999999",
		"one|data|t", "two|o|0|1", "two|o|0|1|t", // data that looks like a tool
		"one|__proto__", "one|constructor", "one|prototype", "one|toString", "one|hasOwnProperty", "one|f|call", "one|f|constructor", "__proto__|f", "one|__proto__|f",
		"one.f", "one/f", "one f", "one\x1ef", "one\u241ff", "one\\u001ff", "one%1Ff", "one|a|b", "one,f", `["one","f"]`, // separators of others
		"plugin:p:a", "one|plugin:p:a", "a", "tools|a", "namespaces|one|f", "one|a\u0308", "one|\xc3", // ids, names, other forms of ä
		strings.Repeat("x", 4096), "one|" + strings.Repeat("k", 1021), strings.Repeat("|", 1024), "one|f" + strings.Repeat("|", 4096), "one|f" + strings.Repeat("\x00", 1019),
	} {
		target, err := s.Resolve(strings.ReplaceAll(path, "|", Separator))
		if err != ErrNoTool || target.Tool != nil { //nolint:errorlint // one and the same
			t.Errorf("%.60q leads to %v, %v", path, target.Tool, err)
		}
	}
}

// A tool of another plugin cannot be reached by a name that is an id.
func TestNameLikeID(t *testing.T) {
	c := build(t, catalog.Entry{Name: "plugin:p:a", Source: catalog.Client}, catalog.Entry{Name: "a", Source: catalog.Client}, catalog.Entry{Name: "a", Source: catalog.Plugin, SourceName: "q"})
	s := scopes(t, register(t, "p", of("x", map[string]any{"f": Tool("a")})), c)
	target, err := s.Resolve("x\x1ff")
	if err != nil || target.Tool.Source != catalog.Plugin || target.Tool.SourceName != "p" || target.Tool.Name != "a" {
		t.Errorf("got %v, %v", target.Tool, err)
	}
}

// SPEC 8.3, 6.4: the input of a call.
func TestInput(t *testing.T) {
	join := func(args []jsonRaw) (jsonRaw, error) {
		text := `{"n":` + string(rune('0'+len(args)%10)) + `,"args":[`
		for i, a := range args {
			if i > 0 {
				text += ","
			}
			text += string(a)
		}
		return jsonRaw(text + "]}"), nil
	}
	gives := func(text string) InputMapper { return func([]jsonRaw) (jsonRaw, error) { return jsonRaw(text), nil } }
	tests := []struct {
		name      string
		mapper    InputMapper
		args      string
		want      string
		wantError string
	}{
		{"one", nil, `[{"a":1}]`, `{"a":1}`, ""},
		{"others are not looked at", nil, ` [ {"a" : 1} , 2, null ] `, `{"a" : 1}`, ""},
		{"none", nil, `[]`, `{}`, ""},
		{"no array at all", nil, ``, `{}`, ""},
		{"undefined", nil, `[null, 1]`, `{}`, ""},
		{"a text", nil, `["null"]`, `"null"`, ""},
		{"digits and surrogates stay", nil, `[{"n":9007199254740993,"s":"\ud800"}]`, `{"n":9007199254740993,"s":"\ud800"}`, ""},
		{"an array", nil, `[[]]`, `[]`, ""},

		{"mapped", join, `["x", {"y":1}]`, `{"n":2,"args":["x",{"y":1}]}`, ""},
		{"mapped from nothing", join, `[]`, `{"n":0,"args":[]}`, ""},
		{"mapped from null", join, `[null]`, `{"n":1,"args":[null]}`, ""},
		{"mapped to nothing", gives(""), `[1]`, `{}`, ""},
		{"mapped to space", gives(" \n"), `[1]`, `{}`, ""},
		{"mapped to null", gives("null"), `[1]`, `null`, ""},
		{"mapper fails", func([]jsonRaw) (jsonRaw, error) {
			return nil, errors.New("title is missing" + strings.Repeat("!", 1<<20))
		}, `[]`, "", "title is missing"},
		{"mapper panics", func(a []jsonRaw) (jsonRaw, error) { return a[3], nil }, `[]`, "", "mapper panicked: runtime error: index out of range"},
		{"mapper returns no JSON", gives("{"), `[]`, "", "no JSON"},
		{"mapper returns two", gives("1 2"), `[]`, "", "no JSON"},
		{"mapper returns much", gives(`"` + strings.Repeat("x", catalog.MaxInputBytes) + `"`), `[]`, "", "returned 8388610 bytes, at most 8388608"},

		{"an object", nil, `{"0":1}`, "", "no JSON array"},
		{"null", nil, `null`, "", "no JSON array"},
		{"cut off", nil, `[1`, "", "no JSON array"},
		{"two arrays", nil, `[1][2]`, "", "no JSON array"},
		{"a comma too many", nil, `[1,]`, "", "no JSON array"},
		{"a hole", join, `[,1]`, "", "no JSON array"},
		{"bottomless", nil, strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20), "", "no JSON array"},
		{"most", join, `[` + strings.Repeat("1,", 99) + `1]`, `{"n":0,"args":[` + strings.Repeat("1,", 99) + `1]}`, ""},
		{"too many", nil, `[` + strings.Repeat("1,", 100) + `1]`, "", "more than 100"},
		{"too much", nil, `["` + strings.Repeat("x", catalog.MaxInputBytes) + `"]`, "", "they have 8388612 bytes"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := scopes(t, register(t, "p", of("x", map[string]any{"f": Tool(" a ", test.mapper)})), build(t))
			target, err := s.Resolve("x\x1ff")
			if err != nil {
				t.Fatal(err)
			}
			got, err := target.Input(jsonRaw(test.args))
			if test.wantError == "" {
				if err != nil || string(got) != test.want {
					t.Errorf("got %.200s, %v, want %s", got, err, test.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.wantError) || !strings.Contains(err.Error(), "x.f") || !strings.HasSuffix(err.Error(), "the tool was not started") || len(err.Error()) > 1000 {
				t.Errorf("got %.200s, %.400v, want %q", got, err, test.wantError)
			}
		})
	}
}

// Without mapper arguments, or with nil, a marker has none.
func TestNoMapper(t *testing.T) {
	s := scopes(t, register(t, "p", of("x", map[string]any{"f": Tool("a"), "g": Tool("a", nil)})), build(t))
	for _, path := range []string{"x\x1ff", "x\x1fg"} {
		target, err := s.Resolve(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := target.Input(jsonRaw("[7]")); err != nil || string(got) != "7" {
			t.Errorf("%q: got %s, %v", path, got, err)
		}
	}
}
