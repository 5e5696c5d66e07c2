package serve

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/workerproto"
)

// rest reads to the next Idle, and gives the calls and outputs before it.
func (p *peer) rest() (idle *workerproto.Idle, calls []uint64, outputs []string) {
	p.t.Helper()
	for {
		switch m := p.next().(type) {
		case *workerproto.Output:
			outputs = append(outputs, string(m.JSON))
		case *workerproto.ToolCall:
			calls = append(calls, m.ID)
		case *workerproto.Idle:
			return m, calls, outputs
		case *workerproto.Failed, *workerproto.Done:
			p.t.Fatalf("got %+v", m)
		}
	}
}

// park parks a worker at rest.
func (p *peer) park() (snapshot []byte, parked *workerproto.Parked) {
	p.t.Helper()
	snapshot, end := p.tryPark(64 << 20)
	parked, ok := end.(*workerproto.Parked)
	if !ok {
		p.t.Fatalf("got %+v", end)
	}
	return snapshot, parked
}

func (p *peer) tryPark(maxBytes uint64) (snapshot []byte, end workerproto.Message) {
	p.t.Helper()
	return p.serialise(&workerproto.Park{MaxBytes: maxBytes})
}

func (p *peer) serialise(m *workerproto.Park) (snapshot []byte, end workerproto.Message) {
	p.t.Helper()
	p.send(m)
	for {
		m := p.next()
		switch m := m.(type) {
		case *workerproto.ParkPart:
			snapshot = append(snapshot, m.Data...)
		case *workerproto.Parked, *workerproto.Failed:
			return snapshot, m
		case *workerproto.Output:
			p.late = append(p.late, string(m.JSON))
		case *workerproto.Idle, *workerproto.ToolCall:
		default:
			p.t.Fatalf("got %+v", m)
		}
		if len(snapshot) > 0 && m.Type() != workerproto.TypeParkPart {
			p.t.Fatalf("between the parts of a snapshot: %+v", m)
		}
	}
}

// unpark goes on in another worker.
func unpark(t testing.TB, snapshot []byte, m workerproto.Resume) *peer {
	t.Helper()
	p := tryUnpark(t, snapshot, m)
	if m := p.next(); m.Type() != workerproto.TypeResumed {
		t.Fatalf("got %+v", m)
	}
	return p
}

func tryUnpark(t testing.TB, snapshot []byte, m workerproto.Resume) *peer {
	t.Helper()
	p := worker(t)
	p.resume(snapshot, m)
	return p
}

func (p *peer) resume(snapshot []byte, m workerproto.Resume) {
	p.t.Helper()
	if m.BudgetMillis == 0 {
		m.BudgetMillis = 10_000
	}
	if m.MemoryBytes == 0 {
		m.MemoryBytes = 64 << 20
	}
	if m.OutputBytes == 0 {
		m.OutputBytes = 64 << 10
	}
	if m.MaxPending == 0 {
		m.MaxPending = 1040
	}
	p.send(&echoes)
	p.send(&m)
	for {
		n := min(len(snapshot), 100_000)
		p.send(&workerproto.ResumePart{Data: snapshot[:n], Last: n == len(snapshot)})
		if snapshot = snapshot[n:]; len(snapshot) == 0 {
			return
		}
	}
}

// SPEC 12.1: yields, several at once, and what the supervisor hears of them.
func TestYield(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`
		let seen = [];
		yield_control("first").then(v => seen.push(1, v === undefined));
		await yield_control("é".repeat(600));
		text("second leg");
		await yield_control();
		seen`)})
	idle, _, outputs := p.rest()
	if !idle.Yielded || idle.Note != strings.Repeat("é", 512) || idle.Pending != 0 || idle.Timer != workerproto.NoTimer || idle.MemoryBytes < 1<<20 || len(outputs) != 0 {
		t.Errorf("got %+v, output %q", idle, outputs)
	}
	snapshot, parked := p.park()
	if parked.Timer != workerproto.NoTimer {
		t.Errorf("got %+v", parked)
	}
	p = unpark(t, snapshot, workerproto.Resume{})
	idle, _, outputs = p.rest()
	if !idle.Yielded || idle.Note != "" || len(outputs) != 1 {
		t.Errorf("got %+v, output %q", idle, outputs)
	}
	snapshot, _ = p.park()
	_, end := unpark(t, snapshot, workerproto.Resume{}).last(nil)
	if got := value(t, end); got != "[1,true]" {
		t.Errorf("got %s", got)
	}
}

