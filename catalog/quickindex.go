package catalog

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog/declare"
)

// QuickIndex returns the index of tools for the prompt, in at most limit characters (SPEC
// 2.5): a line for each tool, `name input -> output`, where name is how a cell calls it.
// Tools that declare their output come first, each group by id. A line that does not
// fit is skipped, and the last line says how many were. Equal catalogs give equal bytes.
// Without tools it is empty.
func (c *Catalog) QuickIndex(limit int) string {
	ordered := slices.Clone(c.tools)
	slices.SortStableFunc(ordered, func(a, b *Tool) int {
		return boolInt(len(a.OutputSchema) == 0) - boolInt(len(b.OutputSchema) == 0)
	})
	room := limit
	var kept []string
	var left []*Tool
	for i, t := range ordered {
		// The last line needs room only if there is one, and every tool but the last may be
		// followed by one that does not fit.
		reserve := 0
		if i < len(ordered)-1 || len(left) > 0 {
			reserve = maxRest
		}
		line, ok := "", false
		if len(left) < maxSkipped {
			line, ok = t.indexLine(room - reserve)
		}
		if !ok {
			left = append(left, t)
			continue
		}
		kept = append(kept, line)
		room -= utf8.RuneCountInString(line)
	}
	if len(left) > 0 && room >= maxRest {
		kept = append(kept, rest(left))
	}
	return strings.Join(kept, "")
}

const (
	// maxRest is how long the last line may be, in characters.
	maxRest = 160

	// maxSkipped is how many lines are skipped before the rest is left out unseen: what a line
	// takes is known when it is rendered.
	maxSkipped = 300
)

func rest(left []*Tool) string {
	mcp := 0
	for _, t := range left {
		mcp += boolInt(t.Source == MCP)
	}
	switch {
	case mcp == 0:
		return fmt.Sprintf("(%d more: find them with tools.search(query))\n", len(left))
	case mcp == len(left):
		return fmt.Sprintf("(%d more under MCP: read API.read(\"mcp/index.d.ts\"))\n", len(left))
	}
	return fmt.Sprintf("(%d more: %d found by tools.search(query), %d under MCP: read API.read(\"mcp/index.d.ts\"))\n", len(left), len(left)-mcp, mcp)
}

// indexLine renders a tool's line, if it has at most limit characters.
func (t *Tool) indexLine(limit int) (string, bool) {
	name := strings.TrimSuffix(t.Callable(), "(…)")
	if t.function == "" && t.Source != MCP {
		name = "tools.call " + string(encode(t.ID))
	}
	const shortest = len(" {} -> unknown\n") - 4 // {} may be left out, some types are shorter
	if utf8.RuneCountInString(name)+shortest > limit {
		return "", false // without rendering: most tools of a large catalog end here
	}
	line := name + " " + t.inputHint() + " -> " + t.outputHint() + "\n"
	return line, utf8.RuneCountInString(line) <= limit
}

// inputHint is the type of the input on one line.
func (t *Tool) inputHint() string {
	if len(t.Parameters) == 0 {
		return "object"
	}
	return declare.Inline(t.Parameters, maxHintInput)
}

// outputHint is the type of what the tool declares as its output on one line: of an MCP
// tool that is structuredContent.
func (t *Tool) outputHint() string { return declare.Inline(t.OutputSchema, maxHintOutput) }

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
