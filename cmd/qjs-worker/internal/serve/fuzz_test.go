package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/assets"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

// FuzzReadSnapshot: any snapshot is an error or a run. The input is what the decompressor
// gives; TestDamagedSnapshots is for what it is given.
func FuzzReadSnapshot(f *testing.F) {
	// Not Load: its limits on the Go heap are for a process that lives for one cell.
	a, err := assets.Load()
	if err != nil {
		f.Fatal(err)
	}
	mod, err := engine.Compile(context.Background(), a.Wasm, codeCache, a.Code)
	if err != nil {
		f.Fatal(err)
	}
	defer mod.Close()
	e := &Engine{mod: mod, image: a.Guest, sum: a.Sum}
	head := snapshotMagic + e.sum + "\n"
	part := func(s string) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s }
	positions := part("\x01\x01\x00\x01\x00\x00\x00")
	words := "QJSPRK1\n"
	for _, w := range []uint32{e.image.MemoryBytes, e.image.StackPointer, e.image.Runtime, e.image.Context, uint32(e.image.Root)} {
		words += string(binary.LittleEndian.AppendUint32(nil, w))
	}
	idle := `{"elapsed":1.5,"used":3,"omitted":0,"full":false,"sent":2,"calls":[]}`
	good := head + positions + part(idle) + words + "\xff\xff\xff\xff"
	f.Add([]byte(good), true)
	f.Add([]byte(good), false)
	f.Add([]byte(strings.Replace(good, `[]`, `[{"wire":1,"guest":1,"bytes":2}]`, 1)), true)
	f.Add([]byte(head+"\xff\xff\xff\xff"), true)
	f.Add([]byte(head+positions+part(`{"elapsed":-1}`)), true)
	f.Add([]byte(head+positions+part(`{"calls":[{"wire":1},{"wire":1}],"sent":1}`)), true)
	f.Fuzz(func(t *testing.T, snapshot []byte, packed bool) {
		must := packed && string(snapshot) == good
		if packed {
			var b bytes.Buffer
			z, err := zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			z.Write(snapshot)
			z.Close()
			snapshot = b.Bytes()
		}
		fresh := &Engine{mod: e.mod, image: e.image, sum: e.sum}
		var err error
		if fresh.guest, err = guest.Restore(e.mod, engine.Config{}, &fresh.host, 8<<20, e.image); err != nil {
			t.Fatal(err)
		}
		defer fresh.guest.VM().Close()
		l := &loop{Engine: fresh}
		s, err := l.readSnapshot(bytes.NewReader(snapshot), 8<<20)
		if (err == nil) != (s != nil) || must && err != nil {
			t.Errorf("got %v, %v", s, err)
		}
	})
}
