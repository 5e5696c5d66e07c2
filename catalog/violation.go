package catalog

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog/words"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

const (
	maxViolations = 8   // listed in one error
	maxLeaves     = 256 // looked at, of a tree that may have one for each value
	maxNames      = 20  // fields or values listed in one violation
)

// explain turns the validator's tree into a short list for the model.
func (c *compiled) explain(err *jsonschema.ValidationError, input any) *InputError {
	e := explainer{schemas: c.byLocation, input: input}
	found := e.leaves(err)
	slices.SortFunc(found, func(a, b leaf) int { // the validator walks maps: any order
		if d := strings.Compare(a.Path, b.Path); d != 0 {
			return d
		}
		return strings.Compare(a.Problem, b.Problem)
	})
	found = slices.CompactFunc(found, func(a, b leaf) bool { return a.Violation == b.Violation })
	result := &InputError{}
	for _, l := range found[:min(len(found), maxViolations)] {
		result.Violations = append(result.Violations, l.Violation)
	}
	result.Omitted = len(found) - len(result.Violations)
	return result
}

type explainer struct {
	schemas map[string]*jsonschema.Schema
	input   any
	count   int
}

// leaf is a violation with what choosing between branches needs to know of it.
type leaf struct {
	Violation
	depth int      // of the place
	types []string // the types that were expected, if the type is what is wrong
	value bool     // a fixed value was expected: the branch is for another kind of input
}

func (e *explainer) leaves(err *jsonschema.ValidationError) []leaf {
	switch k := err.ErrorKind.(type) {
	case *kind.AnyOf:
		return e.branches(err)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			return e.branches(err)
		}
		return e.one(err, "fits more than one of the forms that are allowed, and must fit exactly one")
	case *kind.Required:
		return e.missing(err, k.Missing)
	case *kind.AdditionalProperties:
		return e.unknown(err, k.Properties)
	case *kind.Type:
		found := e.one(err, fmt.Sprintf("expected %s, got %s", strings.Join(k.Want, " or "), show(e.at(err.InstanceLocation))))
		for i := range found {
			found[i].types = k.Want
		}
		return found
	case *kind.Enum:
		found := e.one(err, e.enum(k, e.at(err.InstanceLocation)))
		for i := range found {
			found[i].value = true
		}
		return found
	case *kind.Minimum:
		return e.bound(err, "at least", k.Want)
	case *kind.Maximum:
		return e.bound(err, "at most", k.Want)
	case *kind.ExclusiveMinimum:
		return e.bound(err, "more than", k.Want)
	case *kind.ExclusiveMaximum:
		return e.bound(err, "less than", k.Want)
	case *kind.MultipleOf:
		return e.bound(err, "a multiple of", k.Want)
	case *kind.Pattern:
		return e.one(err, fmt.Sprintf("expected a text that matches %s, got %s", cut(k.Want, 120), show(k.Got)))
	case *kind.MinItems:
		return e.size(err, "at least", k.Want, "item", k.Got)
	case *kind.MaxItems:
		return e.size(err, "at most", k.Want, "item", k.Got)
	case *kind.MinLength:
		return e.size(err, "at least", k.Want, "character", k.Got)
	case *kind.MaxLength:
		return e.size(err, "at most", k.Want, "character", k.Got)
	case *kind.MinProperties:
		return e.size(err, "at least", k.Want, "field", k.Got)
	case *kind.MaxProperties:
		return e.size(err, "at most", k.Want, "field", k.Got)
	case *kind.FalseSchema:
		return e.one(err, "not allowed here")
	case *kind.UniqueItems:
		return e.one(err, fmt.Sprintf("expected no item twice, but [%d] and [%d] are equal", k.Duplicates[0], k.Duplicates[1]))
	case *kind.PropertyNames:
		return e.one(err, fmt.Sprintf("has the key %q, whose name is not allowed", cut(k.Property, 60)))
	case *kind.Not:
		return e.one(err, "expected anything but this form, got "+show(e.at(err.InstanceLocation)))
	}
	if len(err.Causes) > 0 { // a group, a reference, allOf, contains
		var found []leaf
		for _, cause := range err.Causes {
			if e.count > maxLeaves {
				break
			}
			found = append(found, e.leaves(cause)...)
		}
		return found
	}
	text := strings.ReplaceAll(err.ErrorKind.LocalizedString(english), "'", "")
	return e.one(err, cut(text, 200))
}

var english = message.NewPrinter(language.English)

func (e *explainer) one(err *jsonschema.ValidationError, problem string) []leaf {
	e.count++
	return []leaf{{Violation: Violation{e.path(err.InstanceLocation), problem}, depth: len(err.InstanceLocation)}}
}

func (e *explainer) bound(err *jsonschema.ValidationError, relation string, limit *big.Rat) []leaf {
	want := limit.RatString()
	if !limit.IsInt() {
		f, _ := limit.Float64()
		want = strconv.FormatFloat(f, 'g', -1, 64)
	}
	return e.one(err, fmt.Sprintf("expected %s %s, got %s", relation, cut(want, 40), show(e.at(err.InstanceLocation))))
}

func (e *explainer) size(err *jsonschema.ValidationError, relation string, want int, what string, got int) []leaf {
	return e.one(err, fmt.Sprintf("expected %s %s, got %d", relation, count(want, what), got))
}

