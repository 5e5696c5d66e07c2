package declare

import (
	"strconv"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

// types is a set of JSON types.
type types uint8

const (
	typeString types = 1 << iota
	typeNumber
	typeBoolean
	typeObject
	typeArray
	typeNull

	typeAll = typeString | typeNumber | typeBoolean | typeObject | typeArray | typeNull
)

func typeNamed(name string) types {
	switch name {
	case "string":
		return typeString
	case "number", "integer":
		return typeNumber
	case "boolean":
		return typeBoolean
	case "object":
		return typeObject
	case "array":
		return typeArray
	case "null":
		return typeNull
	}
	return typeAll // no type that JSON Schema knows: nothing can be said
}

// typeOf returns the type of a JSON value.
func typeOf(v *jsontree.Node) types {
	return [...]types{
		jsontree.Null: typeNull, jsontree.Bool: typeBoolean, jsontree.Number: typeNumber,
		jsontree.String: typeString, jsontree.Array: typeArray, jsontree.Object: typeObject,
	}[v.Kind]
}

// keywords are those of one schema that make its type. A keyword whose value has the
// wrong form is left out, as if it were not there.
type keywords struct {
	ref                                *jsontree.Node // a string
	types                              types
	constant                           *jsontree.Node
	enum, required, prefixItems        *jsontree.Node // arrays
	properties, patterns               *jsontree.Node // objects
	additional, items, additionalItems *jsontree.Node
	minItems, maxItems                 int
	allOf, anyOf, oneOf                *jsontree.Node // arrays that are not empty
	nullable                           bool
}

func read(s *jsontree.Node) keywords {
	k := keywords{types: typeAll, maxItems: -1}
	for i := range s.Members {
		v := &s.Members[i].Value
		switch s.Members[i].Key {
		case "$ref":
			k.ref = only(v, jsontree.String)
		case "type":
			k.types = typesIn(v)
		case "const":
			k.constant = v
		case "enum":
			k.enum = only(v, jsontree.Array)
		case "required":
			k.required = only(v, jsontree.Array)
		case "prefixItems":
			k.prefixItems = only(v, jsontree.Array)
		case "properties":
			k.properties = only(v, jsontree.Object)
		case "patternProperties":
			k.patterns = only(v, jsontree.Object)
		case "additionalProperties":
			k.additional = v
		case "items":
			k.items = v
		case "additionalItems":
			k.additionalItems = v
		case "minItems":
			k.minItems = whole(v, 0)
		case "maxItems":
			k.maxItems = whole(v, -1)
		case "allOf":
			k.allOf = list(v)
		case "anyOf":
			k.anyOf = list(v)
		case "oneOf":
			k.oneOf = list(v)
		case "nullable":
			k.nullable = v.Kind == jsontree.Bool && v.Raw[0] == 't'
		}
	}
	return k
}

func only(v *jsontree.Node, kind jsontree.Kind) *jsontree.Node {
	if v.Kind != kind {
		return nil
	}
	return v
}

func list(v *jsontree.Node) *jsontree.Node {
	if v.Kind != jsontree.Array || len(v.Items) == 0 {
		return nil
	}
	return v
}

func typesIn(v *jsontree.Node) types {
	switch v.Kind {
	case jsontree.String:
		return typeNamed(v.Text())
	case jsontree.Array:
		var t types
		for i := range v.Items {
			if v.Items[i].Kind != jsontree.String {
				return typeAll
			}
			t |= typeNamed(v.Items[i].Text())
		}
		if t != 0 {
			return t
		}
	}
	return typeAll
}

// whole returns a count, or otherwise if v is none.
func whole(v *jsontree.Node, otherwise int) int {
	if v.Kind != jsontree.Number {
		return otherwise
	}
	f, err := strconv.ParseFloat(string(v.Raw), 64)
	if err != nil || f < 0 || f > 1<<30 || f != float64(int(f)) {
		return otherwise
	}
	return int(f)
}

func isFalse(v *jsontree.Node) bool { return v != nil && v.Kind == jsontree.Bool && v.Raw[0] == 'f' }

// composed reports whether other schemas judge the same value, too.
func (k *keywords) composed() bool {
	return k.ref != nil || k.allOf != nil || k.anyOf != nil || k.oneOf != nil
}
