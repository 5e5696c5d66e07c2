//go:build unix && !linux

package engine

import "unsafe"

func adviseHuge(unsafe.Pointer, uintptr) {}
