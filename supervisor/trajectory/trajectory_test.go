package trajectory

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), or run with -update:\n%s", name, diff)
	}
}

// SPEC 18.1: one ordered stream; content as size and hash unless the policy lets it through.
func TestRecorder(t *testing.T) {
	const secret = `{"token":"s3cr3t<&>"}`
	for _, keep := range []Keep{KeepDigest, KeepContent, KeepNothing} {
		var out bytes.Buffer
		r := New(JSONLines(&out), All(keep))
		r.Record(Event{Kind: Exec, RunID: "r", Data: r.Describe(PartSource, "", []byte(secret))})
		r.Record(Event{Kind: End, RunID: "r", Status: "completed"})
		if strings.Contains(out.String(), secret) != (keep == KeepContent) {
			t.Errorf("keep %v: %s", keep, out.String())
		}
		log, err := Read(&out)
		if err != nil || len(log.Events) != 2 || log.Skipped > 0 {
			t.Fatalf("keep %v: %+v, %v", keep, log, err)
		}
		for i, e := range log.Events {
			if e.Seq != uint64(i+1) || e.Time.IsZero() || e.RunID != "r" {
				t.Errorf("got %+v", e)
			}
			if i == 0 && keep == KeepNothing != (e.Data == nil) {
				t.Errorf("keep %v: got %+v", keep, e.Data)
			}
			if e.Data != nil && (e.Data.Bytes != len(secret) || len(e.Data.SHA256) != 64) {
				t.Errorf("got %+v", e.Data)
			}
		}
	}
}

type failing struct {
	err   error
	calls int
}

func (f *failing) Write(Event) error { f.calls++; return f.err }

// A sink that fails is not asked again, and what it misses is counted.
func TestSinkFails(t *testing.T) {
	sink := &failing{err: errors.New("disk full")}
	r := New(sink, Policy{})
	for range 3 {
		r.Record(Event{Kind: Output})
	}
	r.Drop()
	dropped, err := r.Err()
	if sink.calls != 1 || dropped != 4 || err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("%d calls, %d dropped, %v", sink.calls, dropped, err)
	}
}

// Several sinks get the same events, and fail each for itself.
func TestSinks(t *testing.T) {
	broken, full := &failing{err: errors.New("disk full")}, &failing{err: ErrDropped}
	memory := NewMemory(0, 0)
	var seen []uint64
	callback := SinkFunc(func(e Event) error { seen = append(seen, e.Seq); return nil })
	r := New(broken, Policy{}, memory, full, callback)
	for range 3 {
		r.Record(Event{Kind: Output})
	}
	dropped, err := r.Err()
	if broken.calls != 1 || full.calls != 3 || len(memory.Events()) != 3 || !cmp.Equal(seen, []uint64{1, 2, 3}) {
		t.Errorf("%d, %d calls, %d events, seen %v", broken.calls, full.calls, len(memory.Events()), seen)
	}
	if dropped != 6 || err == nil || errors.Is(err, ErrDropped) {
		t.Errorf("%d dropped, %v", dropped, err)
	}
}

// Memory is bounded in number and bytes; the root and the end are always there.
func TestMemory(t *testing.T) {
	m := NewMemory(3, 10)
	r := New(m, All(KeepContent))
	for i, content := range []string{`"123456"`, `"1234"`, `""`, `1`, `2`} {
		r.Record(Event{Kind: []Kind{Exec, Output, Output, Output, End}[i], RunID: "r", Data: r.Describe(PartOutput, "", []byte(content))})
	}
	var kinds, contents []string
	for _, e := range m.Events() {
		kinds, contents = append(kinds, string(e.Kind)), append(contents, string(e.Data.Content))
	}
	if want := []string{"exec", "output", "end"}; !cmp.Equal(kinds, want) {
		t.Errorf("got %v, want %v", kinds, want)
	}
	if want := []string{`"123456"`, "", ""}; !cmp.Equal(contents[:2], want[:2]) {
		t.Errorf("got %v, want %v", contents, want)
	}
	if dropped, err := r.Err(); m.Dropped() != 2 || dropped != 2 || err != nil {
		t.Errorf("%d, %d dropped, %v", m.Dropped(), dropped, err)
	}
}

