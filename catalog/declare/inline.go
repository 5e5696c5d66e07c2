package declare

import (
	"encoding/json"
	"math"
	"sort"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

// Inline renders the type of what schema accepts on one line, in at most max bytes, for
// search hits and a prompt's index: `{ owner: string; labels?: string[]; … }`. Required
// properties come first, and one that has a default is optional. "…" stands for optional
// properties that did not fit and, in a union, for all other types of values. If the line
// is still too long, objects inside become "object", and then the whole "object" or
// "unknown". Nothing says that an object may have other properties than those listed.
//
// No schema, true, {} and what is no schema give "unknown". If max has no room for a
// word, the result is empty.
func Inline(schema json.RawMessage, max int) string {
	text := "unknown"
	if len(schema) > 0 {
		if root := parse(schema); root != nil {
			text = inline(root, max)
		}
	}
	if len(text) > max {
		return ""
	}
	return text
}

func inline(root *jsontree.Node, max int) string {
	// What is not looked at would not have fit.
	b := builder{root: root, input: true, brief: true, room: min(300+max, maxNodes)}
	n := b.build(typeAll)
	for _, depth := range []int{math.MaxInt, 1} {
		if text, ok := shorten(n, max, depth); ok {
			return text
		}
	}
	return word(n.types)
}

// shorten leaves out the fewest optional properties with which the line is short enough.
func shorten(n *node, max, depth int) (text string, ok bool) {
	try := func(drop int) bool {
		s := sketch{max: max, depth: depth, drop: drop}
		s.node(n, 0)
		text = string(s.b)
		return len(text) <= max
	}
	if try(0) {
		return text, true
	}
	most := optionals(bare(n))
	drop := sort.Search(most, func(drop int) bool { return try(drop) })
	ok = try(drop)
	return text, ok
}
