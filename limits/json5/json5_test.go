package json5

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseToJSON(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{a: 1}`, `{"a":1}`},
		{`{'a': 'it"s', "b": "it's",}`, `{"a":"it\"s","b":"it's"}`},
		{"// c\n{/* x */ $a_1: 0x1F, b: +1, c: .5, d: 5., e: -0X10,}", `{"$a_1":31,"b":1,"c":0.5,"d":5,"e":-16}`},
		{"'a\\\nb\\\r\nc\\\u2028d'", `"abcd"`},
		{`'\x41\v\0\u0042\ud83d\ude00\'\q\/'`, `"A\u000b\u0000B😀'q/"`},
		{`"\ud800x\udc00\ud800\ud800"`, `"\ud800x\udc00\ud800\ud800"`},
		{`9007199254740993`, `9007199254740993`},
		{`0xFFFFFFFFFFFFFFFFFF`, `4722366482869645213695`},
		{`[-0, 1e400, 1E+2, 5.e3, .5e-3]`, `[-0,1e400,1E+2,5e3,0.5e-3]`},
		{`{\u0061b: 1, ünï: 2, null: 3, true: 4, Infinity: 5, __proto__: 6}`, `{"ab":1,"ünï":2,"null":3,"true":4,"Infinity":5,"__proto__":6}`},
		{"\ufeff\u00a0{a:1\u2028}\v\f", `{"a":1}`},
		{"1//x", `1`},
		{"[1//x\u2028,2//y\r,3]", `[1,2,3]`},
		{"\"tab\there\u2029\"", "\"tab\\u0009here\u2029\""},
		{`[]`, `[]`}, {`{}`, `{}`}, {`[[],]`, `[[]]`}, {`null`, `null`}, {`false`, `false`}, {`''`, `""`},
	}
	for _, tt := range tests {
		v, err := Parse([]byte(tt.in))
		if err != nil {
			t.Errorf("Parse(%q): %v", tt.in, err)
			continue
		}
		got, err := v.JSON()
		if err != nil {
			t.Errorf("Parse(%q).JSON: %v", tt.in, err)
			continue
		}
		if string(got) != tt.want {
			t.Errorf("Parse(%q).JSON = %s, want %s", tt.in, got, tt.want)
		}
		if !json.Valid(got) {
			t.Errorf("Parse(%q).JSON = %s, which is no JSON", tt.in, got)
		}
	}
}

func TestParseErrors(t *testing.T) {
	tests := []struct {
		in           string
		line, column int
		msg          string // a part of it
	}{
		{``, 1, 1, "empty"},
		{`// only a comment`, 1, 18, "empty"},
		{`/* never`, 1, 1, "no end"},
		{"{\n  a: 1,\n  b ! 2}", 3, 5, "expected ':'"},
		{"{\r\n ünï: 1 b: 2}", 2, 9, "expected ',' or '}'"},
		{"[\r1\r2]", 3, 1, "expected ','"},
		{`[,]`, 1, 2, "expected a value"},
		{`{,}`, 1, 2, "expected a key"},
		{`[1,,2]`, 1, 4, "expected a value"},
		{"'a\nb'", 1, 3, "line break"},
		{`'abc`, 1, 1, "no closing '"},
		{`'\1'`, 1, 3, "backslash before a digit"},
		{`'\01'`, 1, 3, "backslash before a digit"},
		{`'\x4'`, 1, 5, "2 hexadecimal digits"},
		{`'\u{41}'`, 1, 4, "4 hexadecimal digits"},
		{`010`, 1, 4, "leading 0"},
		{`1_000`, 1, 2, "in a number"},
		{`1.2.3`, 1, 4, "in a number"},
		{`- 1`, 1, 2, "after the sign"},
		{`--1`, 1, 2, "after the sign"},
		{`+Inf`, 1, 2, "after the sign"},
		{`.`, 1, 2, "after '.'"},
		{`1e`, 1, 3, "exponent"},
		{`0x`, 1, 3, "hexadecimal"},
		{"0x" + strings.Repeat("f", 65), 1, 68, "64 digits"},
		{`{a: 1} x`, 1, 8, "after the document"},
		{`undefined`, 1, 1, "needs quotes"},
		{`{a: truex}`, 1, 5, "needs quotes"},
		{`{1a: 2}`, 1, 2, "expected a key"},
		{`{\x41: 2}`, 1, 3, "expected 'u'"},
		{`{a: 1,` + "\n" + `'a': 2}`, 2, 1, `"a" was given before, on line 1`},
		{"'\xff'", 1, 2, "not UTF-8"},
		{"\xff", 1, 1, "not UTF-8"},
		{strings.Repeat("[", MaxDepth+1), 1, MaxDepth + 1, "deeper"},
		{strings.Repeat("{a:", 3_000_000), 1, 3*MaxDepth + 1, "deeper"},
	}
	for _, tt := range tests {
		_, err := Parse([]byte(tt.in))
		var syntax *SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Parse(%.40q) = %v, want a *SyntaxError", tt.in, err)
			continue
		}
		if syntax.Line != tt.line || syntax.Column != tt.column || !strings.Contains(syntax.Msg, tt.msg) {
			t.Errorf("Parse(%.40q): %v; want line %d, column %d, %q", tt.in, err, tt.line, tt.column, tt.msg)
		}
	}
}

