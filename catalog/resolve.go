package catalog

import (
	"fmt"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// LookupError says that no tool, or more than one, goes by a name (SPEC 6.5). Its
// text is meant for the model. A tool that policy has taken out of the catalog
// gives the same error as one that never was.
type LookupError struct {
	// Name is what was asked for, shortened if it is long.
	Name string
	// Candidates are ids of all tools that have the name; empty if there is none.
	Candidates []string

	suggest func() []string // nil: there is nothing to suggest
	hint    string          // how to find tools, where that is not tools.search
	denied  []string
}

// Suggestions returns at most three ids, or expressions, of tools that may have been meant.
// They are made anew at each call, and with thousands of tools that takes tens of
// milliseconds: who answers to code that is not trusted asks for them a bounded number of
// times.
func (e *LookupError) Suggestions() []string {
	if e.suggest == nil {
		return nil
	}
	return e.suggest()
}

// Short returns the error without suggestions.
func (e *LookupError) Short() string { return e.text(nil) }

// Denied returns the ids of tools that policy took out of the catalog and that the name
// would have found. It is for the audit; the text of the error does not depend on it.
func (e *LookupError) Denied() []string { return e.denied }

// Error returns the whole story, with what to do next, [LookupError.Suggestions] among it.
func (e *LookupError) Error() string { return e.text(e.Suggestions()) }

func (e *LookupError) text(suggestions []string) string {
	if n := len(e.Candidates); n > 0 {
		listed := e.Candidates[:min(n, 8)]
		text := fmt.Sprintf("%d tools are called %q; use the id of one: %s", n, e.Name, quoteAll(listed))
		if n > len(listed) {
			text += fmt.Sprintf(" and %d more", n-len(listed))
		}
		return text
	}
	text := fmt.Sprintf("there is no tool %q", e.Name)
	switch {
	case e.hint != "" && len(suggestions) > 0:
		return text + "; did you mean " + strings.Join(suggestions, " or ") + "? " + e.hint
	case e.hint != "":
		return text + "; " + e.hint
	case len(suggestions) > 0:
		return text + "; did you mean " + quoteAll(suggestions) + "?"
	}
	return text + "; find tools with tools.search(query) or in ALL_TOOLS"
}

// Resolve finds the tool that tools.call and tools.describe mean: an exact id, or
// a name that one tool alone has. Nothing is trimmed or folded. MCP tools are not
// found. The error is a *[LookupError].
func (c *Catalog) Resolve(idOrName string) (*Tool, error) {
	t := c.byID[idOrName]
	if t != nil && t.Source != MCP {
		return t, nil
	}
	named := c.byName[idOrName]
	if len(named) == 1 {
		return named[0], nil
	}
	e := &LookupError{Name: cut(strings.ToValidUTF8(idOrName, "\ufffd"), 80), denied: c.Denied(idOrName)}
	switch {
	case len(named) > 1:
		for _, t := range named {
			e.Candidates = append(e.Candidates, t.ID)
		}
	case t != nil:
		e.hint = "tools of MCP servers are called through MCP: " + t.Callable()
	default:
		e.suggest = func() []string { return c.suggest(idOrName) }
	}
	return nil, e
}

const maxSuggestions = 3

// suggest returns the ids of the tools whose names are most like what was asked for, best
// first.
func (c *Catalog) suggest(asked string) []string {
	name := asked
	if i := strings.LastIndexByte(asked, ':'); i >= 0 && i+1 < len(asked) {
		name = asked[i+1:]
	}
	known := make([]words.Candidate, len(c.native))
	for i, t := range c.native {
		known[i] = words.Candidate{Name: t.Name, Show: t.ID}
		if name != asked && strings.HasPrefix(t.ID, asked[:len(asked)-len(name)]) {
			known[i].Bonus = 0.1 // the right owner
		}
	}
	if near := words.Nearest(name, maxSuggestions, known); len(near) > 0 {
		return near
	}
	return c.suggestMCP("." + name)
}

// suggestMCP returns expressions that call the MCP tools whose paths are most like the one
// that was asked for, best first.
func (c *Catalog) suggestMCP(path string) []string {
	_, method, _ := strings.Cut(path, ".")
	known := make([]words.Candidate, len(c.mcp))
	for i, t := range c.mcp {
		server, name, _ := strings.Cut(t.path, ".")
		known[i] = words.Candidate{Name: name, Show: t.Callable()}
		if strings.HasPrefix(path, server+".") {
			known[i].Bonus = 0.1
		}
	}
	return words.Nearest(method, maxSuggestions, known)
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, ", ")
}