// SPEC 10.4: a yield that nobody awaits is work that is left.
func TestYieldUnawaited(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`yield_control("x").then(() => text("went on")); 5`)})
	p.rest()
	snapshot, _ := p.park()
	outputs, end := unpark(t, snapshot, workerproto.Resume{}).last(nil)
	if got := value(t, end); got != "5" || len(outputs) != 1 {
		t.Errorf("got %s, output %q", got, outputs)
	}
}

// SPEC 12.3, 10.1: calls go on over a suspension, and ids of the wire have no gaps in a run.
func TestParkWithCalls(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`
		const calls = [1, 2, 3].map(v => tools.echo({v}));
		const first = await Promise.race(calls);
		text("first " + first.v);
		const fourth = await tools.echo({v: 4});
		const failed = await calls[2].catch(e => [e.name, e.started, e instanceof Error]);
		[first, (await calls[0]).v, fourth, failed, tools.echo.name]`)})
	idle, calls, _ := p.rest()
	if d := cmp.Diff([]uint64{1, 2, 3}, calls); d != "" || idle.Pending != 3 || idle.Settled != 0 || idle.Yielded {
		t.Errorf("%s%+v", d, idle)
	}
	snapshot, _ := p.park()
	p = unpark(t, snapshot, workerproto.Resume{})
	if idle, calls, _ := p.rest(); len(calls) != 0 || idle.Pending != 3 || idle.Settled != 0 {
		t.Errorf("after a resume: %v %+v", calls, idle)
	}
	p.send(&workerproto.ToolResult{ID: 2, Value: []byte(`{"v":2}`)})
	idle, calls, outputs := p.rest()
	if d := cmp.Diff([]uint64{4}, calls); d != "" || idle.Pending != 3 || idle.Settled != 1 || len(outputs) != 1 || outputs[0] != `"first 2"` {
		t.Errorf("%s%+v, output %q", d, idle, outputs)
	}
	snapshot, _ = p.park()
	p = unpark(t, snapshot, workerproto.Resume{})
	p.send(&workerproto.ToolResult{ID: 4, Value: []byte(`4`)})
	p.send(&workerproto.ToolResult{ID: 1, Value: []byte(`{"v":1}`)})
	p.send(&workerproto.ToolResult{ID: 3, Failed: true, Error: "no", Code: "tool_failed", Started: "unknown"})
	_, end := p.last(nil)
	if got := value(t, end); got != `[{"v":2},1,4,["ToolError","unknown",true],"echo"]` {
		t.Errorf("got %s", got)
	}
}

// A cell is parked twenty times in a row. SPEC 12.2
func TestParkOften(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`let sum = 0; for (let i = 0; i < 20; i++) { await yield_control("leg " + i); sum += i } sum`)})
	for i := range 20 {
		if idle, _, _ := p.rest(); idle.Note != fmt.Sprint("leg ", i) {
			t.Errorf("leg %d: got %+v", i, idle)
		}
		snapshot, _ := p.park()
		p = unpark(t, snapshot, workerproto.Resume{ElapsedMillis: uint64(i)})
	}
	_, end := p.last(nil)
	if got := value(t, end); got != "190" {
		t.Errorf("got %s", got)
	}
}

