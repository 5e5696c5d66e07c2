package serve

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/assets"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/cell"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// goHeap is the Go heap at which the collector first runs. A worker lives for one cell:
// collecting earlier would only stop the guest, and a collection that meets running
// wasm code waits for it.
const goHeap = 48 << 20

// Engine is what a worker prepares before its cell comes: compiled code, a parser and a
// guest that waits.
type Engine struct {
	loaded chan struct{}
	err    error
	mod    *engine.Module
	parser *cell.Parser
	guest  *guest.Guest
	image  *engine.Image // what the guest was made from, and what its snapshots are on top of
	sum    string        // what they fit
	stop   stop
	host   host

	// How the process ends; tests put something else here.
	exit func(code int)
}

// Load begins to load the engine and returns at once. A spare worker, for whose start nobody
// waits, also touches what the first cell would be the first to touch.
func Load(cacheDir string, spare bool) *Engine {
	e := &Engine{loaded: make(chan struct{}), exit: os.Exit}
	e.host.engine = e
	go func() { // Wait waits for it
		defer close(e.loaded)
		if e.err = e.load(cacheDir); e.err == nil && spare {
			e.parser.Warm()
		}
	}()
	return e
}

func (e *Engine) load(cacheDir string) error {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(goHeap)
	a, err := assets.Load()
	if err != nil {
		return err
	}
	if e.mod, err = engine.Compile(context.Background(), a.Wasm, cacheDir, a.Code); err != nil {
		return err
	}
	parser := make(chan error)
	go func() {
		var err error
		e.parser, err = cell.NewParser(e.mod, a.Parser)
		parser <- err
	}()
	e.image, e.sum = a.Guest, a.Sum
	e.guest, err = guest.Restore(e.mod, engine.Config{Interrupt: e.stop.now}, &e.host, 1<<30, a.Guest)
	return errors.Join(err, <-parser)
}

// Wait waits until the engine is loaded and gives the worker's first event. Its Fault
// is set if no cell can run.
func (e *Engine) Wait() workerproto.Ready {
	<-e.loaded
	// From here on one goroutine does everything: a second processor would only be woken
	// to find nothing to do.
	runtime.GOMAXPROCS(1)
	ready := workerproto.Ready{Version: version()}
	if e.err != nil {
		ready.Fault = e.err.Error()
		return ready
	}
	ready.Engine = e.sum
	return ready
}

// version is the build that the binary came from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}
