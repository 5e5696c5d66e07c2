package engine

import (
	"context"
	"os"
	"testing"

	"github.com/tetratelabs/wazero"
)

func BenchmarkCompileCached(b *testing.B) {
	wasm, err := os.ReadFile("../assets/dist/quickjs.wasm")
	if err != nil {
		b.Fatalf("%v: run make deps", err)
	}
	dir := b.TempDir()
	for b.Loop() {
		m, err := Compile(context.Background(), wasm, dir, nil)
		if err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}

// What wazero's loop checks would cost, against the engine as it is: the ratio of the
// two is the reason why they are off.
func BenchmarkLoopChecks(b *testing.B) {
	for _, checks := range []bool{false, true} {
		name := map[bool]string{false: "off", true: "on"}[checks]
		m := &Module{ctx: context.Background(), spare: make(chan *VM, 1)}
		m.runtime = wazero.NewRuntimeWithConfig(m.ctx, runtimeConfig().WithCloseOnContextDone(checks))
		if err := m.defineImports(); err != nil {
			b.Fatal(err)
		}
		var err error
		if m.compiled, err = m.runtime.CompileModule(m.ctx, wasm(b)); err != nil {
			b.Fatal(err)
		}
		defer m.Close()
		for cell, source := range map[string]string{
			"fib25":   "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } fib(25)",
			"loop3e6": "let s = 0; for (let i = 0; i < 3e6; i++) s += i; s",
		} {
			b.Run(cell+"/checks-"+name, func(b *testing.B) {
				vm, err := m.New(Config{})
				if err != nil {
					b.Fatal(err)
				}
				defer vm.Close()
				for b.Loop() {
					v, err := vm.Eval("{"+source+"}", "bench.js", Script)
					if err != nil {
						b.Fatal(err)
					}
					vm.Free(v)
				}
			})
		}
	}
}
