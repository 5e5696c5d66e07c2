//go:build unix

package engine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is what x86-64 and arm64 can map at once. A guest's memory is mapped in
// such pieces and asked to be backed by them: most of a worker's start is page faults.
const hugePage = 2 << 20

// span is the address space that a linear memory reserves: 4 GiB of index and 4 GiB
// of offset, so that no access of compiled wasm can leave it even if the compiler
// forgot a bounds check. It is PROT_NONE and costs no memory.
const span = 8<<30 + wasmPage + hugePage

// linearMemory backs one VM. It grows in place: a copy at each growth, as wazero's
// default does, peaks at four times the guest's size.
type linearMemory struct {
	span   unsafe.Pointer // what was reserved
	base   unsafe.Pointer
	mapped uint64 // readable and writable bytes from base
	limit  uint64 // memory.grow past it fails, which the guest sees as out of memory
}

func newLinearMemory() (*linearMemory, error) {
	p, err := unix.MmapPtr(-1, 0, nil, span, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes of address space for the guest: %w", uint64(span), err)
	}
	aligned := unsafe.Add(p, (hugePage-uintptr(p)%hugePage)%hugePage)
	return &linearMemory{span: p, base: aligned, limit: maxPages * wasmPage}, nil
}

// Reallocate implements wazero's LinearMemory. Pages become writable only when the
// guest grows into them, so RLIMIT_DATA counts what is used, not what is reserved.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		return nil
	}
	if size > m.mapped {
		at := unsafe.Add(m.base, m.mapped)
		n := (size - m.mapped + hugePage - 1) / hugePage * hugePage
		// mmap and not mprotect: a worker that is locked up has no mprotect.
		_, err := unix.MmapPtr(-1, 0, at, uintptr(n), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
		if err != nil {
			return nil
		}
		adviseHuge(at, uintptr(n))
		m.mapped += n
	}
	return unsafe.Slice((*byte)(m.base), size)
}

// Free implements wazero's LinearMemory.
func (m *linearMemory) Free() {
	if m.span != nil {
		_ = unix.MunmapPtr(m.span, span) // nothing can be done about it, and the process is short-lived
		m.span = nil
	}
}
