package catalog

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// field is a part of a tool that is searched.
type field int

const (
	inName field = iota
	inOwner
	inLabel
	inSummary // the first sentence of the description: what the tool is for
	inDescription
	inParameters
	inTexts // what parameters say of themselves, and what all tools of an owner say
	fieldCount
)

// fields has for each what a word in it weighs, how many words it usually has (in
// 1,700 real tools; a longer text is held against its words), and how many of them
// are read.
var fields = [fieldCount]struct{ weight, usual, most float64 }{
	inName:        {2, 3, 64},
	inOwner:       {3, 1, 16},
	inLabel:       {0.6, 3, 64},
	inSummary:     {1.5, 10, 200},
	inDescription: {0.6, 20, 200},
	inParameters:  {0.4, 15, 100},
	inTexts:       {0.15, 60, 80},
}

const (
	// BM25's constants: k1 says how soon a word that is repeated stops counting, b
	// how much a long text is held against it.
	bm25K1 = 0.6
	bm25B  = 0.5

	// A word that more than this share of an owner's tools have in their names
	// (slack_…, docker-…) tells its tools from those of others, not from each other:
	// it counts as a name of the owner.
	ownerShare = 0.75

	// A sentence that more tools of an owner have says nothing about any of them.
	sharedBy = 5

	// Longer words are no words.
	maxWordBytes = 64
)

// index ranks tools by BM25F: BM25 over the weighted sum of a word's counts in the
// fields, each normalised by its field's length. It is immutable.
type index struct {
	terms    map[string]int32 // key of a word → number of its term
	keys     []string         // of the terms, sorted
	postings [][]posting      // by term
	idf      []float32        // by term: how rare it is
	names    [][]int32        // by tool: the terms of its name, in order
	acts     []act            // by tool: what its name says that it does

	exact  map[string][]int32 // id or name → tools
	folded map[string][]int32 // name without case and punctuation → tools

	sums sync.Pool // of *sums
}

// posting says that a word stands in a tool, and what that is worth, 0 to 1.
type posting struct {
	tool  int32
	worth float32
}

// newIndex makes the index of tools, or nil if ctx ends meanwhile.
func newIndex(ctx context.Context, tools []*Tool) *index {
	ix := &index{
		terms:  map[string]int32{},
		names:  make([][]int32, len(tools)),
		acts:   make([]act, len(tools)),
		exact:  make(map[string][]int32, 2*len(tools)),
		folded: make(map[string][]int32, len(tools)),
	}
	ix.sums.New = func() any { return newSums(len(tools)) }
	b := indexer{index: ix, chunks: map[string]chunkTerms{}, shared: map[sentence]int{}, owners: map[string][]int32{}}
	for i, t := range tools {
		if ctx.Err() != nil {
			return nil
		}
		b.first(int32(i), t)
	}
	for owner, list := range b.owners {
		b.owners[owner] = b.ownerWords(owner, list)
	}
	for i, t := range tools {
		if ctx.Err() != nil {
			return nil
		}
		b.second(int32(i), t)
	}
	ix.idf = make([]float32, len(ix.postings))
	for t, list := range ix.postings {
		n, with := float64(len(tools)), float64(len(list))
		ix.idf[t] = float32(math.Log(1 + (n-with+0.5)/(with+0.5)))
	}
	ix.keys = make([]string, 0, len(ix.terms))
	for key := range ix.terms {
		ix.keys = append(ix.keys, key)
	}
	slices.Sort(ix.keys)
	return ix
}

// indexer builds an index. It goes over the tools twice: what the tools of an
// owner have in common must be known before one of them is weighed.
type indexer struct {
	*index
	chunks map[string]chunkTerms
	shared map[sentence]int
	owners map[string][]int32 // owner → its tools; after the first pass, its words

	termActs []act // by term

	docs   [fieldCount][]int32 // the terms of the current tool
	counts []float64           // by term: its weighted count in the current tool
	used   []int32             // the terms that have a count
}

type sentence struct{ owner, text string }

// chunkTerms is what a chunk of text gives: its terms, and its first and last word
// as they may be part of a pair.
type chunkTerms struct {
	terms       []int32
	first, last int32
}

func (b *indexer) first(i int32, t *Tool) {
	b.exact[t.ID] = append(b.exact[t.ID], i)
	b.exact[t.Name] = append(b.exact[t.Name], i)
	if name := fold(t.Name); name != "" {
		b.folded[name] = append(b.folded[name], i)
	}
	b.names[i] = b.read(nil, inName, t.Name)
	for _, t := range b.names[i] {
		if b.acts[i] == actNone {
			b.acts[i] = b.termActs[t]
		}
	}
	b.owners[t.SourceName] = append(b.owners[t.SourceName], i)
	for text := range sentences(t.Description) {
		b.shared[sentence{t.SourceName, text}]++
	}
}

