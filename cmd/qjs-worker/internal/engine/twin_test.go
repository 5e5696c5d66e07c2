package engine

import (
	"context"
	"os"
	"testing"
)

func BenchmarkCompileCached(b *testing.B) {
	wasm, err := os.ReadFile("../assets/dist/quickjs.wasm")
	if err != nil {
		b.Fatalf("%v: run make deps", err)
	}
	dir := b.TempDir()
	for b.Loop() {
		m, err := Compile(context.Background(), wasm, dir)
		if err != nil {
			b.Fatal(err)
		}
		m.Close()
	}
}
