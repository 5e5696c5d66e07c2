package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// LookupError says that no tool, or more than one, goes by a name (SPEC 6.5). Its
// text is meant for the model. A tool that policy has taken out of the catalog
// gives the same error as one that never was.
type LookupError struct {
	// Name is what was asked for, shortened if it is long.
	Name string
	// Candidates are ids of all tools that have the name; empty if there is none.
	Candidates []string
	// Suggestions are at most three ids of tools that may have been meant.
	Suggestions []string
}

// Error returns the whole story, with what to do next.
func (e *LookupError) Error() string {
	if n := len(e.Candidates); n > 0 {
		listed := e.Candidates[:min(n, 8)]
		text := fmt.Sprintf("%d tools are called %q; use the id of one: %s", n, e.Name, quoteAll(listed))
		if n > len(listed) {
			text += fmt.Sprintf(" and %d more", n-len(listed))
		}
		return text
	}
	text := fmt.Sprintf("there is no tool %q", e.Name)
	if len(e.Suggestions) > 0 {
		return text + "; did you mean " + quoteAll(e.Suggestions) + "?"
	}
	return text + "; find tools with tools.search(query) or in ALL_TOOLS"
}

// Resolve finds the tool that tools.call and tools.describe mean: an exact id, or
// a name that one tool alone has. Nothing is trimmed or folded. MCP tools are not
// found. The error is a *[LookupError].
func (c *Catalog) Resolve(idOrName string) (*Tool, error) {
	if t := c.byID[idOrName]; t != nil && t.Source != MCP {
		return t, nil
	}
	named := c.byName[idOrName]
	if len(named) == 1 {
		return named[0], nil
	}
	e := &LookupError{Name: cut(strings.ToValidUTF8(idOrName, "\ufffd"), 80)}
	for _, t := range named {
		e.Candidates = append(e.Candidates, t.ID)
	}
	if len(named) == 0 {
		e.Suggestions = c.suggest(idOrName, 3)
	}
	return nil, e
}

// suggest returns the ids of the tools whose names are most like what was asked
// for, best first. Letters count (a slip of the pen), and so do words in another
// order (get_user, user_get).
func (c *Catalog) suggest(asked string, limit int) []string {
	if asked == "" || len(asked) > MaxIDBytes {
		return nil
	}
	name := asked
	if i := strings.LastIndexByte(asked, ':'); i >= 0 && i+1 < len(asked) {
		name = asked[i+1:]
	}
	words := split(name)
	folded := strings.Join(words, "")
	type scored struct {
		id    string
		score float64
	}
	var found []scored
	for _, t := range c.native {
		score := similarity(folded, words, t.Name)
		if name != asked && strings.HasPrefix(t.ID, asked[:len(asked)-len(name)]) {
			score += 0.1 // the right owner
		}
		if score >= 0.5 {
			found = append(found, scored{t.ID, score})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		if a.score != b.score {
			if a.score > b.score {
				return -1
			}
			return 1
		}
		return strings.Compare(a.id, b.id)
	})
	var ids []string
	for _, s := range found[:min(limit, len(found))] {
		if s.score >= 0.7*found[0].score { // next to a good guess a poor one is noise
			ids = append(ids, s.id)
		}
	}
	return ids
}

// similarity compares a name with the words of another: 1 for the same letters, 0
// for nothing in common.
func similarity(folded string, words []string, name string) float64 {
	theirs := split(name)
	joined := strings.Join(theirs, "")
	longest := max(len(folded), len(joined))
	if longest == 0 {
		return 0
	}
	letters := 0.0
	if shortest := min(len(folded), len(joined)); shortest*2 >= longest && longest <= 128 {
		letters = 1 - float64(editDistance(folded, joined))/float64(longest)
	}
	shared := 0
	for _, w := range words {
		if slices.Contains(theirs, w) {
			shared++
		}
	}
	return max(letters, 0.95*2*float64(shared)/float64(max(1, len(words)+len(theirs))))
}

// editDistance counts the bytes to insert, delete, replace or swap with the next
// one (optimal string alignment).
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, ", ")
}
