package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// cache is shared by the tests of one run: compiling takes a third of a second.
var cache = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "engine-test-") })

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, err := cache(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func wasm(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("../assets/dist/quickjs.wasm")
	if err != nil {
		t.Fatalf("%v: run make deps", err)
	}
	return b
}

func module(t testing.TB) *Module {
	t.Helper()
	dir, err := cache()
	if err != nil {
		t.Fatal(err)
	}
	m, err := Compile(context.Background(), wasm(t), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

var epoch = time.Unix(1_700_000_000, 0)

// start makes the start image that tests restore from.
func start(t testing.TB, m *Module) *Image {
	t.Helper()
	vm, err := m.New(Config{FixedClock: epoch})
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Close()
	if err := errors.Join(vm.FindSeed(), vm.SealBase()); err != nil {
		t.Fatal(err)
	}
	img, err := vm.Image(nil)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func restore(t testing.TB, m *Module, cfg Config, images ...*Image) *VM {
	t.Helper()
	vm, err := m.Restore(cfg, images...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { vm.Close() })
	return vm
}

// eval gives a script's value as a string.
func eval(t testing.TB, vm *VM, source string) string {
	t.Helper()
	v, err := vm.Eval(source, "test.js", Script)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	defer vm.Free(v)
	s, err := vm.String(v)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return s
}

func TestStrings(t *testing.T) {
	vm := restore(t, module(t), Config{}, start(t, module(t)))
	for _, s := range []string{"", "a", "\x00", "a\x00b", "ü", "𝄞", strings.Repeat("é", 100_000)} {
		v, err := vm.NewString(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := vm.String(v); err != nil || got != s {
			t.Errorf("got %.20q, %v; want %.20q", got, err, s)
		}
		vm.Free(v)
	}
	// A lone surrogate comes out as WTF-8, not as a replacement character.
	if got := eval(t, vm, `"\ud800"`); got != "\xed\xa0\x80" {
		t.Errorf("got %q", got)
	}
}

func TestExceptions(t *testing.T) {
	m := module(t)
	img := start(t, m)
	for _, c := range []struct{ source, text, stack string }{
		{`null.b`, "TypeError: cannot read property 'b' of null", "test.js:1:1"},
		{"1;\nlet = ;", "SyntaxError: ", "test.js:2:7"},
		{`throw 5`, "5", ""},
		{`throw undefined`, "", ""},
		{`throw {get message() { throw 1 }}`, "", ""},
		{`(function zz() { throw new RangeError("r") })()`, "RangeError: r", "at zz (test.js:1:28)"},
		// SPEC 11.2: it only looks like ours.
		{`throw new Error("interrupted")`, "Error: interrupted", ""},
		{`throw new Error("out of memory")`, "Error: out of memory", ""},
	} {
		vm := restore(t, m, Config{}, img)
		_, err := vm.Eval(c.source, "test.js", Script)
		var e *Exception
		if !errors.As(err, &e) || !strings.HasPrefix(e.Error(), c.text) || !strings.Contains(e.Stack, c.stack) {
			t.Errorf("%s: got %#v, want %q at %q", c.source, err, c.text, c.stack)
		}
		if errors.Is(err, ErrInterrupted) || errors.Is(err, ErrOutOfMemory) {
			t.Errorf("%s: a guest's error is taken for a limit's", c.source)
		}
		if got := eval(t, vm, "1+1"); got != "2" {
			t.Errorf("%s: afterwards 1+1 is %s", c.source, got)
		}
	}
}

// SPEC 13.2: the soft stop cannot be caught, and leaves a VM that works.
func TestInterrupt(t *testing.T) {
	m := module(t)
	img := start(t, m)
	for _, source := range []string{
		`for(;;);`,
		`try { for(;;); } catch { } finally { for(;;); }`,
		`/(a*)*b/.test("a".repeat(40))`,
		`for(;;) Promise.resolve().then(() => 1)`,
	} {
		left := 3
		vm := restore(t, m, Config{Interrupt: func() bool { left--; return left < 0 }}, img)
		if _, err := vm.Eval(source, "test.js", Script); !errors.Is(err, ErrInterrupted) {
			t.Errorf("%s: got %v", source, err)
		}
		left = 1 << 30
		if got := eval(t, vm, "1+1"); got != "2" {
			t.Errorf("%s: afterwards 1+1 is %s", source, got)
		}
	}
}

// SPEC 13.3: the heap limit ends the guest, whatever it catches, and can be told.
func TestMemoryLimit(t *testing.T) {
	m := module(t)
	img := start(t, m)
	for _, source := range []string{
		`const a = []; for (;;) a.push("x".repeat(1e5) + a.length)`,
		`try { const a = []; for (;;) a.push("x".repeat(1e5) + a.length) } catch (e) { "caught" }`,
		`new Uint8Array(1 << 30)`,
		`Array(2**30).fill(0)`,
		`let z = []; for (;;) z = [z]`,
		`let s = "x"; for (;;) s += s`,
	} {
		vm := restore(t, m, Config{}, img)
		if err := vm.SetMemoryLimit(4 << 20); err != nil {
			t.Fatal(err)
		}
		_, err := vm.Eval(source, "test.js", Script)
		if !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("%s: got %v", source, err)
		}
		if size := vm.MemorySize(); size > 16<<20 {
			t.Errorf("%s: the linear memory has %d bytes", source, size)
		}
		if got := eval(t, vm, "1+1"); got != "2" {
			t.Errorf("%s: afterwards 1+1 is %s", source, got)
		}
	}
	vm := restore(t, m, Config{}, img)
	for _, bytes := range []int64{0, -1, 2 << 30} {
		if err := vm.SetMemoryLimit(bytes); err == nil {
			t.Errorf("a limit of %d bytes was accepted", bytes)
		}
	}
}

// SPEC 4.8: every way of recursing too deep is an error that the guest can catch.
func TestDeepRecursion(t *testing.T) {
	m := module(t)
	img := start(t, m)
	for _, source := range []string{
		`function f() { return f() } f()`,
		`const f = () => f(); f()`,
		`JSON.parse("[".repeat(2e5))`,
		`let o = {}; for (let i = 0; i < 5000; i++) o = {o}; JSON.stringify(o)`,
		`eval("(".repeat(2e5))`,
		`new Function("return " + "[".repeat(1e5))`,
		`eval("{".repeat(1e5))`,
		`eval("a?".repeat(1e5))`,
		`let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x`,
		`let s = "a"; for (let i = 0; i < 1e5; i++) s = [s]; String(s)`,
		`class A { get x() { return this.x } } new A().x`,
		`let q = []; for (let i = 0; i < 1e5; i++) q = [q]; q.flat(Infinity)`,
		`function* g() { yield* g() } [...g()]`,
		`const o = {toString() { return "" + this }}; "" + o`,
		`const o = {valueOf() { return +this }}; +o`,
		`const o = {get [Symbol.toPrimitive]() { return "" + this }}; "" + o`,
		`class B extends (() => { function C() { return new C() } return C })() {} new B()`,
		`const a = []; a[0] = a; const f = x => [...x.map(f)]; f(a)`,
		`let b = () => 1; for (let i = 0; i < 5e3; i++) b = b.bind(null); b()`,
		`"a".replace(/a/, function r() { return "a".replace(/a/, r) })`,
		`[1].sort.call([2, 1], function c() { return [2, 1].sort(c) })`,
		`Reflect.construct(function F() { return Reflect.construct(F, []) }, [])`,
		`async function f() { return f() } let n = 0; (function h() { n++; h() })()`,
		`new RegExp("(?:".repeat(1e5))`,
		`new RegExp("(" .repeat(200) + "a" + ")*".repeat(200)).test("a".repeat(50))`,
	} {
		vm := restore(t, m, Config{}, img)
		if err := vm.SetMemoryLimit(256 << 20); err != nil {
			t.Fatal(err)
		}
		got := eval(t, vm, "try { "+source+"; 'no error' } catch (e) { e.name }")
		if got != "RangeError" && got != "SyntaxError" && got != "no error" {
			t.Errorf("%s: got %s", source, got)
		}
		if got := eval(t, vm, "1+1"); got != "2" {
			t.Errorf("%s: afterwards 1+1 is %s", source, got)
		}
	}
}

// SPEC 5.3: there is no module loader to be found.
func TestNoModules(t *testing.T) {
	vm := restore(t, module(t), Config{}, start(t, module(t)))
	eval(t, vm, `globalThis.got = ""; import("fs").catch(e => { got = e.name }); 1`)
	if _, err := vm.RunJobs(); err != nil {
		t.Fatal(err)
	}
	if got := eval(t, vm, "got"); got != "ReferenceError" && got != "TypeError" && got != "SyntaxError" {
		t.Errorf("import() gave %q", got)
	}
}

// SPEC 4.6: no two VMs draw the same numbers; UTC.
func TestRandomAndClock(t *testing.T) {
	m := module(t)
	img := start(t, m)
	seen := map[string]bool{}
	for range 20 {
		n := eval(t, restore(t, m, Config{}, img), "Math.random()")
		if seen[n] {
			t.Fatalf("%s was drawn twice", n)
		}
		seen[n] = true
	}
	vm := restore(t, m, Config{}, img)
	if got := eval(t, vm, "new Date().getTimezoneOffset()"); got != "0" {
		t.Errorf("time zone offset %s", got)
	}
	if got := eval(t, vm, "Math.abs(Date.now() - "+"0"+") > 1.6e12"); got != "true" {
		t.Errorf("the clock stands still")
	}
}

// SPEC 12.3: a VM goes on in another process exactly where it was, pending promises,
// host functions and all. A second Module stands for the other process.
func TestRestoreElsewhere(t *testing.T) {
	m := module(t)
	base := start(t, m)
	a := restore(t, m, Config{}, base)
	f, err := a.NewHostFunction("host.double")
	if err != nil {
		t.Fatal(err)
	}
	g := a.Global()
	if err := a.Set(g, "double", f); err != nil {
		t.Fatal(err)
	}
	eval(t, a, `globalThis.out = []; globalThis.big = "q".repeat(3e6);
		const p = new Promise(r => { globalThis.settle = r }); p.then(v => out.push(double(v))); 1`)
	settle, err := a.Get(g, "settle")
	if err != nil {
		t.Fatal(err)
	}
	a.SetRoot(settle)
	img, err := a.Image(base)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := img.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}

	var loaded Image
	if err := loaded.UnmarshalBinary(stored); err != nil {
		t.Fatal(err)
	}
	b := restore(t, module(t), Config{}, base, &loaded)
	seven, err := b.NewNumber(7)
	if err != nil {
		t.Fatal(err)
	}
	call := func() {
		if _, err := b.Call(b.Root(), seven); err != nil {
			t.Fatal(err)
		}
		if _, err := b.RunJobs(); err != nil {
			t.Fatal(err)
		}
	}
	b.Register("host.double", func(vm *VM, args []Value) (Value, error) { return vm.NewNumber(2 * vm.Float(args[0])) })
	call()
	if got := eval(t, b, "String(out) + big.length"); got != "143000000" {
		t.Errorf("got %s", got)
	}
}

// A host function that nobody registered throws where it is called.
func TestHostFunctionMissing(t *testing.T) {
	vm := restore(t, module(t), Config{}, start(t, module(t)))
	f, err := vm.NewHostFunction("host.none")
	if err != nil {
		t.Fatal(err)
	}
	if err := vm.Set(vm.Global(), "none", f); err != nil {
		t.Fatal(err)
	}
	if got := eval(t, vm, "try { none() } catch (e) { e.message }"); !strings.Contains(got, "host.none") {
		t.Errorf("got %q", got)
	}
}

// Host and guest call each other in turns.
func TestReentrance(t *testing.T) {
	vm := restore(t, module(t), Config{}, start(t, module(t)))
	vm.Register("host.again", func(vm *VM, args []Value) (Value, error) {
		if n := vm.Float(args[0]); n > 0 {
			v, err := vm.NewNumber(n - 1)
			if err != nil {
				return 0, err
			}
			return vm.Call(args[1], v, args[1])
		}
		return vm.NewString("bottom")
	})
	f, err := vm.NewHostFunction("host.again")
	if err != nil {
		t.Fatal(err)
	}
	if err := vm.Set(vm.Global(), "again", f); err != nil {
		t.Fatal(err)
	}
	if got := eval(t, vm, "again(20, again)"); got != "bottom" {
		t.Errorf("got %s", got)
	}
	if _, err := vm.Image(nil); err != nil {
		t.Errorf("an image at rest: %v", err)
	}
}

// No image is taken while guest code runs: its stack is not in the memory.
func TestImageWhileRunning(t *testing.T) {
	vm := restore(t, module(t), Config{}, start(t, module(t)))
	var imgErr error
	vm.Register("host.image", func(vm *VM, _ []Value) (Value, error) {
		_, imgErr = vm.Image(nil)
		return 0, nil
	})
	f, err := vm.NewHostFunction("host.image")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vm.Call(f); err != nil {
		t.Fatal(err)
	}
	if imgErr == nil {
		t.Error("an image was taken")
	}
}

// An image that is built twice is the same to the byte, so builds can be compared.
func TestImageIsReproducible(t *testing.T) {
	m := module(t)
	a, errA := start(t, m).MarshalBinary()
	b, errB := start(t, m).MarshalBinary()
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("%d and %d bytes, %v, %v", len(a), len(b), errA, errB)
	}
}

func TestMalformedImages(t *testing.T) {
	m := module(t)
	good := start(t, m)
	page := good.Pages[0]
	for name, spoil := range map[string]func(*Image){
		"no memory":           func(i *Image) { i.MemoryBytes = 0 },
		"odd memory":          func(i *Image) { i.MemoryBytes++ },
		"too much memory":     func(i *Image) { i.MemoryBytes = 1<<32 - wasmPage },
		"stack outside":       func(i *Image) { i.StackPointer = i.MemoryBytes + 1 },
		"context outside":     func(i *Image) { i.Context = i.MemoryBytes },
		"runtime outside":     func(i *Image) { i.Runtime = 1<<32 - 1 },
		"root outside":        func(i *Image) { i.Root = Value(i.MemoryBytes) },
		"seed outside":        func(i *Image) { i.Seed = i.MemoryBytes - 4 },
		"page outside":        func(i *Image) { i.Pages = []Page{{i.MemoryBytes / PageSize, page.Data}} },
		"short page":          func(i *Image) { i.Pages = []Page{{0, page.Data[1:]}} },
		"pages out of order":  func(i *Image) { i.Pages = []Page{{2, page.Data}, {1, page.Data}} },
		"the same page twice": func(i *Image) { i.Pages = []Page{{1, page.Data}, {1, page.Data}} },
	} {
		img := *good
		spoil(&img)
		if vm, err := m.Restore(Config{}, &img); err == nil {
			vm.Close()
			t.Errorf("%s: it was restored", name)
		}
	}
	if _, err := m.Restore(Config{}); err == nil {
		t.Error("nothing was restored")
	}
}

func FuzzImage(f *testing.F) {
	img := Image{MemoryBytes: wasmPage, Pages: []Page{{1, make([]byte, PageSize)}}}
	seed, err := img.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)-1])
	f.Add([]byte(imageMagic))
	f.Fuzz(func(t *testing.T, b []byte) {
		var img Image
		if img.UnmarshalBinary(b) != nil {
			return
		}
		again, err := img.MarshalBinary()
		if err != nil || !bytes.Equal(again, b) {
			t.Errorf("%d bytes came back as %d, %v", len(b), len(again), err)
		}
	})
}

