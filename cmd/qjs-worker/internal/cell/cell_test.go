package cell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

// The engine and the parser's image, made once for all tests.
var (
	testModule *engine.Module
	testImage  *engine.Image
)

func TestMain(m *testing.M) { os.Exit(run1(m)) }

func run1(m *testing.M) int {
	wasm, err := os.ReadFile("../assets/dist/quickjs.wasm")
	if err == nil {
		testModule, err = engine.Compile(context.Background(), wasm, "", nil)
	}
	if err == nil {
		testImage, err = BuildImage(testModule, acornSource())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cell tests need the engine and the parser (make deps):", err)
		return 1
	}
	defer testModule.Close()
	return m.Run()
}

func acornSource() string {
	b, _ := os.ReadFile("../assets/dist/acorn.js")
	return string(b)
}

func newTestParser(tb testing.TB) *Parser {
	tb.Helper()
	p, err := NewParser(testModule, testImage)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.Close() })
	return p
}

// outcome is what became of a cell that was prepared and run.
type outcome struct {
	Value  string // JSON
	Error  string // FormatError's text
	Frames []Frame
}

// runProgram evaluates a program as the serve loop does and waits for its promise.
func runProgram(tb testing.TB, prog *Program) outcome {
	tb.Helper()
	vm, err := testModule.New(engine.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	defer vm.Close()
	f, err := vm.Eval(prog.Code, File, engine.Script)
	if err != nil {
		return outcome{Error: prog.EngineError(err).Message}
	}
	settle, err := vm.Eval(`var done = null; (f) => { f().then(
		v => done = {value: JSON.stringify(v === undefined ? null : v, (k, v) => typeof v === "function" ? "[function]" : v)},
		e => done = e instanceof Error ? {name: e.name, message: String(e.message), stack: String(e.stack)} : {name: "", message: String(e), stack: ""}) }`, "test.js", engine.Script)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := vm.Call(settle, f); err != nil {
		tb.Fatal(err)
	}
	if _, err := vm.RunJobs(); err != nil {
		tb.Fatal(err)
	}
	r, err := vm.Eval("JSON.stringify(done)", "test.js", engine.Script)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := vm.String(r)
	if err != nil {
		tb.Fatal(err)
	}
	var done *struct{ Value, Name, Message, Stack string }
	if err := json.Unmarshal([]byte(text), &done); err != nil {
		tb.Fatal(err)
	}
	if done == nil {
		tb.Fatalf("the promise of %q never settled", prog.Code)
	}
	if done.Name == "" && done.Message == "" {
		return outcome{Value: done.Value}
	}
	frames := prog.Frames(done.Stack)
	return outcome{Error: FormatError(done.Name, done.Message, frames), Frames: frames}
}
