package catalog

import (
	"encoding/json"
	"math"
	"slices"
)

// The parts of a tool that are searched, with the weight of a word in each. Names
// are short and chosen with care; descriptions explain, and parameter names are
// full of words that every tool has.
const (
	inName = iota
	inOwner
	inLabel
	inDescription
	inParameters
	fieldCount
)

var fieldWeight = [fieldCount]float64{inName: 3, inOwner: 1.5, inLabel: 0.5, inDescription: 1, inParameters: 0.4}

// BM25's usual constants: k1 says how soon a word that is repeated stops
// counting, b how much a long text is held against it.
const (
	bm25K1 = 1.2
	bm25B  = 0.75
)

// index ranks tools by BM25F: BM25 over the weighted sum of a word's counts in the
// fields, each normalised by its field's usual length.
type index struct {
	postings map[string][]posting
	tools    int
}

// posting says that a word stands in a tool, and how much that counts there.
type posting struct {
	tool  int32
	count float32
}

func newIndex(tools []*Tool) *index {
	docs := make([][fieldCount][]string, len(tools))
	var total [fieldCount]int
	for i, t := range tools {
		docs[i] = [fieldCount][]string{
			inName:        keys(t.Name),
			inOwner:       keys(t.SourceName),
			inLabel:       keys(t.Label),
			inDescription: keys(t.Description),
			inParameters:  parameterKeys(t.Parameters),
		}
		for f := range fieldCount {
			total[f] += len(docs[i][f])
		}
	}
	ix := &index{postings: map[string][]posting{}, tools: len(tools)}
	for i := range docs {
		counts := map[string]float64{}
		for f, words := range docs[i] {
			average := float64(total[f]) / float64(len(tools))
			for _, w := range words {
				counts[w] += fieldWeight[f] / (1 - bm25B + bm25B*float64(len(words))/average)
			}
		}
		for w, n := range counts {
			ix.postings[w] = append(ix.postings[w], posting{int32(i), float32(n)})
		}
	}
	return ix
}

// term is a word of a query with what it counts.
type term struct {
	key    string
	weight float64
}

// score adds up what each tool is worth for a query. Each term gives a tool the
// best of its own word and the related ones, so that a description that lists
// five words for the same thing does not count five times.
func (ix *index) score(query [][]term) map[int32]float64 {
	scores := map[int32]float64{}
	matched := map[int32]float64{}
	for _, alternatives := range query {
		best := map[int32]float64{}
		for _, t := range alternatives {
			list := ix.postings[t.key]
			idf := math.Log(1 + (float64(ix.tools-len(list))+0.5)/(float64(len(list))+0.5))
			for _, p := range list {
				n := float64(p.count)
				if s := t.weight * idf * n * (bm25K1 + 1) / (n + bm25K1); s > best[p.tool] {
					best[p.tool] = s
				}
			}
		}
		for tool, s := range best {
			scores[tool] += s
			matched[tool]++
		}
	}
	// A tool that answers to all of the query beats one that answers to one rare
	// word of it.
	for tool := range scores {
		scores[tool] *= math.Pow(matched[tool]/float64(len(query)), coverage)
	}
	return scores
}

// coverage is how strongly the share of a query's words that a tool answers to
// counts: 0 not at all.
const coverage = 0.25

// parameterKeys returns the words in the names of a tool's parameters, one level
// of nesting included.
func parameterKeys(schema json.RawMessage) []string {
	type object struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var words []string
	var visit func(raw json.RawMessage, depth int)
	visit = func(raw json.RawMessage, depth int) {
		var o object
		if json.Unmarshal(raw, &o) != nil { // a boolean, or properties of another type
			return
		}
		names := make([]string, 0, len(o.Properties))
		for name := range o.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			words = append(words, keys(name)...)
			if depth < 2 {
				visit(o.Properties[name], depth+1)
			}
		}
	}
	if len(schema) > 0 {
		visit(schema, 1)
	}
	return words
}