// ownerWords returns the terms that stand for an owner, and takes them out of the
// names of its tools.
func (b *indexer) ownerWords(owner string, tools []int32) []int32 {
	names := b.read(nil, inOwner, owner)
	if len(tools) < 4 {
		return names
	}
	in := map[int32]int{}
	for _, i := range tools {
		for n, t := range b.names[i] {
			if !slices.Contains(b.names[i][:n], t) {
				in[t]++
			}
		}
	}
	common := func(t int32) bool { return float64(in[t]) > ownerShare*float64(len(tools)) }
	for _, i := range tools {
		for _, t := range b.names[i] {
			if common(t) && !slices.Contains(names, t) {
				names = append(names, t)
			}
		}
		if !slices.ContainsFunc(b.names[i], func(t int32) bool { return !common(t) }) {
			continue // it is called like its owner
		}
		b.names[i] = slices.DeleteFunc(b.names[i], common)
	}
	return names
}

func (b *indexer) second(i int32, t *Tool) {
	d := &b.docs
	for f := range d {
		d[f] = d[f][:0]
	}
	d[inName] = append(d[inName], b.names[i]...)
	d[inOwner] = append(d[inOwner], b.owners[t.SourceName]...)
	if fold(t.Label) != fold(t.Name) {
		b.add(inLabel, t.Label)
	}
	for text := range sentences(t.Description) {
		switch {
		case b.shared[sentence{t.SourceName, text}] > sharedBy:
			b.add(inTexts, text)
		case len(d[inSummary]) == 0:
			b.add(inSummary, text)
		default:
			b.add(inDescription, text)
		}
	}
	if len(t.Parameters) > 0 {
		r := schemaReader{text: string(t.Parameters), word: b.add}
		r.value(aSchema, 1)
	}
	b.post(i)
}

// post adds the current tool to the postings of its terms.
func (b *indexer) post(i int32) {
	for n := len(b.terms) - len(b.counts); n > 0; n-- {
		b.counts = append(b.counts, 0)
		b.postings = append(b.postings, nil)
	}
	b.used = b.used[:0]
	for f, terms := range b.docs {
		weight := fields[f].weight / (1 - bm25B + bm25B*float64(len(terms))/fields[f].usual)
		for _, t := range terms {
			if b.counts[t] == 0 {
				b.used = append(b.used, t)
			}
			b.counts[t] += weight
		}
	}
	for _, t := range b.used {
		n := b.counts[t]
		b.counts[t] = 0
		b.postings[t] = append(b.postings[t], posting{i, float32(n / (n + bm25K1))})
	}
}

func (b *indexer) add(f field, text string) { b.docs[f] = b.read(b.docs[f], f, text) }

// read appends the terms of a text of a field.
func (b *indexer) read(terms []int32, f field, text string) []int32 {
	last := int32(-1)
	for chunk := range words.Chunks(text) {
		if len(terms) >= int(fields[f].most) {
			break
		}
		c, ok := b.chunks[chunk]
		if !ok {
			c = b.chunk(chunk)
			b.chunks[chunk] = c
		}
		if last >= 0 && c.first >= 0 {
			if key, ok := vocabulary.pairs[[2]int32{last, c.first}]; ok {
				terms = append(terms, b.term(key))
			}
		}
		terms = append(terms, c.terms...)
		last = c.last
	}
	return terms
}

// chunk returns the terms of a chunk. One that has parts gives both them and
// itself: createIssue must meet create, issue and createissue, and r2 is more than
// an r. Parts of one letter are noise.
func (b *indexer) chunk(chunk string) chunkTerms {
	c := chunkTerms{first: -1, last: -1}
	add := func(w string) {
		if !stopWords[w] {
			c.terms = append(c.terms, b.term(vocabulary.key(w)))
		}
	}
	if len(chunk) > maxWordBytes {
		return c
	}
	if r, _ := utf8.DecodeRuneInString(chunk); words.Unspaced(r) {
		for _, w := range characterPairs(chunk) {
			add(w)
		}
		return c
	}
	whole := strings.ToLower(chunk)
	add(whole)
	pieces := parts(chunk)
	if len(pieces) == 1 || brands[whole] {
		c.first = vocabulary.pairWord(whole)
		c.last = c.first
		return c
	}
	for i, w := range pieces {
		word := vocabulary.pairWord(w)
		if i == 0 {
			c.first = word
		} else if key, ok := vocabulary.pairs[[2]int32{c.last, word}]; ok {
			c.terms = append(c.terms, b.term(key))
		}
		c.last = word
		if len(w) > 1 {
			add(w)
		}
	}
	return c
}

func (b *indexer) term(key string) int32 {
	t, ok := b.terms[key]
	if !ok {
		t = int32(len(b.terms))
		b.terms[strings.Clone(key)] = t // not all of the text that it is from
		b.termActs = append(b.termActs, vocabulary.acts[key])
	}
	return t
}

// sentences cuts a text at line breaks and after full stops. Those after the first
// hundred are left out.
func sentences(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start := 0
		for i, n := 0, 0; i <= len(text) && n < 100; i++ {
			end := i == len(text) || text[i] == '\n' ||
				text[i] == '.' && i+1 < len(text) && text[i+1] == ' ' && i-start > 12 // e.g. is no sentence
			if !end {
				continue
			}
			if s := strings.TrimSpace(text[start:i]); s != "" && !yield(s) {
				return
			}
			start = i + 1
			n++
		}
	}
}

