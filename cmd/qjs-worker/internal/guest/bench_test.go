package guest_test

import (
	"strings"
	"testing"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
)

// BenchmarkNew is what the guest adds to the start of a worker.
func BenchmarkNew(b *testing.B) {
	mod, err := module()
	if err != nil {
		b.Fatal(err)
	}
	image, err := startImage()
	if err != nil {
		b.Fatal(err)
	}
	stored, err := image.MarshalBinary()
	if err != nil {
		b.Fatal(err)
	}
	see := surface(b, catalog)
	for b.Loop() {
		g, err := guest.New(mod, image, engine.Config{}, &fakeHost{}, memoryLimit, guest.Options{Surface: see})
		if err != nil {
			b.Fatal(err)
		}
		g.VM().Close()
	}
	b.ReportMetric(float64(len(stored)), "image-bytes")
}

// BenchmarkCall is one nested call: guest, Host.Call, Settle, and the guest goes on.
func BenchmarkCall(b *testing.B) {
	r := newRun(b)
	if err := r.body(`for (;;) await tools.call("x", {query: "weather", limit: 5})`); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		id := r.lastCall()
		r.host.calls = r.host.calls[:0]
		if err := r.g.Settle(id, []byte(`{"ok":true,"items":[1,2,3]}`), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkValue is 10,000 rows of small objects, plain and by way of the engine alone.
func BenchmarkValue(b *testing.B) {
	const rows = `const rows = []; for (let i = 0; i < 10000; i++) rows.push({id: i, name: "row " + i, ok: true, tags: ["a", "b"]});`
	for _, c := range []struct{ name, code string }{
		{"json", `json(rows)`},
		{"JSON.stringify", `JSON.stringify(rows)`},
		{"replacer", `JSON.stringify(rows, (k, v) => v)`},
		{"map", `json(new Map(rows.map(r => [r.id, r])))`},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := newRun(b)
			if err := r.body(rows + `for (;;) { ` + c.code + `; await tools.call("x") }`); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				id := r.lastCall()
				r.host.items, r.host.calls = nil, r.host.calls[:0]
				if err := r.g.Settle(id, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkText is a line of console output.
func BenchmarkText(b *testing.B) {
	r := newRun(b)
	if err := r.body(`for (;;) { console.log("line", 1, {a: [1]}); await tools.call("x") }`); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		id := r.lastCall()
		r.host.items, r.host.calls = nil, r.host.calls[:0]
		if err := r.g.Settle(id, nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTextEncoder turns a megabyte into UTF-8 and back.
func BenchmarkTextEncoder(b *testing.B) {
	r := newRun(b)
	if err := r.body(`const s = ` + "`" + strings.Repeat("héllo wörld ", 80000) + "`" + `; for (;;) { new TextDecoder().decode(new TextEncoder().encode(s)); await tools.call("x") }`); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := r.g.Settle(r.lastCall(), nil, nil); err != nil {
			b.Fatal(err)
		}
	}
}
