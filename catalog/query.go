package catalog

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// What a word of a query counts.
const (
	phraseWeight  = 0.8 // one that a phrase stands for
	relatedWeight = 0.5 // one that is only related to the one that was asked for
	formWeight    = 0.8 // another form of it
	typoWeight    = 0.6 // one that it may be a slip for
	actWeight     = 0.7 // one that says what to do, not with what
	faintWeight   = 0.2 // one of faintWords
)

// maxGroups is how many words of a query count: the rarest.
const maxGroups = 32

// query is what was asked for, in the terms of one index.
type query struct {
	groups []group
	act    act
	meant  map[int32]meaning // term → the word of the query that it stands for
}

// group is one word of a query: the terms that may stand for it.
type group struct {
	weight float32
	terms  []alternative
}

type alternative struct {
	term   int32
	weight float32
	idf    float32
	pair   bool // of words that sameAs knows as one
}

type meaning struct {
	group  int
	weight float32
}

// word is one word of a query.
type word struct{ text, key string }

func newWord(text string) word { return word{text, vocabulary.key(text)} }

// words returns the words of a query.
func (ix *index) words(text string) (asked []word) {
	for chunk := range words.Chunks(text) {
		if r, _ := utf8.DecodeRuneInString(chunk); words.Unspaced(r) {
			for _, pair := range characterPairs(chunk) {
				asked = append(asked, newWord(pair))
			}
			continue
		}
		whole := newWord(strings.ToLower(chunk))
		pieces := parts(chunk)
		switch {
		case len(pieces) == 1 && !ix.known(whole):
			if a, b, ok := ix.cut(whole.text); ok {
				asked = append(asked, a, b)
				continue
			}
			fallthrough
		case len(pieces) == 1, brands[whole.text], strings.ContainsAny(chunk, "0123456789"):
			asked = append(asked, whole)
		default:
			for _, piece := range pieces {
				asked = append(asked, newWord(piece))
			}
		}
	}
	return asked
}

// known reports whether a word is worth something as it is.
func (ix *index) known(w word) bool {
	return ix.has(w.key) || stopWords[w.text] || vocabulary.has(w.key)
}

func (ix *index) has(key string) bool {
	_, ok := ix.terms[key]
	return ok
}

// cut splits a word that no tool has into two that tools have (barchart).
func (ix *index) cut(w string) (a, b word, ok bool) {
	if len(w) > maxWordBytes || !ascii(w) {
		return a, b, false
	}
	for i := 3; i <= len(w)-3; i++ {
		a, b = newWord(w[:i]), newWord(w[i:])
		if ix.has(a.key) && ix.has(b.key) {
			return a, b, true
		}
	}
	return a, b, false
}

// parse makes a query of a text.
func (ix *index) parse(text string) query {
	words := ix.words(text)
	var q query
	var hint act                     // what related words say is to be done
	used := make([]bool, len(words)) // as part of an idiom
	seen := map[string]bool{}
	for i, w := range words {
		if used[i] {
			continue
		}
		if p, places := vocabulary.phrase(words[i:]); places != nil {
			g := group{weight: 1}
			weight := float32(relatedWeight)
			if p.idiom {
				weight = phraseWeight
			}
			for _, key := range p.targets {
				if q.act == actNone {
					q.act = vocabulary.acts[key]
				}
				ix.relate(&g, standIn{key, weight})
			}
			q.add(g)
			if p.idiom {
				for _, n := range places {
					used[i+n] = true
				}
				continue
			}
		}
		if q.act == actNone {
			q.act = vocabulary.acts[w.key]
		}
		if stopWords[w.text] {
			continue
		}
		g := ix.group(words, i)
		if seen[w.key] {
			continue
		}
		seen[w.key] = true
		q.add(g)
		for _, other := range vocabulary.related[w.key] {
			if hint == actNone {
				hint = vocabulary.acts[other.key]
			}
		}
	}
	if q.act == actNone && len(words) > 0 && questions[words[0].text] {
		q.act = actRead
	}
	if q.act == actNone {
		q.act = hint
	}
	q.narrow()
	q.meant = map[int32]meaning{}
	for i, g := range q.groups {
		for _, t := range g.terms {
			if weight := t.weight * g.weight; weight > q.meant[t.term].weight {
				q.meant[t.term] = meaning{i, weight}
			}
		}
	}
	return q
}

