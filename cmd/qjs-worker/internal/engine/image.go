package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// PageSize is the unit in which images are stored and compared.
const PageSize = 4096

func f64bits(f float64) uint64     { return api.EncodeF64(f) }
func f64frombits(b uint64) float64 { return api.DecodeF64(b) }

// Image is a VM at rest: the pages of its memory that differ from a base, and the few
// words that live outside of memory. It fits only the engine that made it, and must
// come from one: nothing in QuickJS checks what it finds in its own heap.
type Image struct {
	MemoryBytes  uint32 // size of the linear memory, a multiple of 64 KiB
	StackPointer uint32
	Runtime      uint32 // JSRuntime and JSContext, addresses in the memory
	Context      uint32
	Root         Value  // a value that the maker wants to find again
	Base         uint32 // heap bytes in use before any cell
	Seed         uint32 // address of Math.random's state, 0 if unknown
	Pages        []Page // in ascending order of Index
}

// Page is one page of memory.
type Page struct {
	Index uint32
	Data  []byte // PageSize bytes
}

// SetRoot remembers v for the images that are taken from now on; Root finds it again
// after a restore. The VM keeps the value.
func (vm *VM) SetRoot(v Value) { vm.root = v }

// Root is the value that [VM.SetRoot] remembered, in this process or in the one that
// made the image.
func (vm *VM) Root() Value { return vm.root }

// Image takes an image that holds the pages which differ from base; a nil base is all
// zeros. No guest code may be running: it is an error from inside a host function,
// since the stack of a running call is not part of the memory.
func (vm *VM) Image(base *Image) (*Image, error) {
	if err := vm.atRest(nil); err != nil {
		return nil, err
	}
	img, err := vm.registers()
	if err != nil {
		return nil, err
	}
	mem, _ := vm.mem.Read(0, vm.mem.Size())
	var old pageCursor
	if base != nil {
		old.left = base.Pages
	}
	for i := uint32(0); i < uint32(len(mem))/PageSize; i++ {
		if page := mem[i*PageSize : (i+1)*PageSize]; !bytes.Equal(page, old.page(i)) {
			img.Pages = append(img.Pages, Page{i, bytes.Clone(page)})
		}
	}
	return img, nil
}

// registers gives an image without pages: the words that live outside of memory.
func (vm *VM) registers() (*Image, error) {
	img := &Image{MemoryBytes: vm.mem.Size(), Root: vm.root, Base: vm.base, Seed: vm.seed}
	sp, err := vm.stackPointer()
	if err != nil {
		return nil, err
	}
	img.StackPointer = uint32(sp.Get())
	for _, w := range []struct {
		to   *uint32
		name string
	}{{&img.Runtime, "qjs_get_runtime_ptr"}, {&img.Context, "qjs_get_context_ptr"}} {
		r, err := vm.call(w.name)
		if err != nil {
			return nil, err
		}
		*w.to = uint32(r)
	}
	return img, nil
}

// Restore makes a VM from images laid over each other: the first is the base of the
// second, and so on. Math.random is seeded anew.
func (m *Module) Restore(cfg Config, images ...*Image) (*VM, error) {
	if len(images) == 0 {
		return nil, errors.New("engine: nothing to restore")
	}
	for _, img := range images {
		if err := img.check(); err != nil {
			return nil, err
		}
	}
	vm, err := m.instantiate(cfg)
	if err != nil {
		return nil, err
	}
	if err := vm.load(images); err != nil {
		vm.Close()
		return nil, err
	}
	return vm, nil
}

func (vm *VM) load(images []*Image) error {
	top := images[len(images)-1]
	if have := vm.mem.Size(); top.MemoryBytes > have {
		if _, ok := vm.mem.Grow((top.MemoryBytes - have) / wasmPage); !ok {
			return fmt.Errorf("engine: growing the memory to %d bytes for an image: %w", top.MemoryBytes, ErrOutOfMemory)
		}
	}
	mem, _ := vm.mem.Read(0, vm.mem.Size())
	// The fresh instance has its data segments in place; what the image does not hold
	// must be zero. Looking is cheaper than writing: a page that is only read costs none.
	held := make([]bool, len(mem)/PageSize)
	for _, img := range images {
		for _, p := range img.Pages {
			if int(p.Index) >= len(held) {
				return fmt.Errorf("engine: image page %d is outside of a memory of %d bytes", p.Index, len(mem))
			}
			held[p.Index] = true
			copy(mem[int(p.Index)*PageSize:], p.Data)
		}
	}
	for i, h := range held {
		if page := mem[i*PageSize : (i+1)*PageSize]; !h && !bytes.Equal(page, zeroPage[:]) {
			clear(page)
		}
	}
	vm.start = images[0].MemoryBytes
	return vm.adopt(top)
}

// adopt sets the words of an image whose pages are in place, and what an image must not
// bring along.
func (vm *VM) adopt(img *Image) error {
	sp, err := vm.stackPointer()
	if err != nil {
		return err
	}
	sp.Set(uint64(img.StackPointer))
	if _, err := vm.call("qjs_set_runtime_and_context", uint64(img.Runtime), uint64(img.Context)); err != nil {
		return err
	}
	vm.root, vm.base, vm.seed = img.Root, img.Base, img.Seed
	if err := vm.configure(); err != nil {
		return err
	}
	return vm.reseed()
}

