package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// tool returns a tool with the given parameters, and the warnings it gave so far.
func tool(t testing.TB, parameters string) (*Tool, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var texts []string
	note := func(w Warning) {
		mu.Lock()
		defer mu.Unlock()
		texts = append(texts, w.String())
	}
	c, warnings, err := Build([]Entry{{Name: "x", Source: Client, Parameters: json.RawMessage(parameters)}}, Options{Warn: note})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		note(w)
	}
	return c.Get("client:app:x"), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return texts
	}
}

// SPEC 6.7: what is given stays as it is; defaults are filled in.
func TestCheckInput(t *testing.T) {
	tests := []struct{ name, schema, input, want string }{
		{"no schema", ``, `[1, 2]`, `[1, 2]`},
		{"empty schema", `{}`, `"x"`, `"x"`},
		{"true", `true`, `1`, `1`},
		{"missing input", `{"type":"object"}`, ``, `{}`},
		{"space only", `{"type":"object"}`, " \n", `{}`},
		{"bytes stay", `{"type":"object"}`, ` {"b": 9007199254740993, "a": 1.50, "s":"\ud800", "__proto__": {"x":1}} `, `{"b": 9007199254740993, "a": 1.50, "s":"\ud800", "__proto__": {"x":1}}`},
		{"default", `{"properties":{"n":{"type":"integer","default":8},"a":{"default":"é<"}}}`, `{"z": 9007199254740993}`, `{"z":9007199254740993,"a":"é<","n":8}`},
		{"default and nothing given", `{"properties":{"n":{"default":null}}}`, ``, `{"n":null}`},
		{"given value wins", `{"properties":{"n":{"default":8}}}`, `{"n":null}`, `{"n":null}`},
		{"default makes required fit", `{"required":["n"],"properties":{"n":{"type":"integer","default":8}}}`, `{}`, `{"n":8}`},
		{"nested default", `{"properties":{"o":{"type":"object","properties":{"n":{"default":1}}}}}`, `{"x":1,"o":{"y":2.0}}`, `{"x":1,"o":{"y":2.0,"n":1}}`},
		{"no object, no nested default", `{"properties":{"o":{"properties":{"n":{"default":1}}}}}`, `{}`, `{}`},
		{"default in items", `{"properties":{"l":{"items":{"properties":{"n":{"default":1}}}}}}`, `{"l":[{},{"n":2}]}`, `{"l":[{"n":1},{"n":2}]}`},
		{"default in additionalProperties", `{"additionalProperties":{"properties":{"n":{"default":1}}}}`, `{"k":{}}`, `{"k":{"n":1}}`},
		{"default by $ref", `{"properties":{"o":{"$ref":"#/$defs/o"}},"$defs":{"o":{"properties":{"n":{"default":1}}}}}`, `{"o":{}}`, `{"o":{"n":1}}`},
		{"default of $ref", `{"properties":{"o":{"$ref":"#/$defs/o"}},"$defs":{"o":{"default":7}}}`, `{}`, `{"o":7}`},
		{"default in allOf", `{"allOf":[{"properties":{"n":{"default":1}}}]}`, `{}`, `{"n":1}`},
		{"no default from anyOf", `{"anyOf":[{"properties":{"n":{"default":1}}},{}]}`, `{}`, `{}`},
		{"recursive default", `{"properties":{"next":{"$ref":"#","default":{}}}}`, `{}`, `{"next":{}}`},
		{"default that does not fit", `{"properties":{"n":{"type":"integer","default":"8"}}}`, `{}`, `{}`},
		{"default that breaks the whole", `{"properties":{"a":{"default":1},"b":{}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":1}`, `{"b":1}`},
		{"default __proto__", `{"properties":{"__proto__":{"type":"integer","default":1},"constructor":{"type":"string"}}}`, `{}`, `{"__proto__":1}`},
		{"big integer bounds", `{"properties":{"n":{"type":"integer","minimum":-9007199254740991,"maximum":9007199254740991}}}`, `{"n":9007199254740991}`, `{"n":9007199254740991}`},
		{"integer with a point", `{"properties":{"n":{"type":"integer"}}}`, `{"n":1.0}`, `{"n":1.0}`},
		{"draft-07 tuple without $schema", `{"properties":{"p":{"type":"array","items":[{"type":"number"},{"type":"string"}],"additionalItems":false}},"definitions":{}}`, `{"p":[1,"a"]}`, `{"p":[1,"a"]}`},
		{"draft-07 by $schema", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"number"}]}`, `[1,"x"]`, `[1,"x"]`},
		{"unknown $schema", `{"$schema":"https://example.com/mine","type":"object"}`, `{}`, `{}`},
		{"nullable", `{"properties":{"s":{"type":"string","nullable":true,"enum":["a"]}}}`, `{"s":null}`, `{"s":null}`},
		{"format is a note", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"d":{"format":"date-time"}}}`, `{"d":"tomorrow"}`, `{"d":"tomorrow"}`},
		{"enum of numbers", `{"enum":[1,2.5,{"a":[null]}]}`, `1.0`, `1.0`},
		{"enum of objects", `{"enum":[1,{"b":[null],"a":1}]}`, `{"a":1e0,"b":[null]}`, `{"a":1e0,"b":[null]}`},
		{"look-ahead", `{"properties":{"s":{"type":"string","pattern":"^(?!admin).*$"}}}`, `{"s":"bob"}`, `{"s":"bob"}`},
		{"back-reference", `{"type":"string","pattern":"^(a|b)\\1$"}`, `"aa"`, `"aa"`},
		{"unicode property", `{"type":"string","pattern":"^\\p{L}+$"}`, `"äß"`, `"äß"`},
		{"recursive schema", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`, `{"next":{"next":{}}}`, `{"next":{"next":{}}}`},
		{"$ref into a property", `{"properties":{"a":{"items":{"type":"string"}},"b":{"$ref":"#/properties/a/items"}}}`, `{"b":"x"}`, `{"b":"x"}`},
		{"reference to the draft itself", `{"properties":{"s":{"$ref":"http://json-schema.org/draft-07/schema#"}}}`, `{"s":true}`, `{"s":true}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, warnings := tool(t, tt.schema)
			input := json.RawMessage(tt.input)
			got, err := x.CheckInput(input)
			if err != nil {
				t.Fatalf("CheckInput(%s): %v (warnings %q)", tt.input, err, warnings())
			}
			if string(got) != tt.want {
				t.Errorf("CheckInput(%s) = %s, want %s", tt.input, got, tt.want)
			}
			if string(input) != tt.input {
				t.Errorf("CheckInput changed its argument to %s", input)
			}
		})
	}
}

