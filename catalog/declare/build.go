package declare

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

const (
	maxNodes    = 4000 // schemas, properties and literals that are rendered of one schema
	maxDepth    = 48   // schemas inside schemas, on the way through $ref as well
	maxLiterals = 64   // of one enum
	maxMembers  = 100  // of one union or intersection
	maxElements = 32   // of one tuple
	maxKey      = 128  // bytes of a key that is declared
	maxLiteral  = 160  // bytes of a literal
)

// builder makes types of one schema.
type builder struct {
	root     *jsontree.Node
	input    bool // required keys that have a default may be left out: the supervisor fills them in
	brief    bool // no comments
	room     int  // how many nodes may still be made
	depth    int
	searched int // members looked at for defaults
	level    int // how many objects and arrays we are inside; by it aliases that are only themselves are found

	aliases map[aliasKey]*alias
	targets map[string]*jsontree.Node // of references; nil: nowhere
	scanned bool
	refs    refRules
}

// where is what is known about the place of a schema.
type where struct {
	types    types    // what the value can be, by what is said elsewhere
	defaults []string // keys that other schemas of the same value have defaults for, sorted
	quiet    bool     // what cannot be said as a type is said elsewhere
}

// parse reads a schema. It is nil if that is not possible.
func parse(schema json.RawMessage) *jsontree.Node {
	root, err := jsontree.Parse(schema, jsontree.Limits{Depth: 512, Values: 1 << 18, Work: 1 << 22})
	if err != nil {
		return nil
	}
	return root
}

// build returns the type of a schema. Where an input may be an object, nothing else is
// expected: that is what functions are called with.
func build(root *jsontree.Node, input bool, nodes int) *node {
	b := builder{root: root, input: input, room: nodes}
	if input && root.Kind == jsontree.Object && read(root).types&typeObject != 0 {
		if n := b.build(typeObject); n.types != 0 {
			return n
		}
		// Not what a tool should ask for, but what it does.
		b = builder{root: root, input: input, room: nodes}
	}
	return b.build(typeAll)
}

func (b *builder) build(t types) *node {
	w := where{types: t}
	if b.root.Kind != jsontree.Object {
		return b.schema(b.root, w)
	}
	if k := read(b.root); k.types&^t != 0 || k.composed() {
		return b.schema(b.root, w)
	}
	// A reference to "#" leads here.
	a := &alias{building: true, label: "Value"}
	b.aliases = map[aliasKey]*alias{{b.root, ""}: a}
	n := b.schema(b.root, w)
	if a.finish(n); a.recursive {
		a.uses++
		return &node{kind: reference, types: n.types, alias: a}
	}
	return n
}

// schema returns the type of what s accepts at w.
func (b *builder) schema(s *jsontree.Node, w where) *node {
	if isFalse(s) {
		return nothing
	}
	if s.Kind != jsontree.Object || len(s.Members) == 0 {
		return anyOfTypes(w.types)
	}
	if b.room--; b.room < 0 || b.depth >= maxDepth {
		return withNote(anyOfTypes(w.types), "more than fits here")
	}
	b.depth++
	defer func() { b.depth-- }()
	k := read(s)
	if k.ref != nil && b.rules().refAlone {
		k = keywords{types: typeAll, ref: k.ref, nullable: k.nullable}
	}
	if k.constant != nil && draftOf(b.root) == "draft-04" {
		k.constant = nil // it has no such keyword, and the check knows none
	}
	null := k.nullable && w.types&typeNull != 0
	w.types &= k.types
	n := b.literals(&k, w.types)
	if n == nil {
		n = b.typed(s, &k, w)
	}
	if null {
		n = unite([]*node{n, nullType})
	}
	if !w.quiet && !b.brief {
		n = withNote(n, hints(s))
	}
	return n
}

// typed returns the type of what the keywords accept that are no literals.
func (b *builder) typed(s *jsontree.Node, k *keywords, w where) *node {
	if !k.composed() {
		own, _ := b.own(k, w)
		return own
	}
	if b.input {
		w.defaults = b.defaultsOf(s, w.defaults)
	}
	inner := where{types: w.types, defaults: w.defaults}
	var parts []*node
	if k.ref != nil {
		parts = append(parts, b.ref(k.ref.Text(), inner))
	}
	if k.allOf != nil {
		for _, sub := range k.allOf.Items[:min(len(k.allOf.Items), maxMembers)] {
			parts = append(parts, b.schema(&sub, inner))
		}
	}
	for _, list := range []*jsontree.Node{k.anyOf, k.oneOf} {
		if list != nil {
			parts = append(parts, b.anyOf(list.Items, inner))
		}
	}
	others := typeAll
	for _, p := range parts {
		others &= p.types
	}
	if others == 0 {
		return nothing
	}
	// What the schema itself says is only worth saying if the others do not.
	t := w.types
	w.types &= others
	own, says := b.own(k, w)
	if says || others&^t != 0 {
		parts = slices.Insert(parts, 0, own)
	}
	return intersect(parts)
}

