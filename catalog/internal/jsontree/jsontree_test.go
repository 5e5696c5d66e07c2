package jsontree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var wide = Limits{Depth: 1000, Values: 100_000, Work: 10_000_000}

func TestParse(t *testing.T) {
	text := ` {"a" : [1, 2.50, -0, 9007199254740993], "\u0062": {"__proto__": null}, "s":"\ud800\n\"}", "t":true,"f":false,"e":[],"o":{ }} `
	n, err := Parse([]byte(text), wide)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"a": []any{json.Number("1"), json.Number("2.50"), json.Number("-0"), json.Number("9007199254740993")},
		"b": map[string]any{"__proto__": nil}, "s": "\ufffd\n\"}", "t": true, "f": false, "e": []any{}, "o": map[string]any{},
	}
	if diff := cmp.Diff(any(want), n.Any()); diff != "" {
		t.Errorf("Any (-want +got):\n%s", diff)
	}
	if got := string(n.Get("s").Raw); got != `"\ud800\n\"}"` {
		t.Errorf("Raw = %s: the bytes must be those of the text", got)
	}
	if n.Get("s").Text() != "\ufffd\n\"}" || n.Get("a").Text() != "" || n.Get("x") != nil {
		t.Error("Text, Get")
	}
	if got := string(n.Append(nil)); got != strings.TrimSpace(text) {
		t.Errorf("Append changed an unchanged tree: %s", got)
	}
	n.Raw = nil
	n.Members = n.Members[:2]
	n.Members[0].Value.Raw, n.Members[0].Value.Items = nil, n.Members[0].Value.Items[2:]
	if got := string(n.Append(nil)); got != `{"a":[-0,9007199254740993],"\u0062":{"__proto__": null}}` {
		t.Errorf("Append of a changed tree: %s", got)
	}
}

func TestParseRefuses(t *testing.T) {
	small := Limits{Depth: 3, Values: 5, Work: 12}
	tests := map[string]string{
		``: "not JSON", ` `: "not JSON", `{`: "not JSON", `{"a":1,}`: "not JSON", `[1] x`: "not JSON", `nul`: "not JSON",
		"\"\xff\"":      "not UTF-8",
		`{"a":1,"a":2}`: `"a" is given twice`, `{"a":1,"\u0061":2}`: `"a" is given twice`,
		`[[[[]]]]`: "deeper than 3", `[1,2,3,4,5]`: "more than 5 values", `[[[1,2]]]`: "depth",
		`1e401`: "exponent", `1e-401`: "exponent", `1E99999999999999999999`: "exponent",
		strings.Repeat("9", 1025):      "1025 characters",
		manyKeys(40, "k7"):             "more than 5 values",
		strings.Repeat("[", 1_000_000): "not JSON",
	}
	for text, want := range tests {
		if _, err := Parse([]byte(text), small); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.40q) = %v, want %q", text, err, want)
		}
		_, parsed := Parse([]byte(text), small)
		if _, err := Check([]byte(text), small); err == nil || err.Error() != parsed.Error() {
			t.Errorf("Check(%.40q) = %v, Parse says %v", text, err, parsed)
		}
	}
}

// What Parse takes means the same to encoding/json, and comes out as it went in.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2.5e3,null,true,"\ud800\u0000é\\"]}`, ` [ ] `, `{"":{"":""}}`, `-0.0e+1`, `"\\"`, `[{},[],""]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		n, err := Parse(text, wide)
		if kind, checked := Check(text, wide); (checked == nil) != (err == nil) || err == nil && kind != n.Kind {
			t.Fatalf("%q: Parse says %v, Check %v, kind %d", text, err, checked, kind)
		}
		if err != nil {
			return
		}
		var want any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("Parse takes %q, encoding/json says %v", text, err)
		}
		if diff := cmp.Diff(want, n.Any()); diff != "" {
			t.Fatalf("%q (-encoding/json +jsontree):\n%s", text, diff)
		}
		open(n)
		again, err := Parse(n.Append(nil), wide)
		if err != nil || !cmp.Equal(want, again.Any()) {
			t.Fatalf("%q was written as %q: %v", text, n.Append(nil), err)
		}
	})
}

// A key that is given twice is found among few and among many, and in the object that has it.
func TestTwice(t *testing.T) {
	for text, want := range map[string]bool{
		manyKeys(40, "k7"): true, manyKeys(15, "k14"): true, manyKeys(16, "k15"): true, manyKeys(17, "k16"): true, manyKeys(40, "new"): false,
		`{"a":{"a":{"a":1}},"b":{"a":1}}`: false, `{"a":{"b":1,"c":1},"b":1,"c":2}`: false, `{"a":1,"b":{"a":1},"a":2}`: true,
		`[{"a":1},{"a":1},` + manyKeys(30, "x") + `,{"a":1,"a":1}]`: true,
	} {
		_, err := Parse([]byte(text), wide)
		if _, checked := Check([]byte(text), wide); (err != nil) != want || (checked != nil) != want {
			t.Errorf("%.60s: %v, %v; want an error: %t", text, err, checked, want)
		}
	}
}

// manyKeys is an object with the keys k0 to k(n-1), and one more.
func manyKeys(n int, more string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"k%d":{"k":1},`, i)
	}
	return "{" + b.String() + `"` + more + `":1}`
}

// open makes Append write every container anew.
func open(n *Node) {
	if n.Kind == Array || n.Kind == Object {
		n.Raw = nil
	}
	for i := range n.Items {
		open(&n.Items[i])
	}
	for i := range n.Members {
		open(&n.Members[i].Value)
	}
}
