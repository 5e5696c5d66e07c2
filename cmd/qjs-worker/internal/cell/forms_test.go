package cell

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 4.1: each form works, in JavaScript and in TypeScript.
func TestForms(t *testing.T) {
	for _, tt := range []struct {
		name   string
		source string
		form   Form
		value  string // JSON
	}{
		{"expression", "1+1", Expression, "2"},
		{"expression, semicolon", "1+1;", Expression, "2"},
		{"expression, many semicolons", "1+1;;;", Expression, "2"},
		{"expression, line comment at the end", "1+1 // two", Expression, "2"},
		{"expression, comment before the semicolon", "1+1 // two\n;", Expression, "2"},
		{"expression, comments around", "/* a */ 1+1 /* b */", Expression, "2"},
		{"comma expression", "1, 2", Expression, "2"},
		{"await expression", "await Promise.resolve(3)", Expression, "3"},
		{"promise", "Promise.resolve(4)", Expression, "4"},
		{"template", "`a${1}`", Expression, `"a1"`},
		{"parenthesised", "(5)", Expression, "5"},
		{"immediately called", "(async () => { return 6 })()", Expression, "6"},
		{"assignment", "x = 7", Expression, "7"},
		{"directive only", `"use strict"`, Expression, `"use strict"`},
		{"object literal", "{a: 1, b: [2]}", Expression, `{"a":1,"b":[2]}`},
		{"object literal, one key", "{a: 1}", Expression, `{"a":1}`},
		{"object literal, semicolon", "{a: 1};", Expression, `{"a":1}`},
		{"object literal, empty", "{}", Expression, "{}"},
		{"object literal, shorthand method", "{a() { return 1 }, b: 2}", Expression, `{"a":"[function]","b":2}`},
		{"object literal, over lines", "{\n  a: 1,\n  b: 2,\n}\n", Expression, `{"a":1,"b":2}`},
		{"object literal, comment before", "// result\n{a: 1}", Expression, `{"a":1}`},
		{"object literal, continued", "{a: 1}.a", Expression, "1"},

		{"return", "return 1", Statements, "1"},
		{"early return", "if (true) { return 1 } 2", Statements, "1"},
		{"return without value", "return", Statements, "null"},
		{"return and await", "const r = await Promise.resolve(2); return r", Statements, "2"},
		{"last expression", "const x = 1; x * 2", Statements, "2"},
		{"last expression, no semicolon before", "const x = 1\nx * 2", Statements, "2"},
		{"last expression, parenthesised", "const x = 1; (x, 3);", Statements, "3"},
		{"last expression, awaited", "const x = 1; await x", Statements, "1"},
		{"last expression, object", "const x = 1; ({x})", Statements, `{"x":1}`},
		{"last expression, async arrow is not called", "const x = 1; () => x", Statements, `"[function]"`},
		{"function declarations behind the last expression", "main(); async function main() { return 8 }", Statements, "8"},
		{"two expressions", "1; 2", Statements, "2"},
		{"if is no expression", "if (true) { 2 }", Statements, "null"},
		{"try is no expression", "try { 2 } catch {}", Statements, "null"},
		{"for is no expression", "for (const x of [1]) x", Statements, "null"},
		{"block", "{ const x = 1; return x }", Statements, "1"},
		{"block without result", "{ let x; f(); function f() {} }", Statements, "null"},
		{"declaration", "const x = 1", Statements, "null"},
		{"two functions", "function a() { return 1 } function b() { return 2 }", Statements, "null"},
		{"lone class", "class A {}", Statements, "null"},
		{"lone generator", "function* g() { yield 1 }", Statements, "null"},
		{"generator expression", "(function* () { yield 1 })", Expression, `"[function]"`},
		{"shadowing", "const text = 1; let tools = 2; var console = 3; function json() {} return text + tools + console", Statements, "6"},
		{"for await", "let n = 0; for await (const x of [1, 2]) n += x; return n", Statements, "3"},
		{"await using", "await using x = null; using y = null; return 1", Statements, "1"},
		{"label", "a: for (;;) { break a } 9", Statements, "9"},
		{"this and arguments of a script", "return [this === globalThis, typeof arguments]", Statements, `[true,"undefined"]`},

		{"arrow", "() => 1", Function, "1"},
		{"async arrow", "async () => 1", Function, "1"},
		{"async arrow, body", "async () => { return await 1 }", Function, "1"},
		{"arrow, semicolon and comment", "() => 1; // done", Function, "1"},
		{"arrow, parenthesised", "(async () => 1)", Function, "1"},
		{"arrow, twice parenthesised", "((async () => 1));", Function, "1"},
		{"arrow with a parameter", "x => x === undefined", Function, "true"},
		{"function", "function main() { return 2 }", Function, "2"},
		{"async function", "async function main() { return 2 }", Function, "2"},
		{"function, recursive", "function f(n = 3) { return n ? n + f(n - 1) : 0 }", Function, "6"},
		{"function without a name", "function () { return 3 }", Function, "3"},
		{"async function without a name", "async function () { return 3 };", Function, "3"},
		{"function, parenthesised", "(function () { return 4 })", Function, "4"},
		{"export default arrow", "export default async () => 1", Function, "1"},
		{"export default arrow, parenthesised", "export default (async () => 1);", Function, "1"},
		{"export default function", "export default async function () { return 2 }", Function, "2"},
		{"export default function with a name", "export default function main() { return 3 }", Function, "3"},
		{"export default behind statements", "const x = 4;\nexport default () => x;", Function, "4"},
		{"export default before what it needs", "export default async function main() { return helper() }\nfunction helper() { return 5 }", Function, "5"},
		{"export default, called back", "export default function main(n = 2) { return n ? back(n) : 6 }\nfunction back(n) { return main(n - 1) }", Function, "6"},
		{"export default before a const", "export default function main() { return x }\nconst x = 7\n", Function, "7"},
		{"export default, comments", "/* a */ export /* b */ default /* c */ () => 8 // d", Function, "8"},
		{"export default expression", "export default 1 + 1", Expression, "2"},
		{"export default expression behind statements", "const x = 1; export default (x + 1)", Statements, "2"},
		{"export default object", "export default {a: 1};", Expression, `{"a":1}`},

		{"nothing", "", Statements, "null"},
		{"blank", " \n\t", Statements, "null"},
		{"comment", "// nothing", Statements, "null"},
		{"block comment", "/* nothing */", Statements, "null"},
		{"semicolons", ";;", Statements, "null"},

		{"line comment at the end", "return 1 // one", Statements, "1"},
		{"CRLF", "const a = 1\r\nreturn a\r\n", Statements, "1"},
		{"byte order mark", "\ufeffreturn 1", Statements, "1"},
		{"astral characters", "const 𠮷 = '😀'; return 𠮷", Statements, `"😀"`},
		{"U+2028 in a string", "return 'a\u2028b'.length", Statements, "3"},
		{"U+2028 as a line break", "const a = 1\u2028return a", Statements, "1"},
		{"NUL in a string", "return 'a\x00b'.length", Statements, "3"},
		{"hashbang", "#!/usr/bin/env node\nreturn 1", Statements, "1"},
		{"strict directive", "'use strict'; return this === undefined", Statements, "false"},
		{"escapes in names", `const \u0061b = 1; return ab`, Statements, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, language := range []Language{JavaScript, TypeScript} {
				prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: tt.source, Language: language})
				if fault != nil {
					t.Errorf("%s: Prepare(%q): %v", language, tt.source, fault)
					continue
				}
				if prog.Form != tt.form || prog.Fenced || prog.Language != language {
					t.Errorf("%s: Prepare(%q) = form %s, fenced %v, language %s; want %s, false", language, tt.source, prog.Form, prog.Fenced, prog.Language, tt.form)
				}
				if diff := cmp.Diff(outcome{Value: tt.value}, runProgram(t, prog)); diff != "" {
					t.Errorf("%s: running %q as\n%s\n%s", language, tt.source, prog.Code, diff)
				}
			}
		})
	}
}

