package engine

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for huge pages; that it cannot have them is no error (madvise(2)).
func adviseHuge(at unsafe.Pointer, n uintptr) {
	_ = unix.Madvise(unsafe.Slice((*byte)(at), n), unix.MADV_HUGEPAGE)
}
