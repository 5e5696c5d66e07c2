package declare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// generator makes values that a schema accepts: it guesses by the schema, and the
// validator decides.
type generator struct {
	root   any
	schema *jsonschema.Schema // nil: the validator refuses the schema
	random *rand.Rand
	mode   mode
	fuel   int
}

type mode int

const (
	minimal mode = iota // no optional properties
	maximal             // all of them
	mixed
	modes
)

func decode(t testing.TB, raw json.RawMessage) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func newGenerator(t testing.TB, raw json.RawMessage, seed int64) *generator {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	g := &generator{root: decode(t, raw), random: rand.New(rand.NewSource(seed))}
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7} { // as the catalog does
		doc := decode(t, raw)
		prepare(doc)
		c := jsonschema.NewCompiler()
		c.DefaultDraft(draft)
		c.UseRegexpEngine(lenient)
		c.UseLoader(noLoader{})
		if err := c.AddResource("tool:input", doc); err != nil {
			continue
		}
		if s, err := c.Compile("tool:input"); err == nil {
			g.schema = s
			break
		}
	}
	return g
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) { return nil, errors.New("not followed") }

type pattern struct{ re *regexp.Regexp }

func (p pattern) MatchString(s string) bool { return p.re == nil || p.re.MatchString(s) }
func (p pattern) String() string            { return "pattern" }

// lenient takes patterns that Go does not compile for such that everything matches.
func lenient(s string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(s)
	if err != nil {
		re = nil
	}
	return pattern{re}, nil
}

// prepare gives nullable its meaning, as the catalog does.
func prepare(v any) {
	switch v := v.(type) {
	case []any:
		for _, sub := range v {
			prepare(sub)
		}
	case map[string]any:
		if v["nullable"] == true {
			if s, ok := v["type"].(string); ok {
				v["type"] = []any{s, "null"}
			}
			if e, ok := v["enum"].([]any); ok {
				v["enum"] = append(e, nil)
			}
		}
		for _, sub := range v {
			prepare(sub)
		}
	}
}

// accepts asks the validator. Its integers are as large as they like, and numbers come
// as json.Number.
func (g *generator) accepts(v any) (ok bool) {
	defer func() {
		if recover() != nil { // a $ref to itself
			ok = false
		}
	}()
	return g.schema != nil && g.schema.Validate(v) == nil
}

// values returns accepted values, all different.
func (g *generator) values(n int) []any {
	var list []any
	seen := map[string]bool{}
	for i := range 4 * n {
		g.mode, g.fuel = mode(i)%modes, 300
		v := g.value(g.root, 0)
		if text := literalOf(v); !seen[text] && len(text) < 20_000 && g.accepts(v) {
			seen[text] = true
			list = append(list, v)
		}
		if len(list) == n {
			break
		}
	}
	return list
}

// inputs returns objects that are accepted, and some that lack a required key.
func (g *generator) inputs(n int) (accepted, refused []any) {
	if g.schema == nil {
		return []any{map[string]any{}, map[string]any{"a": []any{json.Number("1")}}}, nil
	}
	for _, v := range g.values(n) {
		if isObject(v) {
			accepted = append(accepted, v)
		}
	}
	if len(accepted) > 0 {
		for _, v := range []any{accepted[0], accepted[len(accepted)-1]} {
			refused = append(refused, g.lacking(v.(map[string]any), g.root)...)
		}
	}
	return accepted, refused
}

// lacking returns copies of v without one required key, and without one of an object
// inside.
func (g *generator) lacking(v map[string]any, schema any) []any {
	var list []any
	s, _ := schema.(map[string]any)
	if s == nil {
		return nil
	}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, key := range required {
		k, _ := key.(string)
		p, _ := properties[k].(map[string]any)
		if _, ok := v[k]; !ok || p["default"] != nil || p["$ref"] != nil || inherited(k) {
			continue
		}
		without := maps.Clone(v)
		delete(without, k)
		if !g.accepts(without) {
			list = append(list, without)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		inner, _ := v[k].(map[string]any)
		p, _ := properties[k].(map[string]any)
		if inner == nil || p["type"] != "object" {
			continue
		}
		i := &generator{root: g.root, random: g.random}
		for _, less := range i.lackingUnchecked(inner, p) {
			outer := maps.Clone(v)
			outer[k] = less
			if !g.accepts(outer) {
				list = append(list, outer)
			}
		}
	}
	return list
}

func (g *generator) lackingUnchecked(v map[string]any, s map[string]any) (list []any) {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, key := range required {
		k, _ := key.(string)
		p, _ := properties[k].(map[string]any)
		if _, ok := v[k]; ok && p["default"] == nil && p["$ref"] == nil && !inherited(k) {
			less := maps.Clone(v)
			delete(less, k)
			list = append(list, less)
		}
	}
	return list
}

func (g *generator) chance(percent int) bool { return g.random.Intn(100) < percent }

func (g *generator) value(schema any, depth int) any {
	s, ok := schema.(map[string]any)
	if g.fuel--; !ok || depth > 12 || g.fuel < 0 {
		return g.anything(depth)
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if e, ok := s["enum"].([]any); ok && len(e) > 0 {
		return e[g.random.Intn(len(e))]
	}
	v := g.own(s, depth)
	for _, sub := range g.others(s) {
		v = merge(v, g.value(sub, depth+1), s["type"] == nil)
	}
	return v
}

// others picks schemas that the value must fit, too.
func (g *generator) others(s map[string]any) (list []any) {
	if ref, ok := s["$ref"].(string); ok {
		list = append(list, g.resolve(ref))
	}
	if all, ok := s["allOf"].([]any); ok {
		list = append(list, all...)
	}
	for _, k := range []string{"anyOf", "oneOf"} {
		if some, ok := s[k].([]any); ok && len(some) > 0 {
			list = append(list, some[g.random.Intn(len(some))])
		}
	}
	return list
}

func (g *generator) resolve(ref string) any {
	v := g.root
	for _, token := range strings.Split(strings.TrimPrefix(ref, "#"), "/")[1:] {
		token = strings.NewReplacer("~1", "/", "~0", "~", "%20", " ").Replace(token)
		switch at := v.(type) {
		case map[string]any:
			v = at[token]
		case []any:
			i, _ := strconv.Atoi(token)
			v = at[min(i, len(at)-1)]
		}
	}
	return v
}

// merge joins two values of which the second is more special.
func merge(a, b any, untyped bool) any {
	x, ok := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	if ok && ok2 {
		m := maps.Clone(x)
		maps.Copy(m, y)
		return m
	}
	if ok && !untyped {
		return a
	}
	return b
}

func (g *generator) own(s map[string]any, depth int) any {
	switch g.typeOf(s) {
	case "string":
		return g.text(s)
	case "integer":
		return g.number(s, true)
	case "number":
		return g.number(s, false)
	case "boolean":
		return g.chance(50)
	case "null":
		return nil
	case "array":
		return g.array(s, depth)
	case "object":
		return g.object(s, depth)
	}
	return g.anything(depth)
}

func (g *generator) typeOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		if s["nullable"] == true && g.chance(30) {
			return "null"
		}
		return t
	case []any:
		if len(t) > 0 {
			name, _ := t[g.random.Intn(len(t))].(string)
			return name
		}
	}
	switch {
	case g.chance(25):
		return ""
	case s["properties"] != nil || s["required"] != nil || s["additionalProperties"] != nil:
		return "object"
	case s["items"] != nil || s["prefixItems"] != nil:
		return "array"
	}
	return ""
}

