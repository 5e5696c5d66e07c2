package limits

import (
	"fmt"
	"strings"

	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// Warning says that a whole number was outside the range of its field, and what
// is used instead (SPEC 13.1).
type Warning struct {
	// Field is the path of the field.
	Field string
	// Value is the number as it was written.
	Value string
	// Used is the number in force.
	Used int64
	// Bound says which bound was passed: "above the maximum 60000".
	Bound string
}

// String returns the warning as one line.
func (w Warning) String() string {
	return fmt.Sprintf("%s: %s is %s; using %d", w.Field, w.Value, w.Bound, w.Used)
}

// ConfigError says that a config cannot be used (SPEC 13.1). Callers report it as
// invalid_config.
type ConfigError struct {
	// Field is the path of the field that is wrong; empty when the text is not
	// JSON5 at all.
	Field string
	// Got is what came, such as `the string "5"` or "an unknown field".
	Got string
	// Want is what was expected, such as "a whole number from 100 to 60000"; empty
	// for an unknown field.
	Want string
	// Nearest is the name that was probably meant; empty when none is near.
	Nearest string
	// Line and Column are the place in the text, from 1; 0 when it is not known
	// (a value of --set).
	Line, Column int
}

// Error returns the whole story as one line: field, place, what came, what to
// write instead.
func (e *ConfigError) Error() string {
	var b strings.Builder
	b.WriteString("config")
	if e.Field != "" {
		b.WriteString(" field " + e.Field)
	}
	if e.Line > 0 {
		fmt.Fprintf(&b, " (line %d, column %d)", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Want != "" {
		fmt.Fprintf(&b, "expected %s, got %s", e.Want, e.Got)
	} else {
		b.WriteString(e.Got)
	}
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Nearest)
	}
	return b.String()
}

// reject says that v does not fit f.
func (f *field) reject(v *json5.Value, want string) *ConfigError {
	e := &ConfigError{Field: f.Path, Got: article(v), Want: want, Line: int(v.Line), Column: int(v.Column)}
	if v.Kind == json5.String {
		e.Nearest = json5.Nearest(v.Text, f.Enum)
	}
	return e
}

// describe says what the field wants, for people.
func (f *field) describe() string {
	switch {
	case f.Type == "integer":
		return fmt.Sprintf("a whole number from %d to %d", f.Min, f.Max)
	case f.want != "":
		return f.want
	case f.Type == "array":
		return "a list, each item " + f.describeItem()
	case len(f.Enum) > 0:
		return oneOf(f.Enum)
	case f.Type == "boolean":
		return "true or false"
	}
	return "text without NUL"
}

func (f *field) describeItem() string {
	if len(f.Enum) > 0 {
		return oneOf(f.Enum)
	}
	return "a text that is not empty"
}

func oneOf(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return "one of " + strings.Join(quoted, ", ")
}

// article names a value with its type.
func article(v *json5.Value) string {
	switch v.Kind {
	case json5.String:
		return fmt.Sprintf("the string %q", shorten(v.Text))
	case json5.Number:
		return shorten(v.Text)
	case json5.Bool:
		return v.Text
	case json5.Array:
		if len(v.Items) == 0 {
			return "an empty list"
		}
		return "a list"
	case json5.Object:
		return "an object"
	}
	return "null"
}

// shorten keeps a message readable whatever was written into the config.
func shorten(s string) string {
	if len(s) <= 60 {
		return s
	}
	return strings.ToValidUTF8(s[:60], "") + "…"
}
