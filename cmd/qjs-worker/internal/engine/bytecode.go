package engine

import (
	"bytes"
	"fmt"
)

// StopCause gives [ErrInterrupted] or [ErrOutOfMemory] if v is the error with which the
// engine stopped the guest, and nil if it is anything that the guest could have made.
//
// Such an error cannot be caught by try, but the executor of a promise makes a
// rejection of it, and so it can turn up as the reason of one.
func (vm *VM) StopCause(v Value) error {
	hard, err := vm.call("qjs_is_uncatchable_error", uint64(v))
	if err != nil {
		return err
	}
	if uint32(hard) == 0 {
		return nil
	}
	_, message, _ := vm.describe(v)
	return stopCause(message)
}

// stripSource makes Compile leave out the text of functions; what they show of themselves is
// then "[native code]". Positions in stack frames stay.
const stripSource = 1 << 4

// Compile turns a script into bytecode for [VM.EvalBytecode] of any VM of the same engine,
// without its source text.
func (vm *VM) Compile(source, file string) ([]byte, error) {
	src, err := vm.alloc(source + "\x00")
	if err != nil {
		return nil, err
	}
	defer vm.free(src)
	name, err := vm.alloc(file + "\x00")
	if err != nil {
		return nil, err
	}
	defer vm.free(name)
	length, err := vm.alloc("\x00\x00\x00\x00")
	if err != nil {
		return nil, err
	}
	defer vm.free(length)
	p, err := vm.call("qjs_compile", src, uint64(len(source)), name, uint64(Script), stripSource, length)
	if err != nil {
		return nil, err
	}
	if p == 0 {
		return nil, vm.exception()
	}
	defer vm.free(p)
	n, _ := vm.mem.ReadUint32Le(uint32(length))
	code, ok := vm.mem.Read(uint32(p), n)
	if !ok {
		return nil, fmt.Errorf("engine: bytecode of %d bytes at %d is out of bounds", n, p)
	}
	return bytes.Clone(code), nil
}

// EvalBytecode runs what [VM.Compile] made and gives its completion value. The engine does
// not check bytecode: it must come from Compile, never from outside.
func (vm *VM) EvalBytecode(code []byte) (Value, error) {
	p, err := vm.alloc(string(code))
	if err != nil {
		return 0, err
	}
	defer vm.free(p)
	return vm.value(vm.call("qjs_eval_bytecode", p, uint64(len(code))))
}
