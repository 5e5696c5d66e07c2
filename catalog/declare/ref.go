package declare

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

// alias is the target of a $ref. It becomes `type Name = …` if it is recursive, or long
// and used more than once; else its type stands where the reference stood.
type alias struct {
	label     string // the last word of the reference
	node      *node  // nil while we are inside
	variants  int
	building  bool
	recursive bool
	visiting  bool // a sketch is inside
	level     int  // of the builder when it began
	uses      int
	reference *node  // to a finished alias, so that equal references are one node
	inline    int8   // 0: not decided, 1: yes, -1: no
	empty     int8   // whether {} has the type; the same
	name      string // given when it is written
}

// aliasKey tells apart the types that one schema can become.
type aliasKey struct {
	target   *jsontree.Node
	defaults string
}

func (a *alias) finish(n *node) {
	a.node, a.building, a.variants = n, false, variants(n)
}

// isInline reports whether the type stands where the references stand. To be asked when
// all types are built.
func (a *alias) isInline() bool {
	const short = 40
	if a.inline == 0 {
		a.inline = 1
		if a.recursive || a.uses > 1 && width(a.node) > short {
			a.inline = -1
		}
	}
	return a.inline > 0
}

// refRules are what the draft of a schema says about $ref, and what we say.
type refRules struct {
	refAlone bool // up to draft-07, keywords beside $ref mean nothing
	noPrefix bool // before 2020-12 there is no prefixItems
	embedded bool // a schema inside has an $id: references in it may lead anywhere
}

// rules are found when they are first needed, for few schemas do.
func (b *builder) rules() *refRules {
	if b.scanned {
		return &b.refs
	}
	b.scanned = true
	old := false // items: […] without $schema is read as draft-07
	draft, id := draftOf(b.root), "$id"
	if draft == "draft-04" {
		id = "id"
	}
	b.scan(b.root, 0, id, &old)
	switch draft {
	case "draft-04", "draft-06", "draft-07":
		b.refs.refAlone, b.refs.noPrefix = true, true
	case "draft/2019-09":
		b.refs.noPrefix = true
	case "":
		b.refs.refAlone, b.refs.noPrefix = old, old
	}
	return &b.refs
}

// draftOf returns the draft that a schema names: "draft-07", "draft/2020-12". It is empty
// if the schema names none, or none that is known: the catalog then tries the newest and
// draft-07.
func draftOf(root *jsontree.Node) string {
	v := root.Get("$schema")
	if v == nil {
		return ""
	}
	uri := strings.TrimPrefix(strings.TrimPrefix(v.Text(), "https://"), "http://")
	draft, ok := strings.CutSuffix(strings.TrimSuffix(uri, "#"), "/schema")
	draft, ok2 := strings.CutPrefix(draft, "json-schema.org/")
	if ok && ok2 && slices.Contains([]string{"draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12"}, draft) {
		return draft
	}
	return ""
}

// scan looks for what changes the meaning of references, wherever it stands: in a default
// it means nothing, but then it only makes types wider.
func (b *builder) scan(v *jsontree.Node, depth int, id string, old *bool) {
	for i := range v.Members {
		m := &v.Members[i]
		switch {
		case m.Key == "items" && m.Value.Kind == jsontree.Array:
			*old = true
		case m.Key == id && m.Value.Kind == jsontree.String && depth > 0:
			b.refs.embedded = true
		}
		b.scan(&m.Value, depth+1, id, old)
	}
	for i := range v.Items {
		b.scan(&v.Items[i], depth+1, id, old)
	}
}

// ref returns the type of what a reference leads to.
func (b *builder) ref(pointer string, w where) *node {
	target := b.resolve(pointer)
	if target == nil {
		return withNote(anyOfTypes(w.types), comment("$ref "+strconv.Quote(pointer), 80))
	}
	key := aliasKey{target: target}
	if len(w.defaults) > 0 {
		w.defaults = without(w.defaults, b.defaultsOf(target, nil))
		key.defaults = strings.Join(w.defaults, "\x00")
	}
	a := b.aliases[key]
	switch {
	case a == nil:
		a = &alias{label: label(pointer), building: true, level: b.level}
		if b.aliases == nil {
			b.aliases = map[aliasKey]*alias{}
		}
		b.aliases[key] = a
		a.finish(b.schema(target, where{types: typeAll, defaults: w.defaults}))
	case a.building && a.level == b.level:
		return withNote(anyOfTypes(w.types), "$ref to itself")
	case a.building:
		a.recursive = true
	}
	a.uses++
	if a.node != nil && a.node.kind == atom {
		return a.node
	}
	if a.node == nil {
		return &node{kind: reference, types: typeAll, alias: a}
	}
	if a.reference == nil {
		a.reference = &node{kind: reference, types: a.node.types, alias: a}
	}
	return a.reference
}

