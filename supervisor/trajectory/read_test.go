package trajectory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func fixtures(t testing.TB) map[string][]byte {
	names, err := filepath.Glob("testdata/*.jsonl")
	if err != nil || len(names) < 4 {
		t.Fatalf("found %d fixtures, %v", len(names), err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(name), ".jsonl")] = b
	}
	return files
}

// SPEC 18.1: the tree of each fixture.
func TestTree(t *testing.T) {
	for name, b := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			log, err := Read(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(log.Tree(), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name+".tree.json", append(got, '\n'))
		})
	}
}

// SPEC 10.1, 18.1: a run that was parked twice and killed once is one tree, with the
// original exec call as its root, and each call once.
func TestTreeOverLegs(t *testing.T) {
	log, err := Read(bytes.NewReader(fixtures(t)["parked-killed"]))
	if err != nil {
		t.Fatal(err)
	}
	tree := log.Tree()
	if len(tree.Runs) != 1 {
		t.Fatalf("%d runs", len(tree.Runs))
	}
	r := tree.Runs[0]
	if r.ExecID != "call_7" || r.State != Completed || r.Partial || r.Counts != (Counts{Calls: 6, Failed: 2, Denied: 1, Outputs: 2, Parks: 2, Kills: 1}) {
		t.Errorf("got %+v", r)
	}
	var ends []LegEnd
	ids := map[string]int{}
	for _, l := range r.Legs {
		ends = append(ends, l.End)
		for _, item := range l.Items {
			if item.Call != nil {
				ids[item.Call.ID]++
				if sends := item.Call.Sends; strings.HasSuffix(item.Call.ID, ":3") && sends != 2 {
					t.Errorf("the call that was made again was sent %d times", sends)
				}
			}
		}
	}
	if d := r.Legs[1].Duration(); d != 12*time.Millisecond {
		t.Errorf("the killed leg lasts %v: what the next process says of it is not its own", d)
	}
	if len(ends) != 4 || ends[0] != LegParked || ends[1] != LegKilled || ends[2] != LegParked || ends[3] != LegEnded {
		t.Errorf("legs end with %v", ends)
	}
	if len(ids) != 6 {
		t.Errorf("calls: %v", ids)
	}
}

