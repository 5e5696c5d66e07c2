//go:build unix

package engine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// span is the address space that a linear memory reserves: 4 GiB of index and 4 GiB
// of offset, so that no access of compiled wasm can leave it even if the compiler
// forgot a bounds check. It is PROT_NONE and costs no memory.
const span = 8<<30 + wasmPage

// linearMemory backs one VM. It grows in place: a copy at each growth, as wazero's
// default does, peaks at four times the guest's size.
type linearMemory struct {
	base   unsafe.Pointer
	mapped uint64 // readable and writable bytes from base
	limit  uint64 // memory.grow past it fails, which the guest sees as out of memory
	full   bool   // a growth was refused
}

func newLinearMemory() (*linearMemory, error) {
	p, err := unix.MmapPtr(-1, 0, nil, span, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("reserving %d bytes of address space for the guest: %w", uint64(span), err)
	}
	return &linearMemory{base: p, limit: maxPages * wasmPage}, nil
}

// Reallocate implements wazero's LinearMemory. Pages become writable only when the
// guest grows into them, so RLIMIT_DATA counts what is used, not what is reserved.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.full = true
		return nil
	}
	if size > m.mapped {
		at := unsafe.Add(m.base, m.mapped)
		// mmap and not mprotect: the worker's seccomp filter has no mprotect.
		_, err := unix.MmapPtr(-1, 0, at, uintptr(size-m.mapped), unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE|unix.MAP_FIXED)
		if err != nil {
			m.full = true
			return nil
		}
		m.mapped = size
	}
	return unsafe.Slice((*byte)(m.base), size)
}

// Free implements wazero's LinearMemory.
func (m *linearMemory) Free() {
	if m.base != nil {
		_ = unix.MunmapPtr(m.base, span) // nothing can be done about it, and the process is short-lived
		m.base = nil
	}
}