// The code cache: a second load takes the twin, and whatever is wrong with the cache
// costs time and not correctness.
func TestTwin(t *testing.T) {
	dir := t.TempDir()
	load := func() bool { // tells whether the twin was taken
		t.Helper()
		m, err := Compile(context.Background(), wasm(t), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		twin := len(m.spare) == 1
		vm, err := m.New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer vm.Close()
		if got := eval(t, vm, "[1,2,3].map(x => x * x).join()"); got != "1,4,9" {
			t.Fatalf("got %s", got)
		}
		return twin
	}
	if load() {
		t.Error("a twin came out of an empty cache")
	}
	if !load() {
		t.Error("the cache has no twin")
	}
	marker := twinMarker(dir, source{wasm(t), sha256.Sum256(wasm(t))})
	entry, err := os.ReadFile(marker)
	if err != nil {
		t.Fatal(err)
	}
	twinCode := filepath.Join(dir, string(entry))

	t.Run("traps in the cache", func(t *testing.T) { // what wazero itself would compile of a twin
		traps, err := makeTwin(source{wasm(t), sha256.Sum256(wasm(t))})
		if err != nil {
			t.Fatal(err)
		}
		other := t.TempDir()
		name, err := entryOf(context.Background(), traps, other)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(other, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(twinCode, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if load() {
			t.Error("traps were taken for the engine")
		}
		if !load() {
			t.Error("the cache was not mended")
		}
	})
	t.Run("entry gone", func(t *testing.T) {
		os.Remove(twinCode)
		if load() {
			t.Error("a twin without an entry was taken")
		}
	})
	t.Run("marker leads out", func(t *testing.T) {
		if err := os.WriteFile(marker, []byte("../../etc/passwd"), 0o600); err != nil {
			t.Fatal(err)
		}
		if load() {
			t.Error("an entry outside of the cache was taken")
		}
	})
}

// Code that was compiled ahead spares the first start on a machine the compiling, and
// on another kind of processor it does no harm.
func TestPrecompiled(t *testing.T) {
	code, err := Precompile(context.Background(), wasm(t))
	if err != nil {
		t.Fatal(err)
	}
	stored, err := code.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	load := func(dir string, stored []byte) (twin bool) {
		t.Helper()
		var code Code
		if err := code.UnmarshalBinary(stored); err != nil {
			t.Fatal(err)
		}
		m, err := Compile(context.Background(), wasm(t), dir, &code)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		twin = len(m.spare) == 1
		vm, err := m.New(Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer vm.Close()
		if got := eval(t, vm, "6 * 7"); got != "42" {
			t.Fatalf("got %s", got)
		}
		return twin
	}
	if !load(t.TempDir(), stored) {
		t.Error("an empty cache was not filled")
	}
	// Another processor has another key, so the entry's name is not the one looked for.
	other := bytes.Replace(stored, []byte(filepath.Base(code.Entry)), []byte(strings.Repeat("0", 64)), 1)
	dir := t.TempDir()
	if load(dir, other) {
		t.Error("code for another processor was taken")
	}
	if !load(dir, other) {
		t.Error("it is compiled again at each start")
	}
	for _, b := range []string{"", "no end", "../out\x00code", "/abs\x00code"} {
		if new(Code).UnmarshalBinary([]byte(b)) == nil {
			t.Errorf("%q was read", b)
		}
	}
}

// What killed workers left is swept, what others are working on is not.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	old, young := filepath.Join(dir, "entry-1"), filepath.Join(dir, "traps-2")
	for _, d := range []string{old, young} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(old, epoch, epoch); err != nil {
		t.Fatal(err)
	}
	sweep(dir)
	if _, err := os.Stat(old); err == nil {
		t.Error("the old one is there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("the young one is gone")
	}
}

func TestMakeTwinRefuses(t *testing.T) {
	for _, b := range []string{"", "\x00asm", "\x00asn\x01\x00\x00\x00", "\x00asm\x01\x00\x00\x00\x0a\x7f", "\x00asm\x01\x00\x00\x00\x0a\x01\xff"} {
		if _, err := makeTwin(source{wasm: []byte(b)}); err == nil {
			t.Errorf("%q has a twin", b)
		}
	}
}

// A VM that trapped is dead and says so; it does not take the process with it.
func TestTrap(t *testing.T) {
	vm := restore(t, module(t), Config{}, start(t, module(t)))
	if _, err := vm.call("qjs_set_runtime_and_context", 0xfffffff0, 0xfffffff0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := vm.Eval("1", "test.js", Script); !errors.Is(err, ErrDead) {
			t.Errorf("got %v", err)
		}
	}
	if err := errors.Join(vm.Close(), vm.Close()); err != nil {
		t.Error(err)
	}
	if _, err := vm.Eval("1", "test.js", Script); err == nil {
		t.Error("a closed VM evaluates")
	}
}

func TestRejections(t *testing.T) {
	m := module(t)
	var events []string
	vm := restore(t, m, Config{Rejection: func(vm *VM, _, reason Value, handled bool) {
		s, _ := vm.String(reason)
		if handled {
			s = "handled " + s
		}
		events = append(events, s)
	}}, start(t, m))
	eval(t, vm, `globalThis.p = Promise.reject("late"); Promise.reject("never"); 1`)
	eval(t, vm, `p.catch(() => 0); 1`)
	if got := strings.Join(events, ","); got != "late,never,handled late" {
		t.Errorf("got %s", got)
	}
}