func (b *builder) anyOf(subs []jsontree.Node, w where) *node {
	members := make([]*node, 0, min(len(subs), maxMembers+1))
	for i := range subs {
		if i == maxMembers || b.room < 0 {
			members = append(members, withNote(anyOfTypes(w.types), "more than fits here"))
			break
		}
		members = append(members, b.schema(&subs[i], w))
	}
	return unite(members)
}

// own returns the type that the schema's own keywords make, and whether that is more
// than its types.
func (b *builder) own(k *keywords, w where) (n *node, says bool) {
	objects, arrays := anyObject, anyArray
	if w.types&typeObject != 0 && (k.properties != nil || k.required != nil || k.patterns != nil || k.additional != nil) {
		objects = b.object(k, w)
	}
	if w.types&typeArray != 0 && (k.items != nil || k.prefixItems != nil) {
		arrays = b.array(k)
	}
	return typeFor(w.types, objects, arrays), objects != anyObject || arrays != anyArray
}

// nested returns the type of a part of a value.
func (b *builder) nested(s *jsontree.Node, quiet bool) *node {
	b.level++
	n := b.schema(s, where{types: typeAll, quiet: quiet})
	b.level--
	return n
}

// object returns the type of the objects that the keywords accept. Required properties
// come first.
func (b *builder) object(k *keywords, w where) *node {
	n := &node{kind: object, types: typeObject}
	required := requiredKeys(k.required)
	undeclared := false // there may be keys that the schema describes and we do not
	if k.properties != nil {
		n.fields = make([]field, 0, len(k.properties.Members)+len(required))
		for _, optional := range []bool{false, true} {
			undeclared = b.properties(n, k, w, required, optional) || undeclared
		}
	}
	var others []*node
	if !isFalse(k.additional) {
		others = append(others, anything)
		if k.additional != nil {
			others[0] = b.nested(k.additional, false)
		}
	}
	for _, key := range unlisted(required, k.properties) {
		undeclared = b.requiredAlone(n, key, k, others, w) || undeclared
	}
	b.indexOf(n, k, others, undeclared)
	if len(n.fields) == 0 && n.index == anything {
		return anyObject
	}
	if len(n.fields) == 0 && n.index == nil {
		return noMembers
	}
	return n
}

