package engine

import (
	"errors"
	"fmt"
	"strings"
)

// Value is a reference to a guest value, owned by its holder until [VM.Free]. It is
// an address in the guest's memory and stays valid in an image of it. 0 is no value.
type Value uint32

// EvalFlags choose how [VM.Eval] reads its source.
type EvalFlags uint32

const (
	// Script is a sloppy-mode global script.
	Script EvalFlags = 0
	// CompileOnly checks the syntax and runs nothing.
	CompileOnly EvalFlags = 1 << 5
)

// ErrInterrupted is wrapped by an exception that Config.Interrupt caused.
var ErrInterrupted = errors.New("interrupted")

// ErrOutOfMemory is wrapped by an exception that the heap limit caused.
var ErrOutOfMemory = errors.New("out of memory")

// Exception is what the guest threw.
type Exception struct {
	Name    string // "" if what was thrown is no Error
	Message string // the Error's message, or the thrown value as a string
	Stack   string // QuickJS's frames, one a line, without the message
	// Value is what was thrown; who takes the exception frees it. 0 if it was freed.
	Value Value
	cause error
}

// Error gives "Name: message".
func (e *Exception) Error() string {
	if e.Name == "" {
		return e.Message
	}
	return e.Name + ": " + e.Message
}

// Unwrap gives [ErrInterrupted] or [ErrOutOfMemory] if the engine stopped the guest. A
// guest error that merely has such a text unwraps to nothing: the engine marks its
// own as uncatchable, and the guest cannot (SPEC 11.2).
func (e *Exception) Unwrap() error { return e.cause }

// Free gives a value back. 0 is allowed.
func (vm *VM) Free(v Value) {
	if v != 0 && vm.dead == nil {
		_, _ = vm.call("qjs_free_value", uint64(v))
	}
}

// Dup makes another reference to the same guest value.
func (vm *VM) Dup(v Value) Value {
	r, _ := vm.call("qjs_dup_value", uint64(v))
	return Value(r)
}

// Undefined is the guest's undefined.
func (vm *VM) Undefined() Value { r, _ := vm.call("qjs_get_undefined"); return Value(r) }

// Bool is the guest's true or false.
func (vm *VM) Bool(b bool) Value {
	name := "qjs_get_false"
	if b {
		name = "qjs_get_true"
	}
	r, _ := vm.call(name)
	return Value(r)
}

// Global is the guest's global object.
func (vm *VM) Global() Value { r, _ := vm.call("qjs_get_global"); return Value(r) }

// NewString makes a guest string of UTF-8 text. NUL is an ordinary character.
func (vm *VM) NewString(s string) (Value, error) {
	p, err := vm.alloc(s)
	if err != nil {
		return 0, err
	}
	defer vm.free(p)
	return vm.value(vm.call("qjs_new_string", p, uint64(len(s))))
}

// NewNumber makes a guest number.
func (vm *VM) NewNumber(f float64) (Value, error) {
	return vm.value(vm.call("qjs_new_number", f64bits(f)))
}

// NewBytes makes a guest Uint8Array that holds a copy of b.
func (vm *VM) NewBytes(b []byte) (Value, error) {
	p, err := vm.alloc(string(b))
	if err != nil {
		return 0, err
	}
	defer vm.free(p)
	return vm.value(vm.call("qjs_new_uint8_array", p, uint64(len(b))))
}

// NewObject makes an empty guest object.
func (vm *VM) NewObject() (Value, error) { return vm.value(vm.call("qjs_new_object")) }

// NewHostFunction makes a guest function that calls the host function registered under
// name. The name is what an image remembers: [VM.Register] binds it in any process.
func (vm *VM) NewHostFunction(name string) (Value, error) {
	p, err := vm.alloc(name)
	if err != nil {
		return 0, err
	}
	defer vm.free(p)
	return vm.value(vm.call("qjs_new_host_function", p, uint64(len(name)), 0))
}

// Register binds a host function's name. A guest function whose name is not bound
// throws when it is called.
func (vm *VM) Register(name string, f HostFunc) { vm.host[name] = f }

// Float reads a number.
func (vm *VM) Float(v Value) float64 {
	r, _ := vm.call("qjs_get_float64", uint64(v))
	return f64frombits(r)
}

// Floats is a guest's Float64Array, read in place: no call into the guest, and no way for
// it to notice. The guest must not be able to detach or resize its buffer.
type Floats struct {
	vm   *VM
	at   uint32
	size int
}

