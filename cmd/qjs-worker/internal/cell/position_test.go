package cell

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 4.4: an error's frames have the line and column of what the model wrote, in
// every form and language. The engine points at the callee of "new Error" (or at the
// last name in its arguments), at the property of a failed call, and at the start of a
// failed read's expression; it knows names, not literals.
func TestErrorPositions(t *testing.T) {
	for _, tt := range []struct {
		name     string
		source   string
		language Language
		want     string
	}{
		{"throw in the third line", "const a = 1;\nconst b = 2;\nthrow new Error('x')", JavaScript, "Error: x\n    at 3:11"},
		{"indented", "if (true) {\n  const a = 1;\n    throw new TypeError('x')\n}", JavaScript, "TypeError: x\n    at 3:15"},
		{"no error object", "throw 5", JavaScript, "5"},
		{"in a function", "function f() {\n  throw new Error('x');\n}\nf();", JavaScript, "Error: x\n    at f (2:13)\n    at 4:1"},
		{"behind an await", "let o = null;\nawait 1;\no.b", JavaScript, "TypeError: cannot read property 'b' of null\n    at 3:1"},
		{"last expression, shifted by return (", "const o = {};\no.a.b.c", JavaScript, "TypeError: cannot read property 'b' of undefined\n    at 2:1"},
		{"openclaw PR 95906: a literal, last", "const a = 1;\nnull.b", JavaScript, "TypeError: cannot read property 'b' of null\n    at 2:1"},
		{"a literal alone", "\n  null.b", JavaScript, "TypeError: cannot read property 'b' of null\n    at 2:3"},
		{"a literal in TypeScript", "const a: number = 1;\n  (null as any).b", TypeScript, "TypeError: cannot read property 'b' of null\n    at 2:4"},
		{"lone expression", "  nope()", JavaScript, "ReferenceError: nope is not defined\n    at 1:3"},
		{"behind the shift on the same line", "f(); function f() { throw new Error('x') }", JavaScript, "Error: x\n    at f (1:31)\n    at 1:1"},
		{"call in the last expression", "function f() { throw new Error('x') }\nf(1)", JavaScript, "Error: x\n    at f (1:26)\n    at 2:1"},
		{"through a built-in", "[1].map(() => {\n  throw new Error('x')\n})", JavaScript, "Error: x\n    at 2:13\n    at 1:5"},
		{"through eval", "function f() { eval('null.x') }\nf()", JavaScript, "TypeError: cannot read property 'x' of null\n    at f (1:16)\n    at 2:1"},
		{"through new Function", "new Function('null.x')()", JavaScript, "TypeError: cannot read property 'x' of null\n    at 1:5"},
		{"JSON.parse", "JSON.parse('{')", JavaScript, "SyntaxError: Expected property name or '}' in JSON at position 1 (line 1 column 2)\n    at 1:6"},

		{"lone arrow", "() => {\n  const a = 1;\n  throw new Error('x')\n}", JavaScript, "Error: x\n    at 3:13"},
		{"lone async arrow", "async () => {\n  await 1;\n  throw new Error('x')\n}", JavaScript, "Error: x\n    at 3:13"},
		{"lone arrow, one line", "() => { throw new Error('x') }", JavaScript, "Error: x\n    at 1:19"},
		{"lone arrow, expression", "() => nope()", JavaScript, "ReferenceError: nope is not defined\n    at 1:7"},
		{"lone function", "async function main() {\n  nope();\n}", JavaScript, "ReferenceError: nope is not defined\n    at main (2:3)"},
		{"lone function, comment and semicolon behind", "(function () { nope() }); // x\n// y", JavaScript, "ReferenceError: nope is not defined\n    at 1:16"},
		{"export default", "export default async () => {\n  nope()\n}", JavaScript, "ReferenceError: nope is not defined\n    at 2:3"},
		{"export default, same line", "export default () => { nope() }", JavaScript, "ReferenceError: nope is not defined\n    at 1:24"},
		{"export default of a function with a name", "export default function main() { nope() }", JavaScript, "ReferenceError: nope is not defined\n    at main (1:34)"},

		{"fence", "```js\nconst a = 1;\nthrow new Error('x')\n```", JavaScript, "Error: x\n    at 3:11"},
		{"fence behind blank lines", "\n\n  ```\nthrow new Error('x')\n  ```\n", JavaScript, "Error: x\n    at 4:11"},
		{"fence around an arrow", "```\n() => {\n  throw new Error('x')\n}\n```", JavaScript, "Error: x\n    at 3:13"},
		{"fence, CRLF", "```js\r\nconst a = 1;\r\nthrow new Error('x')\r\n```\r\n", JavaScript, "Error: x\n    at 3:11"},

		{"CRLF", "const a = 1;\r\n\r\nthrow new Error('x')", JavaScript, "Error: x\n    at 3:11"},
		{"CR", "const a = 1;\r\rthrow new Error('x')", JavaScript, "Error: x\n    at 3:11"},
		{"CR in a comment", "/* a\rb */ throw new Error('x')", JavaScript, "Error: x\n    at 2:16"},
		{"CR in a comment that ends a statement", "nope /* a\r */ ()", JavaScript, "ReferenceError: nope is not defined\n    at 1:1"},
		{"CR in a comment of export default", "export /* a\rb */ default /* c\rd */ () => { nope() }", JavaScript, "ReferenceError: nope is not defined\n    at 3:14"},
		{"CR in a template", "`a\rb`; throw new Error('x')", JavaScript, "Error: x\n    at 2:15"},
		{"U+2028 between statements", "f();\u2028throw new Error('x'); function f() {}", JavaScript, "Error: x\n    at 1:16"},
		{"U+2028 in a string", "'a\u2028b'; throw new Error('x')", JavaScript, "Error: x\n    at 1:18"},
		{"U+2028 in a template", "`a\u2028b`; throw new Error('x')", JavaScript, "Error: x\n    at 1:18"},
		{"U+2028 in a comment", "/* a\u2028b */ throw new Error('x')", JavaScript, "Error: x\n    at 1:21"},
		{"U+2028 behind a line comment", "// a\u2028throw new Error('x')", JavaScript, "Error: x\n    at 1:16"},
		{"U+2029 in an object literal", "{a: '\u2029', b: `\u2028`, c: nope()}", JavaScript, "ReferenceError: nope is not defined\n    at 1:21"},
		{"two-byte, three-byte and four-byte characters", "'é€😀'; throw new Error('x')", JavaScript, "Error: x\n    at 1:18"},
		{"astral characters in the line before", "'😀';\nthrow new Error('x')", JavaScript, "Error: x\n    at 2:11"},
		{"byte order mark", "\ufeffthrow new Error('x')", JavaScript, "Error: x\n    at 1:12"},
		{"tabs", "\t\tthrow new Error('x')", JavaScript, "Error: x\n    at 1:13"},
		{"hashbang", "#!/usr/bin/env node\nthrow new Error('x')", JavaScript, "Error: x\n    at 2:11"},

		{"TypeScript, types removed", "interface A {\n  x: number;\n}\nconst a: A = {x: 1};\nthrow new Error('x')", TypeScript, "Error: x\n    at 5:11"},
		{"TypeScript, types in the same line", "const f = (a: number, b: Array<string>): never => { throw new Error('x') }; f(1, [])", TypeScript, "Error: x\n    at f (1:63)\n    at 1:77"},
		{"TypeScript, generic call", "function f<T>(x: T): T {\n  return (x as any).y.z;\n}\nf<null>(null)", TypeScript, "TypeError: cannot read property 'y' of null\n    at f (2:11)\n    at 4:9"},
		{"TypeScript, lone arrow", "async (): Promise<void> => {\n  const a: number = 1;\n  throw new Error('x')\n}", TypeScript, "Error: x\n    at 3:13"},
		{"TypeScript, lone expression", "(nope as any).x", TypeScript, "ReferenceError: nope is not defined\n    at 1:2"},
		{"TypeScript, export default", "export default async (): Promise<number> => {\n  nope()\n  return 1\n}", TypeScript, "ReferenceError: nope is not defined\n    at 2:3"},
		{"TypeScript, object literal", "{\n  a: 1 as number,\n  b: nope(),\n}", TypeScript, "ReferenceError: nope is not defined\n    at 3:6"},
		{"TypeScript, fence", "```ts\nconst a: number = 1;\n\nthrow new Error('x')\n```", "", "Error: x\n    at 4:11"},
		{"TypeScript, astral characters", "const s: string = '😀é'; throw new Error('x')", TypeScript, "Error: x\n    at 1:35"},
		{"TypeScript, enum and method", "enum E { A, B }\nclass C {\n  constructor(private readonly e: E) {}\n  m(): void { throw new Error(`m`) }\n}\nnew C(E.B).m()", TypeScript, "Error: m\n    at m (4:25)\n    at 6:12"},
		{"TypeScript, comments removed", "// a\n/* b\n c */\n\n\nthrow new Error('x')", TypeScript, "Error: x\n    at 6:11"},
		{"TypeScript, namespace", "namespace N {\n  export const f = () => { throw new Error('x') }\n}\nN.f()", TypeScript, "Error: x\n    at 2:38\n    at 4:3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: tt.source, Language: tt.language})
			if fault != nil {
				t.Fatal(fault)
			}
			out := runProgram(t, prog)
			if diff := cmp.Diff(tt.want, out.Error); diff != "" {
				t.Errorf("%q as\n%s\n%s", tt.source, prog.Code, diff)
			}
			// The same in another process, after a restore.
			b, err := prog.Positions.MarshalBinary()
			if err != nil {
				t.Fatal(err)
			}
			var m Positions
			if err := m.UnmarshalBinary(b); err != nil {
				t.Fatal(err)
			}
			for _, f := range out.Frames {
				if line, column := m.at(offsetOf(tt.source, f.Line, f.Column)); line != f.Line || column != f.Column {
					t.Errorf("restored map gives %d:%d for %v", line, column, f)
				}
			}
			if diff := cmp.Diff(prog.Positions, m, cmp.AllowUnexported(Positions{}, run{}, wide{}), cmpEmpty); diff != "" {
				t.Errorf("map after a round trip: %s", diff)
			}
		})
	}
}

