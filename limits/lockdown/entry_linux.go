//go:build amd64 || arm64

package lockdown

// entry is in assembly. Only the linker refers to it: -ldflags=-E=….
//
//lint:ignore U1000 see above
func entry()
