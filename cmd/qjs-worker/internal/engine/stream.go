package engine

import (
	"bytes"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
)

// A parked VM is a stream: what differs from the start image that the VM was made from,
// page by page, so that neither side needs room for a second copy of the guest (SPEC
// 14.3). All words are unsigned, of 32 bits, little-endian:
//
//	offset  bytes
//	     0      8  "QJSPRK1\n"; the digit is the format
//	     8      4  size of the linear memory in bytes: a multiple of 65,536, and no less than the start image's
//	    12      4  the wasm global __stack_pointer
//	    16      4  address of the JSRuntime
//	    20      4  address of the JSContext
//	    24      4  the root value (VM.SetRoot)
//
// then for each page of 4,096 bytes that differs, in ascending order, 4,100 bytes:
//
//	     0      4  the page's index: its address divided by 4,096
//	     4   4096  the page XOR the start image's page, or zeros where that holds none
//
// and last the word 0xffffffff. A page that is missing is the start image's, or zeros
// where that holds none. XOR, because most pages differ in a few words: the
// rest is zeros, which cost next to nothing once compressed.
//
// What the pages say of the limits and of Math.random's state is overwritten once they
// are in place, and how much of the heap is the engine's own the start image says.

// streamMagic begins a stream.
const streamMagic = "QJSPRK1\n"

// lastPage is the index that ends a stream.
const lastPage = 1<<32 - 1

