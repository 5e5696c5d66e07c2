// Package declare renders JSON Schemas as TypeScript declarations for a language
// model to read.
//
//	server := declare.Server{Identifier: "github", Name: "GitHub", Methods: methods}
//	text := server.File(64 << 10)                        // mcp/github.d.ts
//	declare.Inline(schema, 300)                          // { owner: string; repo: string; … }
//	declare.ToolFile("plugin:x:get_user", "get_user", method, 16<<10)
//
// A type accepts what its schema accepts, or more, never less: a program that the
// schema allows must compile. What TypeScript cannot say (a pattern, a range, `not`)
// is widened and said in a short comment. Schemas come from servers that are not
// trusted: no text of theirs can leave its comment or its string, and time, depth and
// size are bounded whatever they hold. Over a bound a type becomes `unknown`.
//
// All functions are pure: the same input gives the same bytes. They are safe for
// concurrent use and do not fail; of a schema that is no schema they say `unknown`.
//
// Two things are not checked here: that the paths of a server's methods differ, and
// that they are not reserved words. Declarations are for reading; nothing relies on
// them to refuse an input.
package declare
