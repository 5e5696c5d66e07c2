package guest

import (
	"fmt"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

// The control object is what prelude/control.js returns: the functions by which the host
// drives the run. The image's root refers to it; no guest code can reach it.

// The places of prelude/primordials.js's board.
const (
	boardOutcome = iota
	boardPending
	boardTimers
	boardYields
)

func (g *Guest) readBoard() (engine.Floats, error) {
	v, err := g.vm.Get(g.vm.Root(), "board")
	if err != nil {
		return engine.Floats{}, err
	}
	defer g.vm.Free(v)
	return g.vm.Floats(v)
}

// invoke calls a function of the control object. Its functions are looked up once.
func (g *Guest) invoke(name string, args ...engine.Value) (engine.Value, error) {
	f, ok := g.control[name]
	if !ok {
		var err error
		if f, err = g.vm.Get(g.vm.Root(), name); err != nil {
			return 0, fmt.Errorf("control.%s: %w", name, err)
		}
		g.control[name] = f
	}
	return g.vm.Call(f, args...)
}

func (g *Guest) void(v engine.Value, err error) error {
	if err == nil {
		g.vm.Free(v)
	}
	return err
}

func (g *Guest) truth(v engine.Value, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	defer g.vm.Free(v)
	return g.vm.Truth(v), nil
}

func (g *Guest) number(name string) (float64, error) {
	v, err := g.invoke(name)
	if err != nil {
		return 0, err
	}
	defer g.vm.Free(v)
	return g.vm.Float(v), nil
}

func (g *Guest) text(name string) (string, error) {
	v, err := g.invoke(name)
	if err != nil {
		return "", err
	}
	defer g.vm.Free(v)
	return g.vm.String(v)
}

// send calls a function of the control object with a text.
func (g *Guest) send(name string, text []byte) error {
	s, err := g.vm.NewString(string(text))
	if err != nil {
		return err
	}
	defer g.vm.Free(s)
	return g.void(g.invoke(name, s))
}