// cmpEmpty makes nil and empty lists equal.
var cmpEmpty = cmp.FilterValues(func(a, b []wide) bool { return len(a) == 0 && len(b) == 0 }, cmp.Comparer(func(a, b []wide) bool { return true }))

// offsetOf is the slow and simple way from a line and column to an offset.
func offsetOf(source string, line, column int) int {
	at := 0
	for range line - 1 {
		_, rest, _ := cutLine(source[at:])
		at = len(source) - len(rest)
	}
	for i := range source[at:] {
		if column--; column == 0 {
			return at + i
		}
	}
	return len(source)
}

// Every position of a JavaScript source comes back as itself.
func TestPositionsOfEveryByte(t *testing.T) {
	for _, source := range append(syntaxCorpus(), "é\r\n😀\rb\n\nc", "```js\nfé()\n```") {
		prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source})
		if fault != nil {
			continue
		}
		last := 0
		for i := range prog.Code {
			line := strings.Count(prog.Code[:i], "\n") + 1
			column := i - strings.LastIndex(prog.Code[:i], "\n")
			if strings.ContainsAny(prog.Code, "\r\u2028\u2029") {
				break // counted elsewhere: TestErrorPositions
			}
			l, c, ok := prog.Positions.find(line, column)
			if !ok || strings.HasPrefix(prog.Code[i:], "__codemode_value = (0,") {
				continue
			}
			at := offsetOf(source, l, c)
			if at < last || at < len(source) && prog.Code[i] != source[at] && !strings.HasPrefix(source, "#!") {
				t.Fatalf("%q: byte %d of the code is at %d:%d, which is byte %d", source, i, l, c, at)
			}
			last = at
		}
		if last < len(strings.TrimRight(source, "` \n"))-4 {
			t.Errorf("%q: the last byte that has a position is %d", source, last)
		}
	}
}