// WriteImage writes the VM as a stream on top of base, the start image that it was made
// from. No guest code may be running. Garbage is collected first, what is free is wiped, and
// blocks that the VM itself holds in the guest's memory are given back; what else holds
// values must free them before, or they are in every image from then on. An error of w
// ends it and leaves the VM as good as it was.
func (vm *VM) WriteImage(w io.Writer, base *Image) error {
	if err := vm.atRest(base); err != nil {
		return err
	}
	vm.releaseScratch()
	if _, err := vm.call("qjs_run_gc"); err != nil {
		return err
	}
	if err := vm.wipeFree(); err != nil {
		return err
	}
	img, err := vm.registers()
	if err != nil {
		return err
	}
	head := []byte(streamMagic)
	for _, word := range []uint32{img.MemoryBytes, img.StackPointer, img.Runtime, img.Context, uint32(img.Root)} {
		head = binary.LittleEndian.AppendUint32(head, word)
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	mem, _ := vm.mem.Read(0, img.MemoryBytes)
	var record [4 + PageSize]byte
	old := pageCursor{base.Pages}
	for i := uint32(0); i < img.MemoryBytes/PageSize; i++ {
		page, was := mem[i*PageSize:(i+1)*PageSize], old.page(i)
		if bytes.Equal(page, was) {
			continue
		}
		binary.LittleEndian.PutUint32(record[:], i)
		subtle.XORBytes(record[4:], page, was)
		if _, err := w.Write(record[:]); err != nil {
			return err
		}
	}
	binary.LittleEndian.PutUint32(record[:], lastPage)
	_, err = w.Write(record[:4])
	return err
}

// ReadImage makes the VM the one that [VM.WriteImage] wrote, on top of the same start image,
// and reads nothing past the stream's end. The memory limit that is in force stays:
// a guest that does not fit is [ErrOutOfMemory]. Math.random is seeded anew. Values
// from before mean nothing any more. After an error the VM is dead.
func (vm *VM) ReadImage(r io.Reader, base *Image) error {
	if err := vm.atRest(base); err != nil {
		return err
	}
	err := vm.readImage(r, base)
	if err != nil && vm.dead == nil {
		vm.dead = fmt.Errorf("%w, or rather of an image that could not be read", ErrDead)
	}
	return err
}

func (vm *VM) readImage(r io.Reader, base *Image) error {
	img, err := readHead(r, base)
	if err != nil {
		return err
	}
	// A guest may have grown into the headroom while a failure was read out.
	lin := vm.lin.limit
	vm.lin.limit += headroom
	known := vm.mem.Size() // beyond it the memory is fresh and zero
	fits := known >= img.MemoryBytes
	if !fits {
		_, fits = vm.mem.Grow((img.MemoryBytes - known) / wasmPage)
	}
	vm.lin.limit = lin
	if !fits {
		return fmt.Errorf("engine: growing the memory to %d bytes for an image: %w", img.MemoryBytes, ErrOutOfMemory)
	}
	if err := vm.readPages(r, base, img.MemoryBytes/PageSize, known/PageSize); err != nil {
		return err
	}
	vm.scratch, vm.undefined = nil, 0
	if err := vm.adopt(img); err != nil {
		return err
	}
	if vm.limit == 0 {
		return nil
	}
	if _, err := vm.call("qjs_set_memory_limit", uint64(vm.limit)); err != nil {
		return err
	}
	if n, err := vm.call("qjs_get_allocated_size"); err != nil {
		return err
	} else if uint64(uint32(n)) > uint64(vm.limit)+headroom {
		return fmt.Errorf("engine: an image with a heap of %d bytes, where %d are allowed: %w", uint32(n), vm.limit, ErrOutOfMemory)
	}
	return nil
}

// readHead reads and checks what a stream begins with. The image has no pages.
func readHead(r io.Reader, base *Image) (*Image, error) {
	var head [len(streamMagic) + 5*4]byte
	if err := readAll(r, head[:]); err != nil {
		return nil, err
	}
	if string(head[:len(streamMagic)]) != streamMagic {
		return nil, errors.New("engine: not an image stream of this format")
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(head[len(streamMagic)+4*i:]) }
	img := &Image{MemoryBytes: word(0), StackPointer: word(1), Runtime: word(2), Context: word(3), Root: Value(word(4)), Base: base.Base, Seed: base.Seed}
	if img.MemoryBytes < base.MemoryBytes {
		return nil, fmt.Errorf("engine: an image stream of %d bytes of memory, less than the start image's", img.MemoryBytes)
	}
	return img, img.check()
}

// readPages applies the pages of a stream to a memory of n pages, of which those from
// fresh on are zeros.
func (vm *VM) readPages(r io.Reader, base *Image, n, fresh uint32) error {
	mem, _ := vm.mem.Read(0, vm.mem.Size())
	old := pageCursor{base.Pages}
	reset := func(from, to uint32) {
		for i := from; i < min(to, fresh); i++ {
			// Looking is cheaper than writing: a page that is only read costs none.
			if page, was := mem[i*PageSize:(i+1)*PageSize], old.page(i); !bytes.Equal(page, was) {
				copy(page, was)
			}
		}
	}
	var data [PageSize]byte
	next := uint32(0)
	for {
		if err := readAll(r, data[:4]); err != nil {
			return err
		}
		i := binary.LittleEndian.Uint32(data[:])
		if i == lastPage {
			reset(next, uint32(len(mem)/PageSize))
			return nil
		}
		if i < next || i >= n {
			return fmt.Errorf("engine: page %d of an image stream is out of order, or outside of a memory of %d pages", i, n)
		}
		reset(next, i)
		if err := readAll(r, data[:]); err != nil {
			return err
		}
		subtle.XORBytes(mem[i*PageSize:(i+1)*PageSize], data[:], old.page(i))
		next = i + 1
	}
}

// readAll fills b. A stream that ends is never at its end here.
func readAll(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// pageCursor looks pages up whose indexes ascend.
type pageCursor struct{ left []Page }

var zeroPage [PageSize]byte

// page gives a page, which is zeros if the image does not hold it.
func (c *pageCursor) page(i uint32) []byte {
	for len(c.left) > 0 && c.left[0].Index < i {
		c.left = c.left[1:]
	}
	if len(c.left) > 0 && c.left[0].Index == i {
		return c.left[0].Data
	}
	return zeroPage[:]
}

// atRest tells why no image can be taken or put in place now, or nil.
func (vm *VM) atRest(base *Image) error {
	switch {
	case vm.dead != nil:
		return vm.dead
	case vm.depth != 0:
		return errors.New("engine: an image cannot be taken while guest code runs")
	case base != nil && base.MemoryBytes != vm.start:
		return errors.New("engine: the VM was not made from this start image")
	}
	return nil
}

// leastWiped is the smallest free block that is worth a call.
const leastWiped = 1 << 10

// wipeFree writes zeros over what is allocated to nobody, but for scraps. A guest that
// dropped what it held would carry it in every image otherwise: free only forgets. The
// allocator itself says what is free: it is asked for all that it can give without growing, in
// ever smaller blocks.
func (vm *VM) wipeFree() error {
	lin := vm.lin.limit
	vm.lin.limit = uint64(vm.mem.Size())
	defer func() { vm.lin.limit = lin }()
	var blocks []uint32
	left := vm.mem.Size() // more cannot be free, whatever a broken allocator says
	for size := uint32(1) << (bits.Len32(vm.mem.Size()) - 1); size >= leastWiped; size /= 2 {
		for size <= left {
			p, err := vm.call("wasm_malloc", uint64(size))
			if err != nil {
				return err
			}
			b, ok := vm.mem.Read(uint32(p), size)
			if p == 0 || !ok {
				break
			}
			blocks, left = append(blocks, uint32(p)), left-size
			for len(b) > 0 {
				page := b[:min(len(b), PageSize)]
				if !bytes.Equal(page, zeroPage[:len(page)]) {
					clear(page) // to read costs no memory, to write does
				}
				b = b[len(page):]
			}
		}
	}
	for _, p := range blocks {
		vm.free(uint64(p))
	}
	return vm.dead
}

// releaseScratch gives back what the VM keeps in the guest's memory for its calls.
func (vm *VM) releaseScratch() {
	for _, p := range vm.scratch {
		vm.free(uint64(p))
	}
	vm.Free(vm.undefined)
	vm.scratch, vm.undefined = nil, 0
}
