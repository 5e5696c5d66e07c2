package limits

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("mem:config", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("mem:config")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The schema accepts what Parse accepts without a warning, and nothing else.
func TestSchemaAgreesWithParse(t *testing.T) {
	schema := compileSchema(t)
	values := []string{`true`, `null`, `"x"`, `""`, `0`, `-1`, `1`, `8`, `100`, `5000.0`, `1.5`, `65536`, `1048576`, `1099511627776`, `99999999999999`,
		`[]`, `["javascript"]`, `["python"]`, `{}`, `"strict"`, `"truncate"`, `"only"`, `"quickjs-wasi"`}
	for i := range table {
		if table[i].check != nil {
			continue // a hash: the schema says only that it is text
		}
		for _, value := range values {
			doc := strings.NewReplacer(`{`, `{"`, `:`, `":`).Replace(strings.TrimSuffix(document(table[i].Path, "@"), "@"))
			doc = strings.Replace(doc, "@", value, 1)
			c, warnings, parseErr := Parse([]byte(doc))
			v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
			if err != nil {
				t.Fatalf("%s: %v", doc, err)
			}
			schemaErr := schema.Validate(v)
			if (parseErr == nil && len(warnings) == 0) != (schemaErr == nil) && !strings.Contains(table[i].Path, "require") {
				t.Errorf("%s: Parse says %v %v, the schema says %v (%+v)", doc, warnings, parseErr, schemaErr, c)
			}
		}
	}
	for doc, want := range map[string]bool{
		`{}`: true, `{"tools": {"codeMode": true}}`: true, `{"tools": {"codeMode": "x"}}`: false,
		`{"tools": {"x": 1}}`: false, `{"x": 1}`: false, `{"supervisor": {"isolation": {"x": 1}}}`: false,
	} {
		v, _ := jsonschema.UnmarshalJSON(strings.NewReader(doc))
		if err := schema.Validate(v); (err == nil) != want {
			t.Errorf("the schema says %v to %s", err, doc)
		}
	}
	var v any
	if err := json.Unmarshal(DefaultConfig().Marshal(), &v); err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("the schema refuses the default config: %v", err)
	}
}

// What `config show` prints is a config file.
func TestMarshal(t *testing.T) {
	text := `{tools: {codeMode: {enabled: true, languages: ["typescript"], timeoutMs: 1234, onOutputLimit: "truncate"}},
		supervisor: {worker: "/x/<w>", pool: 3, isolation: {preset: "strict", require: ["seccomp", "landlock"], uid: 7}}}`
	c, _, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := c.Marshal()
	again, warnings, err := Parse(out)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v\n%s", warnings, err, out)
	}
	if diff := cmp.Diff(c, again); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	for _, part := range []string{`"timeoutMs": 1234`, `"/x/<w>"`, `"languages": [`} {
		if !bytes.Contains(out, []byte(part)) {
			t.Errorf("no %s in\n%s", part, out)
		}
	}
}

func TestFieldsAreCopies(t *testing.T) {
	fields := Fields()
	if len(fields) != len(table) {
		t.Fatalf("%d fields, want %d", len(fields), len(table))
	}
	for _, f := range fields {
		if f.Doc == "" || !strings.HasSuffix(f.Doc, ".") {
			t.Errorf("%s: doc %q is no sentence", f.Path, f.Doc)
		}
		if len(f.Enum) > 0 {
			f.Enum[0] = "changed"
		}
		if list, ok := f.Default.([]string); ok && len(list) > 0 {
			list[0] = "changed"
		}
	}
	if lookup("tools.codeMode.languages").Enum[0] != "javascript" || languageNames[0] != "javascript" {
		t.Error("Fields hands out the table's own memory")
	}
}
