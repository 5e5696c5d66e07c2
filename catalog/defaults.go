package catalog

import (
	"fmt"
	"slices"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// fill adds to n what the schema has defaults for and the input lacks, in the
// object itself and in the objects and arrays below it, and reports whether it
// added anything. It goes where every valid input goes: through $ref and allOf,
// but not into the branches of anyOf, oneOf and if, where a default of one branch
// could make the input fit another.
func (c *compiled) fill(s *jsonschema.Schema, n *jsontree.Node) (added bool) {
	c.work.step(1)
	if s.Ref != nil {
		added = c.fill(s.Ref, n)
	}
	for _, sub := range s.AllOf {
		added = c.fill(sub, n) || added
	}
	switch n.Kind {
	case jsontree.Object:
		added = c.fillObject(s, n) || added
	case jsontree.Array:
		for i := range n.Items {
			if sub := itemSchema(s, i); sub != nil {
				added = c.fill(sub, &n.Items[i]) || added
			}
		}
	}
	if added {
		n.Raw = nil // no longer what the text says
	}
	return added
}

func (c *compiled) fillObject(s *jsonschema.Schema, n *jsontree.Node) (added bool) {
	given := map[string]bool{}
	for i := range n.Members {
		m := &n.Members[i]
		given[m.Key] = true
		sub := s.Properties[m.Key]
		if sub == nil && len(s.PatternProperties) == 0 {
			sub, _ = s.AdditionalProperties.(*jsonschema.Schema)
		}
		if sub != nil {
			added = c.fill(sub, &m.Value) || added
		}
	}
	var missing []string
	for name, sub := range s.Properties {
		if !given[name] && defaultOf(sub, maxChain) != nil {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing) // a map has no order; the result must
	for _, name := range missing {
		raw := encode(*defaultOf(s.Properties[name], maxChain))
		c.work.step(1 + len(raw)/64)
		value, err := jsontree.Parse(raw, jsontree.Limits{Depth: maxSchemaDepth, Values: maxSchemaBytes, Work: 8 * maxSchemaBytes})
		if err != nil {
			continue // cannot be: it was part of a schema that is within these limits
		}
		n.Members = append(n.Members, jsontree.Member{Key: name, RawKey: encode(name), Value: *value})
		added = true
	}
	return added
}

// defaultOf returns the default that a property has, itself or by what it refers
// to.
func defaultOf(s *jsonschema.Schema, hops int) *any {
	for ; s != nil && hops > 0; hops-- {
		if s.Default != nil {
			return s.Default
		}
		s = s.Ref
	}
	return nil
}

func itemSchema(s *jsonschema.Schema, i int) *jsonschema.Schema {
	if i < len(s.PrefixItems) {
		return s.PrefixItems[i]
	}
	switch items := s.Items.(type) {
	case *jsonschema.Schema:
		return items
	case []*jsonschema.Schema:
		if i < len(items) {
			return items[i]
		}
		rest, _ := s.AdditionalItems.(*jsonschema.Schema)
		return rest
	}
	return s.Items2020
}

// dropBadDefaults removes defaults that their own schema refuses: filled in, they
// would make the tool's mistake look like the caller's.
func (c *compiled) dropBadDefaults(warnings *[]string) {
	for location, s := range c.byLocation {
		if s.Default == nil {
			continue
		}
		var err error
		stopped := c.work.run(func() { err = s.Validate(*s.Default) })
		if err != nil || stopped != "" {
			s.Default = nil
			*warnings = append(*warnings, fmt.Sprintf("the default at %s is ignored: it does not fit the schema there", cut(location, 120)))
		}
	}
}
