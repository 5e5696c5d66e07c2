// Package catalog holds the tools that one agent run may call: who they are, how
// a cell finds and names them, and what input they take (SPEC 6).
//
//	c, warnings, err := catalog.Build(entries, catalog.Options{})
//	hits, err := c.Search("open a pull request", nil)  // tools.search
//	tool, err := c.Resolve("create_issue")              // tools.call, tools.describe
//	input, err := tool.CheckInput([]byte(`{"title":"x"}`))
//
// A [Catalog] never changes after [Build] and may be used by any number of
// goroutines. It runs nothing and asks nobody: which entries a run may see was
// decided before Build (SPEC 2.2), and calling a tool is the supervisor's work.
// MCP entries are kept, but the functions behind the guest's `tools` object do
// not show them (SPEC 6.3); [Catalog.MCP] does.
//
// Tool definitions come from plugins and servers and are not trusted: a schema
// that is malformed, enormous, refers to other documents or cannot be compiled
// costs its tool the schema and is said in a [Warning]; nothing is ever loaded
// from a file or the network. Input comes from the guest and is hostile: it is
// bounded before it is decoded, and so is the work of checking it.
package catalog
