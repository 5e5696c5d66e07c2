package trajectory

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
)

// SPEC 18.1: one ordered stream; content as size and hash unless the policy lets it through.
func TestRecorder(t *testing.T) {
	const secret = `{"token":"s3cr3t"}`
	for _, content := range []bool{false, true} {
		var out bytes.Buffer
		r := New(JSONLines(&out), Policy{Content: content})
		r.Record(Event{Kind: Exec, RunID: "r", Data: r.Describe([]byte(secret))})
		r.Record(Event{Kind: End, RunID: "r", Status: "completed"})
		if strings.Contains(out.String(), "s3cr3t") != content {
			t.Errorf("content %v: %s", content, out.String())
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 {
			t.Fatalf("%d lines", len(lines))
		}
		for i, line := range lines {
			var e Event
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Seq != uint64(i+1) || e.Time.IsZero() || e.RunID != "r" {
				t.Errorf("got %+v", e)
			}
			if i == 0 && (e.Data.Bytes != len(secret) || len(e.Data.SHA256) != 64) {
				t.Errorf("got %+v", e.Data)
			}
		}
	}
}

type failing struct{ calls int }

func (f *failing) Write(Event) error { f.calls++; return errors.New("disk full") }

// A sink that fails is not asked again, and what it misses is counted.
func TestSinkFails(t *testing.T) {
	sink := new(failing)
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

// Runs may share a recorder: every event has a number of its own, in the order of the lines.
func TestConcurrentRuns(t *testing.T) {
	var out bytes.Buffer
	r := New(JSONLines(&out), Policy{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				r.Record(Event{Kind: Output})
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
	var none *Recorder
	none.Record(Event{}) // nobody listens
	if none.Describe(nil) != nil {
		t.Error("nobody describes")
	}
}
