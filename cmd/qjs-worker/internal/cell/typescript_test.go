package cell

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 4.1, 4.7: the syntax of TypeScript works.
func TestTypeScript(t *testing.T) {
	for _, tt := range []struct {
		name, source, value string
		form                Form
	}{
		{"annotations", "const a: number = 1; const f = (x: string, y?: number): string => x + y; return f('a', a)", `"a1"`, Statements},
		{"interface and type", "interface A { b: number } type C = A & {d?: string}; const c: C = {b: 1}; c", `{"b":1}`, Statements},
		{"only types", "interface A { b: number }\ntype B = A", "null", Statements},
		{"as, satisfies, non-null", "const a = {b: 1} as const; const c = (a satisfies object).b!; return c as unknown as string", "1", Statements},
		{"angle bracket cast", "return <number>1", "1", Statements},
		{"generics", "function id<T extends number | string = string>(x: T): T { return x } return id<number>(1) + [2].map<number>((x) => x)[0]", "3", Statements},
		{"generic arrow", "const id = <T,>(x: T) => x; return id<number>(1)", "1", Statements},
		{"enum", "enum A { B, C = 5, D } return [A.B, A.D, A[5]]", `[0,6,"C"]`, Statements},
		{"enum, string", "enum A { B = 'b' } A.B", `"b"`, Statements},
		{"const enum", "const enum A { B = 3 } A.B", "3", Statements},
		{"namespace", "namespace A { export const b = 1; export namespace C { export const d = 2 } } A.b + A.C.d", "3", Statements},
		{"namespace and await", "namespace A { export const b = 1 } await Promise.resolve(A.b)", "1", Statements},
		{"namespace and return", "namespace A { export const b = 1 } return A.b", "1", Statements},
		{"declare", "declare const a: number; declare function b(): void; declare module 'c' { export const d: number } declare global { interface E {} } return typeof a", `"undefined"`, Statements},
		{"declare namespace", "declare namespace A { const b: number } return 1", "1", Statements},
		{"parameter properties", "class A { constructor(private a: number, public readonly b = 2) {} sum() { return this.a + this.b } } return new A(1).sum()", "3", Statements},
		{"abstract class", "abstract class A { abstract m(): number; n() { return this.m() } } class B extends A implements Object { override m() { return 4 } } new B().n()", "4", Statements},
		{"class members", "class A<T> { private x?: T; static readonly y: number = 1; declare z: string; #w = 2; get v(): number { return this.#w } [k: string]: any } return Object.keys(new A()).concat(String(new A().v))", `["x","2"]`, Statements},
		{"overloads", "function f(a: string): string; function f(a: number): number; function f(a: any) { return a } return f(1)", "1", Statements},
		{"decorators", "function d(v: any, c: any) { return c.kind === 'class' ? class extends v { e = 1 } : v } @d class A { @d m() { return 2 } } return [new (A as any)().e, new A().m()]", "[1,2]", Statements},
		{"using", "using x = null as any; await using y = null; return 1", "1", Statements},
		{"optional chaining and assignment", "let a: any; a ??= {b: [1]}; return a?.b?.[0]", "1", Statements},
		{"this parameter", "function f(this: {a: number}, b: number) { return this.a + b } return f.call({a: 1}, 2)", "3", Statements},
		{"type guard", "const g = (x: unknown): x is string => typeof x === 'string'; return g('a')", "true", Statements},
		{"assertion function", "function a(x: any): asserts x is string {} a(1); return 1", "1", Statements},
		{"tuple and template types", "type A = [a: string, b?: number, ...c: boolean[]]; type B = `x${string}`; const a: A = ['b']; a", `["b"]`, Statements},
		{"conditional type", "type A<T> = T extends (infer U)[] ? U : never; return 1", "1", Statements},
		{"catch type", "try { throw 1 } catch (e: unknown) { return e as number }", "1", Statements},
		{"accessor keyword", "class A { accessor x = 1 } return new A().x", "1", Statements},
		{"shadowing", "const text: string = 'a'; const tools = 1; return text + tools", `"a1"`, Statements},
		{"names of helpers", "const __defProp = 1; function d(v: any, c: any) {} @d class A {} return __defProp", "1", Statements},
		{"return and await", "const a: number = await Promise.resolve(1); return a", "1", Statements},
		{"expression", "(1 as number) + 1", "2", Expression},
		{"object literal", "{a: 1 as number, b: <string>'c'}", `{"a":1,"b":"c"}`, Expression},
		{"object literal, semicolon", "{a: 1 as number};\n", `{"a":1}`, Expression},
		{"arrow", "async (): Promise<number> => 1", "1", Function},
		{"generic lone arrow", "<T,>(x?: T): number => 1", "1", Function},
		{"arrow, parenthesised, cast", "((): number => 1)", "1", Function},
		{"function", "async function main(x?: number): Promise<number> { return 1 }", "1", Function},
		{"function without a name", "async function (): Promise<number> { return 1 }", "1", Function},
		{"export default", "interface A { b: number }\nexport default async (): Promise<A> => ({b: 1})", `{"b":1}`, Function},
		{"export default function", "type A = number\nexport default function main(): A { return helper() }\nfunction helper(): A { return 1 }", "1", Function},
		{"regular expressions", "return /[\\/]a/v.test('/a') && 'a/b'.split(/\\//).length", "2", Statements},
		{"template in many lines", "const a: string = `x\n  y`; return a", `"x\n  y"`, Statements},
		{"strict mode is off", "return (function (this: any) { return this === globalThis })()", "true", Statements},
		{"not strict", "undeclared = 1; return undeclared", "1", Statements},
		{"comments", "/* a */ const a: number = 1 // b\nreturn a // c", "1", Statements},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: tt.source, Language: TypeScript})
			if fault != nil {
				t.Fatal(fault)
			}
			if prog.Form != tt.form {
				t.Errorf("form %s, want %s", prog.Form, tt.form)
			}
			if diff := cmp.Diff(outcome{Value: tt.value}, runProgram(t, prog)); diff != "" {
				t.Errorf("%s\n%s", prog.Code, diff)
			}
		})
	}
}

