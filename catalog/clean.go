package catalog

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// cleaner takes out of a decoded schema what would make the compiler refuse all
// of it, or the check mean less than it says.
type cleaner struct {
	work     *work
	warnings []string
	count    int  // schemas seen
	draft    bool // the root names a draft that we know
}

// Where schemas stand inside a schema.
var (
	schemaKeywords = []string{"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not",
		"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	listKeywords = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	mapKeywords  = []string{"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)

func (c *cleaner) warnf(format string, args ...any) {
	c.warnings = append(c.warnings, fmt.Sprintf(format, args...))
}

// schema cleans v, if it is an object, and all schemas inside.
func (c *cleaner) schema(v any, root bool) {
	if v == nil {
		return
	}
	s, ok := v.(map[string]any)
	if c.count++; !ok || c.count > maxSubschemas {
		return
	}
	c.keywords(s, root)
	for _, k := range schemaKeywords {
		c.schema(s[k], false)
	}
	for _, k := range listKeywords {
		if list, ok := s[k].([]any); ok {
			for _, sub := range list {
				c.schema(sub, false)
			}
		}
	}
	for _, k := range mapKeywords {
		if m, ok := s[k].(map[string]any); ok {
			for _, sub := range m {
				c.schema(sub, false)
			}
		}
	}
}

func (c *cleaner) keywords(s map[string]any, root bool) {
	// The draft: one that we do not know would have to be loaded.
	if uri, ok := s["$schema"].(string); ok {
		known := root && knownDraft(uri)
		c.draft = c.draft || known
		if !known {
			delete(s, "$schema")
		}
	}
	// format is an annotation in 2020-12, and what servers mean by one differs
	// from server to server: refusing by our reading would be wrong too often.
	delete(s, "format")
	// These pick their target by the way that led to them, so that no meter could
	// be put there ahead. No tool of the 1,705 has one.
	for _, k := range []string{"$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor"} {
		if _, ok := s[k]; ok {
			delete(s, k)
			c.warnf("%s is not supported and is ignored", k)
		}
	}
	c.nullable(s)
	c.patterns(s)
	c.malformed(s)
}

// Keywords that the compiler refuses, and all of the schema with them, if their values are of
// another kind. Without them the rest still helps.
var (
	countKeywords  = []string{"maxItems", "minItems", "maxLength", "minLength", "maxProperties", "minProperties", "maxContains", "minContains"}
	numberKeywords = []string{"maximum", "minimum", "multipleOf"}
)

// malformed drops such keywords. Names that are required twice are required.
func (c *cleaner) malformed(s map[string]any) {
	drop := func(k string) {
		c.warnf("the keyword %s is ignored: its value %s is not one that it can have", k, cut(string(encode(s[k])), 60))
		delete(s, k)
	}
	if list, ok := s["required"]; ok {
		if names, ok := texts(list); ok {
			slices.Sort(names)
			unique := []any{}
			for _, name := range slices.Compact(names) {
				unique = append(unique, name)
			}
			s["required"] = unique
		} else {
			drop("required")
		}
	}
	for _, k := range countKeywords {
		n, ok := s[k].(json.Number)
		if f, err := n.Float64(); s[k] != nil && (!ok || err != nil || f < 0 || f != math.Trunc(f)) {
			drop(k)
		}
	}
	for _, k := range numberKeywords {
		if _, ok := s[k].(json.Number); s[k] != nil && !ok {
			drop(k)
		}
	}
	for _, k := range mapKeywords {
		m, ok := s[k].(map[string]any)
		if s[k] != nil && !ok {
			drop(k)
			continue
		}
		for name, sub := range m {
			_, object := sub.(map[string]any)
			_, boolean := sub.(bool)
			_, names := texts(sub)
			if !object && !boolean && !(k == "dependencies" && names) {
				c.warnf("%s of %s is ignored: it is no schema", cut(name, 60), k)
				delete(m, name)
			}
		}
	}
}

// texts gives the elements of a list of texts.
func texts(v any) (list []string, ok bool) {
	items, ok := v.([]any)
	for _, item := range items {
		s, text := item.(string)
		list, ok = append(list, s), ok && text
	}
	return list, ok
}

func knownDraft(uri string) bool {
	uri = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(uri, "http://"), "https://"), "#")
	rest, ok := strings.CutPrefix(uri, "json-schema.org/")
	return ok && slices.Contains([]string{"schema", "draft-04/schema", "draft-06/schema", "draft-07/schema",
		"draft/2019-09/schema", "draft/2020-12/schema"}, rest)
}

// nullable gives OpenAPI's keyword its meaning. JSON Schema has no such keyword,
// but a tool that declares it takes null, and that is for the tool to know.
func (c *cleaner) nullable(s map[string]any) {
	if s["nullable"] != true {
		return
	}
	switch t := s["type"].(type) {
	case string:
		if t != "null" {
			s["type"] = []any{t, "null"}
		}
	case []any:
		if !slices.ContainsFunc(t, func(v any) bool { return v == "null" }) {
			s["type"] = append(t, "null")
		}
	}
	if values, ok := s["enum"].([]any); ok && !slices.ContainsFunc(values, func(v any) bool { return v == nil }) {
		s["enum"] = append(values, nil)
	}
}

// patterns drops regular expressions that do not compile: the rest of the schema
// still helps.
func (c *cleaner) patterns(s map[string]any) {
	if p, ok := s["pattern"].(string); ok {
		if _, err := c.work.compilePattern(p); err != nil {
			delete(s, "pattern")
			c.warnf("the pattern %q is ignored: %v", cut(p, 80), err)
		}
	}
	m, ok := s["patternProperties"].(map[string]any)
	if !ok {
		return
	}
	for p := range m {
		if _, err := c.work.compilePattern(p); err != nil {
			delete(m, p)
			// Without the pattern these would refuse the keys that it describes.
			delete(s, "additionalProperties")
			delete(s, "unevaluatedProperties")
			c.warnf("the patternProperties pattern %q is ignored: %v", cut(p, 80), err)
		}
	}
}
