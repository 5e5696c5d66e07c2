package declare

import "math"

// lineWidth is where an object type is broken into one line for each property.
const lineWidth = 110

// printer writes types. The types must be complete: from here on it is decided which
// aliases have names.
type printer struct {
	b []byte
}

func (p *printer) str(parts ...string) {
	for _, s := range parts {
		p.b = append(p.b, s...)
	}
}

func (p *printer) newline(indent int) {
	p.b = append(p.b, '\n')
	for range indent {
		p.b = append(p.b, ' ')
	}
}

// column is how many bytes the last line has.
func (p *printer) column() int {
	i := len(p.b)
	for i > 0 && p.b[i-1] != '\n' && len(p.b)-i <= lineWidth {
		i--
	}
	return len(p.b) - i
}

// oneLine as an indentation means that lines are not broken.
const oneLine = -1

// node writes a type. indent is the indentation of the line that it begins on.
func (p *printer) node(n *node, indent int) {
	if indent != oneLine && p.column()+width(n) <= lineWidth {
		indent = oneLine
	}
	switch n.kind {
	case atom:
		p.str(n.text)
	case union:
		p.list(n.parts, " | ", indent)
	case intersection:
		p.list(n.parts, " & ", indent, union)
	case array:
		p.inParens(n.parts[0], indent, union, intersection)
		p.str("[]")
	case tuple:
		p.tuple(n, indent)
	case object:
		p.object(n, indent)
	case reference:
		if n.alias.isInline() {
			p.node(n.alias.node, indent)
		} else {
			p.str(n.alias.name)
		}
	case noted:
		p.node(n.parts[0], indent)
		p.str(" /* ", n.text, " */")
	}
}

func (p *printer) list(parts []*node, sep string, indent int, parens ...kind) {
	for i, part := range parts {
		if i > 0 {
			p.str(sep)
		}
		p.inParens(part, indent, parens...)
	}
}

// inParens writes n, in parentheses if it is of one of the kinds.
func (p *printer) inParens(n *node, indent int, kinds ...kind) {
	if needsParens(n, kinds...) {
		p.str("(")
		p.node(n, indent)
		p.str(")")
	} else {
		p.node(n, indent)
	}
}

func needsParens(n *node, kinds ...kind) bool {
	for {
		switch n.kind {
		case noted:
			n = n.parts[0]
			continue
		case reference:
			if n.alias.isInline() {
				n = n.alias.node
				continue
			}
		}
		for _, k := range kinds {
			if n.kind == k {
				return true
			}
		}
		return false
	}
}

func (p *printer) tuple(n *node, indent int) {
	p.str("[")
	for i, part := range n.parts {
		if i > 0 {
			p.str(", ")
		}
		if i < n.optional {
			p.node(part, indent)
		} else {
			p.inParens(part, indent, union, intersection)
			p.str("?")
		}
	}
	if n.rest != nil {
		p.str(", ...")
		p.inParens(n.rest, indent, union, intersection)
		p.str("[]")
	}
	p.str("]")
}

func (p *printer) object(n *node, indent int) {
	if isRecord(n) {
		p.str("Record<string, ")
		p.node(n.index, oneLine)
		p.str(">")
		return
	}
	inner := indent
	if indent != oneLine {
		inner += 2
	}
	p.str("{")
	for i := range n.fields {
		f := &n.fields[i]
		p.separate(i > 0, inner)
		p.str(f.name, colon(f.optional))
		p.node(f.typ, inner)
	}
	if n.index != nil {
		p.separate(len(n.fields) > 0, inner)
		p.str(indexKey)
		p.node(n.index, inner)
	}
	if indent == oneLine {
		p.str(" }")
		return
	}
	p.str(";")
	p.newline(indent)
	p.str("}")
}

const indexKey = "[key: string]: "

func colon(optional bool) string {
	if optional {
		return "?: "
	}
	return ": "
}

func (p *printer) separate(semicolon bool, indent int) {
	if semicolon {
		p.str(";")
	}
	if indent == oneLine {
		p.str(" ")
	} else {
		p.newline(indent)
	}
}

// isRecord reports whether an object type is written as Record. A recursive type cannot
// be: the compiler would find it circular (TS2456).
func isRecord(n *node) bool {
	return len(n.fields) == 0 && n.index != nil && simple(n.index)
}

// width returns how many bytes a type has on one line. At least math.MaxInt32 means:
// many.
func width(n *node) int {
	if n.width == 0 {
		n.width = min(measure(n), math.MaxInt32)
	}
	return n.width
}

func measure(n *node) int {
	w := 0
	switch n.kind {
	case atom:
		w = len(n.text)
	case union, intersection:
		w = 3 * (len(n.parts) - 1)
		for _, p := range n.parts {
			w += width(p)
		}
	case array:
		w = width(n.parts[0]) + len("()[]")
	case tuple:
		w = len("[]")
		for _, p := range n.parts {
			w += width(p) + len(", ?")
		}
		if n.rest != nil {
			w += width(n.rest) + len(", ...()[]")
		}
	case object:
		w = len("{ }")
		for i := range n.fields {
			w += len(n.fields[i].name) + width(n.fields[i].typ) + len("?: ; ")
		}
		if n.index != nil {
			w += len(indexKey) + width(n.index)
		}
	case reference:
		if n.alias.isInline() {
			return width(n.alias.node)
		}
		w = len(n.alias.label) + 12
	case noted:
		w = width(n.parts[0]) + len(n.text) + len(" /*  */")
	}
	return w
}

// namedAliases returns the aliases with names that are reached from n, each after those
// it was found through.
func namedAliases(n *node, found []*alias) []*alias {
	walk(n, func(a *alias) bool {
		for _, other := range found {
			if other == a {
				return false
			}
		}
		if !a.isInline() {
			found = append(found, a)
		}
		return true
	})
	return found
}

// walk calls visit for all aliases that n is written with, and goes on inside those for
// which visit returns true.
func walk(n *node, visit func(*alias) bool) {
	for _, p := range n.parts {
		walk(p, visit)
	}
	for i := range n.fields {
		walk(n.fields[i].typ, visit)
	}
	for _, p := range [...]*node{n.rest, n.index} {
		if p != nil {
			walk(p, visit)
		}
	}
	if n.kind == reference && visit(n.alias) {
		walk(n.alias.node, visit)
	}
}

// acceptsEmpty reports whether {} has the type.
func acceptsEmpty(n *node) bool {
	switch n.kind {
	case atom:
		return n == anything
	case object:
		for i := range n.fields {
			if !n.fields[i].optional {
				return false
			}
		}
		return true
	case union:
		for _, p := range n.parts {
			if acceptsEmpty(p) {
				return true
			}
		}
	case intersection:
		for _, p := range n.parts {
			if !acceptsEmpty(p) {
				return false
			}
		}
		return true
	case reference:
		a := n.alias
		if a.empty == 0 {
			a.empty = -1
			if acceptsEmpty(a.node) {
				a.empty = 1
			}
		}
		return a.empty > 0
	case noted:
		return acceptsEmpty(n.parts[0])
	}
	return false
}