// SPEC 12.3: promises that hang together over several legs.
func TestParkPromises(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`
		const late = new Promise(r => setTimeout(r, 1e6, "timer"));
		const chain = tools.echo(1).then(async v => { await yield_control("in the chain"); return v + 1 }).finally(() => text("finally"));
		const all = Promise.all([chain, tools.echo(2), yield_control("all")]);
		const race = await Promise.race([all, late]);
		text(race);
		const settled = await Promise.allSettled([all, tools.echo(3).then(() => { throw new RangeError("r") })]);
		async function* values() { for (let i = 0; i < 3; i++) { await yield_control(i); yield i } }
		const list = []; for await (const v of values()) list.push(v);
		[settled[0].value, settled[1].reason.message, list]`)})
	outputs, end, legs := p.legs()
	if got := value(t, end); got != `[[2,2,null],"r",[0,1,2]]` || legs < 5 {
		t.Errorf("got %s after %d legs", got, legs)
	}
	slices.Sort(outputs)
	if d := cmp.Diff([]string{`"[2,2,null]"`, `"finally"`}, outputs); d != "" {
		t.Error(d)
	}
}

// legs parks a run whenever it rests, answers a call with its id in the leg after the one that
// made it, and gives what came.
func (p *peer) legs() (outputs []string, end workerproto.Message, legs int) {
	p.t.Helper()
	for open := []uint64(nil); ; legs++ {
		var snapshot []byte
		rest, parked := false, false
		for !parked {
			switch m := p.next().(type) {
			case *workerproto.Output:
				outputs = append(outputs, string(m.JSON))
			case *workerproto.ToolCall:
				open = append(open, m.ID)
			case *workerproto.Idle:
				if !rest {
					p.send(&workerproto.Park{MaxBytes: 64 << 20})
				}
				rest = true
			case *workerproto.ParkPart:
				snapshot = append(snapshot, m.Data...)
			case *workerproto.Parked:
				parked = true
			case *workerproto.Done, *workerproto.Failed:
				return outputs, m, legs
			}
		}
		p = unpark(p.t, snapshot, workerproto.Resume{ElapsedMillis: uint64(legs) * 100})
		for _, id := range open {
			p.send(&workerproto.ToolResult{ID: id, Value: fmt.Append(nil, id)})
		}
		open = nil
	}
}

// The guest's clock goes on while it is parked, and never back; timers that became due fire
// after the resume. SPEC 12.3
func TestParkTimers(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`
		const began = performance.now(), date = Date.now();
		setTimeout(() => text("early"), 1);
		setTimeout(() => text("due " + (performance.now() >= 61000)), 60_000);
		setTimeout(() => text("not yet"), 3_600_000);
		await yield_control();
		const parked = performance.now() - began;
		text([parked >= 61000 - began, parked < 120000, Date.now() - date < 30000]);
		await new Promise(r => setTimeout(r, 5));
		const before = performance.now();
		await yield_control();
		performance.now() >= before`)})
	idle, _, _ := p.rest()
	if idle.Timer > 1 {
		t.Errorf("the first timer: got %+v", idle)
	}
	for { // nothing tells of a timer that nobody waits for but its output
		if _, ok := p.next().(*workerproto.Output); ok {
			break
		}
	}
	snapshot, parked := p.park()
	if parked.Timer < 50_000 || parked.Timer > 60_000 {
		t.Errorf("got %+v", parked)
	}
	p = unpark(t, snapshot, workerproto.Resume{ElapsedMillis: 61_000})
	idle, _, outputs := p.rest()
	if idle.Yielded || len(outputs) != 1 || idle.Timer != 0 {
		t.Errorf("got %+v, output %q", idle, outputs)
	}
	idle, _, more := p.rest()
	if d := cmp.Diff([]string{`"[true,true,true]"`, `"due true"`}, append(outputs, more...)); d != "" || !idle.Yielded || idle.Timer < 3_500_000 {
		t.Errorf("%s%+v", d, idle)
	}
	snapshot, _ = p.park()
	_, end := unpark(t, snapshot, workerproto.Resume{ElapsedMillis: 5}).last(nil) // a clock that went back
	if got := value(t, end); got != "true" {
		t.Errorf("got %s", got)
	}
}

