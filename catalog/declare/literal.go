package declare

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

// literals returns the type of const or enum, or nil if the schema has neither. Every
// other keyword can only accept less.
func (b *builder) literals(k *keywords, t types) *node {
	if k.constant != nil {
		return b.union([]jsontree.Node{*k.constant}, t)
	}
	if k.enum != nil {
		return b.union(k.enum.Items, t)
	}
	return nil
}

// union returns the union of the values that have one of the types.
func (b *builder) union(values []jsontree.Node, t types) *node {
	var parts []*node
	var all types
	count := 0
	for i := range values {
		if typeOf(&values[i])&t == 0 {
			continue
		}
		all |= typeOf(&values[i])
		if count++; count <= maxLiterals && b.room >= 0 {
			parts = append(parts, b.literal(&values[i], 0))
		}
	}
	if count > len(parts) {
		return withNote(anyOfTypes(all), comment(examples(parts, count), 160))
	}
	return unite(mergeBooleans(parts))
}

// examples names the first of many literals.
func examples(parts []*node, count int) string {
	var b strings.Builder
	b.WriteString("one of ")
	b.WriteString(strconv.Itoa(count))
	sep := ": "
	for _, p := range parts[:min(len(parts), 6)] {
		b.WriteString(sep)
		b.WriteString(flatNote(p))
		sep = ", "
	}
	b.WriteString(", …")
	return b.String()
}

var (
	trueType  = &node{types: typeBoolean, text: "true", width: 4}
	falseType = &node{types: typeBoolean, text: "false", width: 5}
)

func mergeBooleans(parts []*node) []*node {
	i, j := slices.Index(parts, trueType), slices.Index(parts, falseType)
	if i < 0 || j < 0 {
		return parts
	}
	parts[min(i, j)] = primitives[2]
	return slices.Delete(parts, max(i, j), max(i, j)+1)
}

// literal returns the type that only v has, or a wider one where TypeScript has none.
func (b *builder) literal(v *jsontree.Node, depth int) *node {
	if b.room--; b.room < 0 || depth > maxDepth {
		return anyOfTypes(typeOf(v))
	}
	switch v.Kind {
	case jsontree.Bool:
		if v.Raw[0] == 't' {
			return trueType
		}
		return falseType
	case jsontree.Number:
		if text, ok := numberLiteral(string(v.Raw)); ok {
			return &node{types: typeNumber, text: text}
		}
	case jsontree.String:
		if text := v.Text(); len(v.Raw) <= maxLiteral && !strings.ContainsRune(text, utf8.RuneError) {
			return &node{types: typeString, text: stringLiteral(text, v.Raw)}
		}
	case jsontree.Array:
		return b.arrayLiteral(v, depth)
	case jsontree.Object:
		return b.objectLiteral(v, depth)
	}
	if b.brief {
		return anyOfTypes(typeOf(v))
	}
	return withNote(anyOfTypes(typeOf(v)), comment(cut(string(v.Raw), 60), 60))
}

func (b *builder) arrayLiteral(v *jsontree.Node, depth int) *node {
	if len(v.Items) == 0 {
		return emptyArray
	}
	if len(v.Items) > maxElements {
		return anyArray
	}
	n := &node{kind: tuple, types: typeArray, optional: len(v.Items)}
	for i := range v.Items {
		n.parts = append(n.parts, b.literal(&v.Items[i], depth+1))
	}
	return n
}

func (b *builder) objectLiteral(v *jsontree.Node, depth int) *node {
	if len(v.Members) == 0 {
		return noMembers
	}
	n := &node{kind: object, types: typeObject}
	for i := range v.Members {
		m := &v.Members[i]
		if !declarable(m.Key) {
			return anyObject
		}
		n.fields = append(n.fields, field{name: propertyName(m.Key, m.RawKey), typ: b.literal(&m.Value, depth+1)})
	}
	return n
}

// numberLiteral writes a JSON number as JavaScript would. It is not ok for one that
// JavaScript cannot hold.
func numberLiteral(raw string) (text string, ok bool) {
	if len(raw) > 40 {
		return "", false
	}
	if i, err := strconv.Atoi(raw); err == nil && i > -1<<53 && i < 1<<53 {
		return strconv.Itoa(i), true // -0 becomes 0, which is the same number to both
	}
	f, err := strconv.ParseFloat(raw, 64)
	if err != nil {
		return "", false
	}
	if f == 0 {
		// 0.0 and 0e5, but not 1e-400.
		return "0", strings.Trim(strings.Split(strings.ToLower(raw), "e")[0], "-0.") == ""
	}
	// Written shortest it must be the number that the schema has, digit by digit:
	// 9007199254740993 is not.
	text = strconv.FormatFloat(f, 'g', -1, 64)
	want, _ := new(big.Rat).SetString(raw)
	got, _ := new(big.Rat).SetString(text)
	return text, want != nil && got != nil && want.Cmp(got) == 0
}