// branches explains an anyOf or oneOf that nothing fits. If all branches want
// another type it is one violation; else the branch that came nearest is told.
func (e *explainer) branches(err *jsonschema.ValidationError) []leaf {
	here := len(err.InstanceLocation)
	var best []leaf
	var types []string
	bestCost := -1
	for _, cause := range err.Causes {
		if e.count > maxLeaves {
			break
		}
		found := e.leaves(cause)
		if len(found) == 0 {
			continue
		}
		cost := len(found)
		for _, l := range found {
			switch {
			case l.depth == here && l.types != nil:
				cost += 1000
				types = append(types, l.types...)
			case l.value:
				cost += 100 // type: "circle", where the input has type: "square"
			}
		}
		if bestCost < 0 || cost < bestCost {
			best, bestCost = found, cost
		}
	}
	switch {
	case bestCost < 0:
		return e.one(err, "expected one of the allowed forms, got "+show(e.at(err.InstanceLocation)))
	case bestCost >= 1000:
		slices.Sort(types)
		types = slices.Compact(types)
		found := e.one(err, fmt.Sprintf("expected %s, got %s", strings.Join(types, " or "), show(e.at(err.InstanceLocation))))
		found[0].types = types
		return found
	}
	if len(err.Causes) > 1 {
		for i := range best {
			best[i].Problem += fmt.Sprintf(" (in the nearest of %d forms)", len(err.Causes))
		}
	}
	return best
}

func (e *explainer) missing(err *jsonschema.ValidationError, names []string) []leaf {
	var given []string
	if object, ok := e.at(err.InstanceLocation).(map[string]any); ok {
		given = sortedKeys(object)
	}
	s := e.schemas[err.SchemaURL]
	var found []leaf
	for _, name := range names {
		problem := "missing"
		if want := wants(s, name); want != "" {
			problem += ", expected " + want
		}
		if unknown := except(given, s); len(unknown) > 0 {
			if near := nearestName(name, unknown); near != "" {
				problem += fmt.Sprintf("; there is %q, did you mean this?", near)
			}
		}
		e.count++
		found = append(found, leaf{Violation: Violation{e.path(append(slices.Clone(err.InstanceLocation), name)), problem}, depth: len(err.InstanceLocation)})
	}
	return found
}

func (e *explainer) unknown(err *jsonschema.ValidationError, names []string) []leaf {
	var fields []string
	if s := e.schemas[err.SchemaURL]; s != nil {
		fields = sortedKeys(s.Properties)
	}
	var found []leaf
	names = slices.Sorted(slices.Values(names))
	for i, name := range names {
		problem := "unknown field"
		if near := nearestName(name, fields); near != "" {
			problem += fmt.Sprintf("; did you mean %q?", near)
		}
		if i == 0 && len(fields) > 0 { // once is enough
			problem += "; the fields are " + listNames(fields)
		}
		e.count++
		found = append(found, leaf{Violation: Violation{e.path(append(slices.Clone(err.InstanceLocation), name)), problem}, depth: len(err.InstanceLocation)})
	}
	return found
}

func (e *explainer) enum(k *kind.Enum, got any) string {
	var want []string
	for _, v := range k.Want[:min(len(k.Want), maxNames)] {
		want = append(want, cut(string(encode(v)), 60))
	}
	text := "expected "
	if len(k.Want) > 1 {
		text += "one of "
	}
	text += strings.Join(want, ", ")
	if more := len(k.Want) - len(want); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ", got " + show(got)
}

// at returns the value of the input at a place.
func (e *explainer) at(location []string) any {
	v := e.input
	for _, token := range location {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i >= len(parent) {
				return nil
			}
			v = parent[i]
		}
	}
	return v
}

// path writes a place as JavaScript would: input.items[0]["first name"].
func (e *explainer) path(location []string) string {
	var b strings.Builder
	b.WriteString("input")
	v := e.input
	for _, token := range location {
		if b.Len() > 300 {
			b.WriteString("…")
			break
		}
		switch parent := v.(type) {
		case []any:
			b.WriteString("[" + token + "]")
			v = nil
			if i, err := strconv.Atoi(token); err == nil && i < len(parent) {
				v = parent[i]
			}
			continue
		case map[string]any:
			v = parent[token]
		}
		if token != "" && ConvenienceName(token) == token && len(token) <= 60 {
			b.WriteString("." + token)
		} else {
			b.WriteString("[" + string(encode(cut(token, 60))) + "]")
		}
	}
	return b.String()
}

// show names a value that came, short enough for a message.
func show(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return "the string " + string(encode(cut(v, 60)))
	case json.Number:
		return "the number " + cut(string(v), 40)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return fmt.Sprintf("an array of %d", len(v))
	case map[string]any:
		if len(v) == 0 {
			return "an empty object"
		}
		return "an object with " + listNames(sortedKeys(v))
	}
	return "nothing"
}

// wants says what type a property has, if its schema says it plainly.
func wants(s *jsonschema.Schema, name string) string {
	if s == nil {
		return ""
	}
	p := s.Properties[name]
	for hops := 0; p != nil && hops < maxChain; hops++ {
		if p.Types != nil && !p.Types.IsEmpty() {
			return strings.Join(p.Types.ToStrings(), " or ")
		}
		p = p.Ref
	}
	return ""
}

// except returns the names that s has no property for.
func except(names []string, s *jsonschema.Schema) []string {
	if s == nil {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return s.Properties[n] != nil })
}

func nearestName(name string, known []string) string {
	var candidates []words.Candidate
	for _, k := range known[:min(len(known), 200)] {
		candidates = append(candidates, words.Candidate{Name: k, Show: k})
	}
	if near := words.Nearest(name, 1, candidates); len(near) > 0 {
		return near[0]
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func listNames(names []string) string {
	listed := make([]string, 0, maxNames)
	for _, n := range names[:min(len(names), maxNames)] {
		listed = append(listed, cut(n, 40))
	}
	text := strings.Join(listed, ", ")
	if more := len(names) - len(listed); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