// SPEC 4.4: a place in an error is that of what the model wrote, after a resume too.
func TestParkPositions(t *testing.T) {
	for _, c := range []struct{ name, language, source, want string }{
		{"javascript", "", "const f = async () => {\n  await yield_control();\n  null.x;\n};\nawait f()", "at f (3:3)"},
		{"typescript", "typescript", "interface A { a: number }\n\nasync function f(a: A): Promise<void> {\n  await yield_control();\n  const é: string = (a as any).b.c;\n}\nawait f({a: 1});", "at f (5:22)"},
		{"fenced", "", "\n```ts\nawait yield_control();\nlet n: number = 1;\nthrow new Error(\"e\");\n```\n", "at 5:11"},
		{"a tool's error", "", "await yield_control();\ntry { await tools.call(5) }\ncatch (e) { throw e }", "at 2:19"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := ""
			for _, legs := range []int{0, 1} {
				source := c.source
				if legs == 0 {
					source = strings.Replace(source, "await yield_control()", "await null           ", 1)
				}
				p := begin(t, workerproto.Start{Source: []byte(source), Language: c.language})
				if legs == 1 {
					p.rest()
					snapshot, _ := p.park()
					p = unpark(t, snapshot, workerproto.Resume{})
				}
				_, end := p.last(nil)
				f, ok := end.(*workerproto.Failed)
				if !ok || !strings.Contains(f.Error, c.want) {
					t.Fatalf("after %d parkings: got %+v, want %s", legs, end, c.want)
				}
				if want == "" {
					want = f.Error
				}
				if f.Error != want {
					t.Errorf("got  %s\nwant %s", f.Error, want)
				}
			}
		})
	}
}

// SPEC 9.2, 13.3, 10.2: limits hold over all the legs of a run.
func TestParkLimits(t *testing.T) {
	frame := workerproto.ItemCost("text", nil) + 2
	for _, c := range []struct {
		name, source, code string
		start              workerproto.Start
		legs               int
	}{
		{"output", `text("aaaa"); await yield_control(); text("b")`, "output_limit_exceeded", workerproto.Start{OutputBytes: frame + 4}, 1},
		{"value", `text("aaaa"); await yield_control(); await yield_control(); 12345678`, "output_limit_exceeded", workerproto.Start{OutputBytes: frame + 8}, 2},
		{"heap", `globalThis.a = "x".repeat(6e6); await yield_control(); await yield_control(); globalThis.b = "y".repeat(6e6); 1`, "memory_limit_exceeded", workerproto.Start{MemoryBytes: 8 << 20}, 2},
		{"calls", `for (let i = 0; i < 3; i++) tools.echo(i); await yield_control(); tools.echo(1); tools.echo(2)`, "too_many_pending_tool_calls", workerproto.Start{MaxPending: 4}, 1},
		{"time", `await yield_control(); for (;;);`, "timeout", workerproto.Start{BudgetMillis: 300}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.start.Source = []byte(c.source)
			p := begin(t, c.start)
			for range c.legs {
				p.rest()
				snapshot, _ := p.park()
				p = unpark(t, snapshot, workerproto.Resume{
					BudgetMillis: c.start.BudgetMillis, MemoryBytes: c.start.MemoryBytes, OutputBytes: c.start.OutputBytes, MaxPending: c.start.MaxPending,
				})
			}
			for {
				m := p.next()
				if f, ok := m.(*workerproto.Failed); ok {
					if f.Code != c.code || f.Phase != "limit" {
						t.Errorf("got %+v", f)
					}
					break
				}
				if _, ok := m.(*workerproto.Done); ok {
					t.Fatal("it completed")
				}
			}
		})
	}
}