// ranked is a tool with what it is worth for a query.
type ranked struct {
	tool  int32
	score float32
}

func byScore(a, b ranked) int {
	return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.tool, b.tool)) // tools are sorted by id
}

// find returns the n best tools for a query: first those that it names outright, by
// id or name as they are, then those whose name differs in case and punctuation
// only, then the others; each by rank.
func (ix *index) find(text string, n int) []int32 {
	hits := ix.rank(ix.parse(text), n)
	rank := func(tool int32) int {
		if i := slices.IndexFunc(hits, func(r ranked) bool { return r.tool == tool }); i >= 0 {
			return i
		}
		return len(hits)
	}
	asked := strings.TrimSpace(text)
	var found []int32
	for _, named := range [][]int32{ix.exact[asked], ix.folded[fold(asked)]} {
		if len(named) > n { // thousands may have one name
			named = named[:n]
		}
		named = slices.SortedStableFunc(slices.Values(named), func(a, b int32) int { return cmp.Compare(rank(a), rank(b)) })
		for _, tool := range named {
			if !slices.Contains(found, tool) {
				found = append(found, tool)
			}
		}
	}
	outright := found
	for _, hit := range hits {
		if !slices.Contains(outright, hit.tool) {
			found = append(found, hit.tool)
		}
	}
	return found[:min(n, len(found))]
}

// sums are what one search adds up, by tool. All are zero between searches.
type sums struct {
	best  []float32 // for the current word of the query
	total []float32
	asked []float32 // weight of the words that the tool answers to
	tools []int32   // with a total
	now   []int32   // with a best
}

func newSums(tools int) *sums {
	return &sums{best: make([]float32, tools), total: make([]float32, tools), asked: make([]float32, tools)}
}

// rank returns the n best tools for a query, best first. Each word of it gives a
// tool the best of the terms that may stand for it, so that a description that
// lists five words for one thing does not count five times.
func (ix *index) rank(q query, n int) []ranked {
	s := ix.sums.Get().(*sums)
	defer ix.sums.Put(s)
	var asked float32
	for _, g := range q.groups {
		asked += g.weight
		for _, t := range g.terms {
			worth := g.weight * t.weight * t.idf
			for _, p := range ix.postings[t.term] {
				if s.best[p.tool] == 0 {
					s.now = append(s.now, p.tool)
				}
				s.best[p.tool] = max(s.best[p.tool], worth*p.worth)
			}
		}
		for _, tool := range s.now {
			if s.total[tool] == 0 {
				s.tools = append(s.tools, tool)
			}
			s.total[tool] += s.best[tool]
			s.asked[tool] += g.weight
			s.best[tool] = 0
		}
		s.now = s.now[:0]
	}
	var found []ranked
	// A tool that answers to all of the query beats one that answers to one rare
	// word of it.
	for _, tool := range s.tools {
		score := s.total[tool] * float32(math.Sqrt(float64(s.asked[tool]/asked)))
		s.total[tool], s.asked[tool] = 0, 0
		found = insert(found, ranked{tool, score}, n+reranked)
	}
	s.tools = s.tools[:0]
	for i := range found {
		found[i].score *= ix.closeness(q, found[i].tool)
	}
	slices.SortFunc(found, byScore)
	return found[:min(n, len(found))]
}

// reranked is how many tools more than asked for are looked at closely.
const reranked = 100

// insert keeps the n best in order.
func insert(list []ranked, r ranked, n int) []ranked {
	if len(list) == n {
		if byScore(list[n-1], r) < 0 {
			return list
		}
		list = list[:n-1]
	}
	i, _ := slices.BinarySearchFunc(list, r, byScore)
	return slices.Insert(list, i, r)
}

// What closeness adds for a name.
const (
	allAsked    = 0.3  // all of whose words were asked for
	nextAsked   = 0.1  // two of whose words stand together in the query too
	sameAct     = 0.06 // that says it does what was asked
	otherAct    = -0.15
	unasked     = -0.2 // that deletes, though nobody asked for it
	readsAnyway = 0.05 // that reads, when nothing was said
)

// closeness is a factor for how well a tool's name answers to the query as a
// whole: how much of the name was asked for, whether in the same order, and
// whether the tool does what was asked.
func (ix *index) closeness(q query, tool int32) float32 {
	var asked, all float32
	last, together := -9, 0
	for _, t := range ix.names[tool] {
		all += ix.idf[t]
		m, ok := q.meant[t]
		if !ok {
			last = -9
			continue
		}
		asked += ix.idf[t] * m.weight
		if m.group == last+1 {
			together++
		}
		last = m.group
	}
	f := float32(1) + nextAsked*float32(min(together, 2))
	if all > 0 {
		f += allAsked * asked / all
	}
	switch a := ix.acts[tool]; {
	case a == actNone:
	case a == q.act:
		f += sameAct
	case a == actDelete:
		f += unasked
	case q.act == actNone && a == actRead:
		f += readsAnyway
	case q.act == actNone, q.act == actSend && a != actRead, a == actSend && q.act != actRead && q.act != actDelete:
	default:
		f += otherAct
	}
	return f
}
