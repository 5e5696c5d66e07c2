package catalog

import (
	"encoding/json"
	"strings"
)

// schemaReader finds the words of a JSON Schema: the names of its properties, one
// level of nesting included, and their descriptions and enum values. It reads what
// Build has checked, and skips most of it: parsing would take longer than all else.
type schemaReader struct {
	text string
	pos  int
	word func(field, string)
}

// role is what the value at hand is.
type role int

const (
	skipped role = iota
	aSchema
	itsProperties
	itsWords // a description, or enum values
)

func (r *schemaReader) value(role role, depth int) {
	r.space()
	switch c := r.text[r.pos]; {
	case role == skipped:
		r.skip()
	case c == '{':
		for r.next() {
			start := r.pos
			r.str()
			key := r.text[start:r.pos]
			r.space()
			r.pos++ // :
			r.value(r.member(role, key, depth), depth+1)
		}
	case c == '[' && role == itsWords:
		for r.next() {
			r.value(role, depth+1)
		}
	case c == '"' && role == itsWords:
		start := r.pos
		r.str()
		r.word(inTexts, unquote(r.text[start:r.pos]))
	default:
		r.skip()
	}
}

// member returns what the member called key of an object is.
func (r *schemaReader) member(of role, key string, depth int) role {
	switch {
	case of == itsProperties:
		r.word(inParameters, unquote(key))
		return aSchema
	case of != aSchema:
		return skipped
	case key == `"properties"` && depth < 4: // the schema's, or a property's own
		return itsProperties
	case key == `"description"`, key == `"enum"`:
		return itsWords
	}
	return skipped
}

// next steps over the opening bracket or a comma to what follows, or over the
// closing bracket, after which it reports false.
func (r *schemaReader) next() bool {
	r.space()
	if c := r.text[r.pos]; c != ']' && c != '}' {
		r.pos++
		r.space()
	}
	if c := r.text[r.pos]; c == ']' || c == '}' {
		r.pos++
		return false
	}
	return true
}

func (r *schemaReader) space() {
	for r.text[r.pos] <= ' ' {
		r.pos++
	}
}

func (r *schemaReader) str() {
	for r.pos++; r.text[r.pos] != '"'; r.pos++ {
		if r.text[r.pos] == '\\' {
			r.pos++
		}
	}
	r.pos++
}

// skip steps over a value.
func (r *schemaReader) skip() {
	open := 0
	for ; r.pos < len(r.text); r.pos++ {
		switch r.text[r.pos] {
		case '"':
			r.str()
			r.pos--
		case '{', '[':
			open++
		case '}', ']':
			if open == 0 {
				return // of what the value stands in
			}
			open--
		case ',':
			if open == 0 {
				return
			}
		}
	}
}

func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var s string
	json.Unmarshal([]byte(raw), &s) // cannot fail: Build has checked it
	return s
}
