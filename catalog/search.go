package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// MaxQueryBytes is how long a query may be.
const MaxQueryBytes = 4 << 10

// Hit is one answer of a search (SPEC 6.6).
type Hit struct {
	Tool *Tool

	// Callable is the expression that calls the tool; see [Tool.Callable].
	Callable string

	// Input and Output are the types of what the tool takes and returns, each on one line of
	// TypeScript in which much may be left out. Output is empty where none is declared.
	Input, Output string
}

// MarshalJSON returns the compact entry, then callable, input and output?.
func (h Hit) MarshalJSON() ([]byte, error) {
	return encode(struct {
		compact
		Callable string `json:"callable"`
		Input    string `json:"input"`
		Output   string `json:"output,omitempty"`
	}{h.Tool.compact(), h.Callable, h.Input, h.Output}), nil
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
	c.Warm(context.Background())
	hits := []Hit{}
	for _, i := range c.index.Load().find(query, n) {
		t := c.native[i]
		h := Hit{Tool: t, Callable: t.Callable(), Input: t.inputHint()}
		if len(t.OutputSchema) > 0 {
			h.Output = t.outputHint()
		}
		hits = append(hits, h)
	}
	return hits, nil
}

// Warm makes what the first search would have to make, which takes about 40 µs a tool. It may
// be called at any time, by anybody. If ctx ends first, that is left to the search.
func (c *Catalog) Warm(ctx context.Context) {
	if c.index.Load() != nil {
		return
	}
	c.indexing.Lock()
	defer c.indexing.Unlock()
	if c.index.Load() == nil {
		if ix := newIndex(ctx, c.native); ix != nil {
			c.index.Store(ix)
		}
	}
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
