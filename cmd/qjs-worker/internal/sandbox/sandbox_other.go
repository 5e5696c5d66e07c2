//go:build !linux

package sandbox

// CloseInherited does nothing here: descriptors cannot be listed without /proc.
func CloseInherited(int) error { return nil }

// Lock does nothing here yet.
func Lock() error { return nil }

// LimitData does nothing here: RLIMIT_DATA does not bound mappings.
func LimitData(uint64) error { return nil }
