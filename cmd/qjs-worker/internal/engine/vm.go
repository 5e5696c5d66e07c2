package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// maxStack bounds the engine's own stack, which deep guest recursion uses up first.
// The wasm module has 1 MiB; half of it is left to native code that checks late.
// Past it the guest sees a RangeError that it can catch (SPEC 4.8).
const maxStack = 512 << 10

// headroom is added to the heap limit while a failure is being read out: an error
// object needs memory too.
const headroom = 1 << 20

// slack is what the linear memory may exceed the heap limit by: dlmalloc's own
// overhead and fragmentation. Past it growth is refused (SPEC 13.3, second wall).
const slack = 4 << 20

// ErrDead is returned by every call on a VM after a wasm trap: its memory cannot be
// trusted any more.
var ErrDead = errors.New("engine: the VM died of a wasm trap")

// Config is how a VM meets the world. The zero value has no interrupt, the real
// clock and the system's random numbers.
type Config struct {
	// Interrupt is asked every few thousand steps of guest code; true stops the guest
	// with an exception that it cannot catch. It runs on the VM's goroutine, inside
	// the guest's call, and must not call the VM.
	Interrupt func() bool

	// Rejection is told of each promise that is rejected without a handler, and again
	// with handled true when it gets one late. It must not keep the values.
	Rejection func(vm *VM, promise, reason Value, handled bool)

	// FixedClock, when not zero, is the time that the guest sees, and its random
	// numbers are zeros: images that are built are then equal byte for byte.
	FixedClock time.Time

	start time.Time
}

func (c *Config) clock(monotonic bool) int64 {
	if !c.FixedClock.IsZero() {
		return c.FixedClock.UnixNano()
	}
	if monotonic {
		return int64(time.Since(c.start))
	}
	return time.Now().UnixNano()
}

func (c *Config) random(b []byte) {
	if !c.FixedClock.IsZero() {
		clear(b)
		return
	}
	rand.Read(b) // never fails (crypto/rand, Go 1.24)
}

// HostFunc is a function of ours that the guest calls. args are borrowed: they are
// freed after it returns. The result is given to the guest; 0 stands for undefined.
// An error becomes a plain guest Error with its text.
type HostFunc func(vm *VM, args []Value) (Value, error)

// VM is one guest: a wasm instance with a QuickJS runtime and context in it.
type VM struct {
	ctx       context.Context
	cfg       Config
	mod       api.Module
	mem       api.Memory
	lin       *linearMemory
	host      map[string]HostFunc
	dead      error
	base      uint32 // bytes allocated before any cell: the engine's own part of the heap
	start     uint32 // size of the linear memory before any cell
	limit     uint32 // heap limit in force, 0 for none
	root      Value
	undefined Value  // made at the first call
	seed      uint32 // address of Math.random's state, 0 if unknown

	// A wazero function object is not reentrant, and guest and host call each other in
	// turns: calls[depth] has the objects of one nesting level.
	depth   int
	calls   []map[string]api.Function
	scratch []uint32 // for each level, scratchBytes of guest memory for out parameters
}

// scratchBytes is enough for a call's arguments and results of the C interface.
const scratchBytes = 64

// instantiate makes a VM whose memory holds only the module's data segments.
func (m *Module) instantiate(cfg Config) (*VM, error) {
	cfg.start = time.Now()
	if !cfg.FixedClock.IsZero() {
		return m.instance(cfg) // the spare's initialisation drew real random numbers
	}
	select {
	case vm := <-m.spare:
		vm.cfg = cfg
		return vm, nil
	default:
		return m.instance(cfg)
	}
}

// instance makes a wasm instance and runs its own initialisation.
func (m *Module) instance(cfg Config) (*VM, error) {
	vm := &VM{cfg: cfg, host: map[string]HostFunc{}}
	vm.ctx = context.WithValue(m.ctx, vmKey{}, vm)
	lin, err := newLinearMemory()
	if err != nil {
		return nil, err
	}
	vm.lin = lin
	ctx := experimental.WithMemoryAllocator(vm.ctx, experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return lin }))
	mod, err := m.runtime.InstantiateModule(ctx, m.compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		lin.Free()
		return nil, fmt.Errorf("instantiating quickjs.wasm: %w", err)
	}
	vm.mod, vm.mem = mod, mod.Memory()
	// Not a start function of wazero's: it calls imports that need the memory above.
	if _, err := vm.call("_initialize"); err != nil {
		vm.Close()
		return nil, err
	}
	return vm, nil
}

// New makes a VM with a fresh runtime and context. [Module.Restore] is faster.
func (m *Module) New(cfg Config) (*VM, error) {
	vm, err := m.instantiate(cfg)
	if err != nil {
		return nil, err
	}
	r, err := vm.call("qjs_init")
	if err == nil && r != 0 {
		err = errors.New("engine: qjs_init failed")
	}
	if err != nil {
		vm.Close()
		return nil, err
	}
	if err := vm.configure(); err != nil {
		vm.Close()
		return nil, err
	}
	vm.start = vm.mem.Size()
	return vm, nil
}

// configure sets what is part of the runtime struct, and so of any image, once more:
// an image must not be able to bring its own idea of the limits.
func (vm *VM) configure() error {
	for _, s := range []struct {
		name string
		arg  uint64
	}{
		{"qjs_set_max_stack_size", maxStack},
		{"qjs_set_interrupt_handler", 1},
		{"qjs_set_promise_rejection_handler", 1},
	} {
		if _, err := vm.call(s.name, s.arg); err != nil {
			return err
		}
	}
	return nil
}