// Floats looks a Float64Array up.
func (vm *VM) Floats(v Value) (Floats, error) {
	p, err := vm.alloc(strings.Repeat("\x00", 12))
	if err != nil {
		return Floats{}, err
	}
	defer vm.free(p)
	buffer, err := vm.value(vm.call("qjs_get_typed_array_buffer", uint64(v), p, p+4, p+8))
	if err != nil {
		return Floats{}, err
	}
	defer vm.Free(buffer)
	offset, _ := vm.mem.ReadUint32Le(uint32(p))
	bytes, _ := vm.mem.ReadUint32Le(uint32(p) + 4)
	each, _ := vm.mem.ReadUint32Le(uint32(p) + 8)
	at, err := vm.call("qjs_get_array_buffer", uint64(buffer), p)
	if err != nil {
		return Floats{}, err
	}
	if at == 0 || each != 8 {
		return Floats{}, errors.New("engine: not a Float64Array")
	}
	return Floats{vm, uint32(at) + offset, int(bytes / 8)}, nil
}

// At reads an element.
func (f Floats) At(i int) float64 {
	if i < 0 || i >= f.size {
		return 0
	}
	x, _ := f.vm.mem.ReadFloat64Le(f.at + 8*uint32(i))
	return x
}

// Truth reads a boolean.
func (vm *VM) Truth(v Value) bool { r, _ := vm.call("qjs_get_bool", uint64(v)); return uint32(r) != 0 }

// String reads a string as UTF-8; a lone surrogate comes as its three-byte WTF-8
// form. On a value that is no string it runs the guest's own conversion.
func (vm *VM) String(v Value) (string, error) {
	s, ok, err := vm.text(v)
	if err == nil && !ok {
		err = vm.exception()
	}
	return s, err
}

// text reads a string; false says that an exception is pending.
func (vm *VM) text(v Value) (string, bool, error) {
	n, err := vm.scratchAt()
	if err != nil {
		return "", false, err
	}
	p, err := vm.call("qjs_get_string_len", uint64(v), uint64(n))
	if err != nil || p == 0 {
		return "", false, err
	}
	length, _ := vm.mem.ReadUint32Le(n)
	b, ok := vm.mem.Read(uint32(p), length)
	if !ok {
		return "", false, fmt.Errorf("engine: string of %d bytes at %d is out of bounds", length, p)
	}
	s := string(b)
	_, err = vm.call("qjs_free_cstring", p)
	return s, true, err
}

// Get reads a property; Set writes one.
func (vm *VM) Get(obj Value, name string) (Value, error) {
	v, err := vm.get(obj, name)
	return vm.value(uint64(v), err)
}

// get gives what the engine does, which may be its mark for an exception.
func (vm *VM) get(obj Value, name string) (Value, error) {
	p, err := vm.alloc(name + "\x00")
	if err != nil {
		return 0, err
	}
	defer vm.free(p)
	r, err := vm.call("qjs_get_prop_string", uint64(obj), p)
	return Value(r), err
}

// Set writes the property name of obj. It does not take v over.
func (vm *VM) Set(obj Value, name string, v Value) error {
	p, err := vm.alloc(name + "\x00")
	if err != nil {
		return err
	}
	defer vm.free(p)
	r, err := vm.call("qjs_set_prop_string", uint64(obj), p, uint64(v))
	if err == nil && int32(r) < 0 {
		err = vm.exception()
	}
	return err
}

// Eval runs source and gives its completion value. file is what stack frames show.
// The error is an [*Exception] or [ErrDead].
func (vm *VM) Eval(source, file string, flags EvalFlags) (Value, error) {
	src, err := vm.alloc(source + "\x00")
	if err != nil {
		return 0, err
	}
	defer vm.free(src)
	name, err := vm.alloc(file + "\x00")
	if err != nil {
		return 0, err
	}
	defer vm.free(name)
	return vm.value(vm.call("qjs_eval", src, uint64(len(source)), name, uint64(flags)))
}

// Call calls fn with this undefined.
func (vm *VM) Call(fn Value, args ...Value) (Value, error) {
	if len(args) > scratchBytes/4 {
		return 0, fmt.Errorf("engine: a call with %d arguments", len(args))
	}
	p, err := vm.scratchAt()
	if err != nil {
		return 0, err
	}
	for i, a := range args { // read by qjs_call before the guest runs
		vm.mem.WriteUint32Le(p+4*uint32(i), uint32(a))
	}
	if vm.undefined == 0 {
		vm.undefined = vm.Undefined()
	}
	return vm.value(vm.call("qjs_call", uint64(fn), uint64(vm.undefined), uint64(len(args)), uint64(p)))
}