// Runs may share a recorder: every event has a number of its own, in the order of the lines.
func TestConcurrentRuns(t *testing.T) {
	var out bytes.Buffer
	memory := NewMemory(100, 0)
	r := New(JSONLines(&out), Policy{}, memory)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				r.Record(Event{Kind: Output})
				memory.Events()
			}
		})
	}
	wg.Wait()
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Seq != uint64(i+1) {
			t.Fatalf("line %d: %v, %s", i+1, err, line)
		}
	}
	if len(memory.Events()) != 100 || memory.Dropped() != 700 {
		t.Errorf("%d events, %d dropped", len(memory.Events()), memory.Dropped())
	}
	var none *Recorder
	none.Record(Event{}) // nobody listens
	none.Drop()
	if dropped, err := none.Err(); none.Describe(PartInput, "", nil) != nil || dropped != 0 || err != nil {
		t.Error("nobody describes")
	}
}

// SPEC 18.1: the redaction policy, by part and by tool.
func TestPolicy(t *testing.T) {
	p := Policy{
		Source: KeepContent, Note: KeepNothing,
		Tools: []ToolRule{
			{Pattern: "mcp:vault:*", Input: KeepNothing, Result: KeepNothing, Error: KeepNothing},
			{Pattern: "mcp:*:list-*", Result: KeepContent},
			{Pattern: "client:app:echo", Input: KeepContent},
		},
	}
	for _, tt := range []struct {
		part Part
		tool string
		want Keep
	}{
		{PartSource, "", KeepContent}, {PartNote, "", KeepNothing}, {PartOutput, "", KeepDigest}, {PartValue, "", KeepDigest}, {PartError, "", KeepDigest},
		{PartInput, "mcp:vault:list-keys", KeepNothing}, {PartResult, "mcp:vault:list-keys", KeepNothing}, {PartError, "mcp:vault:open", KeepNothing},
		{PartResult, "mcp:github:list-issues", KeepContent}, {PartInput, "mcp:github:list-issues", KeepDigest},
		{PartInput, "client:app:echo", KeepContent}, {PartInput, "client:app:echo2", KeepDigest}, {PartInput, "client:app:ech", KeepDigest},
		{"other", "", KeepNothing},
	} {
		if got := p.Of(tt.part, tt.tool); got != tt.want {
			t.Errorf("%s of %q: got %d, want %d", tt.part, tt.tool, got, tt.want)
		}
	}
	for _, part := range []Part{PartSource, PartInput, PartResult, PartOutput, PartValue, PartError, PartNote} {
		for _, k := range []Keep{KeepDigest, KeepNothing, KeepContent} {
			if got := All(k).Of(part, "t"); got != k {
				t.Errorf("%s: got %d, want %d", part, got, k)
			}
		}
		if got := (Policy{}).Of(part, "t"); got != KeepDigest {
			t.Errorf("%s: the zero policy keeps %d", part, got)
		}
	}
	if d := describe(make([]byte, MaxContent+1), KeepContent); d.Content != nil || d.Bytes != MaxContent+1 {
		t.Error("a content that could not be read back is kept")
	}
}

// A sink behind Redact knows less than the one beside it.
func TestRedact(t *testing.T) {
	all, some := NewMemory(0, 0), NewMemory(0, 0)
	r := New(all, All(KeepContent), Redact(some, Policy{Note: KeepNothing, Tools: []ToolRule{{Pattern: "b", Error: KeepNothing, Result: KeepContent}}}))
	for _, e := range []Event{
		{Kind: Exec}, {Kind: ToolCall, ToolID: "b"}, {Kind: ToolResult, ToolID: "b", Status: "done"}, {Kind: ToolResult, ToolID: "b", Status: "failed"},
		{Kind: Yield}, {Kind: End, Status: "failed"}, {Kind: Resume},
	} {
		if e.Part() != "" {
			e.Data = r.Describe(e.Part(), e.ToolID, []byte(`"x"`))
		}
		r.Record(e)
	}
	kept := func(m *Memory) (s string) {
		for _, e := range m.Events() {
			switch {
			case e.Data == nil:
				s += "-"
			case e.Data.Content == nil:
				s += "d"
			default:
				s += "c"
			}
		}
		return s
	}
	if got := kept(all) + " " + kept(some); got != "cccccc- ddc--d-" {
		t.Errorf("got %s", got)
	}
}