// SPEC 4.4: frames are the cell's only, and few.
func TestFrames(t *testing.T) {
	prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: "a\nb\nc;"})
	if fault != nil {
		t.Fatal(fault)
	}
	for _, tt := range []struct {
		name, stack string
		want        []Frame
	}{
		{"empty", "", nil},
		{"cell", "    at f (cell.js:2:1)\n    at <anonymous> (cell.js:3:1)\n", []Frame{{"f", 1, 1}, {"", 2, 1}}},
		{"syntax error", "    at cell.js:3:1\n", []Frame{{"", 2, 1}}},
		{"native and other files", "    at map (native)\n    at g (prelude.js:2:1)\n    at <eval> (<input>:1:1)\n    at x (cell.jsx:2:1)\n    at y (cell.js:2:1)", []Frame{{"y", 1, 1}}},
		{"wrapper", "    at <anonymous> (cell.js:1:1)\n    at <anonymous> (cell.js:5:2)\n    at <anonymous> (cell.js:5:1)", nil},
		{"inserted text", "    at <anonymous> (cell.js:4:3)\n    at <anonymous> (cell.js:4:1)\n    at <anonymous> (cell.js:4:23)", []Frame{{"", 3, 1}, {"", 3, 1}}},
		{"no such place", "    at f (cell.js:0:1)\n    at f (cell.js:2:0)\n    at f (cell.js:2:999)\n    at f (cell.js:999:1)\n    at f (cell.js:-1:1)\n    at f (cell.js:99999999999999999999:1)\n    at f (cell.js:2:2147483648)", nil},
		{"forged", "    at f (cell.js:2)\n    at f (cell.js:a:b)\n    at f (cell.js:2:1\n at f (cell.js:2:1)\nat f (cell.js:2:1)\n    at (cell.js:2:1)\n    at )\n    at  (", nil},
		{"name with brackets", "    at a (b) (cell.js:2:1)", []Frame{{"a (b)", 1, 1}}},
		{"name with control characters", "    at a\x1b[31m\r (cell.js:2:1)", []Frame{{"a [31m ", 1, 1}}},
		{"many", strings.Repeat("    at f (cell.js:2:1)\n", 1000), []Frame{{"f", 1, 1}, {"f", 1, 1}, {"f", 1, 1}, {"f", 1, 1}, {"f", 1, 1}, {"f", 1, 1}, {"f", 1, 1}, {"f", 1, 1}, {"f", 1, 1}, {"f", 1, 1}}},
		{"far away", strings.Repeat("x\n", maxStack) + "    at f (cell.js:2:1)\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, prog.Frames(tt.stack)); diff != "" {
				t.Error(diff)
			}
		})
	}
	long := prog.Frames("    at " + strings.Repeat("é", 1000) + " (cell.js:2:1)")
	if len(long) != 1 || len(long[0].Function) > maxFunction+30 {
		t.Errorf("a name of 2000 bytes gives %q", long)
	}
}

