package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// recorded is a recording of three calls of one tool, which settled as b, c, a, and of one that
// has no end.
func recorded(t *testing.T) *trajectory.Recording {
	t.Helper()
	var lines strings.Builder
	add := func(format string, args ...any) {
		fmt.Fprintf(&lines, `{"time":"2026-11-30T22:00:00Z","runId":"r",%s}`+"\n", fmt.Sprintf(format, args...))
	}
	add(`"kind":"exec","data":{"content":"x"}`)
	for _, name := range []string{"a", "b", "c", "open"} {
		add(`"kind":"tool_call","callId":%q,"toolId":"client:app:t","data":{"content":%q}`, name, name)
	}
	for _, name := range []string{"b", "c", "a"} {
		add(`"kind":"tool_result","callId":%q,"toolId":"client:app:t","status":"done","data":{"content":%q}`, name, strings.ToUpper(name))
	}
	log, err := trajectory.Read(strings.NewReader(lines.String()))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := trajectory.NewRecording(log.Events, "r")
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// Issue 6: answers settle in the order in which they were recorded, also if the cell makes the
// calls in another one; a call that never comes holds the others up for a bounded time, once.
func TestReplayerOrder(t *testing.T) {
	tool := &catalog.Tool{Entry: catalog.Entry{ID: "client:app:t"}}
	for _, tt := range []struct {
		name, calls, want string
		strayed           bool
		took              time.Duration
	}{
		{"as recorded", "a b c", "B C A", false, 0},
		{"called in another order", "c a b", "B C A", false, 0},
		{"one never comes", "a c", "C A", true, orderGrace},
		{"one that never ended comes", "open a b c", "B C A not_recorded", false, 0},
		{"one that was not recorded", "d", "not_recorded", false, 0},
		{"the last two never come, and the open one does", "open b", "B not_recorded", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newReplayer(recorded(t))
				began := time.Now()
				settled := make(chan string, 8)
				for _, name := range strings.Fields(tt.calls) {
					run := p.Start(&supervisor.Call{ID: "replay:" + name, Tool: tool, Input: json.RawMessage(`"` + name + `"`)})
					go func() { // ends with its answer
						value, err := run(t.Context())
						var s string
						var te *supervisor.ToolError
						if errors.As(err, &te) {
							s = te.Code
						} else if err != nil || json.Unmarshal(value, &s) != nil {
							t.Errorf("%s: %s, %v", name, value, err)
						}
						settled <- s
						_ = p.event(trajectory.Event{Kind: trajectory.ToolResult, CallID: "replay:" + name})
					}()
				}
				var got []string
				for range strings.Fields(tt.calls) {
					synctest.Wait()
					p.parked(&supervisor.Result{Status: supervisor.Waiting, Reason: supervisor.ReasonPendingTools}) // nothing else goes on
					got = append(got, <-settled)
				}
				want := strings.Fields(tt.want)
				if tt.strayed { // all at once
					slices.Sort(want)
					slices.Sort(got)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				if r := p.report(&supervisor.Result{Status: supervisor.Completed, Value: json.RawMessage("1")}); r.Ordered == tt.strayed {
					t.Errorf("got %+v", r)
				}
			})
		})
	}
}

// Issue 6: a call that had no end has none again while anything else of the run goes on, and
// counts as not recorded only if it must end.
func TestReplayerOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newReplayer(recorded(t))
		ctx, cancel := context.WithCancelCause(t.Context())
		start := func(name string) <-chan error {
			run := p.Start(&supervisor.Call{ID: "replay:" + name, Tool: &catalog.Tool{Entry: catalog.Entry{ID: "client:app:t"}}, Input: json.RawMessage(`"` + name + `"`)})
			done := make(chan error, 1)
			go func() { // ends with its answer, or with ctx
				_, err := run(ctx)
				done <- err
			}()
			return done
		}
		open := start("open")
		p.parked(&supervisor.Result{Status: supervisor.Waiting, Reason: supervisor.ReasonYield}) // the cell's own wish
		if err := <-start("b"); err != nil {
			t.Error(err)
		}
		p.parked(&supervisor.Result{Status: supervisor.Waiting, Reason: supervisor.ReasonPendingTools}) // b is on its way
		time.Sleep(time.Hour)                                                                           // of the bubble's
		select {
		case err := <-open:
			t.Errorf("it ended with %v", err)
		default:
		}
		over := errors.New("over")
		cancel(over)
		if err := <-open; !errors.Is(err, over) {
			t.Errorf("got %v", err)
		}
		if r := p.report(&supervisor.Result{}); r.Answers.Used != 2 || r.Answers.NotRecorded != 0 {
			t.Errorf("got %+v", r.Answers)
		}
	})
}

// An answer waits no longer than the run.
func TestReplayerAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newReplayer(recorded(t))
		ctx, cancel := context.WithCancel(t.Context())
		run := p.Start(&supervisor.Call{ID: "1", Tool: &catalog.Tool{Entry: catalog.Entry{ID: "client:app:t"}}, Input: json.RawMessage(`"a"`)})
		began, done := time.Now(), make(chan struct{})
		go func() { defer close(done); _, _ = run(ctx) }()
		synctest.Wait()
		cancel()
		<-done
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// The entry that an id stands for has that id again.
func TestEntryOf(t *testing.T) {
	for _, want := range []catalog.Entry{
		{Name: "read", Source: catalog.Client, SourceName: "app"},
		{Name: "a:b", Source: catalog.Plugin, SourceName: "x:y%"},
		{Source: catalog.MCP, SourceName: "git", Operation: catalog.ResourcesRead},
	} {
		name := want.Name
		if want.Operation != "" {
			name = string(want.Operation)
		}
		want.ID = catalog.ID(want.Source, want.SourceName, name)
		got, ok := entryOf(want.ID)
		if diff := cmp.Diff(want, got); !ok || diff != "" {
			t.Errorf("%s (-want +got):\n%s", want.ID, diff)
		}
	}
	for _, id := range []string{"", "read", "client:read", "client:app:"} {
		if e, ok := entryOf(id); ok {
			t.Errorf("%q: %+v", id, e)
		}
	}
}