// SPEC 4.7: diagnostics come with positions in what the model wrote.
func TestTypeScriptErrors(t *testing.T) {
	checkFaults(t, TypeScript, []faultCase{
		{"missing value", "const a: number = 1;\nlet b: string = ;", CodeTransform, 2, 17, "TypeScript: Unexpected \";\" (2:17)\n", "  2 | let b: string = ;\n    |                 ^"},
		{"astral characters", "'😀é' d", CodeTransform, 1, 6, "TypeScript: Expected \";\" but found \"d\" (1:6)\n", ""},
		{"CRLF", "a\r\nb d", CodeTransform, 2, 3, "TypeScript: Expected \";\" but found \"d\" (2:3)\n", ""},
		{"fence", "```ts\nconst a: = 1\n```", CodeTransform, 2, 10, "TypeScript: Unexpected \"=\" (2:10)\n", "  2 | const a: = 1\n    |          ^"},
		{"end of input", "if (a) {\n  b()", CodeTransform, 2, 6, "TypeScript: Unexpected end of input (2:6)\n", ""},
		{"wrapper escape", "} evil {", CodeTransform, 1, 3, "TypeScript: Expected", ""},
		{"wrapper escape, function", "}); evil(); (async () => {", CodeInvalidInput, 1, 10, "SyntaxError: Unexpected token '}'", ""},
		{"wrapper escape, assignment", "}); x = (() => {", CodeInvalidInput, 1, 17, "SyntaxError: Unexpected token '}'", ""},
		{"wrapper escape, name", "}); x = {f() {", CodeTransform, 1, 15, "TypeScript: Unexpected end of input", ""},
		{"wrapper escape, block", "}); ({", CodeInvalidInput, 1, 1, "SyntaxError: ", ""},
		{"object literal", "{a: 1, b: }", CodeTransform, 1, 11, "TypeScript: Unexpected \"}\" (1:11)\n", ""},
		{"export", "export const a = 1", CodeTransform, 1, 1, "TypeScript: Unexpected \"export\" (1:1)\n", "'export' works in a cell only as one 'export default'"},
		{"namespace with both", "namespace A { export const b = 1 } return await A.b", CodeTransform, 1, 36, "TypeScript: a cell with a namespace cannot", ""},
		{"JSX", "return <div>a</div>", CodeTransform, 1, 20, "TypeScript: Unterminated regular expression", ""},
	})
}

