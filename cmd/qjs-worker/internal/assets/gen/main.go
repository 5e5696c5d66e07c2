// Command gen makes what a worker has ready of its engine: the memory of a QuickJS VM
// with the prelude, and of one with the parser, to be copied into fresh instances, and
// the machine code for processors like this one. All depend on the wasm to the byte, so
// they are built where it is fetched and not committed.
//
// It runs in the assets directory: go generate ./cmd/qjs-worker/...
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/assets"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/cell"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

func main() {
	if err := run("dist"); err != nil {
		fmt.Fprintln(os.Stderr, "gen: error:", err)
		os.Exit(1)
	}
}

func run(dist string) error {
	wasm, err := os.ReadFile(filepath.Join(dist, "quickjs.wasm"))
	if err != nil {
		return fmt.Errorf("%w\nhint: make deps", err)
	}
	acorn, err := os.ReadFile(filepath.Join(dist, "acorn.js"))
	if err != nil {
		return fmt.Errorf("%w\nhint: make deps", err)
	}
	mod, err := engine.Compile(context.Background(), wasm, "", nil)
	if err != nil {
		return err
	}
	defer mod.Close()
	for name, build := range map[string]func() (*engine.Image, error){
		assets.GuestImage:  func() (*engine.Image, error) { return guest.Build(mod) },
		assets.ParserImage: func() (*engine.Image, error) { return cell.BuildImage(mod, string(acorn)) },
	} {
		img, err := build()
		if err != nil {
			return fmt.Errorf("building %s: %w", name, err)
		}
		b, err := img.MarshalBinary()
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dist, name), b); err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "gen: %s: %d pages, %d bytes\n", name, len(img.Pages), len(b))
	}
	code, err := engine.Precompile(context.Background(), wasm)
	if err != nil {
		return fmt.Errorf("compiling ahead: %w", err)
	}
	b, err := code.MarshalBinary()
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "gen: %s: %s, %d bytes\n", assets.CodeFile, code.Entry, len(b))
	return writeFile(filepath.Join(dist, assets.CodeFile), b)
}

// writeFile replaces a file at once: another build may be reading it.
func writeFile(path string, b []byte) error {
	tmp := path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o644); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
