// Package bench measures what a cell costs, through the library and the real worker.
// make bench runs it beside bench/node-worker, the same cells on Node.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/test/shipped"
)

func TestMain(m *testing.M) {
	code := m.Run()
	shipped.Remove()
	os.Exit(code)
}

// runner runs cells in fresh workers. The compiled code is cached, as it is after the
// first cell on a machine.
func runner(b *testing.B) func(code string) *supervisor.Result {
	b.Helper()
	s := start(b, supervisor.Options{Pool: -1})
	run := func(code string) *supervisor.Result {
		res := s.Exec(context.Background(), program(b, code))
		if res.Status != supervisor.Completed {
			b.Fatalf("%s", res.JSON())
		}
		return res
	}
	for range 3 { // fills the cache; three are thrown away in the Node baseline, too
		run("0")
	}
	return run
}

// start makes a supervisor whose workers are those that are shipped.
func start(b *testing.B, opts supervisor.Options) *supervisor.Supervisor {
	b.Helper()
	path, err := shipped.Worker()
	if err != nil {
		b.Fatal(err)
	}
	opts.Worker, opts.CacheDir = path, filepath.Join(filepath.Dir(path), "code")
	s, err := supervisor.New(opts)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	report, err := s.Examine(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	if missing := report.Missing(); len(missing) > 0 {
		b.Logf("without strict isolation, since this host lacks %d layers: %+v", len(missing), missing)
	} else if err := s.SetIsolation(limits.IsolationConfig{Preset: "strict"}); err != nil {
		b.Fatal(err)
	}
	return s
}

// program is a cell with the tool echo.
func program(b *testing.B, code string) supervisor.Program {
	b.Helper()
	cat, _, err := catalog.Build([]catalog.Entry{{Name: "echo", Source: catalog.Client}}, catalog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return supervisor.Program{
		Code: code, Catalog: cat,
		Executor: supervisor.ExecutorFunc(func(_ context.Context, call *supervisor.Call) (json.RawMessage, error) { return call.Input, nil }),
	}
}

// samples are one measure of every run.
type samples []float64

func (s *samples) add(x float64) { *s = append(*s, x) }

func (s samples) report(b *testing.B, unit string) {
	slices.Sort(s)
	b.ReportMetric(s[len(s)/2], "p50-"+unit)
	b.ReportMetric(s[len(s)*99/100], "p99-"+unit)
}

// cell measures whole execs of one source.
func cell(b *testing.B, code, want string) {
	run := runner(b)
	var whole, guest samples
	var peak int64
	for b.Loop() {
		began := time.Now()
		res := run(code)
		whole.add(float64(time.Since(began).Microseconds()) / 1000)
		guest.add(res.Telemetry.Timings.Guest)
		peak = max(peak, res.Telemetry.Worker.PeakMemoryBytes)
		if string(res.Value) != want {
			b.Fatalf("got %s, want %s", res.Value, want)
		}
	}
	whole.report(b, "ms")
	guest.report(b, "guest-ms")
	b.ReportMetric(float64(peak)/1e6, "peak-MB")
}

// The price of a worker: from the request to the result, nothing started ahead.
func BenchmarkCold(b *testing.B) { cell(b, "1+2", "3") }

// BenchmarkWarm is a cell that finds a spare worker.
func BenchmarkWarm(b *testing.B) {
	s := start(b, supervisor.Options{Pool: 1})
	p := program(b, "1+2")
	var whole, got samples
	for b.Loop() {
		b.StopTimer()
		if err := s.Warm(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		began := time.Now()
		res := s.Exec(context.Background(), p)
		whole.add(time.Since(began).Seconds() * 1e3)
		if string(res.Value) != "3" {
			b.Fatalf("%s", res.JSON())
		}
		got.add(res.Telemetry.Timings.Start)
	}
	whole.report(b, "ms")
	got.report(b, "handout-ms")
}

// BenchmarkThroughput runs cells on all processors, without and with spares.
func BenchmarkThroughput(b *testing.B) {
	for _, pool := range []int{-1, 2} {
		b.Run(map[int]string{-1: "cold", 2: "pool"}[pool], func(b *testing.B) {
			s := start(b, supervisor.Options{Pool: pool})
			p := program(b, "1+2")
			cells := make(chan struct{})
			var wg sync.WaitGroup
			for range 2 * runtime.NumCPU() {
				wg.Go(func() {
					for range cells {
						if res := s.Exec(context.Background(), p); string(res.Value) != "3" {
							b.Errorf("%s", res.JSON())
						}
					}
				})
			}
			began := time.Now()
			n := 0
			for b.Loop() {
				cells <- struct{}{}
				n++
			}
			close(cells)
			wg.Wait()
			b.ReportMetric(float64(n)/time.Since(began).Seconds(), "cells/s")
		})
	}
}

func BenchmarkFib25(b *testing.B) {
	cell(b, "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } fib(25)", "75025")
}

func BenchmarkLoop3e6(b *testing.B) {
	cell(b, "let s = 0; for (let i = 0; i < 3e6; i++) s += i; s", "4499998500000")
}

func BenchmarkTypeScript(b *testing.B) {
	cell(b, "```ts\ninterface P { x: number }\nconst p: P = {x: 2}; p.x as number\n```", "2")
}

// One nested call, guest to supervisor to executor and back, as the guest sees it: the
// mean over 1,000 calls in a row is one sample.
func BenchmarkNestedCall(b *testing.B) {
	run := runner(b)
	var each samples
	for b.Loop() {
		res := run("const t = performance.now(); for (let i = 0; i < 1000; i++) await tools.echo({v: i}); performance.now() - t")
		var millis float64
		if err := json.Unmarshal(res.Value, &millis); err != nil {
			b.Fatal(err)
		}
		each.add(millis) // ms for 1,000 calls is µs for one
	}
	each.report(b, "us")
}

// A small cell that yields: what it costs to park it, in memory and in a state directory,
// and to go on with it, whole waits with a process each and the restore inside of them.
func BenchmarkParkAndWait(b *testing.B) {
	for _, store := range []string{"memory", "disk"} {
		b.Run(store, func(b *testing.B) {
			var opts supervisor.Options
			if store == "disk" {
				opts.StateDir = filepath.Join(b.TempDir(), "state")
			}
			opts.Pool = -1
			s := start(b, opts)
			p := program(b, `const users = (await tools.echo([{id: 1, name: "a"}, {id: 2, name: "b"}])).map(u => u.name); await yield_control("half way"); return users.length`)
			var park, restore, whole samples
			var size int64
			for b.Loop() {
				res := s.Exec(context.Background(), p)
				if res.Status != supervisor.Waiting {
					b.Fatalf("%s", res.JSON())
				}
				park.add(res.Telemetry.Timings.Snapshot)
				size = res.Telemetry.Snapshot.Bytes
				began := time.Now()
				res = s.Wait(context.Background(), supervisor.WaitRequest{RunID: res.RunID})
				whole.add(float64(time.Since(began).Microseconds()) / 1000)
				restore.add(res.Telemetry.Timings.Restore)
				if res.Status != supervisor.Completed {
					b.Fatalf("%s", res.JSON())
				}
			}
			park.report(b, "park-ms")
			restore.report(b, "restore-ms")
			whole.report(b, "wait-ms")
			b.ReportMetric(float64(size), "snapshot-bytes")
		})
	}
}

// A call in a resumed leg of a run in a state directory: one that may be made again, and one
// before which the run is stored.
func BenchmarkDurableCall(b *testing.B) {
	for _, readOnly := range []bool{true, false} {
		b.Run(map[bool]string{true: "read-only", false: "checkpoint"}[readOnly], func(b *testing.B) {
			s := start(b, supervisor.Options{Pool: -1, StateDir: filepath.Join(b.TempDir(), "state")})
			p := program(b, `await yield_control(); const t = performance.now(); for (let i = 0; i < 50; i++) await tools.echo({v: i}); return performance.now() - t`)
			var err error
			p.Catalog, _, err = catalog.Build([]catalog.Entry{{Name: "echo", Source: catalog.Client, Annotations: catalog.Annotations{ReadOnly: readOnly}}}, catalog.Options{})
			if err != nil {
				b.Fatal(err)
			}
			var each samples
			for b.Loop() {
				res := s.Exec(context.Background(), p)
				res = s.Wait(context.Background(), supervisor.WaitRequest{RunID: res.RunID})
				var millis float64
				if err := json.Unmarshal(res.Value, &millis); err != nil {
					b.Fatalf("%s", res.JSON())
				}
				each.add(millis / 50)
			}
			each.report(b, "ms")
		})
	}
}

// manyTools makes a catalog of n tools of usual size.
func manyTools(b *testing.B, n int, source catalog.Source) *catalog.Catalog {
	b.Helper()
	var entries []catalog.Entry
	for i := range n {
		entries = append(entries, catalog.Entry{
			Name: fmt.Sprintf("tool_%05d", i), Source: source, SourceName: fmt.Sprintf("owner%02d", i%40),
			Description: fmt.Sprintf("Does thing %d to the records of a workspace. ", i) + strings.Repeat("It is described as servers do, at some length. ", 6),
			Parameters: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{"workspace_id":{"type":"string","description":"The id of the workspace"},"field_%d":{"type":"array","items":{"type":"string"}},`+
				`"limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"order":{"type":"string","enum":["asc","desc"]},"filter":{"type":"object","properties":{"status":{"type":"string"},"since":{"type":"string","format":"date-time"}}}},"required":["workspace_id"]}`, i)),
		})
	}
	c, _, err := catalog.Build(entries, catalog.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkManyTools is a cell on a spare worker by the size of its catalog: what ten thousand
// tools add to the start of a cell that uses none of them.
func BenchmarkManyTools(b *testing.B) {
	s := start(b, supervisor.Options{Pool: 1})
	s.Warm(context.Background())
	catalogs := []struct {
		name string
		c    *catalog.Catalog
		took samples
	}{{name: "1", c: manyTools(b, 1, catalog.Plugin)}, {name: "10000", c: manyTools(b, 10_000, catalog.Plugin)}, {name: "10000-mcp", c: manyTools(b, 10_000, catalog.MCP)}}
	for b.Loop() {
		for i := range catalogs { // by turns, so that the machine's moods meet all
			c := &catalogs[i]
			s.Warm(context.Background())
			began := time.Now()
			if res := s.Exec(context.Background(), supervisor.Program{Code: "1+2", Catalog: c.c}); res.Status != supervisor.Completed {
				b.Fatalf("%s", res.JSON())
			}
			c.took.add(float64(time.Since(began).Microseconds()) / 1000)
		}
	}
	for _, c := range catalogs {
		slices.Sort(c.took)
		b.ReportMetric(c.took[len(c.took)/2], c.name+"-p50-ms")
	}
}

// BenchmarkBuild is a catalog of ten thousand tools.
func BenchmarkBuild(b *testing.B) {
	for _, source := range []catalog.Source{catalog.Plugin, catalog.MCP} {
		b.Run(string(source), func(b *testing.B) {
			entries := manyTools(b, 10_000, source).Entries()
			for b.Loop() {
				if _, _, err := catalog.Build(entries, catalog.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
