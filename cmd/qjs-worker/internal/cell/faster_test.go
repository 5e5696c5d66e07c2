package cell

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

// parseAll gives, for each text, acorn's tree as JSON or its error, from a VM that has
// acorn with or without faster.js.
func parseAll(t *testing.T, faster bool, texts []string) []string {
	t.Helper()
	vm, err := testModule.New(engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Close()
	if _, err := vm.Eval(acornSource(), "acorn.js", engine.Script); err != nil {
		t.Fatal(err)
	}
	lib, err := vm.Get(vm.Global(), "acorn")
	if err != nil {
		t.Fatal(err)
	}
	read := vm.Undefined()
	if faster {
		f, err := vm.Eval(fasterJS, "faster.js", engine.Script)
		if err != nil {
			t.Fatal(err)
		}
		if read, err = vm.Call(f, lib); err != nil {
			t.Fatal(err)
		}
	}
	parse, err := vm.Eval(`(read, source, bytes, wide) => {
		if (read) read(bytes, wide);
		try {
			return JSON.stringify(acorn.parse(source, {ecmaVersion: "latest", allowReturnOutsideFunction: true, allowAwaitOutsideFunction: true,
				allowHashBang: true, allowImportExportEverywhere: true}), (k, v) => typeof v === "bigint" ? String(v) : v);
		} catch (e) {
			return e.name + ": " + e.message;
		}
	}`, "test.js", engine.Script)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, text := range texts {
		src, err := vm.NewString(text)
		if err != nil {
			t.Fatal(err)
		}
		raw, wide := units16(text)
		bytes, err := vm.NewBytes(raw)
		if err != nil {
			t.Fatal(err)
		}
		r, err := vm.Call(parse, read, src, bytes, vm.Bool(wide))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		s, err := vm.String(r)
		if err != nil {
			t.Fatal(err)
		}
		vm.Free(r)
		vm.Free(src)
		vm.Free(bytes)
		out = append(out, s)
	}
	return out
}

// faster.js must not change what acorn says, trees and errors alike. The texts are all
// sources of this package's tests, acorn itself, and each of them with one token cut out
// or doubled, which reaches the error paths.
func TestFasterIsAcorn(t *testing.T) {
	texts := syntaxCorpus()
	for _, text := range texts[:len(texts):len(texts)] {
		if len(text) > 4000 {
			continue
		}
		words := strings.Fields(text)
		for i := 0; i < len(words); i += 1 + len(words)/12 {
			w := strings.Clone(strings.Join(words[:i], " "))
			texts = append(texts, w+" "+strings.Join(words[i+1:], " "), w+"\n"+words[i]+" "+strings.Join(words[i:], "\n"))
		}
	}
	own := acornSource()
	texts = append(texts, own[:60_000], fasterJS, analyzeJS)
	want, got := parseAll(t, false, texts), parseAll(t, true, texts)
	errors := 0
	for i, text := range texts {
		if strings.HasPrefix(want[i], "SyntaxError") {
			errors++
		}
		if want[i] != got[i] {
			t.Errorf("%q:\n%s", text, cmp.Diff(want[i], got[i]))
		}
	}
	if errors < 100 || errors > len(texts)*9/10 {
		t.Errorf("%d of %d texts are errors: the corpus does not test both sides", errors, len(texts))
	}
	t.Logf("%d texts, %d of them errors", len(texts), errors)
}

// syntaxCorpus has each kind of JavaScript's syntax at least once.
func syntaxCorpus() []string {
	b, err := os.ReadFile("testdata/syntax.txt")
	if err != nil {
		panic(err)
	}
	texts := strings.Split(strings.TrimSpace(string(b)), "\n%%\n")
	return append(texts, sample, warmUp, sampleTS)
}
