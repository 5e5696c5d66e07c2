package declare

import "strconv"

// Unavailable is a server that failed to start.
type Unavailable struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Index renders mcp/index.d.ts: which servers there are, with their files, which failed
// to start and why, and MCP.$api(). It does not refer to the files, and compiles with
// them or without.
func Index(servers []Server, unavailable []Unavailable) string {
	var p printer
	p.str("// Each server is MCP.<identifier>; its file has the types of its functions.\n")
	for _, s := range servers {
		id := identifier(s.Identifier)
		p.str("// MCP.", id, ": server ", comment(quote(cut(s.Name, 160)), 200), ", ",
			count(len(s.Methods), len(s.Methods), "function"), ", mcp/", id, ".d.ts\n")
	}
	if len(servers) == 0 {
		p.str("// No server is available.\n")
	}
	for _, u := range unavailable {
		p.str("// Unavailable: server ", comment(quote(cut(u.Name, 160)), 200), ": ", comment(cut(u.Reason, 1000), 300), "\n")
	}
	p.str(`declare namespace MCP {
  /** The servers, and this text. */
  function $api(): Promise<{
    servers: { identifier: string; name: string; functions: number; file: string }[];
    unavailable?: { name: string; reason: string }[];
    header: string;
  }>;
}
`)
	return string(p.b)
}

// count says how many of all things there are.
func count(n, all int, what string) string {
	text := strconv.Itoa(n)
	if n != all {
		text += " of " + strconv.Itoa(all)
	}
	text += " " + what
	if all != 1 {
		text += "s"
	}
	return text
}