// SPEC 9.2: what was cut in one leg is said in the last.
func TestParkTruncated(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`text("a".repeat(2000)); await yield_control(); text("b"); 5`), OutputBytes: 1024, TruncateOutput: true})
	p.rest()
	snapshot, parked := p.park()
	outputs, end := unpark(t, snapshot, workerproto.Resume{OutputBytes: 1024, TruncateOutput: true}).last(nil)
	if done, ok := end.(*workerproto.Done); !ok || string(done.Value) != "5" || parked.Omitted == 0 || done.Omitted != parked.Omitted+workerproto.ItemCost("text", []byte(`"b"`)) || len(outputs) != 0 {
		t.Errorf("%d omitted when parked, then %+v, output %q", parked.Omitted, end, outputs)
	}
}

// Big guests come back as they were (R22), and what does not compress costs its size and no more.
func TestParkBig(t *testing.T) {
	for _, c := range []struct {
		source, want string
		most         int
	}{
		{`globalThis.a = "q".repeat(3e7); await yield_control(); return a.length`, "30000000", 256 << 10},
		{`const a = new Uint8Array(5e6); for (let i = 0; i < a.length; i += 5e4) crypto.getRandomValues(a.subarray(i, i + 5e4));
			const sum = () => a.reduce((s, v) => (s * 31 + v) | 0, 7); const before = sum(); await yield_control(); return [before === sum(), a.length]`, "[true,5000000]", 5_300_000},
		{`let a = []; for (let i = 0; i < 1e5; i++) a.push({i, s: "s" + i}); a = null; await yield_control(); return 1`, "1", 64 << 10},
	} {
		p := begin(t, workerproto.Start{Source: []byte(c.source)})
		p.rest()
		snapshot, _ := p.park()
		if len(snapshot) > c.most {
			t.Errorf("%s: the snapshot has %d bytes, want at most %d", c.source, len(snapshot), c.most)
		}
		_, end := unpark(t, snapshot, workerproto.Resume{}).last(nil)
		if got := value(t, end); got != c.want {
			t.Errorf("%s: got %s", c.source, got)
		}
	}
}

// SPEC 14.4
func TestParkOverLimit(t *testing.T) {
	for _, limit := range []uint64{0, 1000, 200_000} {
		p := begin(t, workerproto.Start{Source: []byte(`globalThis.a = new Uint8Array(3e5); for (let i = 0; i < 3e5; i += 5e4) crypto.getRandomValues(a.subarray(i, i + 5e4)); await yield_control()`)})
		p.rest()
		snapshot, end := p.tryPark(limit)
		f, ok := end.(*workerproto.Failed)
		if !ok || f.Code != "snapshot_limit_exceeded" || f.Phase != "limit" || uint64(len(snapshot)) > limit || f.Stats.HeapBytes < 3e5 ||
			!strings.Contains(f.Error, fmt.Sprintf("(%d)", limit)) || !strings.Contains(f.Error, fmt.Sprintf("holds %d bytes", f.Stats.HeapBytes)) {
			t.Errorf("%d bytes of parts, %+v", len(snapshot), end)
		}
	}
	// To the byte.
	snapshot, _ := parkedCell(t).park()
	if _, end := parkedCell(t).tryPark(uint64(len(snapshot)) + 200); end.Type() != workerproto.TypeParked {
		t.Errorf("got %+v", end)
	}
}

// What most parked runs are takes little.
func TestSnapshotSize(t *testing.T) {
	snapshot, _ := parkedCell(t).park()
	t.Logf("a small cell's snapshot has %d bytes", len(snapshot))
	if len(snapshot) > 64<<10 {
		t.Errorf("a small cell's snapshot has %d bytes", len(snapshot))
	}
}

