// Package engine runs QuickJS (the npm package quickjs-wasi) on wazero.
//
// It knows values, promises, jobs, host functions, limits and memory images, and
// nothing of protocols or tools. The default way to use it:
//
//	mod, err := engine.Compile(ctx, wasm, cacheDir, nil)
//	vm, err := mod.Restore(image, engine.Config{Interrupt: stop}) // or mod.New
//	defer vm.Close()
//	v, err := vm.Eval(`1 + 2`, "cell.js", engine.Script)
//
// Ownership. A [Value] is a reference into the guest's heap that its holder frees
// with [VM.Free]; a VM that is closed frees everything at once, so short-lived
// workers may leave values to that. A VM is not safe for concurrent use: one
// goroutine owns it. Only Config.Interrupt may look at state that others write.
//
// A VM at rest can be written out and goes on in another process ([VM.WriteImage],
// [VM.ReadImage]): what differs from the start image, streamed.
//
// Host functions are known by a stable name that is kept in the guest's memory, so
// that an image taken in one process works in another ([VM.NewHostFunction]).
//
// What it does not protect against: a native loop of QuickJS (a sparse join, indexOf
// on a long string) does not reach the interrupt handler, and wasm code cannot be
// preempted by the Go runtime. wazero's own loop checks would not be enough either
// and make the guest five times slower, so they are off: who must stop such a guest
// kills the process. After a trap the VM is dead and every call answers [ErrDead].
package engine
