package toolfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// Bounds of a file.
const (
	// MaxFileBytes is how long a file may be.
	MaxFileBytes = 16 << 20
	// MaxTools is how many tools a file may have.
	MaxTools = 10_000
	// MaxSteps is how many behaviours a sequence may have.
	MaxSteps = 1000
)

// Load reads the file at path. See [Parse].
func Load(path string) ([]*Tool, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading a tool file: %w", err)
	}
	defer f.Close()
	// One byte more than is allowed, so that Parse sees that it is too long.
	data, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading a tool file: %w", err)
	}
	return Parse(path, data)
}

// Parse reads the text of a tool file (SPEC 20) that is called name in errors,
// which are of type *[Error]. No program is looked for or started.
func Parse(name string, data []byte) ([]*Tool, error) {
	p := &parser{file: name}
	if len(data) > MaxFileBytes {
		return nil, &Error{File: name, Problem: fmt.Sprintf("the file has more than %d bytes", MaxFileBytes)}
	}
	root, err := json5.Parse(data)
	if err != nil {
		return nil, p.syntax(err)
	}
	list, err := p.list(root)
	if err != nil {
		return nil, err
	}
	tools := make([]*Tool, len(list.Items))
	for i := range list.Items {
		if tools[i], err = p.parseTool(&list.Items[i], i); err != nil {
			return nil, err
		}
	}
	return tools, nil
}

// parser knows where it is, for errors.
type parser struct {
	file string
	tool string // the tool that is being read
	path string // the field that encloses what is being read: "sequence[1]"
}

// list returns the array of tools in the file.
func (p *parser) list(root *json5.Value) (*json5.Value, error) {
	if root.Kind != json5.Object {
		return nil, p.errorf(root, "", "expected an object {tools: […]}, got %s", describe(root))
	}
	if err := p.knownFields(root, []string{"tools"}); err != nil {
		return nil, err
	}
	list := root.Get("tools")
	if list == nil {
		return nil, p.errorf(root, "", "there is no list of tools; expected {tools: […]}")
	}
	if list.Kind != json5.Array {
		return nil, p.errorf(list, "tools", "expected a list, got %s", describe(list))
	}
	if len(list.Items) > MaxTools {
		return nil, p.errorf(list, "tools", "has %d tools, at most %d are possible", len(list.Items), MaxTools)
	}
	return list, nil
}

// Fields of a tool beside its behaviour.
var entryFields = []string{"id", "name", "description", "label", "source", "sourceName", "parameters", "outputSchema", "annotations", "policy"}

func (p *parser) parseTool(v *json5.Value, i int) (*Tool, error) {
	p.tool, p.path = fmt.Sprintf("#%d", i+1), ""
	if v.Kind != json5.Object {
		return nil, p.errorf(v, "", "expected an object, got %s", describe(v))
	}
	if name := v.Get("name"); name != nil && name.Kind == json5.String {
		p.tool = fmt.Sprintf("%q", shorten(name.Text))
	}
	if err := p.knownFields(v, slices.Concat(entryFields, behaviours, modifiers)); err != nil {
		return nil, err
	}
	t := &Tool{}
	if err := p.entry(v, t); err != nil {
		return nil, err
	}
	var err error
	t.steps, err = p.behaviour(v)
	return t, err
}

func (p *parser) entry(v *json5.Value, t *Tool) error {
	e := &t.Entry
	source, policy := "", ""
	texts := []struct {
		field    string
		to       *string
		fallback string
		allowed  []string
	}{
		{"id", &e.ID, "", nil},
		{"name", &e.Name, "", nil},
		{"description", &e.Description, "", nil},
		{"label", &e.Label, "", nil},
		{"source", &source, string(catalog.Client), []string{"openclaw", "plugin", "mcp", "client"}},
		{"sourceName", &e.SourceName, "app", nil},
		{"policy", &policy, string(Allow), []string{"allow", "deny", "approve"}},
	}
	for _, text := range texts {
		*text.to = text.fallback
		m := v.Get(text.field)
		if m == nil {
			continue
		}
		if m.Kind != json5.String {
			return p.errorf(m, text.field, "expected text, got %s", describe(m))
		}
		if text.allowed != nil && !slices.Contains(text.allowed, m.Text) {
			return p.errorf(m, text.field, "expected %s, got %q%s", strings.Join(text.allowed, ", "), shorten(m.Text), hint(m.Text, text.allowed))
		}
		if m.Text == "" && (text.field == "id" || text.field == "name" || text.field == "sourceName") {
			return p.errorf(m, text.field, "must not be empty")
		}
		*text.to = m.Text
	}
	if e.Name == "" {
		return p.errorf(v, "name", "missing; every tool needs one")
	}
	e.Source, t.Policy = catalog.Source(source), Policy(policy)
	if e.ID == "" {
		e.ID = catalog.ID(e.Source, e.SourceName, e.Name)
	}
	if len(e.ID) > catalog.MaxIDBytes {
		return p.errorf(v, "id", "has %d bytes, at most %d are possible", len(e.ID), catalog.MaxIDBytes)
	}
	if err := p.schemas(v, e); err != nil {
		return err
	}
	return p.annotations(v, e)
}