// RunJobs runs promise jobs until none is left and tells how many ran. A job that
// throws ends it with that exception; the jobs behind it stay queued.
func (vm *VM) RunJobs() (int, error) {
	for n := 0; ; n++ {
		r, err := vm.call("qjs_execute_pending_job") // 0: there was none
		if err != nil || r<<32 == 0 {
			return n, err
		}
		if int32(r) < 0 {
			return n, vm.exception()
		}
	}
}

// value turns an export's answer into a Value or the pending exception.
func (vm *VM) value(r uint64, err error) (Value, error) {
	if err != nil {
		return 0, err
	}
	bad, err := vm.call("qjs_is_exception", r)
	if err != nil {
		return 0, err
	}
	if uint32(bad) != 0 {
		vm.Free(Value(r))
		return 0, vm.exception()
	}
	return Value(r), nil
}

// exception takes the pending exception out of the guest.
func (vm *VM) exception() error {
	if vm.dead != nil {
		return vm.dead
	}
	e := &Exception{}
	vm.withHeadroom(func() {
		x, err := vm.call("qjs_get_exception")
		if err != nil {
			return
		}
		e.Value = Value(x)
		if hard, _ := vm.call("qjs_is_uncatchable_error", x); uint32(hard) != 0 {
			e.Name, e.Message, e.Stack = vm.describe(e.Value)
			e.cause = stopCause(e.Message)
			return
		}
		e.Name, e.Message, e.Stack = vm.describe(e.Value)
	})
	if vm.dead != nil {
		return vm.dead
	}
	return e
}

// stopCause names the cause of an error that the engine made uncatchable. A string that
// is longer than the engine can hold, 2^30 characters, is more memory than any limit.
func stopCause(message string) error {
	switch message {
	case "interrupted":
		return ErrInterrupted
	case "out of memory", "string too long":
		return ErrOutOfMemory
	}
	return nil
}

// describe reads name, message and stack of a thrown value. It may run guest code
// (getters, toString), whose own failures are ignored.
func (vm *VM) describe(v Value) (name, message, stack string) {
	if r, _ := vm.call("qjs_is_error", uint64(v)); uint32(r) == 0 {
		if r, _ := vm.call("qjs_is_object", uint64(v)); uint32(r) == 0 {
			message, _ = vm.plainString(v)
		}
		return "", message, ""
	}
	field := func(key string) string {
		f := vm.quietly(func() (Value, error) { return vm.get(v, key) })
		if f == 0 {
			return ""
		}
		defer vm.Free(f)
		s, _ := vm.plainString(f)
		return s
	}
	return field("name"), field("message"), field("stack")
}

// quietly gives f's value, or 0. An exception is dropped and not looked at: looking at one
// that came of looking at another, where the stack is full, would have no end.
func (vm *VM) quietly(f func() (Value, error)) Value {
	v, err := f()
	if err != nil {
		return 0
	}
	if bad, _ := vm.call("qjs_is_exception", uint64(v)); uint32(bad) == 0 {
		return v
	}
	vm.Free(v)
	x, _ := vm.call("qjs_get_exception")
	vm.Free(Value(x))
	return 0
}

// plainString reads a primitive as a string without running guest code.
func (vm *VM) plainString(v Value) (string, bool) {
	for _, kind := range []string{"qjs_is_object", "qjs_is_symbol", "qjs_is_undefined"} {
		if r, _ := vm.call(kind, uint64(v)); uint32(r) != 0 {
			return "", false
		}
	}
	s, ok, err := vm.text(v)
	if err != nil || !ok {
		x, _ := vm.call("qjs_get_exception")
		vm.Free(Value(x))
		return "", false
	}
	return s, true
}

// alloc copies s into the guest's memory; free gives it back.
func (vm *VM) alloc(s string) (uint64, error) {
	p, err := vm.call("wasm_malloc", uint64(max(1, len(s))))
	if err != nil {
		return 0, err
	}
	if p == 0 || !vm.mem.WriteString(uint32(p), s) {
		return 0, &Exception{Name: "InternalError", Message: "out of memory", cause: ErrOutOfMemory}
	}
	return p, nil
}

func (vm *VM) free(p uint64) {
	if vm.dead == nil {
		_, _ = vm.call("wasm_free", p)
	}
}