// Close frees the VM. It may be called twice.
func (vm *VM) Close() error {
	if vm.mod == nil {
		return nil
	}
	err := vm.mod.Close(vm.ctx)
	vm.mod = nil
	vm.lin.Free() // wazero frees it too; a second time does nothing
	if vm.dead == nil {
		vm.dead = errors.New("engine: the VM is closed")
	}
	return err
}

// SetMemoryLimit bounds the guest's heap: bytes above what the engine and the prelude
// use themselves. The linear memory is bounded a little above that, counted from the
// start image: a guest that was parked a thousand times has no more of it than any other.
// Past either the guest is stopped with [ErrOutOfMemory], which it cannot catch.
func (vm *VM) SetMemoryLimit(bytes int64) error {
	if bytes <= 0 || bytes > 1<<30 {
		return fmt.Errorf("engine: memory limit %d is outside 1 to %d bytes", bytes, 1<<30)
	}
	if unlimited {
		return nil
	}
	vm.limit = vm.base + uint32(bytes)
	vm.lin.limit = min(uint64(vm.start)+uint64(bytes)+uint64(bytes)/8+slack, maxPages*wasmPage)
	_, err := vm.call("qjs_set_memory_limit", uint64(vm.limit))
	return err
}

// withHeadroom runs f with room above the heap limit.
func (vm *VM) withHeadroom(f func()) {
	if vm.limit != 0 {
		lin := vm.lin.limit
		vm.lin.limit += headroom
		_, _ = vm.call("qjs_set_memory_limit", uint64(vm.limit)+headroom)
		defer func() {
			vm.lin.limit = lin
			_, _ = vm.call("qjs_set_memory_limit", uint64(vm.limit))
		}()
	}
	f()
}

// Allocated is the size of the guest's heap in bytes, the engine's own part left out.
func (vm *VM) Allocated() int64 {
	n, err := vm.call("qjs_get_allocated_size")
	if err != nil {
		return 0
	}
	return max(0, int64(uint32(n))-int64(vm.base))
}

// MemorySize is the size of the linear memory in bytes. It never shrinks.
func (vm *VM) MemorySize() int64 { return int64(vm.mem.Size()) }

// call runs an export. A failure of the call itself is a trap: the VM is dead.
func (vm *VM) call(name string, args ...uint64) (uint64, error) {
	if vm.dead != nil {
		return 0, vm.dead
	}
	for len(vm.calls) <= vm.depth {
		vm.calls = append(vm.calls, map[string]api.Function{})
	}
	f := vm.calls[vm.depth][name]
	if f == nil {
		if f = vm.mod.ExportedFunction(name); f == nil {
			return 0, fmt.Errorf("engine: quickjs.wasm has no export %q", name)
		}
		vm.calls[vm.depth][name] = f
	}
	var stack [8]uint64
	n := max(1, copy(stack[:], args)) // room for the result
	if err := f.CallWithStack(vm.ctx, stack[:n]); err != nil {
		vm.dead = fmt.Errorf("%w: %w", ErrDead, err)
		return 0, vm.dead
	}
	return stack[0], nil
}

// scratchAt gives the scratch memory of this nesting level: to allocate and free it for
// each call would cost as much as the call.
func (vm *VM) scratchAt() (uint32, error) {
	for len(vm.scratch) <= vm.depth {
		p, err := vm.alloc(strings.Repeat("\x00", scratchBytes))
		if err != nil {
			return 0, err
		}
		vm.scratch = append(vm.scratch, uint32(p))
	}
	return vm.scratch[vm.depth], nil
}

// hostCall is the engine calling one of our functions.
func (vm *VM) hostCall(namePtr, nameLen, argc, argv uint32) uint32 {
	vm.depth++
	defer func() { vm.depth-- }()
	name, _ := vm.mem.Read(namePtr, nameLen)
	f := vm.host[string(name)]
	if f == nil {
		return vm.throw(fmt.Errorf("host function %q is not available", name))
	}
	args := make([]Value, argc)
	for i := range args {
		p, ok := vm.mem.ReadUint32Le(argv + uint32(i)*4)
		if !ok {
			return vm.throw(errors.New("arguments are out of bounds"))
		}
		args[i] = Value(p)
	}
	v, err := f(vm, args)
	if err != nil {
		return vm.throw(err)
	}
	if v == 0 {
		v = vm.Undefined()
	}
	return uint32(v)
}

// throw makes err the guest's pending exception.
func (vm *VM) throw(err error) uint32 {
	e, callErr := vm.call("qjs_new_error")
	if callErr != nil {
		return 0
	}
	if msg, msgErr := vm.NewString(err.Error()); msgErr == nil {
		_ = vm.Set(Value(e), "message", msg)
		vm.Free(msg)
	}
	x, _ := vm.call("qjs_throw", e)
	return uint32(x)
}

func (vm *VM) rejection(promise, reason Value, handled bool) {
	vm.depth++
	if vm.cfg.Rejection != nil {
		vm.cfg.Rejection(vm, promise, reason, handled)
	}
	vm.Free(promise)
	vm.Free(reason)
	vm.depth--
}