func (p *parser) schemas(v *json5.Value, e *catalog.Entry) error {
	for _, schema := range []struct {
		field string
		to    *json.RawMessage
	}{{"parameters", &e.Parameters}, {"outputSchema", &e.OutputSchema}} {
		m := v.Get(schema.field)
		if m == nil {
			continue
		}
		if m.Kind != json5.Object && m.Kind != json5.Bool {
			return p.errorf(m, schema.field, "expected a JSON Schema, an object, got %s", describe(m))
		}
		data, err := m.JSON()
		if err != nil {
			return p.syntax(err)
		}
		*schema.to = data
	}
	return nil
}

func (p *parser) annotations(v *json5.Value, e *catalog.Entry) error {
	a := v.Get("annotations")
	if a == nil {
		return nil
	}
	if a.Kind != json5.Object {
		return p.errorf(a, "annotations", "expected an object, got %s", describe(a))
	}
	hints := map[string]*bool{"readOnlyHint": &e.Annotations.ReadOnly, "idempotentHint": &e.Annotations.Idempotent, "destructiveHint": &e.Annotations.Destructive}
	p.path = "annotations"
	defer func() { p.path = "" }()
	if err := p.knownFields(a, []string{"readOnlyHint", "idempotentHint", "destructiveHint"}); err != nil {
		return err
	}
	for i := range a.Members {
		m := &a.Members[i]
		if m.Value.Kind != json5.Bool {
			return p.errorf(&m.Value, m.Key, "expected true or false, got %s", describe(&m.Value))
		}
		*hints[m.Key] = m.Value.Text == "true"
	}
	return nil
}

// knownFields refuses the first member of v that is not among known.
func (p *parser) knownFields(v *json5.Value, known []string) error {
	m, nearest := v.Unknown(known)
	if m == nil {
		return nil
	}
	problem := "unknown field"
	if nearest != "" {
		problem += fmt.Sprintf("; did you mean %q?", nearest)
	} else {
		problem += "; the fields are " + strings.Join(known, ", ")
	}
	return p.errorf(&json5.Value{Line: m.Line, Column: m.Column}, shorten(m.Key), "%s", problem)
}

func (p *parser) errorf(at *json5.Value, field, format string, args ...any) error {
	if p.path != "" && field != "" {
		field = p.path + "." + field
	} else if field == "" {
		field = p.path
	}
	return &Error{File: p.file, Line: int(at.Line), Column: int(at.Column), Tool: p.tool, Field: field, Problem: fmt.Sprintf(format, args...)}
}

// syntax gives an error of the JSON5 reader the place and the tool.
func (p *parser) syntax(err error) error {
	e := &Error{File: p.file, Tool: p.tool, Field: p.path, Problem: err.Error()}
	var s *json5.SyntaxError
	if errors.As(err, &s) {
		e.Line, e.Column, e.Problem = s.Line, s.Column, s.Msg
	}
	return e
}

func hint(word string, known []string) string {
	if near := json5.Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// describe names a value for people.
func describe(v *json5.Value) string {
	switch v.Kind {
	case json5.String:
		return fmt.Sprintf("the text %q", shorten(v.Text))
	case json5.Number, json5.Bool:
		return shorten(v.Text)
	case json5.Null:
		return "null"
	case json5.Array:
		return "a list"
	}
	return "an object"
}

func shorten(s string) string {
	if len(s) <= 60 {
		return s
	}
	return strings.ToValidUTF8(s[:60], "") + "…"
}