// requiredKeys returns the keys in a list, each once.
func requiredKeys(list *jsontree.Node) []string {
	if list == nil {
		return nil
	}
	keys := make([]string, 0, min(len(list.Items), maxNodes))
	for i := range list.Items[:min(len(list.Items), maxNodes)] {
		if v := &list.Items[i]; v.Kind == jsontree.String {
			if key := v.Text(); len(keys) > few || !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	if len(keys) > few {
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	return keys
}

// few is up to how many required keys are compared one by one, in the order of the schema.
// More are sorted.
const few = 16

func has(keys []string, key string) bool {
	if len(keys) > few {
		_, found := slices.BinarySearch(keys, key)
		return found
	}
	return slices.Contains(keys, key)
}

// unlisted returns the required keys that are no properties.
func unlisted(required []string, properties *jsontree.Node) []string {
	if properties == nil {
		return required
	}
	if len(required) <= few {
		return slices.DeleteFunc(slices.Clone(required), func(key string) bool { return properties.Get(key) != nil })
	}
	listed := make(map[string]bool, len(properties.Members))
	for i := range properties.Members {
		listed[properties.Members[i].Key] = true
	}
	return slices.DeleteFunc(slices.Clone(required), func(key string) bool { return listed[key] })
}

// properties adds the properties that are optional, or those that are not. It reports
// whether it left one out.
func (b *builder) properties(n *node, k *keywords, w where, required []string, optional bool) (left bool) {
	quiet := b.input && b.level == 0 && b.depth == 1 // the comment of the function has a line for each
	for i := range k.properties.Members {
		m := &k.properties.Members[i]
		if b.mayLack(m, required, w) != optional {
			continue
		}
		if b.room--; b.room < 0 || !declarable(m.Key) {
			left = true
			continue
		}
		t := b.nested(&m.Value, quiet)
		if optional && inherited(m.Key) {
			t = inheritedType(t)
		}
		n.fields = append(n.fields, field{name: propertyName(m.Key, m.RawKey), optional: optional, typ: t})
	}
	return left
}

func (b *builder) mayLack(m *jsontree.Member, required []string, w where) bool {
	if !has(required, m.Key) {
		return true
	}
	return b.input && (b.hasDefault(&m.Value) || has(w.defaults, m.Key) || b.searched > maxSearch)
}

// declarable reports whether a key gets a property of its own. JavaScript's lone
// surrogates all arrive as U+FFFD, so that one cannot be told from another.
func declarable(key string) bool {
	return len(key) <= maxKey && !strings.ContainsRune(key, utf8.RuneError)
}

// inherited reports whether every object has a member of that name. The compiler takes
// an optional property of the name for this member, whose type is a function.
func inherited(key string) bool {
	switch key {
	case "constructor", "toString", "toLocaleString", "valueOf", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable":
		return true
	}
	return false
}

func inheritedType(t *node) *node {
	if t == anything {
		return t
	}
	return withNote(anything, "also: "+flatNote(t))
}

// requiredAlone adds a key that is required, but no property. It reports whether it
// left it out.
func (b *builder) requiredAlone(n *node, key string, k *keywords, others []*node, w where) bool {
	if b.room--; b.room < 0 || !declarable(key) {
		return true
	}
	t := anything
	if k.patterns == nil && len(others) == 1 {
		t = others[0]
	}
	optional := b.input && (has(w.defaults, key) || b.searched > maxSearch)
	if optional && inherited(key) {
		t = inheritedType(t)
	}
	name := quote(key)
	if isIdentifier(key) {
		name = key
	}
	f := field{name: name, optional: optional, typ: t}
	// Behind the other required ones.
	i := slices.IndexFunc(n.fields, func(f field) bool { return f.optional })
	if i < 0 || optional {
		i = len(n.fields)
	}
	n.fields = slices.Insert(n.fields, i, f)
	return false
}

// indexOf sets the index signature of n. Its type must take in those of the properties.
func (b *builder) indexOf(n *node, k *keywords, others []*node, undeclared bool) {
	var notes []string
	if k.patterns != nil && len(k.patterns.Members) > maxMembers {
		undeclared = true
	} else if k.patterns != nil {
		for i := range k.patterns.Members {
			m := &k.patterns.Members[i]
			t := b.nested(&m.Value, false)
			others = append(others, t)
			if i < 4 && !b.brief {
				notes = append(notes, "keys "+cut(m.Key, 40)+": "+flatNote(t))
			}
		}
	}
	switch {
	case undeclared:
		notes = append(notes, "more keys than are shown here")
		n.index = anything
	case len(others) == 0:
		return
	default:
		n.index = unite(others)
	}
	if bare(n.index) != anything && len(n.fields) > 0 {
		if wide := widen(n.index, n.fields); wide != nil {
			n.index = wide
		} else {
			if k.patterns == nil && !b.brief {
				notes = append(notes, "other keys: "+flatNote(n.index))
			}
			n.index = anything
		}
	}
	if !b.brief {
		n.index = withNote(n.index, comment(strings.Join(notes, "; "), 120))
	}
}

// widen returns index with the types of the fields, or nil if that becomes too much
// to read.
func widen(index *node, fields []field) *node {
	parts := []*node{index}
	if !simple(index) {
		return nil
	}
	for _, f := range fields {
		if !simple(f.typ) || len(parts) > 12 {
			return nil
		}
		if p := stripNotes(f.typ); p != index {
			parts = append(parts, p)
		}
		if f.optional {
			parts = append(parts, undefinedType)
		}
	}
	n := unite(parts)
	if width(n) > 100 {
		return nil
	}
	return n
}

var undefinedType = &node{text: "undefined", types: typeNull, width: len("undefined")}

// simple reports whether a type has neither objects nor references in it.
func simple(n *node) bool {
	switch n.kind {
	case atom:
		return true
	case union, noted, array:
		return !slices.ContainsFunc(n.parts, func(p *node) bool { return !simple(p) })
	}
	return false
}

// stripNotes returns a simple type without its comments.
func stripNotes(n *node) *node {
	switch n.kind {
	case noted:
		return stripNotes(n.parts[0])
	case union, array:
		s := &node{kind: n.kind, types: n.types}
		for _, p := range n.parts {
			s.parts = append(s.parts, stripNotes(p))
		}
		return s
	}
	return n
}

// array returns the type of the arrays that the keywords accept.
func (b *builder) array(k *keywords) *node {
	prefix, rest := k.prefixItems, k.items
	if prefix != nil && b.rules().noPrefix {
		// Which elements items is about depends on the draft, and that is not certain.
		return withNote(anyArray, "prefixItems, which this draft does not know")
	}
	if prefix == nil && k.items != nil && k.items.Kind == jsontree.Array { // before 2020-12
		prefix, rest = k.items, k.additionalItems
	}
	if rest != nil && rest.Kind == jsontree.Array {
		rest = nil
	}
	if prefix != nil && len(prefix.Items) > maxElements {
		return withNote(anyArray, "a tuple of more elements than fit here")
	}
	if prefix != nil && len(prefix.Items) > 0 {
		return b.tuple(prefix.Items, rest, k.minItems, k.maxItems)
	}
	switch {
	case rest == nil:
		return anyArray
	case isFalse(rest):
		return emptyArray
	}
	return arrayOf(b.nested(rest, false))
}

func arrayOf(element *node) *node {
	if element == anything {
		return anyArray
	}
	return &node{kind: array, types: typeArray, parts: []*node{element}}
}

func (b *builder) tuple(prefix []jsontree.Node, rest *jsontree.Node, atLeast, atMost int) *node {
	n := &node{kind: tuple, types: typeArray, optional: min(atLeast, len(prefix))}
	for i := range prefix {
		n.parts = append(n.parts, b.nested(&prefix[i], false))
	}
	switch {
	case isFalse(rest), atMost >= 0 && atMost <= len(prefix):
	case rest == nil:
		n.rest = anything
	default:
		n.rest = b.nested(rest, false)
	}
	return n
}