// questions begin with these if they ask to be told, not to be helped.
var questions = wordSet("are did does has have is was were what when where which who whose")

func (q *query) add(g group) {
	if len(g.terms) > 0 {
		q.groups = append(q.groups, g)
	}
}

// narrow leaves the rarest words, in their order.
func (q *query) narrow() {
	if len(q.groups) <= maxGroups {
		return
	}
	worth := make([]float32, len(q.groups))
	for i, g := range q.groups {
		for _, t := range g.terms {
			worth[i] = max(worth[i], g.weight*t.weight*t.idf)
		}
	}
	least := slices.Sorted(slices.Values(worth))[len(worth)-maxGroups]
	kept := q.groups[:0]
	for i, g := range q.groups {
		if worth[i] >= least && len(kept) < maxGroups {
			kept = append(kept, g)
		}
	}
	q.groups = kept
}

// group returns the i-th word of a query with all that may stand for it.
func (ix *index) group(words []word, i int) group {
	w := words[i]
	g := group{weight: 1}
	switch {
	case faintWords[w.text]:
		g.weight = faintWeight
	case vocabulary.acts[w.key] != actNone:
		g.weight = actWeight
	}
	ix.alternative(&g, w.key, 1)
	if i > 0 {
		ix.join(&g, words[i-1], w)
	}
	if i+1 < len(words) {
		ix.join(&g, w, words[i+1])
	}
	for _, other := range vocabulary.related[w.key] {
		ix.relate(&g, other)
	}
	if len(g.terms) == 0 && len(words) <= maxGroups {
		for _, key := range ix.slips(w) {
			ix.alternative(&g, key, typoWeight)
		}
	}
	if ix.has(w.key) { // what stands for a word is no rarer than the word
		for i := range g.terms {
			if !g.terms[i].pair {
				g.terms[i].idf = min(g.terms[i].idf, g.terms[0].idf)
			}
		}
	}
	return g
}

// relate adds a related word to a group.
func (ix *index) relate(g *group, other standIn) {
	if vocabulary.acts[other.key] != actNone && g.weight == 1 {
		other.weight *= actWeight
	}
	ix.alternative(g, other.key, other.weight)
}

// join lets two words that stand side by side be one: screen shot, pull request.
func (ix *index) join(g *group, first, second word) {
	if stopWords[first.text] || stopWords[second.text] {
		return
	}
	key, pair := vocabulary.pair(first.text, second.text)
	if !pair {
		key = vocabulary.key(first.text + second.text)
	}
	n := len(g.terms)
	ix.alternative(g, key, 1)
	if len(g.terms) > n {
		g.terms[n].pair = pair
	}
}

// alternative adds a term to a group, if any tool has it.
func (ix *index) alternative(g *group, key string, weight float32) {
	t, ok := ix.terms[key]
	if !ok {
		return
	}
	for i := range g.terms {
		if g.terms[i].term == t {
			g.terms[i].weight = max(g.terms[i].weight, weight)
			return
		}
	}
	g.terms = append(g.terms, alternative{term: t, weight: weight, idf: ix.idf[t]})
}

// slips returns the words that w may be a slip for, if no tool has it. The first
// letter is hardly ever wrong.
func (ix *index) slips(w word) []string {
	if len(w.key) < 5 || len(w.key) > maxWordBytes || !ascii(w.key) {
		return nil
	}
	var found []string
	from, _ := slices.BinarySearch(ix.keys, w.key[:1])
	for _, key := range ix.keys[from:] {
		if key[0] != w.key[0] {
			break
		}
		if oneSlip(w.key, key) {
			found = append(found, key)
		}
	}
	return found
}

// oneSlip reports whether a and b differ by one letter, or by two that changed
// places.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) < len(b) {
		return a[i:] == b[i+1:]
	}
	if i == len(a) || a[i+1:] == b[i+1:] {
		return true
	}
	return i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
}
