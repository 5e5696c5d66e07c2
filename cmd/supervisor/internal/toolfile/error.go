package toolfile

import (
	"fmt"
	"strings"
)

// Error says what is wrong with a tool file.
type Error struct {
	// File is the name of the file.
	File string
	// Line and Column are the place, from 1; 0 when the file as a whole is meant.
	Line, Column int
	// Tool names the tool: its name in quotes, or "#3" where it has none; empty
	// when no tool is meant.
	Tool string
	// Field is the path of the field inside the tool, such as "sequence[1].result";
	// empty when no field is meant.
	Field string
	// Problem is what is wrong there, and what is right.
	Problem string
}

// Error returns "file:line:column: tool "x", field y: problem".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Tool != "" {
		b.WriteString("tool " + e.Tool)
		if e.Field != "" {
			b.WriteString(", ")
		} else {
			b.WriteString(": ")
		}
	}
	if e.Field != "" {
		b.WriteString("field " + e.Field + ": ")
	}
	b.WriteString(e.Problem)
	return b.String()
}
