package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
)

// parked gives a VM's stream.
func parked(t testing.TB, vm *VM, base *Image) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := vm.WriteImage(&b, base); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unparked puts a stream into a fresh VM.
func unparked(t testing.TB, m *Module, base *Image, cfg Config, limit int64, stream []byte) *VM {
	t.Helper()
	vm := restore(t, m, cfg, base)
	if err := vm.SetMemoryLimit(limit); err != nil {
		t.Fatal(err)
	}
	r := bytes.NewReader(append(bytes.Clone(stream), "behind"...))
	if err := vm.ReadImage(r, base); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(r); string(rest) != "behind" {
		t.Errorf("%d bytes behind the stream are left", len(rest))
	}
	return vm
}

// SPEC 14.3: a stream is the whole VM, in another engine too, whatever was in the VM before.
func TestStreamElsewhere(t *testing.T) {
	a := module(t)
	base := start(t, a)
	vm := restore(t, a, Config{}, base)
	eval(t, vm, `globalThis.n = 1; globalThis.big = "é".repeat(2e6); globalThis.p = new Promise(r => { globalThis.go = r }); p.then(v => { n += v }); ""`)
	stream := parked(t, vm, base)
	eval(t, vm, `go(100); ""`) // the VM that was written goes on
	if _, err := vm.RunJobs(); err != nil {
		t.Fatal(err)
	}
	if got := eval(t, vm, "String(n)"); got != "101" {
		t.Errorf("the VM that was written: got %s", got)
	}

	b := module(t)
	other := restore(t, b, Config{}, base)
	if err := other.SetMemoryLimit(64 << 20); err != nil {
		t.Fatal(err)
	}
	eval(t, other, `globalThis.dirt = "x".repeat(5e6); globalThis.n = "dirt"; ""`) // pages that the stream does not hold, in a larger memory
	if err := other.ReadImage(bytes.NewReader(stream), base); err != nil {
		t.Fatal(err)
	}
	eval(t, other, `go(5); ""`)
	if _, err := other.RunJobs(); err != nil {
		t.Fatal(err)
	}
	if got := eval(t, other, "[n, big.length, big[1999999], typeof dirt].join()"); got != "6,2000000,é,undefined" {
		t.Errorf("got %s", got)
	}
}

// What a guest dropped is not in its image: neither its free blocks nor its garbage.
func TestStreamForgets(t *testing.T) {
	m := module(t)
	base := start(t, m)
	vm := restore(t, m, Config{}, base)
	small := len(parked(t, vm, base))
	eval(t, vm, `{ let s = ""; while (s.length < 4e6) s += Math.random(); s = [s, s + 1]; s[2] = s } ""`) // a cycle
	if got := len(parked(t, vm, base)); got > small+400<<10 {
		t.Errorf("the stream has %d bytes, and had %d before", got, small)
	}
}

// A thousand suspensions leave nothing behind.
func TestStreamDoesNotGrow(t *testing.T) {
	m := module(t)
	base := start(t, m)
	vm := restore(t, m, Config{}, base)
	eval(t, vm, `globalThis.n = 0; globalThis.keep = "x".repeat(1e5); ""`)
	stream := parked(t, vm, base)
	first := len(stream)
	for range 200 {
		vm.Close()
		vm = unparked(t, m, base, Config{}, 64<<20, stream)
		eval(t, vm, "String(++n)")
		stream = parked(t, vm, base)
	}
	if got := eval(t, vm, "String(n)"); got != "200" {
		t.Errorf("got %s", got)
	}
	if len(stream) > first+2*(4+PageSize) {
		t.Errorf("the stream had %d bytes, and has %d after 200 rounds", first, len(stream))
	}
}

// SPEC 13.3: the memory limit holds after a restore, and a suspension does not widen it.
func TestStreamMemoryLimit(t *testing.T) {
	const limit = 8 << 20
	m := module(t)
	base := start(t, m)
	vm := restore(t, m, Config{}, base)
	if err := vm.SetMemoryLimit(limit); err != nil {
		t.Fatal(err)
	}
	eval(t, vm, `globalThis.a = "x".repeat(6e6); ""`)
	lin := vm.lin.limit
	for range 3 {
		vm = unparked(t, m, base, Config{}, limit, parked(t, vm, base))
	}
	if err := vm.SetMemoryLimit(limit); err != nil || vm.lin.limit != lin {
		t.Errorf("the linear memory may have %d bytes, and could have %d before (%v)", vm.lin.limit, lin, err)
	}
	if _, err := vm.Eval(`globalThis.b = "y".repeat(6e6)`, "test.js", Script); !errors.Is(err, ErrOutOfMemory) {
		t.Errorf("over the limit after a restore: got %v", err)
	}
	stream := parked(t, vm, base)
	for _, less := range []int64{1 << 20, 1 << 10} { // once the memory does not fit, once the heap
		small := restore(t, m, Config{}, base)
		if err := small.SetMemoryLimit(less); err != nil {
			t.Fatal(err)
		}
		if err := small.ReadImage(bytes.NewReader(stream), base); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("with %d bytes: got %v", less, err)
		}
		if _, err := small.Eval("1", "test.js", Script); !errors.Is(err, ErrDead) {
			t.Errorf("a VM that was half restored: got %v", err)
		}
	}
}

