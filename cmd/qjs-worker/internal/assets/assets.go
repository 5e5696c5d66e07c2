// Package assets holds what the build put into the worker: the engine's wasm and the
// two start images made from it. In a clone where "make deps" has not run they are
// missing; everything still compiles, and [Load] says what to do.
package assets

import (
	"embed"
	"errors"
	"fmt"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

//go:generate go run ./gen

//go:embed all:dist
var dist embed.FS

// ErrMissing says that the worker was built without its engine.
var ErrMissing = errors.New("the worker was built without its QuickJS engine: run \"make deps build\" in the source tree")

// Assets are the parts of a worker that are no Go code.
type Assets struct {
	Wasm   []byte        // quickjs.wasm
	Guest  *engine.Image // a VM with the prelude
	Parser *engine.Image // a VM with the JavaScript parser
	Code   *engine.Code  // the wasm, compiled for the machine of the build
}

// Load reads the assets. The images refer to the binary's own memory.
func Load() (*Assets, error) {
	a := &Assets{Guest: new(engine.Image), Parser: new(engine.Image)}
	var err error
	if a.Wasm, err = Read("quickjs.wasm"); err != nil {
		return nil, err
	}
	for name, img := range map[string]*engine.Image{GuestImage: a.Guest, ParserImage: a.Parser} {
		b, err := Read(name)
		if err != nil {
			return nil, err
		}
		if err := img.UnmarshalBinary(b); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
	}
	code, err := Read(CodeFile)
	if err != nil {
		return nil, err
	}
	a.Code = new(engine.Code)
	return a, a.Code.UnmarshalBinary(code)
}

// The generated files.
const (
	GuestImage  = "guest.img"
	ParserImage = "parser.img"
	CodeFile    = "code.bin"
)

// Read reads one embedded file. The error is [ErrMissing] if it is not there.
func Read(name string) ([]byte, error) {
	b, err := dist.ReadFile("dist/" + name)
	if err != nil || len(b) == 0 {
		return nil, fmt.Errorf("%w (%s is missing)", ErrMissing, name)
	}
	return b, nil
}
