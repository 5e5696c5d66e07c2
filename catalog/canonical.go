package catalog

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// canonical returns a text that two JSON values share exactly if JSON Schema calls
// them equal: the order of keys does not matter, and 1, 1.0 and 1e0 are one number.
func canonical(v any) string {
	var b strings.Builder
	writeCanonical(&b, v)
	return b.String()
}

func writeCanonical(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case json.Number:
		b.WriteString(canonicalNumber(string(v)))
	case string:
		b.WriteString(strconv.Quote(v))
	case []any:
		b.WriteByte('[')
		for _, item := range v {
			writeCanonical(b, item)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		b.WriteByte('{')
		for _, k := range keys {
			b.WriteString(strconv.Quote(k))
			b.WriteByte(':')
			writeCanonical(b, v[k])
			b.WriteByte(',')
		}
		b.WriteByte('}')
	}
}

func canonicalNumber(text string) string {
	if !strings.ContainsAny(text, ".eE") && text != "-0" {
		return text // a JSON integer has one spelling
	}
	// jsontree has bounded the exponent, so the fraction stays small.
	if r, ok := new(big.Rat).SetString(text); ok {
		return r.RatString()
	}
	return text
}