// resolve follows a JSON pointer inside the schema. References of other forms lead
// nowhere: nothing is ever loaded. Answers are kept, for an object with many members is
// slow to search.
func (b *builder) resolve(pointer string) *jsontree.Node {
	if v, known := b.targets[pointer]; known {
		return v
	}
	if b.targets == nil {
		b.targets = map[string]*jsontree.Node{}
	}
	v := b.follow(pointer)
	b.targets[pointer] = v
	return v
}

func (b *builder) follow(pointer string) *jsontree.Node {
	rest, ok := strings.CutPrefix(pointer, "#")
	if !ok || b.rules().embedded {
		return nil
	}
	rest, err := url.PathUnescape(rest)
	if err != nil || rest != "" && rest[0] != '/' {
		return nil
	}
	v := b.root
	if rest != "" {
		for token := range strings.SplitSeq(rest[1:], "/") {
			if v = step(v, token); v == nil {
				return nil
			}
		}
	}
	if v.Kind != jsontree.Object && v.Kind != jsontree.Bool {
		return nil
	}
	return v
}

func step(v *jsontree.Node, token string) *jsontree.Node {
	if strings.Contains(token, "~") {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	if v.Kind != jsontree.Array {
		return v.Get(token)
	}
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(v.Items) || strconv.Itoa(i) != token {
		return nil
	}
	return &v.Items[i]
}

// label returns the last word of a pointer.
func label(pointer string) string {
	words := strings.FieldsFunc(pointer, func(r rune) bool { return r == '/' || r == '#' })
	if len(words) == 0 {
		return "Value"
	}
	return words[len(words)-1]
}

// maxSearch bounds the members that are looked at for defaults, over a whole schema. Beyond
// it every property counts as one that has a default.
const maxSearch = 100_000

// hasDefault reports whether a property has a default, itself or by what it refers to.
func (b *builder) hasDefault(s *jsontree.Node) bool {
	for s != nil && s.Kind == jsontree.Object {
		if b.searched += 1 + len(s.Members); b.searched > maxSearch || s.Get("default") != nil {
			return true
		}
		ref := s.Get("$ref")
		if ref == nil {
			return false
		}
		s = b.resolve(ref.Text())
	}
	return false
}

// defaultsOf returns the keys that s, or a schema that every value of s must fit as well,
// has defaults for; and those in keys. The result is sorted.
func (b *builder) defaultsOf(s *jsontree.Node, keys []string) []string {
	found := b.collectDefaults(s, slices.Clone(keys), 0)
	slices.Sort(found)
	return slices.Compact(found)
}

func (b *builder) collectDefaults(s *jsontree.Node, keys []string, depth int) []string {
	if s == nil || s.Kind != jsontree.Object || b.searched > maxSearch {
		return keys
	}
	if b.searched += 1 + len(s.Members); depth > maxDepth {
		b.searched = maxSearch + 1 // a circle, or as good as one
		return keys
	}
	if p := s.Get("properties"); p != nil {
		for i := range p.Members {
			if b.hasDefault(&p.Members[i].Value) {
				keys = append(keys, p.Members[i].Key)
			}
		}
	}
	if ref := s.Get("$ref"); ref != nil {
		keys = b.collectDefaults(b.resolve(ref.Text()), keys, depth+1)
	}
	if all := s.Get("allOf"); all != nil {
		for i := range all.Items {
			keys = b.collectDefaults(&all.Items[i], keys, depth+1)
		}
	}
	return keys
}

func without(keys, others []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		_, found := slices.BinarySearch(others, key)
		return found
	})
}
