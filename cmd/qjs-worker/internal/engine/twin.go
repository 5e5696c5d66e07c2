package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero"
)

// wazero validates every function body each time a module is loaded, even when its
// machine code comes from the cache: two thirds of a worker's start, spent on a file
// whose hash the build has checked and whose answer is always the same. So the cache
// also gets the code under the name of a twin: a module equal in every section but
// that of code, whose bodies all are "unreachable" and take no time to validate. See
// RATIONALE.md, "Why is the engine loaded through a twin?".
//
// It fails closed. If wazero ever runs a twin's own bodies, a VM cannot even be
// initialised ([Module.instantiate]), and Compile falls back to the module itself.

const (
	sectionCustom = 0
	sectionCode   = 10
)

// trapBody is a function body: its size, no locals, unreachable, end.
var trapBody = []byte{3, 0, 0x00, 0x0b}

// makeTwin gives the twin of a wasm module. Twins of different modules differ.
func makeTwin(src source) ([]byte, error) {
	const header = 8
	wasm := src.wasm
	if len(wasm) < header || string(wasm[:4]) != "\x00asm" {
		return nil, errors.New("engine: not a wasm module")
	}
	twin := bytes.Clone(wasm[:header])
	name := "codemode.twin"
	custom := append(append([]byte{byte(len(name))}, name...), src.hash[:]...)
	twin = append(twin, sectionCustom, byte(len(custom)))
	twin = append(twin, custom...)
	for rest := wasm[header:]; len(rest) > 0; {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errors.New("engine: a wasm section is longer than its module")
		}
		body := rest[1+n : 1+n+int(size)]
		if rest[0] == sectionCode {
			count, n := binary.Uvarint(body)
			if n <= 0 || count > uint64(len(body)) {
				return nil, errors.New("engine: the wasm code section is malformed")
			}
			body = append(bytes.Clone(body[:n]), bytes.Repeat(trapBody, int(count))...)
			twin = append(twin, sectionCode)
			twin = binary.AppendUvarint(twin, uint64(len(body)))
			twin = append(twin, body...)
		} else if rest[0] != sectionCustom { // names and the like are of no use here
			twin = append(twin, rest[:1+n+int(size)]...)
		}
		rest = rest[1+n+int(size):]
	}
	return twin, nil
}

// Code is machine code that was compiled ahead, for the kind of processor that compiled
// it: a cache entry and its name. A worker that brings it need not compile on the first
// start on a machine.
type Code struct {
	Entry string // path in a code cache
	Bytes []byte
}

// Precompile compiles wasm for this machine.
func Precompile(ctx context.Context, wasm []byte) (*Code, error) {
	dir, err := os.MkdirTemp("", "precompile-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	src := source{wasm, sha256.Sum256(wasm)}
	if err := addTwin(ctx, src, dir); err != nil {
		return nil, err
	}
	entry, err := os.ReadFile(twinMarker(dir, src))
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(dir, string(entry)))
	return &Code{string(entry), b}, err
}

// MarshalBinary stores the name, a NUL, and the code.
func (c *Code) MarshalBinary() ([]byte, error) {
	return append(append([]byte(c.Entry), 0), c.Bytes...), nil
}

// UnmarshalBinary reads what MarshalBinary wrote. Bytes refer to b.
func (c *Code) UnmarshalBinary(b []byte) error {
	name, code, ok := bytes.Cut(b, []byte{0})
	if !ok || !filepath.IsLocal(string(name)) {
		return errors.New("engine: not precompiled code")
	}
	c.Entry, c.Bytes = string(name), code
	return nil
}

// seed puts code that was compiled ahead into a cache that has none.
func (c *Code) seed(src source, cacheDir string) error {
	if err := replaceFile(filepath.Join(cacheDir, c.Entry), c.Bytes); err != nil {
		return err
	}
	return replaceFile(twinMarker(cacheDir, src), []byte(c.Entry))
}

// sweep removes what killed workers left behind while they compiled.
func sweep(cacheDir string) {
	for _, pattern := range []string{"entry-*", "traps-*"} {
		dirs, _ := filepath.Glob(filepath.Join(cacheDir, pattern))
		for _, dir := range dirs {
			if info, err := os.Lstat(dir); err == nil && time.Since(info.ModTime()) > 10*time.Minute {
				os.RemoveAll(dir)
			}
		}
	}
}

// errNoTwin says that the cache has no code for a twin yet.
var errNoTwin = errors.New("engine: no twin in the code cache")

// twinMarker is the file that names the cache entry of a module's twin.
func twinMarker(cacheDir string, src source) string {
	return filepath.Join(cacheDir, "twin-"+hex.EncodeToString(src.hash[:8]))
}

// compileTwin loads the module through its twin.
func (m *Module) compileTwin(src source, cacheDir string) (wazero.CompiledModule, error) {
	marker, err := os.ReadFile(twinMarker(cacheDir, src))
	if err != nil {
		return nil, errNoTwin
	}
	// Without this entry wazero would compile the traps and keep them.
	if entry := string(marker); !filepath.IsLocal(entry) || !exists(filepath.Join(cacheDir, entry)) {
		return nil, errNoTwin
	}
	twin, err := makeTwin(src)
	if err != nil {
		return nil, err
	}
	return m.runtime.CompileModule(m.ctx, twin)
}

// addTwin gives the cache the code of wasm, which it has, under the name of its twin.
func addTwin(ctx context.Context, src source, cacheDir string) error {
	sweep(cacheDir)
	twin, err := makeTwin(src)
	if err != nil {
		return err
	}
	code, err := entryOf(ctx, src.wasm, cacheDir)
	if err != nil {
		return err
	}
	machineCode, err := os.ReadFile(filepath.Join(cacheDir, code))
	if err != nil {
		return err
	}
	traps, err := os.MkdirTemp(cacheDir, "traps-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(traps)
	entry, err := entryOf(ctx, twin, traps)
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(cacheDir, entry), machineCode); err != nil {
		return err
	}
	return replaceFile(twinMarker(cacheDir, src), []byte(entry))
}

// entryOf compiles wasm into an empty or existing cache and gives the name of its entry.
func entryOf(ctx context.Context, wasm []byte, cacheDir string) (string, error) {
	scratch, err := os.MkdirTemp(cacheDir, "entry-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	cache, err := wazero.NewCompilationCacheWithDir(scratch)
	if err != nil {
		return "", err
	}
	r := wazero.NewRuntimeWithConfig(ctx, runtimeConfig().WithCompilationCache(cache))
	defer r.Close(ctx)
	if _, err := r.CompileModule(ctx, wasm); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(scratch, "*", "*"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("engine: a code cache of one module has %d files", len(files))
	}
	entry, err := filepath.Rel(scratch, files[0])
	if err != nil {
		return "", err
	}
	if !exists(filepath.Join(cacheDir, entry)) {
		b, err := os.ReadFile(files[0])
		if err != nil {
			return "", err
		}
		return entry, replaceFile(filepath.Join(cacheDir, entry), b)
	}
	return entry, nil
}

func exists(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// replaceFile writes a file at once: other workers may be reading the old one.
func replaceFile(path string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
