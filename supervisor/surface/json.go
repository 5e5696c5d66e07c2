package surface

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// bounds are what a JSON text may have. They are checked before a tree is built, which
// takes some hundred bytes a value.
type bounds struct {
	bytes, depth, values int
}

// readJSON parses a text that nobody vouches for. It is stricter than encoding/json where
// two readers of the same bytes could see different things: a key that is given twice and
// text that is not UTF-8 are errors. Lone surrogates survive as WTF-8.
func readJSON(text []byte, b bounds) (*json5.Value, error) {
	if len(text) > b.bytes {
		return nil, fmt.Errorf("it has %d bytes, at most %d are possible", len(text), b.bytes)
	}
	// JSON5 allows more than JSON. The standard library's check does not recurse.
	if !json.Valid(text) {
		var v json.RawMessage
		return nil, fmt.Errorf("it is not JSON: %w", json.Unmarshal(text, &v))
	}
	if depth, values := measure(text); depth > b.depth || values > b.values {
		return nil, fmt.Errorf("it has %d values, nested %d deep; at most %d and %d are possible", values, depth, b.values, b.depth)
	}
	v, err := json5.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON that all readers understand alike: %w", err)
	}
	return v, nil
}

// measure returns how deep a valid JSON text nests, and a bound of how many values it has.
func measure(text []byte) (depth, values int) {
	values = 1
	open := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			open++
			depth = max(depth, open)
			values++
		case '}', ']':
			open--
		case ',':
			values++
		}
	}
	return depth, values
}

// fold gives keys that a lenient reader takes for the same one form: encoding/json ignores
// case (and takes ſ for s), protocol buffers read snake_case as camelCase.
func fold(key string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return unicode.ToLower(least)
	}, key)
}

// twin returns two keys of an object that a lenient reader takes for one, or "", "".
func twin(v *json5.Value) (first, second string) {
	seen := make(map[string]string, len(v.Members))
	for i := range v.Members {
		key := v.Members[i].Key
		if other, ok := seen[fold(key)]; ok {
			return other, key
		}
		seen[fold(key)] = key
	}
	return "", ""
}

// text returns the characters of a JSON string, and whether v is one.
func text(v *json5.Value) (string, bool) {
	if v == nil || v.Kind != json5.String {
		return "", false
	}
	return v.Text, true
}

// given reports whether v is there and not null.
func given(v *json5.Value) bool { return v != nil && v.Kind != json5.Null }
