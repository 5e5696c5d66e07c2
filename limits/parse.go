package limits

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// MaxConfigBytes is how long a config file may be.
const MaxConfigBytes = 1 << 20

// Parse reads a config file, JSON5 text of the form
//
//	{tools: {codeMode: true | false | {…}}, supervisor: {…}}
//
// where every part may be left out (SPEC 2.1, 13, 19.1). What it does not set has
// its default. Errors are of type *[ConfigError].
func Parse(data []byte) (Config, []Warning, error) {
	v, err := parseText(data)
	if err != nil {
		return Config{}, nil, err
	}
	r := reader{config: DefaultConfig()}
	if err := r.file(v); err != nil {
		return Config{}, nil, err
	}
	return r.finish()
}

// Override returns the config of an agent whose own tools.codeMode is codeMode,
// JSON5 text, over c as the global one (SPEC 2.1). true and false switch and keep
// the limits of c; an object replaces the fields that it names, enabled among
// them. c is not changed.
func (c Config) Override(codeMode []byte) (Config, []Warning, error) {
	v, err := parseText(codeMode)
	if err != nil {
		return Config{}, nil, err
	}
	r := reader{config: c.clone()}
	if err := r.codeMode(v); err != nil {
		return Config{}, nil, err
	}
	return r.finish()
}

// Set changes one field as --set path=value does (SPEC 13.4). A path without a dot
// is a field of tools.codeMode, "supervisor.…" one of the operator's; the full
// "tools.codeMode.…" works as well. The value is JSON5; a word that is no JSON5 is
// taken as text, and so is anything that is given to a text field. On error c is
// as it was.
func (c *Config) Set(path, value string) ([]Warning, error) {
	full := path
	if !strings.Contains(path, ".") && path != supervisorPath {
		full = codeModePath + "." + path
	}
	f := lookup(full)
	if f == nil {
		if fields := children(full); fields != nil {
			return nil, &ConfigError{Field: full, Got: "holds fields; set one of them: " + strings.Join(fields, ", ")}
		}
		return nil, &ConfigError{Field: shorten(full), Got: "no such field", Nearest: nearestPath(path)}
	}
	v, err := f.argument(value)
	if err != nil {
		return nil, err
	}
	r := reader{config: c.clone()}
	if err := r.field(f, v); err != nil {
		return nil, err
	}
	next, warnings, err := r.finish()
	if err != nil {
		return nil, err
	}
	*c = next
	return warnings, nil
}

// argument reads the value of a --set. A path to a worker is text whether or not
// it happens to be JSON5, so a text field is asked before the grammar.
func (f *field) argument(value string) (*json5.Value, error) {
	if len(value) > MaxConfigBytes {
		return nil, &ConfigError{Field: f.Path, Got: fmt.Sprintf("a value of %d bytes", len(value)), Want: fmt.Sprintf("at most %d", MaxConfigBytes)}
	}
	v, err := json5.Parse([]byte(value))
	if err != nil || f.Type == "string" && v.Kind != json5.String {
		v = &json5.Value{Kind: json5.String, Text: value}
	}
	clearPositions(v)
	return v, nil
}

// clearPositions makes errors speak of the field alone: line 1 of an argument
// helps nobody.
func clearPositions(v *json5.Value) {
	v.Line, v.Column = 0, 0
	for i := range v.Items {
		v.Items[i].Line, v.Items[i].Column = 0, 0
	}
}

func parseText(data []byte) (*json5.Value, error) {
	if len(data) > MaxConfigBytes {
		return nil, &ConfigError{Got: fmt.Sprintf("a text of %d bytes", len(data)), Want: fmt.Sprintf("at most %d", MaxConfigBytes)}
	}
	v, err := json5.Parse(data)
	if err != nil {
		e := &ConfigError{Got: err.Error()}
		var syntax *json5.SyntaxError
		if errors.As(err, &syntax) {
			e.Got, e.Line, e.Column = "not JSON5: "+syntax.Msg, syntax.Line, syntax.Column
		}
		return nil, e
	}
	return v, nil
}

// reader fills a config from a tree and remembers what it saw.
type reader struct {
	config   Config
	warnings []Warning
	// searchDefault is searchDefaultLimit as it was written, nil when it was not.
	searchDefault *json5.Value
}

