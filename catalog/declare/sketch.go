package declare

import "slices"

// flatNote returns a short form of a type for a comment. It may be asked while types are
// still being built.
func flatNote(n *node) string {
	s := sketch{max: 60, depth: 1}
	s.node(n, 0)
	return comment(string(s.b), 60)
}

// sketch writes types short, for [Inline] and for comments.
type sketch struct {
	b     []byte
	max   int // it stops soon after that many bytes
	depth int // objects inside that many objects become "object"
	drop  int // how many optional properties of the outermost object are left out
}

func (s *sketch) full() bool { return len(s.b) > s.max }

func (s *sketch) str(text string) { s.b = append(s.b, text...) }

func (s *sketch) node(n *node, depth int) {
	if s.full() {
		return
	}
	switch n.kind {
	case atom:
		s.str(n.text)
	case union:
		s.union(n, depth)
	case intersection:
		s.list(n.parts, " & ", depth, union)
	case array:
		s.inParens(n.parts[0], depth, union, intersection)
		s.str("[]")
	case tuple:
		s.tuple(n, depth)
	case object:
		s.object(n, depth)
	case reference:
		s.reference(n, depth)
	case noted:
		s.node(n.parts[0], depth)
	}
}

func (s *sketch) reference(n *node, depth int) {
	a := n.alias
	switch {
	case a.node == nil:
		s.str("unknown")
		return
	case a.visiting || depth > s.depth:
		s.str(word(a.node.types))
		return
	}
	a.visiting = true
	s.node(a.node, depth)
	a.visiting = false
}

// word names a type whose parts are not said.
func word(t types) string {
	switch t {
	case typeObject:
		return "object"
	case typeArray:
		return "unknown[]"
	}
	return "unknown"
}

// union writes a union. Where a schema that does not say `type` describes objects, say,
// "…" stands for all that are none.
func (s *sketch) union(n *node, depth int) {
	if n.types != typeAll || !containsAll(n.parts, append(primitives[:3:3], nullType)) {
		s.list(n.parts, " | ", depth)
		return
	}
	for _, p := range n.parts {
		if p.kind != atom && p != anyArray && p != anyObject {
			s.node(p, depth)
			s.str(" | ")
		}
	}
	s.str("…")
}

func containsAll(parts, others []*node) bool {
	for _, p := range others {
		if !containsAtom(parts, p) {
			return false
		}
	}
	return true
}

func (s *sketch) list(parts []*node, sep string, depth int, parens ...kind) {
	for i, p := range parts {
		if s.full() {
			return
		}
		if i > 0 {
			s.str(sep)
		}
		s.inParens(p, depth, parens...)
	}
}

func (s *sketch) inParens(n *node, depth int, kinds ...kind) {
	inside := n
	for inside.kind == noted || inside.kind == reference && inside.alias.node != nil && !inside.alias.visiting {
		if inside.kind == noted {
			inside = inside.parts[0]
		} else {
			inside = inside.alias.node
		}
	}
	if slices.Contains(kinds, inside.kind) {
		s.str("(")
		defer s.str(")")
	}
	s.node(n, depth)
}

func (s *sketch) tuple(n *node, depth int) {
	s.str("[")
	for i, p := range n.parts {
		if s.full() {
			return
		}
		if i > 0 {
			s.str(", ")
		}
		if i < n.optional {
			s.node(p, depth)
		} else {
			s.inParens(p, depth, union, intersection)
			s.str("?")
		}
	}
	if n.rest != nil {
		s.str(", ...")
		s.inParens(n.rest, depth, union, intersection)
		s.str("[]")
	}
	s.str("]")
}

func (s *sketch) object(n *node, depth int) {
	switch {
	case n == noMembers:
		s.str("{}")
		return
	case n == anyObject || depth >= s.depth && depth > 0:
		s.str("object")
		return
	case len(n.fields) == 0:
		s.str("Record<string, ")
		s.node(n.index, depth+1)
		s.str(">")
		return
	}
	shown := n.fields
	if depth == 0 {
		shown = shown[:len(shown)-min(s.drop, optionals(n))]
	}
	s.str("{")
	sep := " "
	for i := range shown {
		if s.full() {
			return
		}
		s.str(sep)
		s.str(shown[i].name)
		s.str(colon(shown[i].optional))
		s.node(shown[i].typ, depth+1)
		sep = "; "
	}
	if len(shown) < len(n.fields) {
		s.str(sep)
		s.str("…")
	}
	s.str(" }")
}

// optionals counts the optional fields, which come last.
func optionals(n *node) int {
	count := 0
	for i := len(n.fields) - 1; i >= 0 && n.fields[i].optional; i-- {
		count++
	}
	return count
}