// SPEC 14.3: a damaged snapshot is an error of its own, and never more than that.
func TestDamagedSnapshots(t *testing.T) {
	good, _ := parkedCell(t).park()
	r := rand.New(rand.NewPCG(1, 2))
	damaged := map[string][]byte{
		"empty": {}, "no zstd": []byte("codemode snapshot 1\n"), "half": good[:len(good)/2], "twice": append(bytes.Clone(good), good...),
		"no checksum": good[:len(good)-1], "a byte behind": append(bytes.Clone(good), 0), "only the magic": good[:4], "zeros": make([]byte, 300_000),
	}
	n := 150
	if testing.Short() {
		n = 20
	}
	for range n {
		b := bytes.Clone(good)
		at := r.IntN(len(b))
		if r.IntN(3) == 0 {
			at = r.IntN(200) // the heads
		}
		bit := byte(1) << r.IntN(8)
		b[at] ^= bit
		damaged[fmt.Sprintf("byte %d ^ %02x", at, bit)] = b
	}
	for name, b := range damaged {
		p := tryUnpark(t, b, workerproto.Resume{})
		switch m := p.next().(type) {
		case *workerproto.Failed:
			if (m.Code != "snapshot_restore_failed" || m.Phase != "host") && m.Code != "memory_limit_exceeded" {
				t.Errorf("%s: got %+v", name, m)
			}
		case *workerproto.Resumed:
			// A bit that means nothing, such as of the window's size.
			if idle, _, _ := p.rest(); !strings.HasPrefix(name, "byte ") || idle.Note != "waiting for b" {
				t.Errorf("%s: it was restored", name)
			}
		default:
			t.Errorf("%s: got %+v", name, m)
		}
		p.conn.Close()
	}
}

// SPEC 14.3, 12.4: what else a restore fails for.
func TestRestoreRefused(t *testing.T) {
	small, _ := parkedCell(t).park()
	p := begin(t, workerproto.Start{Source: []byte(`globalThis.a = "x".repeat(2e7); await yield_control()`)})
	p.rest()
	big, _ := p.park()
	for _, c := range []struct {
		name        string
		worker      *peer
		snapshot    []byte
		memory      uint64
		code, phase string
		text        string
	}{
		{"another engine", worker(t, func(e *Engine) { e.sum = strings.Repeat("0", 64) }), small, 0, "snapshot_restore_failed", "host", "another build"},
		{"less memory", worker(t), big, 1 << 20, "memory_limit_exceeded", "limit", "memory"},
		{"no memory at all", worker(t), small, 1 << 40, "snapshot_restore_failed", "host", "memory limit"},
	} {
		c.worker.resume(c.snapshot, workerproto.Resume{MemoryBytes: c.memory})
		f, ok := c.worker.next().(*workerproto.Failed)
		if !ok || f.Code != c.code || f.Phase != c.phase || !strings.Contains(f.Error, c.text) {
			t.Errorf("%s: got %+v", c.name, f)
		}
	}
}

// What is not a part, between the parts.
func TestResumeOutOfTurn(t *testing.T) {
	snapshot, _ := parkedCell(t).park()
	for _, c := range []struct {
		m    workerproto.Message
		code string
	}{
		{&workerproto.ToolResult{ID: 1}, "internal_error"},
		{&workerproto.Resume{}, "internal_error"},
		{&workerproto.Park{}, "internal_error"},
		{&workerproto.Interrupt{Reason: "abort"}, "timeout"},
	} {
		p := worker(t)
		p.send(&workerproto.Resume{BudgetMillis: 10_000, MemoryBytes: 64 << 20})
		p.send(&workerproto.ResumePart{Data: snapshot[:100]})
		p.send(c.m)
		if f, ok := p.next().(*workerproto.Failed); !ok || f.Code != c.code {
			t.Errorf("%s: got %+v", c.m.Type(), f)
		}
	}
	p := worker(t)
	p.send(&workerproto.Resume{BudgetMillis: 10_000, MemoryBytes: 64 << 20})
	p.conn.Close()
	<-p.done
	if code := <-p.exits; code != 0 {
		t.Errorf("the supervisor is gone: exit code %d", code)
	}
}

