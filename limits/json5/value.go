package json5

import "fmt"

// Kind is the type of a [Value].
type Kind uint8

// The kinds of a value. NaN and ±Infinity are of kind Number.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the name that JSON gives the type: "null", "boolean", "number",
// "string", "array" or "object".
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case Array:
		return "array"
	case Object:
		return "object"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Value is one value of a document. It is plain data: after [Parse] nobody
// changes it, so it may be read from any goroutine.
type Value struct {
	Kind Kind

	// Text is what the value says: a String's characters; a Number as a JSON
	// literal ("31" for 0x1F, "0.5" for .5), or "NaN", "Infinity", "-Infinity";
	// "true" or "false" for a Bool. Empty for the others. A lone surrogate of a
	// \u escape is held as its three WTF-8 bytes, and JSON gives it back.
	Text string

	// Members holds an Object's members in the order of the text.
	Members []Member

	// Items holds an Array's values.
	Items []Value

	// Line and Column tell where the value begins, both from 1, columns in
	// characters.
	Line, Column int32
}

// Member is one key of an object with its value.
type Member struct {
	Key   string
	Value Value

	// Line and Column tell where the key begins.
	Line, Column int32
}

// Finite reports whether v is a number that JSON can write: not NaN and not
// ±Infinity.
func (v *Value) Finite() bool {
	return v.Kind == Number && v.Text != "NaN" && v.Text != "Infinity" && v.Text != "-Infinity"
}

// Get returns the member called key, or nil if v has none or is no object.
func (v *Value) Get(key string) *Value {
	for i := range v.Members {
		if v.Members[i].Key == key {
			return &v.Members[i].Value
		}
	}
	return nil
}

// SyntaxError says that a text is not JSON5, or cannot be carried over to JSON.
type SyntaxError struct {
	// Line and Column are where it was noticed, both from 1, columns in characters.
	Line, Column int
	// Msg is what was wrong there.
	Msg string
}

// Error returns "line L, column C: what was wrong".
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Msg)
}
