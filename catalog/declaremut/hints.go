package declare

import (
	"strconv"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

// hints says, short enough for a comment, what a schema demands that its type does not
// show. It is empty for most schemas.
func hints(s *jsontree.Node) string {
	var list []string
	for i := range s.Members {
		m := &s.Members[i]
		if h := hint(s, m.Key, &m.Value); h != "" {
			list = append(list, h)
		}
	}
	if list == nil {
		return ""
	}
	return comment(strings.Join(list, ", "), 160)
}

func hint(s *jsontree.Node, key string, v *jsontree.Node) string {
	switch key {
	case "type":
		if v.Kind == jsontree.String && string(v.Raw) == `"integer"` {
			return "integer"
		}
	case "format", "contentEncoding", "contentMediaType":
		return cut(v.Text(), 30)
	case "pattern":
		if v.Kind == jsontree.String {
			return "pattern " + cut(v.Text(), 60)
		}
	case "default":
		return "default " + cut(string(v.Raw), 40)
	case "minimum":
		return bound(">=", v)
	case "maximum":
		return bound("<=", v)
	case "exclusiveMinimum":
		return bound(">", v)
	case "exclusiveMaximum":
		return bound("<", v)
	case "multipleOf":
		return bound("multiple of", v)
	case "minLength", "minItems", "minProperties":
		return bound(unit(key)+" >=", v)
	case "maxLength", "maxItems", "maxProperties":
		return bound(unit(key)+" <=", v)
	case "uniqueItems":
		if v.Kind == jsontree.Bool && v.Raw[0] == 't' {
			return "unique items"
		}
	case "readOnly", "writeOnly", "deprecated":
		if v.Kind == jsontree.Bool && v.Raw[0] == 't' {
			return strings.ToLower(key)
		}
	default:
		return widened(s, key, v)
	}
	return ""
}

// widened says which keywords have no part in the type.
func widened(s *jsontree.Node, key string, v *jsontree.Node) string {
	switch key {
	case "not", "contains", "dependentRequired", "dependentSchemas", "dependencies":
		return "also: " + key + " " + cut(string(v.Raw), 60)
	case "if":
		text := "also: if " + cut(string(v.Raw), 60)
		for _, word := range []string{"then", "else"} {
			if branch := s.Get(word); branch != nil {
				text += " " + word + " " + cut(string(branch.Raw), 40)
			}
		}
		return text
	case "propertyNames":
		if v.Kind == jsontree.Object && len(v.Members) == 1 && v.Members[0].Key == "type" {
			return "" // keys are strings anyway
		}
		return "keys: " + cut(string(v.Raw), 80)
	case "unevaluatedProperties", "unevaluatedItems":
		if isFalse(v) {
			return "also: no other " + strings.ToLower(strings.TrimPrefix(key, "unevaluated"))
		}
		if v.Kind == jsontree.Object && len(v.Members) > 0 {
			return "also: " + key + " " + cut(string(v.Raw), 60)
		}
	case "$dynamicRef", "$recursiveRef":
		return "also: " + key
	}
	return ""
}

func unit(key string) string {
	switch key[3:] {
	case "Length":
		return "length"
	case "Items":
		return "items"
	}
	return "keys"
}

// bound says a bound that somebody meant: not 0 for a length, nor ±(2^53-1), which
// generators add to every integer.
func bound(relation string, v *jsontree.Node) string {
	const maxSafe = 1<<53 - 1
	if v.Kind != jsontree.Number || len(v.Raw) > 30 {
		return ""
	}
	f, err := strconv.ParseFloat(string(v.Raw), 64)
	if err != nil || f >= maxSafe || f <= -maxSafe || f == 0 && strings.HasSuffix(relation, " >=") {
		return ""
	}
	return relation + " " + string(v.Raw)
}