// SPEC 4.1: sloppy mode, which TypeScript's transform must not change.
func TestSloppy(t *testing.T) {
	// with, octal literals and HTML comments exist in sloppy scripts only. esbuild
	// refuses the last two.
	for source, want := range map[string]string{
		"with ({a: 1}) return a":            "1",
		"return 010":                        "8",
		"<!-- x\nreturn 1\n--> y":           "1",
		"--> y\nreturn 1":                   "1",
		"undeclared = 1; undeclared":        "1",
		"var a = 1; var a = 2; a":           "2",
		"(function () { return !!this })()": "true",
	} {
		prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source})
		if fault != nil {
			t.Errorf("Prepare(%q): %v", source, fault)
			continue
		}
		if diff := cmp.Diff(outcome{Value: want}, runProgram(t, prog)); diff != "" {
			t.Errorf("%q: %s", source, diff)
		}
	}
}

// A fault's message starts with text and its place and has an excerpt of two lines
// (SPEC 4.4).
type faultCase struct {
	name         string
	source       string
	code         string
	line, column int
	text         string // the message up to the place
	excerpt      string // "" does not look
}

func checkFaults(t *testing.T, language Language, cases []faultCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: tt.source, Language: language})
			if fault == nil {
				t.Fatalf("Prepare(%q) accepted it as\n%s", tt.source, prog.Code)
			}
			if fault.Code != tt.code || fault.Line != tt.line || fault.Column != tt.column || !strings.HasPrefix(fault.Message, tt.text) || !strings.Contains(fault.Message, tt.excerpt) {
				t.Errorf("Prepare(%q) = %s at %d:%d\n%s\nwant %s at %d:%d\n%s\n%s", tt.source, fault.Code, fault.Line, fault.Column, fault.Message, tt.code, tt.line, tt.column, tt.text, tt.excerpt)
			}
		})
	}
}

