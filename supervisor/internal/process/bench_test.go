//go:build linux

package process

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/test/shipped"
)

func TestMain(m *testing.M) {
	code := m.Run()
	shipped.Remove()
	os.Exit(code)
}

// BenchmarkLayers tells what each layer costs a worker's start and end: with that layer alone,
// beside none and all. The variants take turns, so that a machine that gets busy is busy for
// all of them; the median counts.
func BenchmarkLayers(b *testing.B) {
	path, err := shipped.Worker()
	if err != nil {
		b.Fatal(err)
	}
	type variant struct {
		name    string
		spawner *Spawner
		start   []float64
		end     []float64
	}
	var variants []*variant
	add := func(name string, without []isolation.Layer) {
		s, err := NewSpawner(Config{Path: path, CacheDir: filepath.Join(filepath.Dir(path), "code"), Without: without})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		variants = append(variants, &variant{name: name, spawner: s})
	}
	add("none", isolation.Layers())
	for _, layer := range isolation.Layers() {
		without := slices.DeleteFunc(isolation.Layers(), func(l isolation.Layer) bool {
			// An empty root needs a mount namespace, Landlock and seccomp need no_new_privs.
			return l == layer || layer == isolation.EmptyRoot && l == isolation.MountNamespace
		})
		switch layer {
		case isolation.ProcessGroup, isolation.Environment, isolation.Descriptors, isolation.ParentDeath:
			continue // always there
		}
		add(string(layer), without)
	}
	add("all", nil)
	once := func(v *variant) {
		began := time.Now()
		child, err := v.spawner.Start(context.Background(), Order{})
		if err != nil {
			b.Fatalf("%s: %v", v.name, err)
		}
		ready := time.Now()
		child.Kill(KilledDone)
		if exit := child.Wait(); exit.Left != nil {
			b.Fatalf("%s: %v", v.name, exit.Left)
		}
		v.start = append(v.start, ready.Sub(began).Seconds()*1e3)
		v.end = append(v.end, time.Since(ready).Seconds()*1e3)
	}
	for _, v := range variants {
		once(v)
		v.start, v.end = nil, nil
	}
	for b.Loop() {
		for _, v := range variants {
			once(v)
		}
	}
	median := func(xs []float64) float64 {
		slices.Sort(xs)
		return xs[len(xs)/2]
	}
	b.ReportMetric(0, "ns/op")
	for _, v := range variants {
		start, end := median(v.start), median(v.end)
		b.Run(v.name, func(b *testing.B) {
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(start, "p50-start-ms")
			b.ReportMetric(end, "p50-end-ms")
		})
	}
}