// SPEC 4.6: two lives of one snapshot draw different numbers.
func TestParkRandom(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`Math.random(); await yield_control(); Math.random()`)})
	p.rest()
	snapshot, _ := p.park()
	_, a := unpark(t, snapshot, workerproto.Resume{}).last(nil)
	_, b := unpark(t, snapshot, workerproto.Resume{}).last(nil)
	if value(t, a) == value(t, b) {
		t.Errorf("both drew %s", value(t, a))
	}
}

// PROTOCOL.md, "Calls, bursts and idle": a yield that a timer makes earns one Idle in a leg,
// and a timer none.
func TestYieldInTimer(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`let n = 0; await new Promise(r => setInterval(() => { yield_control("tick " + ++n); if (n % 5 === 0) tools.echo(n); if (n === 1500) r() }, 1))`)})
	for leg := range 2 {
		var idles []workerproto.Idle
		var calls int
		for calls < 2 || !idles[len(idles)-1].Yielded {
			switch m := p.next().(type) {
			case *workerproto.Idle:
				idles = append(idles, *m)
			case *workerproto.ToolCall:
				calls++
			}
		}
		// One for the start or the resume, one for the first yield, one for each burst at most:
		// several timers may be due at once.
		if idles[0].Yielded || len(idles) > 2+calls {
			t.Fatalf("leg %d: %d calls, %+v", leg, calls, idles)
		}
		snapshot, _ := p.park()
		p = unpark(t, snapshot, workerproto.Resume{})
	}
}

// A cell that has ended does not park.
func TestParkTooLate(t *testing.T) {
	p := begin(t, workerproto.Start{Source: []byte(`1`)})
	_, end := p.last(nil)
	value(t, end)
	p.send(&workerproto.Park{MaxBytes: 1 << 20})
	p.send(&workerproto.ToolResult{ID: 9})
	p.conn.Close()
	<-p.done
}

// A checkpoint is a snapshot of a guest that goes on; both ends of it come out the same.
// SPEC 14.5
func TestCheckpoint(t *testing.T) {
	const source = `let n = 0; for (let i = 0; i < 3; i++) { n += (await tools.echo({v: i})).v; text("at " + n); console.count() } return n`
	p := begin(t, workerproto.Start{Source: []byte(source)})
	var snapshots [][]byte
	settle := func(p *peer, id uint64) {
		p.send(&workerproto.ToolResult{ID: id, Value: fmt.Appendf(nil, `{"v":%d}`, id-1)})
	}
	for id := uint64(1); id <= 3; id++ {
		p.rest()
		// One that would be too large is none, and the guest does not notice.
		if _, end := p.serialise(&workerproto.Park{MaxBytes: 1000, Stay: true}); end.Type() != workerproto.TypeParked || !end.(*workerproto.Parked).Overflow {
			t.Fatalf("got %+v", end)
		}
		for range 2 {
			snapshot, end := p.serialise(&workerproto.Park{MaxBytes: 1 << 20, Stay: true})
			if end.Type() != workerproto.TypeParked || end.(*workerproto.Parked).Overflow {
				t.Fatalf("got %+v", end)
			}
			snapshots = append(snapshots, snapshot)
		}
		settle(p, id)
	}
	if _, end := p.last(echo); value(t, end) != "3" {
		t.Errorf("the one that went on: %+v", end)
	}
	for i, snapshot := range snapshots {
		q := unpark(t, snapshot, workerproto.Resume{})
		for id := uint64(i/2 + 1); ; id++ {
			q.rest()
			if settle(q, id); id == 3 {
				break
			}
		}
		if _, end := q.last(echo); value(t, end) != "3" {
			t.Errorf("snapshot %d: %+v", i, end)
		}
	}
}
