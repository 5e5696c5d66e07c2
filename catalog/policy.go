package catalog

import (
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// Policy says which tools a run may have, and which of them a person must approve. It is
// plain data; the zero value allows all.
//
// A pattern is compared with every way in which a tool can be named: its id, the id that
// its owner and name would give it, its name, its convenience name (tools.<name>), and
// its path under MCP (MCP.<server>.<tool>, or MCP.<server> for all of a server; in Deny and Approve also
// with the number that it has where others want the same name). In a pattern `*` stands for any text; all else,
// the case of letters too, is meant as it is.
type Policy struct {
	// Allow lists what is allowed. Empty means everything. Names are given by the tools'
	// owners: who must be sure writes ids.
	Allow []string
	// Deny lists what is denied. It wins over Allow.
	Deny []string
	// Approve lists what is allowed once a person has approved the call.
	Approve []string
}

// Apply returns the entries with the verdict in [Entry.Denied] and [Entry.Approval]. What is
// denied already, or needs approval, stays so. The argument is not changed.
func (p Policy) Apply(entries []Entry) []Entry {
	judged := slices.Clone(entries)
	for i := range judged {
		names := judged[i].names()
		allowed := len(p.Allow) == 0 || matchAny(p.Allow, names)
		if !allowed || matchAny(p.Deny, names) {
			judged[i].Denied = true
		}
		if matchAny(p.Approve, names) {
			judged[i].Approval = true
		}
	}
	if len(p.Deny)+len(p.Approve) > 0 {
		p.judgeNumbered(judged)
	}
	return judged
}

// maxRounds is how often names with numbers are given anew before all that want one of them
// are denied.
const maxRounds = 8

// judgeNumbered judges what a pattern means by a name that it has because others have it, too:
// MCP.github.getUser2. With one of them denied the others move up, so it goes on until no name
// that a cell would see is denied; those names are the ones that may need approval.
func (p Policy) judgeNumbered(judged []Entry) {
	var left []*Entry
	for i := range judged {
		if e := &judged[i]; e.Source == MCP && !e.Denied {
			left = append(left, e)
		}
	}
	slices.SortStableFunc(left, func(a, b *Entry) int { return strings.Compare(a.id(), b.id()) })
	for round := 1; ; round++ {
		names, wanted := newNamer(), map[[2]string]bool{}
		for _, e := range left {
			server, member := names.name(e)
			paths := []string{"MCP." + server, "MCP." + server + "." + member}
			if matchAny(p.Deny, paths) {
				e.Denied = true
				wanted[[2]string{e.SourceName, e.member()}] = true
			}
			// In any round: better a person is asked too often than not at all.
			e.Approval = e.Approval || matchAny(p.Approve, paths)
		}
		if len(wanted) == 0 {
			return
		}
		left = slices.DeleteFunc(left, func(e *Entry) bool {
			if round >= maxRounds && wanted[[2]string{e.SourceName, e.member()}] {
				e.Denied = true
			}
			return e.Denied
		})
	}
}

// id is the one that the catalog gives the entry.
func (e *Entry) id() string {
	if e.ID != "" {
		return e.ID
	}
	if e.Operation != "" {
		return ID(e.Source, e.SourceName, string(e.Operation))
	}
	return ID(e.Source, e.SourceName, e.Name)
}

// names lists all that the entry can be called by.
func (e *Entry) names() []string {
	name := e.Name
	if e.Operation != "" {
		name = string(e.Operation)
	}
	names := []string{ID(e.Source, e.SourceName, name), name}
	if e.ID != "" {
		names = append(names, e.ID)
	}
	if e.Source == MCP {
		server := "MCP." + identifier(e.SourceName, "server")
		return append(names, server+"."+e.member(), server)
	}
	return append(names, "tools."+ConvenienceName(name), ConvenienceName(name))
}

func matchAny(patterns, names []string) bool {
	for _, p := range patterns {
		if slices.ContainsFunc(names, func(name string) bool { return words.Match(p, name) }) {
			return true
		}
	}
	return false
}

// deny takes out what has the id of a denied tool, and notes what those would be called.
func (b *builder) deny() {
	c := b.catalog
	slices.SortFunc(c.gone, func(a, b Entry) int { return strings.Compare(a.ID, b.ID) })
	c.gone = slices.CompactFunc(c.gone, func(a, b Entry) bool { return a.ID == b.ID && a.Name == b.Name && a.SourceName == b.SourceName })
	c.denied = map[string][]string{}
	for i := range c.gone {
		e := &c.gone[i]
		if c.byID[e.ID] != nil {
			b.warnf(e.ID, "left out: policy denies a tool with this id")
			delete(c.byID, e.ID)
		}
		for _, name := range e.names() {
			if !slices.Contains(c.denied[name], e.ID) {
				c.denied[name] = append(c.denied[name], e.ID)
			}
		}
	}
	c.sweep()
}

// sweep takes the tools out of the list whose ids are no longer known.
func (c *Catalog) sweep() {
	c.tools = slices.DeleteFunc(c.tools, func(t *Tool) bool { return c.byID[t.ID] != t })
}

// Denied returns the ids of tools that policy denied and that go by what a cell asked for: an
// id, a name, `tools.<name>`, `MCP.<server>`, `MCP.<server>.<tool>` or `mcp/<server>.d.ts`. It is for the audit, and for nobody
// else: to a cell such a tool does not exist (SPEC 6.5).
func (c *Catalog) Denied(asked string) []string {
	if server, ok := strings.CutPrefix(asked, "mcp/"); ok {
		asked = "MCP." + strings.TrimSuffix(server, ".d.ts")
	}
	return c.denied[asked]
}