// SPEC 4.6: two guests from one stream draw different numbers.
func TestStreamSeeds(t *testing.T) {
	m := module(t)
	base := start(t, m)
	vm := restore(t, m, Config{}, base)
	stream := parked(t, vm, base)
	a, b := unparked(t, m, base, Config{}, 64<<20, stream), unparked(t, m, base, Config{}, 64<<20, stream)
	x, y, z := eval(t, vm, "String(Math.random())"), eval(t, a, "String(Math.random())"), eval(t, b, "String(Math.random())")
	if x == y || y == z || x == z {
		t.Errorf("drew %s, %s, %s", x, y, z)
	}
}

// A stream needs a VM at rest and the start image that it was made from.
func TestStreamRefused(t *testing.T) {
	m := module(t)
	base := start(t, m)
	vm := restore(t, m, Config{}, base)
	other := *base
	other.MemoryBytes += wasmPage
	if err := vm.WriteImage(io.Discard, &other); err == nil {
		t.Error("written on top of another start image")
	}
	full := errors.New("full")
	if err := vm.WriteImage(failingWriter{full}, base); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	var writeErr, readErr error
	vm.Register("host.image", func(vm *VM, _ []Value) (Value, error) {
		writeErr, readErr = vm.WriteImage(io.Discard, base), vm.ReadImage(strings.NewReader(""), base)
		return 0, nil
	})
	f, err := vm.NewHostFunction("host.image")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vm.Call(f); err != nil {
		t.Fatal(err)
	}
	if writeErr == nil || readErr == nil {
		t.Errorf("while guest code ran: %v, %v", writeErr, readErr)
	}
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// smallStream is a well-formed one of two pages.
func smallStream(base *Image) []byte {
	b := []byte(streamMagic)
	for _, w := range []uint32{base.MemoryBytes, base.StackPointer, base.Runtime, base.Context, uint32(base.Root)} {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	for _, i := range []uint32{1, base.MemoryBytes/PageSize - 1} {
		b = binary.LittleEndian.AppendUint32(b, i)
		b = append(b, make([]byte, PageSize)...)
	}
	return binary.LittleEndian.AppendUint32(b, lastPage)
}

// SPEC 14.3: a malformed stream is an error.
func TestMalformedStreams(t *testing.T) {
	m := module(t)
	base := start(t, m)
	good := smallStream(base)
	word := func(at int, w uint32) func([]byte) []byte {
		return func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[at:], w)
			return b
		}
	}
	const first, second = 28, 28 + 4 + PageSize
	for _, c := range []struct {
		name  string
		spoil func([]byte) []byte
	}{
		{"", func(b []byte) []byte { return b }},
		{"empty", func(b []byte) []byte { return nil }},
		{"another magic", func(b []byte) []byte { b[6]++; return b }},
		{"half a head", func(b []byte) []byte { return b[:20] }},
		{"no pages and no end", func(b []byte) []byte { return b[:28] }},
		{"half a page", func(b []byte) []byte { return b[:first+100] }},
		{"no end", func(b []byte) []byte { return b[:len(b)-4] }},
		{"no memory", word(8, 0)},
		{"less memory than the start image", word(8, base.MemoryBytes-wasmPage)},
		{"odd memory", word(8, base.MemoryBytes+1)},
		{"too much memory", word(8, 1<<32-wasmPage)},
		{"stack outside", word(12, base.MemoryBytes+1)},
		{"runtime outside", word(16, 1<<32-1)},
		{"context outside", word(20, base.MemoryBytes)},
		{"root outside", word(24, base.MemoryBytes)},
		{"page outside", word(second, base.MemoryBytes/PageSize)},
		{"page far outside", word(second, lastPage-1)},
		{"pages out of order", word(first, base.MemoryBytes/PageSize-1)},
		{"the same page twice", word(second, 1)},
	} {
		vm := restore(t, m, Config{}, base)
		err := vm.ReadImage(bytes.NewReader(c.spoil(bytes.Clone(good))), base)
		if (err == nil) != (c.name == "") || errors.Is(err, io.EOF) {
			t.Errorf("%s: got %v", c.name, err)
		}
		vm.Close()
	}
}

// FuzzReadImage: any stream is an error or a VM, and never more than that.
func FuzzReadImage(f *testing.F) {
	m := module(f)
	base := start(f, m)
	good := smallStream(base)
	f.Add(good)
	f.Add(good[:28+4+PageSize])
	f.Add([]byte(streamMagic))
	f.Fuzz(func(t *testing.T, stream []byte) {
		vm, err := m.Restore(Config{}, base)
		if err != nil {
			t.Fatal(err)
		}
		defer vm.Close()
		if err := vm.SetMemoryLimit(8 << 20); err != nil {
			t.Fatal(err)
		}
		r := bytes.NewReader(stream)
		err = vm.ReadImage(r, base)
		used := len(stream) - r.Len()
		if err == nil && (used < 32 || binary.LittleEndian.Uint32(stream[used-4:]) != lastPage) {
			t.Errorf("%d bytes were read", used)
		}
		if err != nil && vm.dead == nil {
			t.Errorf("the VM lives after %v", err)
		}
		if vm.MemorySize() > int64(vm.lin.limit)+headroom {
			t.Errorf("the memory has %d bytes", vm.MemorySize())
		}
	})
}
