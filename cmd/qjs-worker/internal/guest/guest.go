package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

// Options are what differs from run to run.
type Options struct {
	// Surface is what the guest sees of the catalog.
	Surface Surface
	// Scopes are the plugin namespaces, as workerproto.Namespaces has them. Empty is none.
	Scopes []byte
}

// Guest is one run's VM.
type Guest struct {
	vm      *engine.VM
	host    Host
	surface Surface
	control map[string]engine.Value // the functions of the control object that were used
	board   engine.Floats           // what the prelude shows without a call

	// interrupted is that Config.Interrupt said stop. The engine's exception cannot be
	// caught, but a promise's executor turns it into a rejection and goes on.
	interrupted bool
	lost        error // what stopped the bookkeeping of rejections
	failing     bool  // the run failed, and its reason was not looked at yet
}

// New makes a guest from a start image. memoryLimit bounds its heap in bytes, the
// image's own not counted. cfg.Rejection is the guest's and must be nil.
func New(mod *engine.Module, image *engine.Image, cfg engine.Config, host Host, memoryLimit int64, opts Options) (*Guest, error) {
	g, err := Restore(mod, cfg, host, memoryLimit, image)
	if err != nil {
		return nil, err
	}
	if err := g.Begin(memoryLimit, opts); err != nil {
		g.vm.Close()
		return nil, err
	}
	return g, nil
}

// Restore makes a guest from the images of one that was at rest: the start image, and
// what [engine.VM.Image] took on top of it. The run goes on where it was.
func Restore(mod *engine.Module, cfg engine.Config, host Host, memoryLimit int64, images ...*engine.Image) (*Guest, error) {
	g := &Guest{host: host, control: map[string]engine.Value{}}
	if stop := cfg.Interrupt; stop != nil {
		cfg.Interrupt = func() bool {
			if !stop() {
				return false
			}
			g.interrupted = true
			return true
		}
	}
	cfg.Rejection = func(_ *engine.VM, promise, reason engine.Value, handled bool) { g.rejected(promise, reason, handled) }
	vm, err := mod.Restore(cfg, images...)
	if err != nil {
		return nil, err
	}
	g.vm = vm
	g.register()
	if g.board, err = g.readBoard(); err != nil {
		vm.Close()
		return nil, err
	}
	if err := vm.SetMemoryLimit(memoryLimit); err != nil {
		vm.Close()
		return nil, err
	}
	return g, nil
}

// Park writes the guest at rest, as [engine.VM.WriteImage] does on top of the start image.
// What this process holds in the guest's memory is given back first, so that a thousand
// suspensions leave nothing behind.
func (g *Guest) Park(w io.Writer, image *engine.Image) error {
	for _, f := range g.control {
		g.vm.Free(f)
	}
	clear(g.control)
	return g.vm.WriteImage(w, image)
}

// Unpark makes a guest that was made ahead, with [Restore] from the start image, the one that
// Park wrote. It sees surface, which is that of the run. Its memory limit in bytes is that of the whole run. After an error the guest
// is of no use.
func (g *Guest) Unpark(r io.Reader, image *engine.Image, memoryLimit int64, surface Surface) error {
	g.surface = surface
	if err := g.vm.SetMemoryLimit(memoryLimit); err != nil {
		return err
	}
	clear(g.control)
	if err := g.vm.ReadImage(r, image); err != nil {
		return err
	}
	var err error
	g.board, err = g.readBoard()
	return err
}

// VM is the guest's engine, for images, sizes and closing.
func (g *Guest) VM() *engine.VM { return g.vm }

// Run starts the cell: code evaluates to an async function without parameters, which is
// called. It returns when no job is left. file is what stack frames show.
//
// The errors of Run, Settle and FireTimers are not the guest's: they wrap
// [engine.ErrInterrupted], [engine.ErrOutOfMemory] or [engine.ErrDead], or are the
// [*engine.Exception] of code that is no JavaScript. What the guest itself throws is in
// Outcome.
func (g *Guest) Run(code, file string) error {
	cell, err := g.vm.Eval(code, file, engine.Script)
	if err != nil {
		return err
	}
	defer g.vm.Free(cell)
	if err := g.void(g.invoke("run", cell)); err != nil {
		return err
	}
	return g.drain()
}