// SPEC 4.4: name, message and frames; what the guest makes up stays bounded.
func TestFormatError(t *testing.T) {
	for _, tt := range []struct {
		name, message string
		frames        []Frame
		want          string
	}{
		{"TypeError", "no", []Frame{{"f", 2, 9}, {"", 3, 1}}, "TypeError: no\n    at f (2:9)\n    at 3:1"},
		{"Error", "", nil, "Error"},
		{"", "thrown", nil, "thrown"},
		{"", "", nil, ""},
		{"A\nB", "a\nb", nil, "A B: a\nb"},
	} {
		if got := FormatError(tt.name, tt.message, tt.frames); got != tt.want {
			t.Errorf("FormatError(%q, %q, %v) = %q, want %q", tt.name, tt.message, tt.frames, got, tt.want)
		}
	}
	huge := strings.Repeat("😀", 1<<20)
	if got := FormatError(huge, huge, make([]Frame, 1000)); len(got) > maxMessage+4*maxName+1000 {
		t.Errorf("FormatError of huge parts has %d bytes", len(got))
	}
}

// A stored map that is damaged is refused or harmless (SPEC 14.3 seals it; this is the
// second line).
func FuzzUnmarshalPositions(f *testing.F) {
	p := newTestParser(f)
	for _, source := range []string{"1", "const a = 1;\n'é😀';\na", "```js\n() => 1\n```"} {
		prog, fault := p.Prepare(context.Background(), Input{Source: source})
		if fault != nil {
			f.Fatal(fault)
		}
		b, err := prog.Positions.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Add([]byte{})
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Positions
		if m.UnmarshalBinary(b) != nil {
			if len(m.engine)+len(m.lines)+len(m.runs) != 0 {
				t.Error("an error left something behind")
			}
		}
		for line := -1; line < 10; line++ {
			for _, column := range []int{-1, 0, 1, 2, 1 << 20, 1 << 31} {
				if l, c, ok := m.find(line, column); ok && (l < 1) {
					t.Errorf("%d:%d is at %d:%d", line, column, l, c)
				}
			}
		}
	})
}

// FuzzFrames reads stacks that a guest made up.
func FuzzFrames(f *testing.F) {
	prog, fault := newTestParser(f).Prepare(context.Background(), Input{Source: "const a = '😀';\nf(a)"})
	if fault != nil {
		f.Fatal(fault)
	}
	for _, s := range []string{"    at f (cell.js:2:9)\n    at map (native)", "    at cell.js:1:1", "    at (cell.js:2:1)", "    at a (b (cell.js:2:1)", "    at \x00 (cell.js:3:99999999999)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stack string) {
		frames := prog.Frames(stack)
		if len(frames) > maxFrames {
			t.Errorf("%d frames", len(frames))
		}
		for _, fr := range frames {
			if fr.Line < 1 || fr.Line > 2 || fr.Column < 1 || fr.Column > 20 || len(fr.Function) > maxFunction+30 || strings.ContainsAny(fr.Function, "\r\n\x1b") {
				t.Errorf("frame %+v of %q", fr, stack)
			}
		}
		FormatError(stack, stack, frames)
	})
}