// check refuses an image whose words point outside of its memory.
func (img *Image) check() error {
	switch {
	case img.MemoryBytes == 0, img.MemoryBytes%wasmPage != 0, img.MemoryBytes > maxPages*wasmPage:
		return fmt.Errorf("engine: an image cannot have a memory of %d bytes", img.MemoryBytes)
	case img.StackPointer > img.MemoryBytes, img.Runtime >= img.MemoryBytes, img.Context >= img.MemoryBytes,
		uint32(img.Root) >= img.MemoryBytes, img.Seed > img.MemoryBytes-8:
		return errors.New("engine: an image's registers point outside of its memory")
	}
	for i, p := range img.Pages {
		if len(p.Data) != PageSize || i > 0 && p.Index <= img.Pages[i-1].Index || p.Index >= img.MemoryBytes/PageSize {
			return fmt.Errorf("engine: page %d of an image is malformed", i)
		}
	}
	return nil
}

func (vm *VM) stackPointer() (api.MutableGlobal, error) {
	sp, ok := vm.mod.ExportedGlobal("__stack_pointer").(api.MutableGlobal)
	if !ok {
		return nil, errors.New("engine: quickjs.wasm does not export __stack_pointer")
	}
	return sp, nil
}

// reseed gives Math.random a state of its own: VMs from one image would otherwise
// draw the same numbers (SPEC 4.6).
func (vm *VM) reseed() error {
	if vm.seed == 0 {
		return nil
	}
	var b [8]byte
	for binary.LittleEndian.Uint64(b[:]) == 0 { // xorshift stays at zero for ever
		if !vm.cfg.FixedClock.IsZero() {
			b[0] = 1
			continue
		}
		vm.cfg.random(b[:])
	}
	if !vm.mem.Write(vm.seed, b[:]) {
		return errors.New("engine: the random state is outside of memory")
	}
	return nil
}

// FindSeed looks for the state of Math.random: the one word of the context that steps
// as xorshift64* does when a number is drawn. Images that are taken from now on know
// its place.
func (vm *VM) FindSeed() error {
	const contextBytes = 1024 // more than JSContext has
	ctx, err := vm.call("qjs_get_context_ptr")
	if err != nil {
		return err
	}
	words := func() (w [contextBytes / 8]uint64) {
		for i := range w {
			w[i], _ = vm.mem.ReadUint64Le(uint32(ctx) + uint32(i)*8)
		}
		return w
	}
	before := words()
	v, err := vm.Eval("Math.random()", "seed.js", Script)
	if err != nil {
		return err
	}
	vm.Free(v)
	vm.seed = 0
	for i, w := range words() {
		x := before[i]
		x ^= x >> 12
		x ^= x << 25
		x ^= x >> 27
		if x == 0 || x != w {
			continue
		}
		if vm.seed != 0 {
			return errors.New("engine: two words look like Math.random's state")
		}
		vm.seed = uint32(ctx) + uint32(i)*8
	}
	if vm.seed == 0 {
		return errors.New("engine: Math.random's state was not found")
	}
	return nil
}

// SealBase ends the building of a start image: what is allocated now is the engine's
// own and does not count against a cell's heap limit. What is free is wiped, so that the
// image is small.
func (vm *VM) SealBase() error {
	if _, err := vm.call("qjs_run_gc"); err != nil {
		return err
	}
	vm.releaseScratch()
	n, err := vm.call("qjs_get_allocated_size")
	if err != nil {
		return err
	}
	vm.base = uint32(n)
	return vm.wipeFree()
}

// imageMagic begins a stored image; the digit is its format.
const imageMagic = "QJSIMG1\n"

// MarshalBinary stores the image: the magic, eight little-endian words in the order of
// the fields with the page count last, then each page as index and data.
func (img *Image) MarshalBinary() ([]byte, error) {
	b := []byte(imageMagic)
	for _, w := range []uint32{img.MemoryBytes, img.StackPointer, img.Runtime, img.Context, uint32(img.Root), img.Base, img.Seed, uint32(len(img.Pages))} {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	for _, p := range img.Pages {
		b = binary.LittleEndian.AppendUint32(b, p.Index)
		b = append(b, p.Data...)
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary wrote. Pages refer to b, which must not
// change.
func (img *Image) UnmarshalBinary(b []byte) error {
	const header = len(imageMagic) + 8*4
	if len(b) < header || string(b[:len(imageMagic)]) != imageMagic {
		return errors.New("engine: not an image of this format")
	}
	var w [8]uint32
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(b[len(imageMagic)+4*i:])
	}
	b = b[header:]
	if w[7] > math.MaxUint32/PageSize || uint64(len(b)) != uint64(w[7])*(4+PageSize) {
		return fmt.Errorf("engine: an image of %d pages cannot have %d bytes", w[7], len(b))
	}
	*img = Image{w[0], w[1], w[2], w[3], Value(w[4]), w[5], w[6], make([]Page, w[7])}
	for i := range img.Pages {
		img.Pages[i] = Page{binary.LittleEndian.Uint32(b), b[4 : 4+PageSize : 4+PageSize]}
		b = b[4+PageSize:]
	}
	return img.check()
}