func (g *generator) anything(depth int) any {
	list := []any{nil, true, false, json.Number("1"), json.Number("-2.5"), "a", "", []any{}, []any{nil, "x"}, map[string]any{}, map[string]any{"z": nil}}
	return list[g.random.Intn(len(list))]
}

func (g *generator) text(s map[string]any) string {
	list := []string{"a", "abc", "x*/y", "2024-05-06", "2024-05-06T07:08:09Z", "https://example.com/a", "a@example.com", "0123456789", "ABC-1", "\u2028`${x}", strings.Repeat("a", 24)}
	text := list[g.random.Intn(len(list))]
	if n := integer(s["minLength"], 0); len(text) < n && n < 200 {
		text += strings.Repeat("a", n-len(text))
	}
	return text
}

func integer(v any, otherwise int) int {
	if n, ok := v.(json.Number); ok {
		if f, err := n.Float64(); err == nil && math.Abs(f) < 1<<31 {
			return int(f)
		}
	}
	return otherwise
}

func (g *generator) number(s map[string]any, whole bool) json.Number {
	low := integer(s["minimum"], integer(s["exclusiveMinimum"], -1)+1)
	n := low + g.random.Intn(3)
	if high := integer(s["maximum"], n); n > high {
		n = high
	}
	if !whole && g.chance(30) {
		return json.Number(fmt.Sprint(n) + ".5")
	}
	return json.Number(fmt.Sprint(n))
}

func (g *generator) array(s map[string]any, depth int) []any {
	list := []any{}
	prefix, _ := s["prefixItems"].([]any)
	rest := s["items"]
	if old, ok := rest.([]any); ok {
		prefix, rest = old, s["additionalItems"]
	}
	least := integer(s["minItems"], 0)
	n := least
	if g.mode != minimal {
		n += g.random.Intn(3)
	}
	n = min(n, integer(s["maxItems"], n), max(least, 20))
	for i := range n {
		switch {
		case i < len(prefix):
			list = append(list, g.value(prefix[i], depth+1))
		case rest == false:
			return list
		default:
			list = append(list, g.value(rest, depth+1))
		}
	}
	return list
}

func (g *generator) object(s map[string]any, depth int) map[string]any {
	v := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, k := range slices.Sorted(maps.Keys(properties)) {
		must := slices.Contains(required, any(k))
		if must || properties[k] != false && depth < 6 && (g.mode == maximal || g.mode == mixed && g.chance(50)) {
			v[k] = g.value(properties[k], depth+1)
		}
	}
	for _, k := range required {
		if k, ok := k.(string); ok && properties[k] == nil {
			v[k] = g.value(s["additionalProperties"], depth+1)
		}
	}
	if extra := s["additionalProperties"]; extra != false && (g.mode == maximal || g.chance(30)) {
		v["extraKey"] = g.value(extra, depth+1)
		v["another key"] = g.value(extra, depth+1)
	}
	if patterns, ok := s["patternProperties"].(map[string]any); ok {
		for _, p := range slices.Sorted(maps.Keys(patterns)) {
			if key := strings.Trim(p, "^$.*+()"); g.chance(60) {
				v[key] = g.value(patterns[p], depth+1)
			}
		}
	}
	return v
}

// literalOf writes a JSON value as TypeScript. `__proto__: x` in a literal would set the
// prototype.
func literalOf(v any) string {
	var b strings.Builder
	writeLiteral(&b, v)
	return b.String()
}

func writeLiteral(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteString("{")
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				b.WriteString(", ")
			}
			name := quote(k)
			if k == "__proto__" {
				name = "[" + name + "]"
			}
			b.WriteString(name + ": ")
			writeLiteral(b, v[k])
		}
		b.WriteString("}")
	case []any:
		b.WriteString("[")
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeLiteral(b, item)
		}
		b.WriteString("]")
	case string:
		b.WriteString(quote(v))
	default:
		raw, _ := json.Marshal(v)
		b.Write(raw)
	}
}
