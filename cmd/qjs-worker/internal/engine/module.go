package engine

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// maxPages is the ceiling of any guest's linear memory, in wasm pages of 64 KiB:
// the largest configurable heap (1 GiB, SPEC 13) and what the engine itself needs.
const maxPages = (1<<30)/wasmPage + 1024

// wasmPage is the unit in which a wasm memory grows.
const wasmPage = 64 << 10

// Module is compiled engine code, ready to make VMs. Safe for concurrent use.
type Module struct {
	ctx      context.Context
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	spare    chan *VM // at most one instance that was made to see that the code works
	hash     [sha256.Size]byte
}

// runtimeConfig is how the engine's code is compiled; it is part of a cache's key.
func runtimeConfig() wazero.RuntimeConfig {
	return wazero.NewRuntimeConfigCompiler().
		WithMemoryLimitPages(maxPages).
		WithDebugInfoEnabled(false).
		// Loop checks cost a factor of five; see the package comment.
		WithCloseOnContextDone(false)
}

// Compile loads wasm, the quickjs.wasm of quickjs-wasi 3.7.0. A cacheDir that is not
// empty holds the compiled code, which turns 340 ms into under 10: it is executable
// input, so nobody but the user may be able to write there (SPEC 15.4). code, if not
// nil, fills an empty cache; on a processor that it does not fit it is passed over.
func Compile(ctx context.Context, wasm []byte, cacheDir string, code *Code) (*Module, error) {
	src := source{wasm, sha256.Sum256(wasm)}
	if cacheDir == "" {
		return compile(ctx, src, "")
	}
	if m := load(ctx, src, cacheDir); m != nil {
		return m, nil
	}
	if code != nil && code.seed(src, cacheDir) == nil {
		if m := load(ctx, src, cacheDir); m != nil {
			return m, nil
		}
	}
	// A cache that cannot be filled is slow and not wrong.
	_ = addTwin(ctx, src, cacheDir)
	return compile(ctx, src, cacheDir)
}

// source is a module as it comes, with its hash, which takes half a millisecond.
type source struct {
	wasm []byte
	hash [sha256.Size]byte
}

// load takes the code from the cache, or gives nil.
func load(ctx context.Context, src source, cacheDir string) *Module {
	m, err := open(ctx, src, cacheDir)
	if err != nil {
		return nil
	}
	if m.compiled, err = m.compileTwin(src, cacheDir); err == nil && m.works() {
		return m
	}
	m.Close()
	return nil
}

// compile loads the module itself, validation and all.
func compile(ctx context.Context, src source, cacheDir string) (*Module, error) {
	m, err := open(ctx, src, cacheDir)
	if err != nil {
		return nil, err
	}
	if m.compiled, err = m.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, 2), src.wasm); err != nil {
		m.Close()
		return nil, fmt.Errorf("compiling quickjs.wasm: %w", err)
	}
	return m, nil
}

// open makes a Module without its code.
func open(ctx context.Context, src source, cacheDir string) (*Module, error) {
	cfg := runtimeConfig()
	if cacheDir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(cacheDir)
		if err != nil {
			return nil, fmt.Errorf("opening the code cache %q: %w", cacheDir, err)
		}
		cfg = cfg.WithCompilationCache(cache)
	}
	m := &Module{ctx: ctx, runtime: wazero.NewRuntimeWithConfig(ctx, cfg), spare: make(chan *VM, 1), hash: src.hash}
	if err := m.defineImports(); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// works tells whether the code that was loaded is the engine's. The instance that it
// takes to see that is kept for the first VM.
func (m *Module) works() bool {
	vm, err := m.instance(Config{start: time.Now()})
	if err != nil {
		return false
	}
	m.spare <- vm
	return true
}

// Hash identifies the engine: the SHA-256 of its wasm. An [Image] fits no other.
func (m *Module) Hash() [sha256.Size]byte { return m.hash }

// Close frees the module and every VM made from it.
func (m *Module) Close() error { return m.runtime.Close(m.ctx) }

// vmKey carries the VM that an import belongs to: imports are defined once for the
// module, and every call into a VM passes it in the context.
type vmKey struct{}

func vmOf(ctx context.Context) *VM { return ctx.Value(vmKey{}).(*VM) }

// defineImports gives the engine what it imports: six functions of quickjs-wasi's
// "env" and six of WASI. Nothing of them reaches a file, a socket or the environment.
func (m *Module) defineImports() error {
	const i32, i64 = api.ValueTypeI32, api.ValueTypeI64
	type fn struct {
		name   string
		params []api.ValueType
		result bool
		do     func(vm *VM, s []uint64) uint64
	}
	never := func(errno uint64) func(*VM, []uint64) uint64 {
		return func(*VM, []uint64) uint64 { return errno }
	}
	const badf, nosys = 8, 52 // WASI errno
	modules := map[string][]fn{
		"env": {
			{"host_call", []api.ValueType{i32, i32, i32, i32, i32}, true, func(vm *VM, s []uint64) uint64 {
				return uint64(vm.hostCall(uint32(s[0]), uint32(s[1]), uint32(s[3]), uint32(s[4])))
			}},
			{"host_interrupt", nil, true, func(vm *VM, _ []uint64) uint64 {
				if vm.cfg.Interrupt != nil && vm.cfg.Interrupt() {
					return 1
				}
				return 0
			}},
			{"host_promise_rejection", []api.ValueType{i32, i32, i32}, false, func(vm *VM, s []uint64) uint64 {
				// The upper half of an i32 slot is whatever was there.
				vm.rejection(Value(uint32(s[0])), Value(uint32(s[1])), uint32(s[2]) != 0)
				return 0
			}},
			// No module loader is ever installed, so the engine never calls these two (SPEC 5.3).
			{"host_module_load", []api.ValueType{i32, i32}, true, never(0)},
			{"host_module_normalize", []api.ValueType{i32, i32}, true, never(0)},
			// The guest lives in UTC (SPEC 4.6).
			{"host_get_timezone_offset", []api.ValueType{i32, i32}, true, never(0)},
		},
		"wasi_snapshot_preview1": {
			{"clock_time_get", []api.ValueType{i32, i64, i32}, true, func(vm *VM, s []uint64) uint64 {
				vm.mem.WriteUint64Le(uint32(s[2]), uint64(vm.cfg.clock(uint32(s[0]) != 0)))
				return 0
			}},
			{"random_get", []api.ValueType{i32, i32}, true, func(vm *VM, s []uint64) uint64 {
				if b, ok := vm.mem.Read(uint32(s[0]), uint32(s[1])); ok {
					vm.cfg.random(b)
				}
				return 0
			}},
			{"fd_close", []api.ValueType{i32}, true, never(badf)},
			{"fd_fdstat_get", []api.ValueType{i32, i32}, true, never(badf)},
			{"fd_seek", []api.ValueType{i32, i64, i32, i32}, true, never(nosys)},
			{"fd_write", []api.ValueType{i32, i32, i32, i32}, true, never(badf)},
		},
	}
	for name, fns := range modules {
		b := m.runtime.NewHostModuleBuilder(name)
		for _, f := range fns {
			var results []api.ValueType
			if f.result {
				results = []api.ValueType{i32}
			}
			b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, s []uint64) {
				if r := f.do(vmOf(ctx), s); f.result {
					s[0] = r
				}
			}), f.params, results).Export(f.name)
		}
		if _, err := b.Instantiate(m.ctx); err != nil {
			return fmt.Errorf("defining imports %q: %w", name, err)
		}
	}
	return nil
}