// Settle gives the guest the result of a nested call, or its error, and returns when no job
// is left. A call that is not pending is an error.
func (g *Guest) Settle(id uint64, resultJSON []byte, callErr *CallError) error {
	method, text := "settle", resultJSON
	if callErr != nil {
		var err error
		if text, err = json.Marshal(callErr); err != nil {
			return err
		}
		method = "refuse"
	} else if len(text) == 0 {
		text = []byte("null")
	}
	n, err := g.vm.NewNumber(float64(id))
	if err != nil {
		return err
	}
	defer g.vm.Free(n)
	s, err := g.vm.NewString(string(text))
	if err != nil {
		return err
	}
	known, err := g.truth(g.invoke(method, n, s))
	g.vm.Free(s)
	if err != nil {
		return err
	}
	if !known {
		return fmt.Errorf("call %d is not pending", id)
	}
	return g.drain()
}

// NextTimer is when the next timer is due, in the units of [Host.Now].
func (g *Guest) NextTimer() (at float64, ok bool) {
	if g.board.At(boardTimers) == 0 {
		return 0, false
	}
	at, err := g.number("nextTimer")
	return at, err == nil && at >= 0
}

// FireTimers runs the timers that are due, each with the jobs it leaves. Timers that
// they start wait for the next FireTimers, even if they are due.
func (g *Guest) FireTimers() error {
	limit, err := g.number("sequence")
	if err != nil {
		return err
	}
	now := g.host.Now()
	for {
		a, err := g.vm.NewNumber(now)
		if err != nil {
			return err
		}
		b, err := g.vm.NewNumber(limit)
		if err != nil {
			return err
		}
		ran, err := g.truth(g.invoke("fire", a, b))
		g.vm.Free(a)
		g.vm.Free(b)
		if err != nil {
			return err
		}
		if !ran {
			return nil
		}
		if err := g.drain(); err != nil {
			return err
		}
	}
}

// Resume settles the yields that are open, in the order they were made, and returns when no
// job is left. A yield that is made meanwhile waits for the next Resume.
func (g *Guest) Resume() error {
	if g.Yields() > 0 {
		if err := g.void(g.invoke("resume")); err != nil {
			return err
		}
	}
	return g.drain() // to park collects garbage, and a guest may have asked to hear of that
}

// Yields is how many yields are open.
func (g *Guest) Yields() int { return int(g.board.At(boardYields)) }

// Pending is how many calls and yields were made and not settled.
func (g *Guest) Pending() int {
	return int(g.board.At(boardPending))
}

// drain runs jobs until none is left. What a microtask throws ends the run as a failure, but
// the jobs behind it still run, as they would in any other host.
func (g *Guest) drain() error {
	for {
		_, err := g.vm.RunJobs()
		if err == nil {
			break
		}
		e, ok := errors.AsType[*engine.Exception](err)
		if !ok || stopped(e) {
			return err
		}
		err = g.void(g.invoke("uncaught", e.Value))
		g.vm.Free(e.Value)
		if err != nil {
			return err
		}
	}
	return g.verdict()
}

// verdict is a stop of the engine's that reached the guest in disguise.
func (g *Guest) verdict() error {
	if g.interrupted {
		return fmt.Errorf("the guest was stopped: %w", engine.ErrInterrupted)
	}
	if g.lost != nil {
		return g.lost
	}
	if !g.failing {
		return nil
	}
	g.failing = false
	return g.reasonStop()
}

// reasonStop tells whether the reason that the prelude named last is no exception of the guest's.
func (g *Guest) reasonStop() error {
	v, err := g.invoke("reason")
	if err != nil {
		return err
	}
	defer g.vm.Free(v)
	return g.vm.StopCause(v)
}

func stopped(e *engine.Exception) bool {
	return errors.Is(e, engine.ErrInterrupted) || errors.Is(e, engine.ErrOutOfMemory)
}

// rejected keeps the guest's list of unhandled rejections, inside the guest.
func (g *Guest) rejected(promise, reason engine.Value, handled bool) {
	// A stop that a promise's executor made a rejection of must not be handled away.
	if !handled && g.lost == nil {
		g.lost = g.vm.StopCause(reason)
	}
	h := g.vm.Bool(handled)
	defer g.vm.Free(h)
	// An error is the engine's stop, which ends the run anyway, or the stack is used up: the
	// guest is then told by its own RangeError.
	if err := g.void(g.invoke("rejected", promise, reason, h)); err != nil && g.lost == nil {
		if e, ok := errors.AsType[*engine.Exception](err); !ok || stopped(e) {
			g.lost = err
		}
	}
}
