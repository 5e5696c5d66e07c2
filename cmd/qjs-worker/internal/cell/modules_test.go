package cell

import (
	"context"
	"strings"
	"testing"
)

// SPEC 5.2: text, members, methods, parameters and local names are not module access.
func TestModulesAccepted(t *testing.T) {
	for _, source := range []string{
		`"import x from 'y'"`,
		`'require("fs")'`,
		"`require('fs')`",
		"return `import('x')`",
		"return `a ${`import(\"x\")`} import.meta`",
		"return String.raw`require('a')`",
		"// import fs from 'fs'\nreturn 1",
		"/* require('fs'); import('x') */ return 1",
		"return 1 // require('fs')",
		"<!-- require('fs')\nreturn 1",
		`return /import\.meta/.test("import.meta")`,
		`return /require\("fs"\)/.test("x")`,
		`const a = 4, g = 2; return a / g / /import\("x"\)/.source.length`,
		`const o = {a: 4}; return o.if / 2 / 1 + "import('x')".length`,
		`let i = 4; const r = i++ / 2; return r + "/require('x')/".length`,
		`if (1) /require("a")/.test("b"); return 1`,
		`const o = {require() { return 7 }}; return o.require()`,
		`const o = {import() { return 7 }}; return o.import()`,
		`const o = {import: () => 1, require: () => 2}; return o["import"]() + o?.require?.()`,
		`class A { static import() { return 1 } require() { return 2 } #require() { return 3 } x() { return this.#require() } } return A.import() + new A().require() + new A().x()`,
		`class A { require = 1; static import = 2 } return A.import`,
		`return {import: 1, require: 2}.require`,
		`const require = (x) => x; return require("fs")`,
		`function require(x) { return x } return require("fs")`,
		`{ function require(x) { return x } } return require("fs")`,
		`return require("fs"); function require(x) { return x }`,
		`var require; try { return require("fs") } catch (e) { return 1 }`,
		`if (false) { var require = 1 } return typeof require`,
		`for (var require = () => 1; ;) { return require() }`,
		`for (let require = () => 1; ;) { return require() }`,
		`for (const require of [() => 2]) return require("x")`,
		`return ((require) => require("x"))((x) => x)`,
		`return (function ({require}) { return require("x") })({require: (x) => x})`,
		`return (function ([a, ...require]) { return require.length })([1])`,
		`return ((a, {b: {c: require = (x) => x}}) => require(a))(1, {b: {}})`,
		`return (function require(n) { return n ? require(n - 1) : 1 })(2)`,
		`try { throw (x) => x } catch (require) { return require("x") }`,
		`try { throw {require: (x) => x} } catch ({require}) { return require("x") }`,
		`class require { static a = new require(); } return new require() && 1`,
		`const {require} = {require: (x) => x}; return require("x")`,
		`const [require = (x) => x] = []; return (() => require("x"))()`,
		`switch (1) { case 1: let require = (x) => x; return require("x") }`,
		`require: for (;;) { break require } return 1`,
		`return typeof require`,
		`return typeof require === "function" ? 1 : 2`,
		`const important = 1, requires = 2, $require = (x) => x; return important + $require(requires)`,
		`const importFrom = (x) => x; return importFrom("x")`,
		`const a = {}; a.require = (x) => x; return a.require("x")`,
		`function f() { const require = () => 1; return require() } return f()`,
		"return `${((require) => require('x'))((x) => x)}`",
		`const x = "😀"; return "import('y')" + x`,
		`const text = "import docs later"; text`,
		`return JSON.stringify({"import": 1, "require": [2]})`,
	} {
		t.Run(source, func(t *testing.T) {
			for _, language := range []Language{JavaScript, TypeScript} {
				if language == TypeScript && strings.HasPrefix(source, "<!--") {
					continue // esbuild has no HTML comments in modules, which TypeScript files are
				}
				prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source, Language: language})
				if fault != nil {
					t.Errorf("%s: %v", language, fault)
					continue
				}
				if out := runProgram(t, prog); out.Error != "" {
					t.Errorf("%s: running it: %s", language, out.Error)
				}
			}
		})
	}
}

