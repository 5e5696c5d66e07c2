// Package assets holds what the build put into the worker: the engine's wasm, the two
// start images made from it, and its machine code. In a clone where "make deps" has not
// run they are missing; everything still compiles, and [Load] says what to do.
package assets

import (
	"errors"
	"fmt"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/assets/dist"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

//go:generate go run ./gen

// ErrMissing says that the worker was built without its engine.
var ErrMissing = errors.New("the worker was built without its QuickJS engine: run \"make deps build\" in the source tree")

// Assets are the parts of a worker that are no Go code.
type Assets struct {
	Wasm   []byte        // quickjs.wasm
	Guest  *engine.Image // a VM with the prelude
	Parser *engine.Image // a VM with the JavaScript parser
	Code   *engine.Code  // the wasm, compiled for the machine of the build
	Sum    string        // what a snapshot fits: a hash over Wasm and Guest, in hex
}

// Load reads the assets. They refer to the binary's own memory: copying them would cost
// a worker a fifth of its start.
func Load() (*Assets, error) {
	if dist.Wasm == nil {
		return nil, ErrMissing
	}
	a := &Assets{Wasm: dist.Wasm, Guest: new(engine.Image), Parser: new(engine.Image), Code: new(engine.Code), Sum: dist.Sum}
	for _, part := range []struct {
		name string
		data []byte
		to   interface{ UnmarshalBinary([]byte) error }
	}{{"guest.img", dist.Guest, a.Guest}, {"parser.img", dist.Parser, a.Parser}, {"code.bin", dist.Code, a.Code}} {
		if err := part.to.UnmarshalBinary(part.data); err != nil {
			return nil, fmt.Errorf("reading %s: %w", part.name, err)
		}
	}
	return a, nil
}