// SPEC 4.4, 11.2: syntax errors are invalid_input, with the place in what the model wrote.
func TestSyntaxErrors(t *testing.T) {
	checkFaults(t, JavaScript, []faultCase{
		{"missing value", "const a = 1;\nlet = ;", CodeInvalidInput, 2, 7, "SyntaxError: Unexpected token ';' (2:7)\n", "  2 | let = ;\n    |       ^"},
		{"end of input", "f(1,", CodeInvalidInput, 1, 5, "SyntaxError: Unexpected end of input (1:5)\n", "  1 | f(1,\n    |     ^"},
		{"end of input on another line", "if (x) {\n  y()\n", CodeInvalidInput, 3, 1, "SyntaxError: Unexpected end of input (3:1)\n", "  3 | \n    | ^"},
		{"tab", "\tconst x = ;", CodeInvalidInput, 1, 12, "SyntaxError: Unexpected token ';' (1:12)\n", "  1 | \tconst x = ;\n    | \t          ^"},
		{"CRLF", "a\r\nb\r\nc d", CodeInvalidInput, 3, 3, "SyntaxError: Unexpected token 'd' (3:3)\n", "  3 | c d\n    |   ^"},
		{"CR", "a\rb\rc d", CodeInvalidInput, 3, 3, "SyntaxError: Unexpected token 'd' (3:3)\n", ""},
		{"U+2028 is no line", "a\u2028b\u2028c d", CodeInvalidInput, 1, 7, "SyntaxError: Unexpected token 'd' (1:7)\n", "  1 | a b c d\n    |       ^"},
		{"astral characters are one column", "'😀é' d", CodeInvalidInput, 1, 6, "SyntaxError: Unexpected token 'd' (1:6)\n", "  1 | '😀é' d\n    |      ^"},
		{"byte order mark", "\ufeffa d", CodeInvalidInput, 1, 4, "SyntaxError: Unexpected token 'd' (1:4)\n", "  1 | a d\n    |   ^"},
		{"fence", "```js\nconst a = 1;\nlet = ;\n```", CodeInvalidInput, 3, 7, "SyntaxError: Unexpected token ';' (3:7)\n", "  3 | let = ;\n    |       ^"},
		{"fence, end of input", "```js\nf(1,\n```", CodeInvalidInput, 2, 5, "SyntaxError: Unexpected end of input (2:5)\n", ""},
		{"object literal", "{a: 1, b: }", CodeInvalidInput, 1, 11, "SyntaxError: Unexpected token '}' (1:11)\n", ""},
		{"block", "{ f(); x y }", CodeInvalidInput, 1, 10, "SyntaxError: Unexpected token 'y' (1:10)\n", ""},
		{"wrapper escape", "} evil {", CodeInvalidInput, 1, 1, "SyntaxError: Unexpected token '}' (1:1)\n", ""},
		{"wrapper escape, function", "}); evil(); (async () => {", CodeInvalidInput, 1, 1, "SyntaxError: Unexpected token '}' (1:1)\n", ""},
		{"wrapper escape, parenthesis", "1) + (2", CodeInvalidInput, 1, 2, "SyntaxError: Unexpected token ')' (1:2)\n", ""},
		{"wrapper escape, comment", "1 /*", CodeInvalidInput, 1, 3, "SyntaxError: Unterminated comment (1:3)\n", ""},
		{"wrapper escape, template", "`", CodeInvalidInput, 1, 2, "SyntaxError: Unterminated template", ""},
		{"await in a plain function", "function f() { await 1 }", CodeInvalidInput, 1, 22, "SyntaxError: Unexpected token '1' (1:22)\n", ""},
		{"regular expression", "/(/", CodeInvalidInput, 1, 2, "SyntaxError: Invalid regular expression: /(/: Unterminated group", ""},
		{"declared twice", "let a; let a", CodeInvalidInput, 1, 12, "SyntaxError: Identifier 'a' has already been declared (1:12)\n", ""},
		{"strict mode", "'use strict'; with (a) b", CodeInvalidInput, 1, 15, "SyntaxError: 'with' in strict mode (1:15)\n", ""},
		{"new.target", "new.target", CodeInvalidInput, 1, 1, "SyntaxError: 'new.target' can only be used in functions", ""},
		{"export", "export const a = 1", CodeInvalidInput, 1, 1, "SyntaxError: 'export' works in a cell only as one 'export default'", ""},
		{"export in a block", "{ export default 1 }", CodeInvalidInput, 1, 3, "SyntaxError: 'export' works in a cell only as", ""},
		{"export default in the middle", "export default 1; f()", CodeInvalidInput, 1, 1, "SyntaxError: 'export default' of an expression must be the cell's last statement", ""},
		{"export default class", "export default class {}", CodeInvalidInput, 1, 1, "SyntaxError: 'export default' of a class", ""},
		{"two export defaults", "export default 1; export default 2", CodeInvalidInput, 1, 26, "SyntaxError: Duplicate export 'default'", ""},
		{"long line", strings.Repeat("x+", 400) + ";" + strings.Repeat("y", 400), CodeInvalidInput, 1, 801, "SyntaxError: Unexpected token ';' (1:801)\n", "  1 | …+x+x"},
		{"long token", "a " + strings.Repeat("y", 400), CodeInvalidInput, 1, 3, "SyntaxError: Unexpected token 'yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…' (1:3)\n", ""},
		{"not UTF-8", "a\xffb", CodeInvalidInput, 0, 0, "the source is not valid UTF-8 at byte 1", ""},
	})
}

// What is probably TypeScript, or badly fenced, is told so.
func TestHints(t *testing.T) {
	const typescript, fence = `language: "typescript"`, "code fence"
	for source, want := range map[string]string{
		"const x: number = 1":                     typescript,
		"function f(a: string) {}":                typescript,
		"interface A { a: string }":               typescript,
		"type A = string":                         typescript,
		"enum A { B }":                            typescript,
		"const a = b as string":                   typescript,
		"let = ;":                                 "",
		"{a: 1, b: }":                             "",
		"```json\n{}\n```":                        fence,
		"```js\nreturn 1\n```\ntrailing words":    fence,
		"```js\nreturn 1":                         fence,
		"Here is the code:\n```js\nreturn 1\n```": "",
		"const s = 'as ' + ;":                     "",
	} {
		_, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source})
		if fault == nil || fault.Code != CodeInvalidInput || fault.Shell {
			t.Errorf("Prepare(%q) = %v", source, fault)
			continue
		}
		for _, hint := range []string{typescript, fence} {
			if got := strings.Contains(fault.Message, hint); got != (hint == want) {
				t.Errorf("Prepare(%q): hint %q is there: %v\n%s", source, hint, got, fault.Message)
			}
		}
	}
}