func (r *reader) file(v *json5.Value) error {
	return r.object(v, "", map[string]func(*json5.Value) error{
		"tools": func(v *json5.Value) error {
			return r.object(v, "tools", map[string]func(*json5.Value) error{"codeMode": r.codeMode})
		},
		supervisorPath: func(v *json5.Value) error { return r.fields(v, supervisorPath) },
	})
}

func (r *reader) codeMode(v *json5.Value) error {
	switch v.Kind {
	case json5.Bool:
		r.config.Enabled = v.Text == "true"
		return nil
	case json5.Object:
		return r.fields(v, codeModePath)
	}
	return &ConfigError{Field: codeModePath, Got: article(v), Want: "true, false or an object", Line: int(v.Line), Column: int(v.Column)}
}

// object hands each member of v to the function of its name.
func (r *reader) object(v *json5.Value, path string, members map[string]func(*json5.Value) error) error {
	known := make([]string, 0, len(members))
	for name := range members {
		known = append(known, name)
	}
	slices.Sort(known)
	if err := checkObject(v, path, known); err != nil {
		return err
	}
	for i := range v.Members {
		if err := members[v.Members[i].Key](&v.Members[i].Value); err != nil {
			return err
		}
	}
	return nil
}

// fields reads the object at path: fields of the table, and objects of such.
func (r *reader) fields(v *json5.Value, path string) error {
	if err := checkObject(v, path, children(path)); err != nil {
		return err
	}
	for i := range v.Members {
		m := &v.Members[i]
		full := path + "." + m.Key
		f := lookup(full)
		var err error
		if f == nil {
			err = r.fields(&m.Value, full)
		} else {
			err = r.field(f, &m.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) field(f *field, v *json5.Value) error {
	w, err := f.read(&r.config, v)
	if err != nil {
		return err
	}
	if w != nil {
		r.warnings = append(r.warnings, *w)
	}
	if f.MaxField != "" {
		r.searchDefault = v
	}
	return nil
}

// finish holds searchDefaultLimit under maxSearchLimit, which may have come later
// in the text. Who set only the maximum meant both, so nothing is said then.
func (r *reader) finish() (Config, []Warning, error) {
	l := &r.config.Limits
	if l.SearchDefault > l.SearchMax {
		l.SearchDefault = l.SearchMax
		if r.searchDefault != nil {
			r.warnings = append(r.warnings, Warning{
				Field: codeModePath + ".searchDefaultLimit",
				Value: shorten(r.searchDefault.Text),
				Used:  int64(l.SearchMax),
				Bound: fmt.Sprintf("above maxSearchLimit, which is %d", l.SearchMax),
			})
		}
	}
	return r.config, r.warnings, nil
}

// checkObject says whether v is an object with known keys only.
func checkObject(v *json5.Value, path string, known []string) error {
	if v.Kind != json5.Object {
		return &ConfigError{Field: path, Got: article(v), Want: "an object", Line: int(v.Line), Column: int(v.Column)}
	}
	if m, nearest := v.Unknown(known); m != nil {
		field := m.Key
		if path != "" {
			field = path + "." + m.Key
		}
		return &ConfigError{Field: shorten(field), Got: "unknown field", Nearest: nearest, Line: int(m.Line), Column: int(m.Column)}
	}
	return nil
}

// lookup returns the row of the field at path, nil if there is none.
func lookup(path string) *field {
	for i := range table {
		if table[i].Path == path {
			return &table[i]
		}
	}
	return nil
}

// children lists the names that may stand in the object at path.
func children(path string) []string {
	var names []string
	for i := range table {
		if rest, ok := strings.CutPrefix(table[i].Path, path+"."); ok {
			name, _, _ := strings.Cut(rest, ".")
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// nearestPath finds what a path of --set was meant to be, in the short form that
// --set takes.
func nearestPath(path string) string {
	var paths []string
	for i := range table {
		paths = append(paths, strings.TrimPrefix(table[i].Path, codeModePath+"."))
	}
	return json5.Nearest(strings.TrimPrefix(path, codeModePath+"."), paths)
}
