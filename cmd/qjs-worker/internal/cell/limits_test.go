package cell

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

// The same engine and the same acorn give the same image.
func TestImageIsReproducible(t *testing.T) {
	again, err := BuildImage(testModule, acornSource())
	if err != nil {
		t.Fatal(err)
	}
	a, _ := testImage.MarshalBinary()
	b, _ := again.MarshalBinary()
	if !bytes.Equal(a, b) {
		t.Error("two builds of the parser's image differ")
	}
}

// SPEC 4.8, 13.2: sources that nest deeply, in every way that recurses, are refused, and the parser
// stays usable.
func TestDeepNesting(t *testing.T) {
	p := newTestParser(t)
	for name, source := range map[string]string{
		"parentheses":  strings.Repeat("(", 1e5),
		"brackets":     strings.Repeat("[", 1e5) + strings.Repeat("]", 1e5),
		"braces":       strings.Repeat("{", 1e5) + strings.Repeat("}", 1e5),
		"arrows":       strings.Repeat("a=>", 1e5) + "1",
		"functions":    strings.Repeat("function f(){", 1e5) + strings.Repeat("}", 1e5),
		"unary":        strings.Repeat("!", 1e5) + "1",
		"conditionals": strings.Repeat("a?b:", 1e5) + "1",
		"assignments":  strings.Repeat("a=", 1e5) + "1",
		"else if":      strings.Repeat("if(a);else ", 1e5) + ";",
		"templates":    strings.Repeat("`${", 1e5) + "1" + strings.Repeat("}`", 1e5),
		"power":        strings.Repeat("a**", 1e5) + "1",
		"new":          strings.Repeat("new ", 1e5) + "a",
		"await":        strings.Repeat("await ", 1e5) + "a",
		"object":       strings.Repeat("({a:", 1e5) + "1" + strings.Repeat("})", 1e5),
		"pattern":      "let " + strings.Repeat("[", 1e5) + "a" + strings.Repeat("]", 1e5) + "=b",
		"regex groups": "/" + strings.Repeat("(", 1e5) + strings.Repeat(")", 1e5) + "/",
	} {
		_, fault := p.Prepare(context.Background(), Input{Source: source})
		if fault == nil || fault.Code != CodeInvalidInput || !strings.Contains(fault.Message, "nested too deeply") {
			t.Errorf("%s: %.200v", name, fault)
		}
	}
	if _, fault := p.Prepare(context.Background(), Input{Source: "return 1"}); fault != nil {
		t.Errorf("afterwards: %v", fault)
	}
	// Long is not deep.
	for name, source := range map[string]string{
		"sum":        strings.Repeat("'a' + ", 5000) + "'b'",
		"chain":      "a" + strings.Repeat(".b()", 5000) + "; var require; import.a",
		"calls":      "a" + strings.Repeat("(1)", 5000),
		"statements": strings.Repeat("a;", 5000),
		"commas":     strings.Repeat("a,", 5000) + "a",
		"array":      "[" + strings.Repeat("1,", 5000) + "]",
		"or":         strings.Repeat("a || ", 5000) + "a",
	} {
		if _, fault := p.Prepare(context.Background(), Input{Source: source}); fault != nil && name != "chain" {
			t.Errorf("%s: %.200v", name, fault)
		} else if name == "chain" && (fault == nil || !strings.HasPrefix(fault.Message, "SyntaxError: The only valid meta property")) {
			t.Errorf("%s: %.200v", name, fault)
		}
	}
}

// SPEC 13.2: the deadline holds inside of the parser.
func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(20*time.Millisecond))
	defer cancel()
	source := strings.Repeat("f(a, b, {c: [d, e => e + 1]});\n", 50_000)
	start := time.Now()
	_, fault := newTestParser(t).Prepare(ctx, Input{Source: source})
	if fault == nil || fault.Code != CodeTimeout {
		t.Errorf("Prepare = %.200v", fault)
	}
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("it took %v", d)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, fault := newTestParser(t).Prepare(ended, Input{Source: source}); fault == nil || fault.Code != CodeTimeout {
		t.Errorf("Prepare with an ended context = %.200v", fault)
	}
}

// SPEC 13.3: a tree that does not fit.
func TestParserMemory(t *testing.T) {
	p := newTestParser(t)
	if err := p.vm.SetMemoryLimit(2 << 20); err != nil {
		t.Fatal(err)
	}
	_, fault := p.Prepare(context.Background(), Input{Source: strings.Repeat("f(a);\n", 50_000)})
	if fault == nil || fault.Code != CodeMemoryLimit {
		t.Errorf("Prepare = %.200v", fault)
	}
}

// What acorn accepts and the engine does not is reported where the model wrote it.
func TestEngineError(t *testing.T) {
	for source, want := range map[string]string{
		"f();\nlet await = 1": "SyntaxError: ",
	} {
		prog, fault := newTestParser(t).Prepare(context.Background(), Input{Source: source})
		if fault != nil {
			t.Fatal(fault)
		}
		if out := runProgram(t, prog); !strings.HasPrefix(out.Error, want) || !strings.Contains(out.Error, "(2:") || !strings.Contains(out.Error, "\n  2 | let await = 1\n    | ") {
			t.Errorf("%q: %s", source, out.Error)
		}
	}
}

// What acorn accepts the engine compiles as well, apart from what is known to differ:
// await and async as names. It shows, too, that the wrapper changes no meaning.
func TestEngineAgrees(t *testing.T) {
	p := newTestParser(t)
	vm, err := testModule.New(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Close()
	compiled := 0
	for _, source := range syntaxCorpus() {
		prog, fault := p.Prepare(context.Background(), Input{Source: source})
		if fault != nil {
			continue
		}
		_, err := vm.Eval(prog.Code, File, engine.CompileOnly)
		if err != nil && source != "var await" && !strings.Contains(source, "yield, await") {
			t.Errorf("%q as\n%s\n%v", source, prog.Code, err)
		}
		compiled++
	}
	if compiled < 70 {
		t.Errorf("only %d sources were compared", compiled)
	}
}

// FuzzPrepare: no source breaks the parser, whatever it says of it.
func FuzzPrepare(f *testing.F) {
	for _, s := range syntaxCorpus() {
		f.Add(s)
	}
	p := newTestParser(f)
	f.Fuzz(func(t *testing.T, source string) {
		if len(source) > 4096 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		prog, fault := p.Prepare(ctx, Input{Source: source})
		if fault != nil {
			if fault.Code == CodeInternal || fault.Code == CodeMemoryLimit {
				t.Fatalf("Prepare(%q): %s: %v", source, fault.Code, fault)
			}
			if fault.Line < 0 || fault.Line > strings.Count(source, "\n")+strings.Count(source, "\r")+1 || fault.Column > len(source)+1 {
				t.Fatalf("Prepare(%q): at %d:%d", source, fault.Line, fault.Column)
			}
			return
		}
		if !strings.HasPrefix(prog.Code, wrapperOpen) || !strings.HasSuffix(prog.Code, wrapperClose) {
			t.Fatalf("Prepare(%q) = %q", source, prog.Code)
		}
		if b, err := prog.Positions.MarshalBinary(); err != nil || new(Positions).UnmarshalBinary(b) != nil {
			t.Fatalf("Prepare(%q): the position map does not come back", source)
		}
	})
}