func TestNotFinite(t *testing.T) {
	for in, want := range map[string]string{
		"NaN": "NaN", "-NaN": "NaN", "+Infinity": "Infinity", "-Infinity": "-Infinity",
	} {
		v, err := Parse([]byte("[1,\n " + in + "]"))
		if err != nil {
			t.Fatalf("Parse(%s): %v", in, err)
		}
		if n := v.Items[1]; n.Kind != Number || n.Finite() || n.Text != want {
			t.Errorf("Parse(%s) = %+v, want the number %s", in, n, want)
		}
		if _, err := v.JSON(); err == nil || !strings.Contains(err.Error(), "line 2, column 2: JSON has no "+want) {
			t.Errorf("JSON of %s: %v, want an error with its position", in, err)
		}
	}
}

func TestPositions(t *testing.T) {
	v, err := Parse([]byte("{\n  a: [1,\n    'x'],\n}"))
	if err != nil {
		t.Fatal(err)
	}
	m := v.Members[0]
	got := [][2]int32{{m.Line, m.Column}, {m.Value.Line, m.Value.Column}, {m.Value.Items[1].Line, m.Value.Items[1].Column}}
	if diff := cmp.Diff([][2]int32{{2, 3}, {2, 6}, {3, 5}}, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	if v.Get("a") == nil || v.Get("b") != nil || v.Members[0].Value.Get("a") != nil {
		t.Error("Get finds a alone")
	}
}

// Every JSON text is JSON5 and means the same, and what JSON returns is JSON.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{a:1,'b':[.5,0x1f,+1],}`, `{"a":[1,2.5e3,null,true,"\ud800\u0000é"]}`, "'a\\\nb'", `[NaN]`, "// x\n1", `{"a":1,"a":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := Parse(in)
		if err != nil {
			var syntax *SyntaxError
			if !errors.As(err, &syntax) || syntax.Line < 1 || syntax.Column < 1 {
				t.Fatalf("Parse(%q): %v is no *SyntaxError with a position", in, err)
			}
			if json.Valid(in) && !strings.Contains(err.Error(), "given before") && !strings.Contains(err.Error(), "deeper") && !strings.Contains(err.Error(), "UTF-8") {
				t.Fatalf("Parse(%q): %v, but it is JSON", in, err)
			}
			return
		}
		out, err := v.JSON()
		if err != nil {
			return // NaN, Infinity
		}
		if !json.Valid(out) {
			t.Fatalf("Parse(%q).JSON = %q, which is no JSON", in, out)
		}
		if json.Valid(in) {
			if diff := cmp.Diff(decode(t, in), decode(t, out)); diff != "" {
				t.Fatalf("%q changed its meaning (-want +got):\n%s", in, diff)
			}
		}
	})
}

func decode(t *testing.T, data []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
