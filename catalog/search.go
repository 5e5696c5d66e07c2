package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// MaxQueryBytes is how long a query may be.
const MaxQueryBytes = 4 << 10

// Hit is one answer of a search (SPEC 6.6).
type Hit struct {
	Tool *Tool

	// Callable is the expression that calls the tool; see [Tool.Callable].
	Callable string
}

// MarshalJSON returns the compact entry with callable as the last field.
func (h Hit) MarshalJSON() ([]byte, error) {
	return encode(struct {
		compact
		Callable string `json:"callable"`
	}{h.Tool.compact(), h.Callable}), nil
}

// errLimit is for the guest.
var errLimit = errors.New("the limit of tools.search must be a whole number from 1")

// Search finds the tools that a query is about, best first (SPEC 6.6). A tool whose
// id or name is the query comes first; the others are ranked by how well their
// name, owner, label, description and parameter names answer to its words. Equal
// queries give equal answers. A query without any word that counts (empty, or "how
// do I") has no hits.
//
// limit is the JSON that the guest gave: nothing means [Options.SearchDefault];
// what is no whole number from 1 is an error, what is above [Options.SearchMax]
// counts as that. A query above [MaxQueryBytes] is an error.
func (c *Catalog) Search(query string, limit json.RawMessage) ([]Hit, error) {
	n, err := c.limit(limit)
	if err != nil {
		return nil, err
	}
	if len(query) > MaxQueryBytes {
		return nil, fmt.Errorf("the query of tools.search has %d bytes, at most %d are possible", len(query), MaxQueryBytes)
	}
	c.indexOnce.Do(func() { c.index = newIndex(c.native) })
	scores := c.index.score(queryTerms(query))
	c.promote(query, scores)
	found := make([]int32, 0, len(scores))
	for tool := range scores {
		found = append(found, tool)
	}
	slices.SortFunc(found, func(a, b int32) int {
		if scores[a] != scores[b] {
			if scores[a] > scores[b] {
				return -1
			}
			return 1
		}
		return int(a - b) // tools are sorted by id
	})
	hits := []Hit{}
	for _, tool := range found[:min(n, len(found))] {
		hits = append(hits, Hit{c.native[tool], c.native[tool].Callable()})
	}
	return hits, nil
}

func (c *Catalog) limit(raw json.RawMessage) (int, error) {
	if len(raw) == 0 {
		return min(c.opts.SearchDefault, c.opts.SearchMax), nil
	}
	var n *float64
	if json.Unmarshal(raw, &n) != nil || n == nil || *n < 1 || *n != math.Trunc(*n) {
		return 0, fmt.Errorf("%w, got %s", errLimit, cut(string(raw), 40))
	}
	return int(min(*n, float64(c.opts.SearchMax))), nil
}

// promote puts the tools first that the query names outright: by id or name as
// they are, or by a name that differs in case and punctuation only.
func (c *Catalog) promote(query string, scores map[int32]float64) {
	asked := strings.TrimSpace(query)
	if asked == "" {
		return
	}
	folded := strings.Join(split(asked), "")
	for i, t := range c.native {
		switch {
		case t.ID == asked || t.Name == asked:
			scores[int32(i)] += 2e6
		case folded != "" && strings.Join(split(t.Name), "") == folded:
			scores[int32(i)] += 1e6
		}
	}
}