// SPEC 5.1: what is module access fails before any guest code runs.
func TestModulesRefused(t *testing.T) {
	for _, tt := range []struct {
		source string
		place  string // what begins where the fault is; "" is the start
	}{
		{`import fs from "fs"`, ""},
		{`import "fs"`, ""},
		{`import * as fs from 'fs'; return 1`, ""},
		{`import {a, b as c} from "x"`, ""},
		{`import a, {b} from "x"`, ""},
		{`import a, * as b from "x"`, ""},
		{`import {default as a} from "x"`, ""},
		{`import a from "x" with {type: "json"}`, ""},
		{"const a = 1\nimport fs from 'fs'\nreturn a", "import fs"},
		{"const a = 1; import fs from 'fs'", "import fs"},
		{"import fs\nfrom 'fs'", ""},
		{"/* c */ import /* d */ fs /* e */ from /* f */ 'fs'", "import"},
		{`export * from "x"`, ""},
		{`export * as a from "x"`, ""},
		{`export {a} from "x"`, ""},
		{`export {default} from "x"`, ""},
		{`import("fs")`, ""},
		{`await import("fs")`, "import"},
		{`const {readFile} = await import("node:fs/promises"); return 1`, "import"},
		{`import ("fs")`, ""},
		{"import\n(\n'fs')", ""},
		{`import/* c */("fs")`, ""},
		{"import(`fs`)", ""},
		{`import("f" + "s")`, ""},
		{"return `${import('fs')}`", "import("},
		{"return `a ${`b ${import('fs')}`}`", "import("},
		{`const x = "harmless"; return x + import("fs")`, "import("},
		{`const a = 4 / 2; import("fs")`, "import("},
		{`"😀é"; import("fs")`, "import("},
		{`import.meta`, ""},
		{`return import.meta.url`, "import.meta"},
		{"import\n.\nmeta", ""},
		{`() => import("fs")`, "import("},
		{`class A { static x = import("fs") }`, "import("},
		{`if (false) import("fs")`, "import("},
		{`require("fs")`, ""},
		{`require('node:fs')`, ""},
		{`const fs = require("fs"); return 1`, "require("},
		{"require(`fs`)", ""},
		{`require ("fs")`, ""},
		{`require/* c */("fs")`, ""},
		{`require?.("fs")`, ""},
		{`(require)("fs")`, ""},
		{`((require))("fs")`, ""},
		{`(0, require)("fs")`, ""},
		{`(0, (1, require))?.("fs")`, ""},
		{`(require ?? null)("fs")`, ""},
		{`(typeof require === "function" ? require : null)("fs")`, ""},
		{`let r; (r = require)("fs")`, "(r ="},
		{`new require("fs")`, ""},
		{`new (require)("fs")`, ""},
		{`require("fs").readFileSync("x")`, ""},
		{`require("fs")?.a`, ""},
		{"require`fs`", ""},
		{`r\u0065quire("fs")`, ""},
		{`\u{72}equire("fs")`, ""},
		{"return `${require('fs')}`", "require("},
		{"return `a ${[`${require('fs')}`]}`", "require("},
		{`const o = {a: require("fs")}; return o`, "require("},
		{`const f = (a = require("fs")) => a; return f()`, "require("},
		{`function f() { const require = (x) => x } return require("fs")`, `require("fs")`},
		{`{ let require = 1 } return require("fs")`, `require("fs")`},
		{`(function require() {}); require("fs")`, `require("fs")`},
		{`try {} catch (require) {} require("fs")`, `require("fs")`},
		{`const o = {require() { return require("fs") }}; return o.require()`, `require("fs")`},
		{`function f(a = require("x")) { var require } f()`, `require("x")`},
		{`for (let require of []) ; require("fs")`, `require("fs")`},
		{`async () => { return require("fs") }`, "require("},
		{`export default () => require("fs")`, "require("},
		{`{a: require("fs")}`, "require("},
		{"```js\nrequire('fs')\n```", "require("},
		{"with ({}) require('fs')", "require("},
		// Not parseable, but the declaration is there in the parser's tokens.
		{"import fs from 'fs'\nlet = ;", ""},
		{"let x = ;\nimport {a} from 'b'", "import"},
	} {
		t.Run(tt.source, func(t *testing.T) {
			for _, language := range []Language{JavaScript, TypeScript} {
				prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: tt.source, Language: language})
				if fault == nil {
					t.Fatalf("%s: accepted as\n%s", language, prog.Code)
				}
				if fault.Code != CodeModule || !strings.Contains(fault.Message, "tools.*") {
					t.Errorf("%s: %s: %s", language, fault.Code, fault.Message)
				}
				m := newPositions("", tt.source, nil, nil)
				line, column := m.at(max(0, strings.LastIndex(tt.source, tt.place)))
				if tt.place == "" {
					line, column = 1, 1
				}
				if language == TypeScript && strings.HasPrefix(tt.source, "(") {
					continue // the transform takes the parentheses away
				}
				if fault.Line != line || fault.Column != column {
					t.Errorf("%s: at %d:%d, want %d:%d\n%s", language, fault.Line, fault.Column, line, column, fault.Message)
				}
			}
		})
	}
}