// SPEC 6.7: a violation names the field, what was expected, what came, and that
// the tool was not started.
func TestCheckInputRefuses(t *testing.T) {
	const issue = `{"type":"object","required":["title"],"additionalProperties":false,"properties":{
		"title":{"type":"string","minLength":1},"count":{"type":"integer","minimum":1,"maximum":10},
		"state":{"enum":["open","closed"]},"items":{"type":"array","items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}},
		"first name":{"type":"string"}}}`
	tests := []struct {
		name, schema, input string
		want                []string // parts of the text
	}{
		{"type", issue, `{"title":"x","count":"3"}`, []string{`input.count: expected integer, got the string "3"`}},
		{"fraction", issue, `{"title":"x","count":1.5}`, []string{`input.count: expected integer, got the number 1.5`}},
		{"null", issue, `{"title":null}`, []string{`input.title: expected string, got null`}},
		{"missing", issue, `{}`, []string{`input.title: missing, expected string`}},
		{"missing and misspelt", issue, `{"titel":"x"}`, []string{`input.title: missing, expected string; there is "titel"`, `input.titel: unknown field; did you mean "title"?`, `the fields are count, first name, items, state, title`}},
		{"nested", issue, `{"title":"x","items":[{"name":"a"},{"name":7}]}`, []string{`input.items[1].name: expected string, got the number 7`}},
		{"nested missing", issue, `{"title":"x","items":[{}]}`, []string{`input.items[0].name: missing, expected string`}},
		{"enum", issue, `{"title":"x","state":"opened"}`, []string{`input.state: expected one of "open", "closed", got the string "opened"`}},
		{"range", issue, `{"title":"x","count":11}`, []string{`input.count: expected at most 10, got the number 11`}},
		{"quoted key", issue, `{"title":"x","first name":1}`, []string{`input["first name"]: expected string, got the number 1`}},
		{"root", issue, `[1,2]`, []string{`input: expected object, got an array of 2`}},
		{"no object", issue, `null`, []string{`input: expected object, got null`}},
		{"big integer", `{"properties":{"n":{"type":"integer","maximum":9007199254740992}}}`, `{"n":9007199254740993}`, []string{`input.n: expected at most 9007199254740992, got the number 9007199254740993`}},
		{"union of types", `{"properties":{"v":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"v":1}`, []string{`input.v: expected null or string, got the number 1`}},
		{"nearest branch", `{"properties":{"v":{"oneOf":[{"type":"object","required":["type","r"],"properties":{"type":{"const":"circle"},"r":{"type":"number"}}},
			{"type":"object","required":["type","a"],"properties":{"type":{"const":"square"},"a":{"type":"number"}}}]}}}`, `{"v":{"type":"square","a":"x"}}`, []string{`input.v.a: expected number, got the string "x" (in the nearest of 2 forms)`}},
		{"two branches", `{"oneOf":[{"type":"number"},{"type":"integer"}]}`, `1`, []string{`input: fits more than one`}},
		{"pattern", `{"properties":{"s":{"type":"string","pattern":"^[a-z]+$"}}}`, `{"s":"A1"}`, []string{`input.s: expected a text that matches ^[a-z]+$, got the string "A1"`}},
		{"look-ahead", `{"properties":{"s":{"pattern":"^(?!admin).*$"}}}`, `{"s":"admin1"}`, []string{`input.s`, `^(?!admin).*$`}},
		{"const", `{"properties":{"s":{"const":"a"}}}`, `{"s":"b"}`, []string{`input.s: expected "a", got the string "b"`}},
		{"const and enum", `{"properties":{"s":{"const":"a","enum":["b"]}}}`, `{"s":"a"}`, []string{`input.s`}},
		{"unique", `{"properties":{"l":{"uniqueItems":true}}}`, `{"l":[1,{"a":1,"b":2},1.5,{"b":2.0,"a":1}]}`, []string{`input.l: expected no item twice, but [1] and [3] are equal`}},
		{"false", `{"properties":{"x":false}}`, `{"x":1}`, []string{`input.x: not allowed here`}},
		{"false schema", `false`, `{}`, []string{`input: not allowed here`}},
		{"not", `{"properties":{"x":{"not":{"type":"string"}}}}`, `{"x":"a"}`, []string{`input.x: expected anything but`}},
		{"property names", `{"propertyNames":{"pattern":"^[a-z]+$"}}`, `{"A":1}`, []string{`"A"`}},
		{"unevaluated", `{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, `{"b":1}`, []string{`input.b: not allowed here`}},
		{"__proto__", `{"properties":{"__proto__":{"type":"string"}}}`, `{"__proto__":{}}`, []string{`input.__proto__: expected string, got an empty object`}},
		{"tuple", `{"items":[{"type":"number"}],"additionalItems":false}`, `[1,2]`, []string{`input`}},
		{"not JSON", issue, `{"title":`, []string{`input: cannot be used: not JSON`}},
		{"trailing", ``, `{} {}`, []string{`not JSON`}},
		{"twice", ``, `{"a":1,"\u0061":2}`, []string{`"a" is given twice`}},
		{"not UTF-8", ``, "\"\xff\"", []string{`not UTF-8`}},
		{"huge exponent", `{"properties":{"n":{"type":"integer"}}}`, `{"n":1e999999}`, []string{`exponent`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x, warnings := tool(t, tt.schema)
			got, err := x.CheckInput(json.RawMessage(tt.input))
			var refused *InputError
			if !errors.As(err, &refused) {
				t.Fatalf("CheckInput(%s) = %s, %v; want an *InputError (warnings %q)", tt.input, got, err, warnings())
			}
			text := err.Error()
			for _, part := range append(tt.want, `tool "client:app:x"`, "not started") {
				if !strings.Contains(text, part) {
					t.Errorf("CheckInput(%s): %s\ndoes not say %q", tt.input, text, part)
				}
			}
			for range 5 { // maps are walked in any order; the text must not be
				if _, again := x.CheckInput(json.RawMessage(tt.input)); again == nil || again.Error() != text {
					t.Fatalf("two answers for one input:\n%s\n%v", text, again)
				}
			}
		})
	}
}

// SPEC 6.7: however much is wrong, the text is short.
func TestCheckInputText(t *testing.T) {
	x, _ := tool(t, `{"items":{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}}`)
	var b strings.Builder
	b.WriteString(`[{"a":1}`)
	for i := range 15_000 {
		fmt.Fprintf(&b, `,{"a":%d,%q:1}`, i, strings.Repeat("k", 50)+fmt.Sprint(i))
	}
	b.WriteString(`]`)
	_, err := x.CheckInput(json.RawMessage(b.String()))
	var refused *InputError
	if !errors.As(err, &refused) || len(refused.Violations) != maxViolations || refused.Omitted == 0 || len(err.Error()) > 4000 {
		t.Errorf("%d bytes: %.400v", len(fmt.Sprint(err)), err)
	}
	long := strings.Repeat("long", 1000)
	_, err = x.CheckInput(json.RawMessage(`[{"a":["` + long + `"],"` + long + `":1}]`))
	if err == nil || len(err.Error()) > 1500 {
		t.Errorf("%d bytes: %.300v", len(fmt.Sprint(err)), err)
	}
}

// An input that is too much is refused before it costs anything.
func TestCheckInputBounds(t *testing.T) {
	for name, tt := range map[string]struct {
		schema, input, want string
	}{
		"size":            {``, `"` + strings.Repeat("x", MaxInputBytes) + `"`, "at most 8388608"},
		"depth":           {``, strings.Repeat("[", 1001) + strings.Repeat("]", 1001), "deeper than 1000"},
		"enormous depth":  {``, strings.Repeat("[", 4_000_000) + strings.Repeat("]", 4_000_000), "not JSON"},
		"values":          {``, "[" + strings.Repeat("0,", 300_000) + "0]", "more than 100000 values"},
		"depth of values": {``, strings.Repeat("[", 900) + strings.Repeat("0,", 50_000) + "0" + strings.Repeat("]", 900), "too great a depth"},
		// Each level tries both branches: 2^500 without the meter.
		"exponential schema": {`{"$defs":{"a":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/a"},"y":false}},{"properties":{"x":{"$ref":"#/$defs/a"},"z":false}}]}},"$ref":"#/$defs/a"}`,
			strings.Repeat(`{"y":1,"z":1,"x":`, 500) + "1" + strings.Repeat("}", 500), "too large or too deep"},
		"long enum":  {`{"items":{"enum":[` + strings.Repeat(`1.5,`, 10_000) + `0]}}`, "[" + strings.Repeat("1.50,", 50_000) + "3]", "input[50000]"},
		"unique":     {`{"uniqueItems":true}`, "[" + strings.Repeat(`["a\u0004b"],["a","b"],`, 1) + `["a","b"]]`, "[1] and [2]"},
		"patterns":   {`{"items":{"pattern":"^(a+)+$(?=)"}}`, `["` + strings.Repeat("a", 40) + `!"]`, "too long"},
		"every key":  {`{"patternProperties":{` + many(2000, func(i int) string { return fmt.Sprintf(`"^k%d":{}`, i) }) + `}}`, "{" + many(20_000, func(i int) string { return fmt.Sprintf(`"k%d":1`, i) }) + "}", "too large or too deep"},
		"all of all": {`{"allOf":[` + many(200, func(i int) string { return `{"items":{"type":"string"}}` }) + `]}`, "[" + many(90_000, func(int) string { return "1" }) + "]", "too large or too deep"},
	} {
		t.Run(name, func(t *testing.T) {
			x, warnings := tool(t, tt.schema)
			start := time.Now()
			_, err := x.CheckInput(json.RawMessage(tt.input))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %.300v, want %q (warnings %.300q)", err, tt.want, warnings())
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

func many(n int, f func(int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = f(i)
	}
	return strings.Join(parts, ",")
}

// SPEC 6.9: a broken schema costs the tool its schema; nothing is loaded.
func TestHostileSchemas(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ schema, warning string }{
		"malformed":          {`{"type":`, "not JSON"},
		"10 MB":              {`{"description":"` + strings.Repeat("x", 10<<20) + `"}`, "at most 262144"},
		"deep":               {strings.Repeat(`{"not":`, 5000) + "true" + strings.Repeat("}", 5000), "deeper than 128"},
		"array":              {`[]`, "neither an object nor a boolean"},
		"text":               {`"object"`, "neither an object nor a boolean"},
		"wrong type":         {`{"type":"text"}`, "cannot be used"},
		"file":               {`{"$ref":"file://` + secret + `"}`, "not followed"},
		"relative file":      {`{"$ref":"` + secret + `"}`, "cannot be used"},
		"http":               {`{"$ref":"http://127.0.0.1:1/x"}`, "not followed"},
		"https in property":  {`{"properties":{"a":{"$ref":"https://example.com/x.json#/y"}}}`, "not followed"},
		"missing target":     {`{"$ref":"#/$defs/none"}`, "cannot be used"},
		"circle":             {`{"$ref":"#"}`, "lead back"},
		"circle of two":      {`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"allOf":[{"$ref":"#/$defs/a"}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`, "lead back"},
		"long chain":         {`{"$ref":"#/$defs/c0","$defs":{` + many(100, func(i int) string { return fmt.Sprintf(`"c%d":{"$ref":"#/$defs/c%d"}`, i, i+1) }) + `,"c100":{}}}`, "too many schemas"},
		"too many":           {`{"properties":{` + many(20_000, func(i int) string { return fmt.Sprintf(`"%d":{}`, i) }) + `}}`, "more than 5000"},
		"bad id":             {`{"$id":":","properties":{"a":{"$id":"%zz"}}}`, "cannot be used"},
		"dynamic":            {`{"$dynamicRef":"#x"}`, "$dynamicRef is not supported"},
		"bad pattern":        {`{"properties":{"a":{"pattern":"("}}}`, `the pattern "(" is ignored`},
		"long pattern":       {`{"pattern":"` + strings.Repeat("(a|b)", 1000) + `"}`, "is ignored"},
		"bad pattern of key": {`{"patternProperties":{"(":{"type":"string"}},"additionalProperties":false}`, "is ignored"},
		"bad default":        {`{"properties":{"a":{"type":"integer","default":"x"}}}`, "default"},
		"twice":              {`{"type":"object","type":"string"}`, "given twice"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			x, warnings := tool(t, tt.schema)
			if got, err := x.CheckInput(json.RawMessage(`{"a":"b"}`)); err != nil || string(got) != `{"a":"b"}` {
				if name != "bad default" {
					t.Errorf("CheckInput = %s, %v; want the input as it is", got, err)
				}
			}
			if all := strings.Join(warnings(), "\n"); !strings.Contains(all, tt.warning) || len(all) > 1000 {
				t.Errorf("warnings %.500q, want %q", all, tt.warning)
			}
			n := len(warnings())
			x.CheckInput(json.RawMessage(`{}`))
			if len(warnings()) != n {
				t.Error("a warning was given twice")
			}
			if !json.Valid(x.Describe()) {
				t.Error("describe is no JSON")
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}

// A tool may be called from many goroutines at once.
func TestCheckInputConcurrently(t *testing.T) {
	x, _ := tool(t, `{"required":["n"],"properties":{"n":{"type":"integer"},"d":{"default":1},"s":{"pattern":"^(?=a)"}}}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if got, err := x.CheckInput(json.RawMessage(`{"n":1,"s":"a"}`)); err != nil || string(got) != `{"n":1,"s":"a","d":1}` {
					t.Errorf("%s, %v", got, err)
				}
				if _, err := x.CheckInput(json.RawMessage(`{"n":"1"}`)); err == nil {
					t.Error("accepted")
				}
			}
		})
	}
	wg.Wait()
}

// CheckInput gives an *InputError or JSON that the schema takes and that holds all
// of the input.
func FuzzCheckInput(f *testing.F) {
	for _, s := range []string{`{}`, `{"type":"object","properties":{"a":{"type":"integer","default":1}},"additionalProperties":false}`,
		`{"anyOf":[{"type":"string"},{"items":{"$ref":"#"}}]}`, `{"properties":{"a":{"pattern":"^(a+)+$"}}}`, `{"$ref":"#"}`, `{"items":[{}]}`, `{"enum":[1,"a",null]}`} {
		for _, in := range []string{`{}`, `{"a":1,"b":[1.0,"\ud800"]}`, `[[["x"]]]`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaa!"`, `1e400`, ``} {
			f.Add([]byte(s), []byte(in))
		}
	}
	f.Fuzz(func(t *testing.T, schema, input []byte) {
		x, _ := tool(t, string(schema))
		got, err := x.CheckInput(input)
		if err != nil {
			var refused *InputError
			if !errors.As(err, &refused) || len(err.Error()) > 8000 {
				t.Fatalf("schema %q, input %q: %T of %d bytes", schema, input, err, len(err.Error()))
			}
			return
		}
		if !json.Valid(got) {
			t.Fatalf("schema %q, input %q: %q is no JSON", schema, input, got)
		}
		again, err := x.CheckInput(got)
		if err != nil || !cmp.Equal(string(again), string(got)) {
			t.Fatalf("schema %q: %q became %q, which became %q, %v", schema, input, got, again, err)
		}
	})
}

// SPEC 6.7: a pattern that takes linear time may still take long: the product of text and pattern.
func TestLinearPatternsAreTimed(t *testing.T) {
	long := strings.Repeat("a", 4<<20)
	for _, pattern := range []string{`[a-z]{1000}x`, `(?:a?){1000}x`, `(?:a|b|c|ab|bc){300}x`} {
		c, _ := build(t, Entry{Name: "x", Source: Client, Parameters: json.RawMessage(`{"properties":{"s":{"pattern":` + strconv.Quote(pattern) + `}}}`)})
		tool := c.All()[0]
		if _, err := tool.CheckInput(json.RawMessage(`{"s":"` + long + `"}`)); err == nil || !strings.Contains(err.Error(), "takes too long") {
			t.Errorf("%s on %d bytes: %v", pattern, len(long), err)
		}
		if _, err := tool.CheckInput(json.RawMessage(`{"s":"abc"}`)); err == nil || strings.Contains(err.Error(), "takes too long") {
			t.Errorf("%s on a short text: %v", pattern, err)
		}
	}
	// Both ways to match say the same.
	for _, source := range []string{`^[a-z]+$`, `b`, `^$`, `[é-ü]`, `x{3}$`} {
		p, err := (&work{}).compilePattern(source)
		if err != nil {
			t.Fatal(err)
		}
		timed := *p.(*pattern)
		timed.size = 1 << 30
		for _, text := range []string{"", "abc", "ABC", "é", "axxx", "xxxa", "a\u2028b"} {
			if a, b := p.MatchString(text), timed.MatchString(text); a != b {
				t.Errorf("%s on %q: %t by the string, %t by the reader", source, text, a, b)
			}
		}
	}
}

// SPEC 6.9: a keyword whose value cannot be costs that keyword.
func TestMalformedKeywords(t *testing.T) {
	for schema, refused := range map[string]bool{
		`{"required":["a","a"],"properties":{"a":{"type":"string"}}}`:                      true,
		`{"required":"a","properties":{"b":{"type":"string"}}}`:                            true, // by b
		`{"properties":{"b":{"type":"string","minLength":"x","maxLength":-1}}}`:            true,
		`{"properties":{"a":5,"b":{"type":"string","maximum":"x","required":true}}}`:       true,
		`{"properties":[],"$defs":{"x":1},"type":"object","minProperties":1.5,"items":{}}`: false,
		`{"dependencies":{"b":["c"],"d":5}}`:                                               true,
	} {
		var warned []Warning
		c, _, err := Build([]Entry{{Name: "x", Source: Client, Parameters: json.RawMessage(schema)}}, Options{Warn: func(w Warning) { warned = append(warned, w) }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.All()[0].CheckInput(json.RawMessage(`{"b":5}`)); (err != nil) != refused {
			t.Errorf("%s: %v, want a refusal: %t; warned %v", schema, err, refused, warned)
		}
		if strings.Contains(fmt.Sprint(warned), "cannot be used") {
			t.Errorf("%s: the whole schema was dropped: %v", schema, warned)
		}
	}
	for schema, want := range map[string]string{
		`{"properties":{"b":{"minItems":2}}}`: "expected at least 2 items, got 1", `{"properties":{"b":{"maxItems":0}}}`: "expected at most 0 items, got 1",
		`{"minProperties":2}`: "expected at least 2 fields, got 1", `{"properties":{"s":{"minLength":1}},"required":["s"]}`: "missing",
	} {
		c, _ := build(t, Entry{Name: "x", Source: Client, Parameters: json.RawMessage(schema)})
		if _, err := c.All()[0].CheckInput(json.RawMessage(`{"b":[1]}`)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
}
