package guest

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

// preludeFile begins the file names of our scripts in stack frames. It tells frames of ours
// from the model's: prelude/errors.js drops them.
const preludeFile = "codemode:"

//go:embed prelude/*.js
var preludeFiles embed.FS

// chapters in the order of evaluation. They are one function body: each sees what the
// ones before it declared.
var chapters = []string{
	"primordials.js", "values.js", "errors.js", "output.js", "timers.js", "tools.js",
	"mcp.js", "namespaces.js", "encoding.js", "clone.js", "crypto.js", "url.js", "urlclass.js", "yield.js", "control.js",
}

// Script is JavaScript that becomes part of the start image.
type Script struct {
	Name, Source string
}

// prelude gives the whole prelude as the source of a function that takes the object with the host
// functions and gives the control object.
func prelude() (string, error) {
	var b strings.Builder
	b.WriteString("(function (host) { \"use strict\";\n")
	for _, name := range chapters {
		src, err := preludeFiles.ReadFile("prelude/" + name)
		if err != nil {
			return "", err
		}
		b.Write(src)
	}
	b.WriteString("})")
	return b.String(), nil
}

// Build makes the start image: a VM with the polyfills and the prelude evaluated, in which
// no guest code has run. The polyfills come first, as scripts of their own. The
// same engine and sources give the same image, byte for byte.
func Build(mod *engine.Module, polyfills ...Script) (*engine.Image, error) {
	src, err := prelude()
	if err != nil {
		return nil, err
	}
	compiled, err := compile(mod, append(slices.Clone(polyfills), Script{"prelude.js", src}))
	if err != nil {
		return nil, err
	}
	vm, err := mod.New(engine.Config{FixedClock: time.Unix(1, 0)})
	if err != nil {
		return nil, err
	}
	defer vm.Close()
	if err := vm.FindSeed(); err != nil {
		return nil, err
	}
	last := len(compiled) - 1
	for i, code := range compiled[:last] {
		v, err := vm.EvalBytecode(code)
		if err != nil {
			return nil, fmt.Errorf("evaluating %s: %w", polyfills[i].Name, withStack(err))
		}
		vm.Free(v)
	}
	control, err := startPrelude(vm, compiled[last])
	if err != nil {
		return nil, fmt.Errorf("evaluating the prelude: %w", withStack(err))
	}
	vm.SetRoot(control)
	if err := vm.SealBase(); err != nil {
		return nil, err
	}
	return vm.Image(nil)
}

// compile turns scripts into bytecode in a VM of its own: the parser's garbage would
// be part of the image. The source text is left out, so that the functions of
// the prelude look like the engine's own ("[native code]"); the image is half as large.
func compile(mod *engine.Module, scripts []Script) ([][]byte, error) {
	vm, err := mod.New(engine.Config{})
	if err != nil {
		return nil, err
	}
	defer vm.Close()
	out := make([][]byte, len(scripts))
	for i, s := range scripts {
		if out[i], err = vm.Compile(s.Source, preludeFile+s.Name); err != nil {
			return nil, fmt.Errorf("compiling %s: %w", s.Name, withStack(err))
		}
	}
	return out, nil
}

// startPrelude calls the prelude with the host functions and gives its control object.
func startPrelude(vm *engine.VM, code []byte) (engine.Value, error) {
	host, err := vm.NewObject()
	if err != nil {
		return 0, err
	}
	defer vm.Free(host)
	for _, name := range slices.Sorted(maps.Keys(hostFunctions)) { // the order is part of the image
		f, err := vm.NewHostFunction(hostPrefix + name)
		if err != nil {
			return 0, err
		}
		err = vm.Set(host, name, f)
		vm.Free(f)
		if err != nil {
			return 0, err
		}
	}
	body, err := vm.EvalBytecode(code)
	if err != nil {
		return 0, err
	}
	defer vm.Free(body)
	return vm.Call(body, host)
}

// withStack adds the engine's frames to an error: this is a fault of ours, read by us.
func withStack(err error) error {
	if e, ok := errors.AsType[*engine.Exception](err); ok && e.Stack != "" {
		return fmt.Errorf("%w\n%s", err, e.Stack)
	}
	return err
}