// SPEC 5.1: in TypeScript the imports that the transform would erase are refused too.
func TestModulesRefusedTypeScript(t *testing.T) {
	for _, source := range []string{
		`import type {A} from "a"; return 1`,
		`import type A from "a"`,
		`import {type A} from "a"`,
		`import type * as a from "a"`,
		`import a = require("a")`,
		`import type a = require("a")`,
		`export type {A} from "a"`,
		`export type * from "a"`,
		`export import a = require("a")`,
		`const x: number = 1;` + "\n" + `import fs from "fs"`,
		`const x = <T,>(a: T) => a;` + "\n" + `import type {A} from "a"`,
		`interface A { b: string }` + "\n" + `import fs from "fs"; const s = "😀"`,
		`const x: import("fs").Stats = null`,
		`type A = typeof import("fs")`,
		`let a!: Array<import("x").Y>`,
		`const a = b! / 2 / 3` + "\n" + `import type {A} from "a"`,
		`namespace A { export const b = require("c") }`,
		`enum A { B = require("c").d }`,
		`return require("fs") as any`,
		`return (require as any)("fs")`,
		`return require!("fs")`,
		`return (<any>require)("fs")`,
		`return await import("fs") as unknown`,
		`const a: string = import.meta.url`,
	} {
		t.Run(source, func(t *testing.T) {
			prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source, Language: TypeScript})
			if fault == nil {
				t.Fatalf("accepted as\n%s", prog.Code)
			}
			if fault.Code != CodeModule {
				t.Errorf("%s: %s", fault.Code, fault.Message)
			}
		})
	}
	for _, source := range []string{
		`declare function require(x: string): any; return 1`,
		`interface A { import(x: string): void; require(x: string): void } return 1`,
		`type A = {import: string}; const a: A = {import: "b"}; return a.import`,
		`const f = (require: (x: string) => string) => require("a"); return f((x) => x)`,
		`class A { constructor(private require: (x: string) => string) {} x() { return this.require("a") } } return new A((x) => x).x()`,
	} {
		t.Run(source, func(t *testing.T) {
			prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source, Language: TypeScript})
			if fault != nil {
				t.Fatal(fault)
			}
			if out := runProgram(t, prog); out.Error != "" {
				t.Error(out.Error)
			}
		})
	}
}

// Unparseable text is not blamed for modules (SPEC 5.2).
func TestModulesNotBlamed(t *testing.T) {
	for _, source := range []string{
		"import the data and tell me",
		"let = ; // import fs from 'fs'",
		"let = 'import fs from \"fs\"' +",
		"const x = ; foo.import('y')",
		"export",
		"(import x from 'y')",
	} {
		_, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source})
		if fault == nil || fault.Code != CodeInvalidInput {
			t.Errorf("Prepare(%q) = %v, want a syntax error", source, fault)
		}
	}
}
