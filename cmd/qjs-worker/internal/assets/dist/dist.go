// Package dist holds the files that the worker embeds. They are fetched and generated,
// not committed: the generated embed.go beside this file sets the variables. Without it
// they are nil, and everything still compiles.
package dist

// The files. They are the binary's own memory and must not be changed.
var (
	Wasm   []byte // quickjs.wasm
	Guest  []byte // guest.img
	Parser []byte // parser.img
	Code   []byte // code.bin

	// Sum is what a snapshot fits: the SHA-256, in hex, of that of quickjs.wasm and guest.img
	// behind it. Made by the build, which has the time.
	Sum string
)
