package surface_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

// SPEC 2.5: every rendering, byte for byte.
func TestDefinitionsGolden(t *testing.T) {
	var b strings.Builder
	for _, languages := range []limits.Languages{limits.JavaScript | limits.TypeScript, limits.JavaScript, limits.TypeScript} {
		v := surface.View{Limits: limits.Default()}
		v.Limits.Languages = languages
		d := surface.Define(v)
		fmt.Fprintf(&b, "== %s\nexec %s\nwait %s\n", languages, d.Exec.Parameters, d.Wait.Parameters)
		d.Exec.Description = "<" + fmt.Sprint(len(d.Exec.Description)) + " bytes & more>" // exec.txt has it
		for _, s := range surface.Shapes() {
			for _, strict := range []bool{true, false} {
				fmt.Fprintf(&b, "%s strict=%v %s\n", s, strict, d.Render(s, strict))
			}
		}
	}
	const file = "testdata/definitions.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("(-want +got; go test -update writes it anew):\n%s", diff)
	}
}

// SPEC 2.5: the rules of the strict modes, for every set of languages.
func TestSchemasAreStrict(t *testing.T) {
	for _, languages := range []limits.Languages{limits.JavaScript | limits.TypeScript, limits.JavaScript, limits.TypeScript} {
		v := surface.View{Limits: limits.Default()}
		v.Limits.Languages = languages
		d := surface.Define(v)
		for _, def := range []surface.Definition{d.Exec, d.Wait} {
			for _, broken := range strictRules(def) {
				t.Errorf("%s with %s: %s", def.Name, languages, broken)
			}
		}
		if strings.Contains(string(d.Exec.Parameters), "command") {
			t.Error("command is in the schema")
		}
		if has := strings.Contains(string(d.Exec.Parameters), "language"); has != (len(languages.Names()) > 1) {
			t.Errorf("%s: language in the schema: %v", languages, has)
		}
	}
	bad := surface.Definition{Name: "a b", Parameters: json.RawMessage(`{"type":"object","properties":{"x":{"type":["string","null"],"enum":["a",null],"default":"a"}},"required":[]}`)}
	if got := strictRules(bad); len(got) < 5 {
		t.Errorf("the checker finds only %q", got)
	}
}

// strictRules checks a definition against what is documented: OpenAI structured outputs
// (every object closed, every property required, no default), Anthropic strict tool use
// (the same without the second; simple types and enums), Gemini function declarations (names,
// flat string enums, no unions), and ours: flat.
func strictRules(d surface.Definition) (broken []string) {
	report := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	if strings.Trim(d.Name, "abcdefghijklmnopqrstuvwxyz_-") != "" || d.Name == "" || len(d.Name) > 64 {
		report("name %q", d.Name)
	}
	var root map[string]any
	if err := json.Unmarshal(d.Parameters, &root); err != nil {
		return append(broken, err.Error())
	}
	for key := range root {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties"}, key) {
			report("keyword %q at the root", key)
		}
	}
	if root["type"] != "object" {
		report("type %v", root["type"])
	}
	if root["additionalProperties"] != false {
		report("additionalProperties is %v", root["additionalProperties"])
	}
	required, _ := root["required"].([]any)
	properties, _ := root["properties"].(map[string]any)
	if len(required) != len(properties) || len(properties) == 0 {
		report("%d of %d properties are required", len(required), len(properties))
	}
	for name, p := range properties {
		if !slices.Contains(required, any(name)) {
			report("%s is not required", name)
		}
		for key, value := range p.(map[string]any) {
			switch key {
			case "type":
				if value != "string" {
					report("%s is of type %v", name, value)
				}
			case "description":
			case "enum":
				for _, item := range value.([]any) {
					if _, ok := item.(string); !ok {
						report("%s has the enum value %v", name, item)
					}
				}
			default:
				report("%s has the keyword %s", name, key)
			}
		}
	}
	return broken
}

// SPEC 2.5, 2.6: what is rendered passes the guard, whichever order the tools came in; and
// equal tool sets give equal bytes.
func TestRender(t *testing.T) {
	d := surface.Define(view(t, entries, catalog.Options{}))
	reversed := slices.Clone(entries)
	slices.Reverse(reversed)
	again := surface.Define(view(t, reversed, catalog.Options{}))
	for _, s := range surface.Shapes() {
		for _, strict := range []bool{true, false} {
			tools := d.Render(s, strict)
			if string(tools) != string(again.Render(s, strict)) {
				t.Errorf("%s: equal tools give other bytes", s)
			}
			payload := fmt.Appendf(nil, `{"model": "m", "tools": %s}`, tools)
			for _, shape := range []surface.Shape{s, surface.Detect} {
				if err := surface.CheckPayload(payload, shape); err != nil {
					t.Errorf("%s strict=%v checked as %q: %v", s, strict, shape, err)
				}
			}
			for _, other := range surface.Shapes() {
				if err := surface.CheckPayload(payload, other); other != s && err == nil {
					t.Errorf("%s passes as %s", s, other)
				}
			}
		}
	}
}
