package declare

import "slices"

// kind says what a [node] is.
type kind uint8

const (
	atom         kind = iota // text
	union                    // parts
	intersection             // parts
	array                    // of parts[0]
	tuple                    // parts, those from optional on may be missing; then any number of rest
	object                   // fields and index
	reference                // alias
	noted                    // parts[0], with the comment text
)

// node is a TypeScript type. Nodes are shared and not changed once they are made.
type node struct {
	kind     kind
	types    types // what a value of it can be; never too few
	text     string
	parts    []*node
	optional int
	rest     *node // nil: none
	fields   []field
	index    *node // type of [key: string]; nil: no other keys are known
	alias    *alias
	width    int // of the type on one line, in bytes; 0: not known yet
}

// field is a property of an object type.
type field struct {
	name     string // as it stands in the type, quoted if need be
	optional bool
	typ      *node
}

var (
	anything   = &node{types: typeAll, text: "unknown"}
	nothing    = &node{text: "never"}
	nullType   = &node{types: typeNull, text: "null"}
	anyObject  = &node{kind: object, types: typeObject, index: anything}
	noMembers  = &node{kind: object, types: typeObject, index: nothing}
	anyArray   = &node{kind: array, types: typeArray, parts: []*node{anything}}
	emptyArray = &node{kind: tuple, types: typeArray}
	primitives = []*node{
		{types: typeString, text: "string"},
		{types: typeNumber, text: "number"},
		{types: typeBoolean, text: "boolean"},
	}
)

// init measures the shared nodes, which later are only read: renderings run at the same time.
func init() {
	for _, n := range append([]*node{anything, nothing, nullType, anyObject, noMembers, anyArray, emptyArray}, primitives...) {
		width(n)
	}
}

// anyOfTypes returns the type of all values that have one of the types.
func anyOfTypes(t types) *node { return typeFor(t, anyObject, anyArray) }

// typeFor returns the union of the types in t, with these for objects and arrays.
func typeFor(t types, objects, arrays *node) *node {
	switch t { // mostly it is one
	case typeString:
		return primitives[0]
	case typeNumber:
		return primitives[1]
	case typeBoolean:
		return primitives[2]
	case typeObject:
		return objects
	case typeArray:
		return arrays
	case typeNull:
		return nullType
	case typeAll:
		if objects == anyObject && arrays == anyArray {
			return anything
		}
	}
	list := make([]*node, 0, 6)
	for _, p := range primitives {
		if t&p.types != 0 {
			list = append(list, p)
		}
	}
	if t&typeObject != 0 {
		list = append(list, objects)
	}
	if t&typeArray != 0 {
		list = append(list, arrays)
	}
	if t&typeNull != 0 {
		list = append(list, nullType)
	}
	return unite(list)
}

// unite returns the union of the parts. `unknown` takes everything else in, but is kept
// beside a part that says more than the name of a type.
func unite(parts []*node) *node {
	if len(parts) == 1 {
		return parts[0]
	}
	n := &node{kind: union}
	atoms := true
	for _, p := range flatten(union, parts) {
		if p == nothing || p.kind == atom && containsAtom(n.parts, p) || p.kind == reference && slices.Contains(n.parts, p) {
			continue
		}
		n.types |= p.types
		atoms = atoms && p.kind == atom
		n.parts = append(n.parts, p)
	}
	switch {
	case len(n.parts) == 0:
		return nothing
	case len(n.parts) == 1:
		return n.parts[0]
	case atoms && slices.Contains(n.parts, anything):
		return anything
	}
	return n
}

func containsAtom(parts []*node, p *node) bool {
	return slices.ContainsFunc(parts, func(q *node) bool { return q == p || q.kind == atom && q.text == p.text })
}

// flatten replaces parts of the same kind by their parts.
func flatten(k kind, parts []*node) []*node {
	if !slices.ContainsFunc(parts, func(p *node) bool { return p.kind == k }) {
		return parts
	}
	var flat []*node
	for _, p := range parts {
		if p.kind == k {
			flat = append(flat, p.parts...)
		} else {
			flat = append(flat, p)
		}
	}
	return flat
}

// maxVariants bounds the unions that an intersection multiplies: the compiler gives up
// at 100,000 (TS2590).
const maxVariants = 5000

// intersect returns the type of what all parts accept.
func intersect(parts []*node) *node {
	n := &node{kind: intersection, types: typeAll}
	dropped := false
	count := 1
	for _, p := range flatten(intersection, parts) {
		if p == anything || slices.Contains(n.parts, p) {
			continue
		}
		if v := variants(p); len(n.parts) > 0 && count*v > maxVariants {
			dropped = true
			continue
		} else {
			count *= v
		}
		n.types &= p.types
		n.parts = append(n.parts, p)
	}
	if n.types == 0 {
		return nothing
	}
	n.parts = openOnce(n.parts)
	var result *node
	switch len(n.parts) {
	case 0:
		result = anything
	case 1:
		result = n.parts[0]
	default:
		result = n
	}
	if dropped {
		result = withNote(result, "also: more combinations than fit here")
	}
	return result
}

// variants is how many members the union has that n stands for.
func variants(n *node) int {
	count := 1
	switch n.kind {
	case noted:
		return variants(n.parts[0])
	case union:
		count = 0
		for _, p := range n.parts {
			count = min(count+variants(p), maxVariants+1)
		}
	case intersection:
		for _, p := range n.parts {
			count = min(count*variants(p), maxVariants+1)
		}
	case reference:
		if n.alias.node == nil {
			return 100 // we are inside it, and it may still become anything
		}
		return n.alias.variants
	}
	return count
}

// openOnce takes `[key: string]: unknown` away from all parts of an intersection but
// the first that has it, since one of them opens them all.
func openOnce(parts []*node) []*node {
	first := slices.IndexFunc(parts, func(p *node) bool { return p.kind == object && p.index == anything })
	if first < 0 || len(parts) < 2 {
		return parts
	}
	kept := make([]*node, 0, len(parts))
	for i, p := range parts {
		if i != first {
			p = closeIndex(p)
		}
		if p != anyObject || i == first {
			kept = append(kept, p)
		}
	}
	return kept
}

func closeIndex(n *node) *node {
	switch {
	case n.kind == object && n.index == anything && len(n.fields) > 0:
		return &node{kind: object, types: n.types, fields: n.fields}
	case n.kind == union:
		closed := &node{kind: union, types: n.types}
		for _, p := range n.parts {
			closed.parts = append(closed.parts, closeIndex(p))
		}
		return closed
	case n.kind == noted:
		return &node{kind: noted, types: n.types, text: n.text, parts: []*node{closeIndex(n.parts[0])}}
	}
	return n
}

// withNote puts a comment behind a type. text must be safe for a comment.
func withNote(n *node, text string) *node {
	if text == "" {
		return n
	}
	return &node{kind: noted, types: n.types, text: text, parts: []*node{n}}
}

func bare(n *node) *node {
	for n.kind == noted {
		n = n.parts[0]
	}
	return n
}
