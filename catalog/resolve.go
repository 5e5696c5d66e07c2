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
	// Suggestions are at most three ids, or expressions, of tools that may have been meant.
	Suggestions []string

	hint   string // how to find tools, where that is not tools.search
	denied []string
}

// Denied returns the ids of tools that policy took out of the catalog and that the name
// would have found. It is for the audit; the text of the error does not depend on it.
func (e *LookupError) Denied() []string { return e.denied }

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
	switch {
	case e.hint != "" && len(e.Suggestions) > 0:
		return text + "; did you mean " + strings.Join(e.Suggestions, " or ") + "? " + e.hint
	case e.hint != "":
		return text + "; " + e.hint
	case len(e.Suggestions) > 0:
		return text + "; did you mean " + quoteAll(e.Suggestions) + "?"
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
		e.Suggestions = c.suggest(idOrName, 3)
	}
	return nil, e
}

// suggest returns the ids of the tools whose names are most like what was asked for, best
// first.
func (c *Catalog) suggest(asked string, limit int) []string {
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
	if near := words.Nearest(name, limit, known); len(near) > 0 {
		return near
	}
	return c.suggestMCP("."+name, limit)
}

// suggestMCP returns expressions that call the MCP tools whose paths are most like the one
// that was asked for, best first.
func (c *Catalog) suggestMCP(path string, limit int) []string {
	_, method, _ := strings.Cut(path, ".")
	known := make([]words.Candidate, len(c.mcp))
	for i, t := range c.mcp {
		server, name, _ := strings.Cut(t.path, ".")
		known[i] = words.Candidate{Name: name, Show: t.Callable()}
		if strings.HasPrefix(path, server+".") {
			known[i].Bonus = 0.1
		}
	}
	return words.Nearest(method, limit, known)
}

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, ", ")
}