// SPEC 4.7: a JavaScript cell never touches the transformer, and a TypeScript one says
// so first.
func TestTransformIsForTypeScript(t *testing.T) {
	p := newTestParser(t)
	var calls []string
	real := p.transform
	p.transform = func(text string) (*transformed, error) {
		calls = append(calls, "transform")
		return real(text)
	}
	for _, tt := range []struct {
		source   string
		language Language
		want     []string
	}{
		{"return 1", "", nil},
		{"return 1", JavaScript, nil},
		{"const a: number = 1", "", nil},
		{"```js\nreturn 1\n```", "", nil},
		{"import fs from 'fs'", "", nil},
		{"import fs from 'fs'", TypeScript, nil},
		{"return 1", TypeScript, []string{"announced", "transform"}},
		{"```ts\nreturn 1\n```", "", []string{"announced", "transform"}},
	} {
		calls = nil
		p.Prepare(context.Background(), Input{Source: tt.source, Language: tt.language, Transforming: func() { calls = append(calls, "announced") }})
		if diff := cmp.Diff(tt.want, calls); diff != "" {
			t.Errorf("%q as %q: %s", tt.source, tt.language, diff)
		}
	}
}

// SPEC 3.2: a language that nobody knows.
func TestUnsupportedLanguage(t *testing.T) {
	_, fault := newTestParser(t).Prepare(context.Background(), Input{Source: "return 1", Language: "python"})
	if fault == nil || fault.Code != CodeLanguage || !strings.Contains(fault.Message, `"python"`) {
		t.Errorf("Prepare = %v", fault)
	}
}

// The decoder of source maps refuses what is none.
func TestMapRuns(t *testing.T) {
	for _, mappings := range []string{"!", "g", "AAAAgggggggB", "A,A,AAAA=", "\x00"} {
		if runs, err := mapRuns(mappings, "a\nb", "a\nb"); err == nil && mappings != "A,A,AAAA=" {
			t.Errorf("mapRuns(%q) = %v", mappings, runs)
		}
	}
	for _, tt := range []struct {
		mappings, gen, src string
		want               []run
	}{
		{"AAAA;AACA,IAAI", "abc\nab xyz", "abc\nab xyz", []run{{0, 0, copied}}},
		{"AAAA;EACA", "ab\n  cd", "ab\ncd", []run{{0, 0, copied}, {5, 3, copied}}},
		{"AAAA,EAAE", "a=1", "a: b=1", []run{{0, 0, copied}, {1, 0, point}, {2, 2, point}}},
		{"EAAA", "x a", "a", []run{{0, 0, ours}, {2, 0, copied}}},
	} {
		runs, err := mapRuns(tt.mappings, tt.gen, tt.src)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, runs, cmp.AllowUnexported(run{})); diff != "" {
			t.Errorf("mapRuns(%q, %q, %q): %s", tt.mappings, tt.gen, tt.src, diff)
		}
	}
}

func FuzzMapRuns(f *testing.F) {
	f.Add("AAAA;AACA,IAAI", "abc\nab xyz", "abc\nab  xyz")
	f.Add(";;;;", "é\u2028b", "😀")
	f.Add("AAAA,D", "", "")
	f.Add("YAAA;A", "0", "0")
	f.Fuzz(func(t *testing.T, mappings, gen, src string) {
		runs, err := mapRuns(mappings, gen, src)
		if err != nil {
			return
		}
		for i, r := range runs {
			if i > 0 && r.gen <= runs[i-1].gen || int(r.gen) > len(gen) || r.src < 0 || int(r.src) > len(src) {
				t.Errorf("run %d of %v is out of order", i, runs)
			}
		}
	})
}
