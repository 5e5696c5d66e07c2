package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxSubschemas bounds a schema: the compiler takes time that grows with the
	// square of their number.
	maxSubschemas = 5000

	// maxChain is how many schemas one value may be handed through by $ref, allOf
	// and their like. Times the depth of the input it bounds the Go stack, whose
	// overflow ends the process.
	maxChain = 64
)

// compiled is a schema that is ready to check input.
type compiled struct {
	root *jsonschema.Schema
	// byLocation has every schema that root reaches, for messages.
	byLocation map[string]*jsonschema.Schema
	work       *work
}

// noLoader refuses every reference to another document: a schema of a plugin must
// not make the supervisor read files or open connections. References to the JSON
// Schema drafts themselves are answered by the compiler from memory.
type noLoader struct{}

// Load always fails.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("references to other documents are not followed")
}

// compileSchema prepares a schema. What had to be left out of it is in the
// warnings; an error means that nothing of it can be used.
func compileSchema(raw json.RawMessage) (*compiled, []string, error) {
	root, err := jsontree.Parse(raw, jsontree.Limits{Depth: maxSchemaDepth, Values: maxSchemaBytes, Work: 8 * maxSchemaBytes})
	if err != nil {
		return nil, nil, err
	}
	if accepts(root) {
		return nil, nil, nil
	}
	w := &work{}
	cl := cleaner{work: w}
	doc := root.Any()
	cl.schema(doc, true)
	if cl.count > maxSubschemas {
		return nil, nil, fmt.Errorf("it has more than %d subschemas", maxSubschemas)
	}
	s, err := compileDoc(doc, w, jsonschema.Draft2020)
	if err != nil && !cl.draft {
		// No $schema says which draft it is, and tuples (items: […]) were written
		// differently before 2020-12.
		if old, oldErr := compileDoc(doc, w, jsonschema.Draft7); oldErr == nil {
			s, err = old, nil
		}
	}
	if err != nil {
		return nil, nil, err
	}
	c := &compiled{root: s, work: w, byLocation: map[string]*jsonschema.Schema{}}
	if err := c.install(); err != nil {
		return nil, nil, err
	}
	c.dropBadDefaults(&cl.warnings)
	slices.Sort(cl.warnings)
	return c, slices.Compact(cl.warnings), nil
}

// accepts reports whether a schema plainly takes everything: true or {}.
func accepts(root *jsontree.Node) bool {
	return root.Kind == jsontree.Bool && root.Raw[0] == 't' || root.Kind == jsontree.Object && len(root.Members) == 0
}

func compileDoc(doc any, w *work, draft *jsonschema.Draft) (s *jsonschema.Schema, err error) {
	defer func() {
		if r := recover(); r != nil { // the compiler's own assertions; the schema is not ours
			err = fmt.Errorf("the compiler broke down: %v", r)
		}
	}()
	const location = "tool:input"
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(w.compilePattern)
	if err := c.AddResource(location, doc); err != nil {
		return nil, err
	}
	return c.Compile(location)
}

// install puts a meter on every schema that the root reaches.
func (c *compiled) install() error {
	todo := []*jsonschema.Schema{c.root}
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if c.byLocation[s.Location] != nil {
			continue
		}
		c.byLocation[s.Location] = s
		same, below := subschemas(s)
		s.Extensions = append(s.Extensions, newMeter(c.work, s, 1+len(same)+len(below)))
		todo = append(append(todo, same...), below...)
	}
	chains := map[*jsonschema.Schema]int{}
	for _, s := range c.byLocation {
		if n := chain(s, chains); n > maxChain {
			return errors.New("its references lead back to themselves, or through too many schemas")
		}
	}
	return nil
}

// chain returns the length of the longest way on which s hands the same value on.
// A circle, on which no value could ever be judged, has more than maxChain.
func chain(s *jsonschema.Schema, known map[*jsonschema.Schema]int) int {
	if n, ok := known[s]; ok {
		return n
	}
	known[s] = maxChain + 1 // while we are inside s: who comes back here is in a circle
	longest := 0
	same, _ := subschemas(s)
	for _, sub := range same {
		longest = max(longest, chain(sub, known))
	}
	known[s] = min(longest, maxChain) + 1
	return known[s]
}

// subschemas lists the schemas that s hands its value to, and those that it hands
// the parts of its value to.
func subschemas(s *jsonschema.Schema) (same, below []*jsonschema.Schema) {
	add := func(list *[]*jsonschema.Schema, subs ...*jsonschema.Schema) {
		for _, sub := range subs {
			if sub != nil {
				*list = append(*list, sub)
			}
		}
	}
	add(&same, s.Ref, s.Not, s.If, s.Then, s.Else)
	add(&same, s.AllOf...)
	add(&same, s.AnyOf...)
	add(&same, s.OneOf...)
	for _, sub := range s.DependentSchemas {
		add(&same, sub)
	}
	for _, dep := range s.Dependencies {
		if sub, ok := dep.(*jsonschema.Schema); ok {
			add(&same, sub)
		}
	}
	add(&below, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020, s.UnevaluatedItems)
	add(&below, s.PrefixItems...)
	for _, sub := range s.Properties {
		add(&below, sub)
	}
	for _, sub := range s.PatternProperties {
		add(&below, sub)
	}
	for _, mixed := range []any{s.AdditionalProperties, s.AdditionalItems, s.Items} {
		switch sub := mixed.(type) {
		case *jsonschema.Schema:
			add(&below, sub)
		case []*jsonschema.Schema:
			add(&below, sub...)
		}
	}
	return same, below
}
