//go:build amd64 || arm64

package lockdown

// entry is in assembly, and only the linker refers to it.
func entry()