// SPEC 10.1, 10.6, 18.1: what hooks, approvals and updates say of a call is part of it: before it
// is sent, while the run is parked, after a kill, and if it is never sent.
func TestTreeSteps(t *testing.T) {
	log, err := Read(bytes.NewReader(fixtures(t)["approvals"]))
	if err != nil {
		t.Fatal(err)
	}
	tree := log.Tree()
	if len(tree.Runs) != 1 {
		t.Fatalf("%d runs", len(tree.Runs))
	}
	run := tree.Runs[0]
	var got []string
	for i, leg := range run.Legs {
		for _, item := range leg.Items {
			c := item.Call
			if c == nil {
				t.Errorf("leg %d has %+v beside the calls", i+1, item)
				continue
			}
			line := fmt.Sprintf("leg %d: %s %s sent %d, %v after the run:", i+1, c.ToolID, c.State, c.Sends, c.Began.Sub(run.Began))
			for _, s := range c.Steps {
				line += fmt.Sprintf(" %s %s", s.Kind, s.Status)
			}
			got = append(got, line)
		}
	}
	want := []string{
		"leg 1: client:app:build done sent 1, 10ms after the run: hook rewritten update  update ",
		"leg 1: client:app:rm failed sent 0, 12ms after the run: hook blocked",
		"leg 1: client:app:pay done sent 1, 14ms after the run: approval asked approval granted",
		"leg 2: client:app:deploy failed sent 0, 2.07s after the run: hook approval approval asked hook approval approval asked approval refused",
		"leg 2: client:app:pay failed sent 0, 2.072s after the run: approval refused",
		"leg 3: client:app:pay in_flight sent 0, 1m30.01s after the run: approval asked",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := (Counts{Calls: 6, Failed: 3, Parks: 3, Approvals: 4}); run.Counts != want {
		t.Errorf("got %+v, want %+v", run.Counts, want)
	}
}

// What belongs to a call and names none stays where it came.
func TestTreeLooseSteps(t *testing.T) {
	tree := NewTree([]Event{{RunID: "r", Kind: Exec}, {RunID: "r", Kind: Approval, Status: ApprovalAsked}, {RunID: "r", Kind: Update}})
	if items := tree.Runs[0].Legs[0].Items; len(items) != 2 || items[0].Kind != Approval || items[0].Call != nil || items[1].Kind != Update {
		t.Errorf("got %+v", items)
	}
}

// A supervisor that was closed is not the end of a run that goes on.
func TestTreeAfterClose(t *testing.T) {
	tree := NewTree([]Event{
		{RunID: "r", Kind: Exec}, {RunID: "r", Kind: End, Status: "failed", Code: "aborted", Data: &Data{}},
		{RunID: "r", Kind: Resume}, {RunID: "r", Kind: End, Status: "completed"},
	})
	r := tree.Runs[0]
	if r.Legs[0].End != LegLeft || r.State != Completed || r.Code != "" || r.Error != nil {
		t.Errorf("got %+v, first leg %+v", r, r.Legs[0])
	}
}

func TestReadBounds(t *testing.T) {
	const line = `{"time":"2026-11-30T22:00:00Z","runId":"r","kind":"output"}` + "\n"
	t.Run("a long line", func(t *testing.T) {
		long := `{"runId":"r","kind":"output","status":"` + strings.Repeat("x", MaxLine) + `"}` + "\n"
		log, err := Read(strings.NewReader(line + long + line))
		if err != nil || len(log.Events) != 2 || log.Skipped != 1 {
			t.Errorf("%d events, %d skipped, %v", len(log.Events), log.Skipped, err)
		}
	})
	t.Run("many events", func(t *testing.T) {
		log, err := Read(strings.NewReader(strings.Repeat(line, MaxEvents+5)))
		if err != nil || len(log.Events) != MaxEvents || log.Omitted != 5 {
			t.Errorf("%d events, %d omitted, %v", len(log.Events), log.Omitted, err)
		}
	})
	t.Run("an endless file", func(t *testing.T) {
		log, err := Read(zeros{})
		if err != nil || !log.Cut || len(log.Events) != 0 {
			t.Errorf("%+v, %v", log, err)
		}
	})
	t.Run("texts", func(t *testing.T) {
		log, err := Read(strings.NewReader(`{"runId":"r\u001b[2J\u202e","kind":"output","toolId":"` + strings.Repeat("é", 400) + `","ms":1e300,"data":{"bytes":-1,"sha256":"<b>"}}`))
		if err != nil {
			t.Fatal(err)
		}
		e := log.Events[0]
		if e.RunID != "r\ufffd[2J\ufffd" || len(e.ToolID) != 256 || e.Millis != nil || e.Data.Bytes != 0 || e.Data.SHA256 != "" {
			t.Errorf("got %+v, %+v", e, e.Data)
		}
	})
	t.Run("a reader that fails", func(t *testing.T) {
		log, err := Read(io.MultiReader(strings.NewReader(line), iotest.ErrReader(io.ErrUnexpectedEOF)))
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(log.Events) != 1 {
			t.Errorf("%+v, %v", log, err)
		}
	})
	t.Run("what was written is read", func(t *testing.T) {
		var out bytes.Buffer
		r := New(JSONLines(&out), All(KeepContent))
		content := `"` + strings.Repeat("<", MaxContent-2) + `"`
		r.Record(Event{RunID: "r", Kind: Output, Data: r.Describe(PartOutput, "", []byte(content))})
		log, err := Read(&out)
		if err != nil || len(log.Events) != 1 || string(log.Events[0].Data.Content) != content {
			t.Errorf("%d events, %d skipped, %v", len(log.Events), log.Skipped, err)
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// FuzzRead: whatever a file has, reading it ends, and what is shown is printable.
func FuzzRead(f *testing.F) {
	for _, b := range fixtures(f) {
		for line := range bytes.Lines(b) { // whole files take the fuzzer minutes to make smaller
			f.Add(line)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		log, err := Read(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if lines := bytes.Count(b, []byte("\n")) + 1; len(log.Events)+log.Skipped+log.Omitted > lines {
			t.Fatalf("%d events of %d lines", len(log.Events), lines)
		}
		for _, e := range log.Events {
			for _, s := range []string{e.RunID, string(e.Kind), e.Parent, e.CallID, e.ToolID, e.Status, e.Code} {
				if len(s) > 3*maxText || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Fatalf("%q is not printable", s)
				}
			}
		}
		tree := log.Tree()
		events := 0
		for _, r := range tree.Runs {
			if len(r.Legs) == 0 || r.Duration() < 0 {
				t.Fatalf("run %+v", r)
			}
			for _, l := range r.Legs {
				events += len(l.Items)
				if l.Duration() < 0 {
					t.Fatalf("leg %+v", l)
				}
			}
		}
		if events > tree.Events {
			t.Fatalf("%d items of %d events", events, tree.Events)
		}
		if _, err := json.Marshal(tree); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := WriteMessages(&out, Project(log.Events)); err != nil {
			t.Fatal(err)
		}
	})
}
