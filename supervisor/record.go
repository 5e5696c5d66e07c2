package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/telemetry"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// record is all that a durable store keeps of a parked run beside its image: what another
// process needs to go on with it as if nothing had happened (SPEC 14.5). The store seals
// it.
type record struct {
	Version int
	Scope   Scope
	Parent  string
	Hooked  bool // see run
	Limits  limits.Limits
	Tools   []catalog.Entry // nil: the run has no catalog
	Search  [2]int          // the catalog's options: default and most hits
	Gone    []catalog.Unavailable
	Began   time.Time
	Cell    *CellInfo

	Calls   []storedCall              // open, in the order in which they were made
	Kept    []*workerproto.ToolResult // settled, in that order; the guest has not had them
	Next    uint64                    // id of the next call
	Infos   []CallInfo
	Omitted int
	Counts  Counts
	Done    int
	Failed  int

	Spent        uint64 // of the output budget
	Output       []Item // that no result has had
	Hit          []string
	OmittedBytes uint64
	Snapshot     SnapshotInfo
	Waits        int
	Yielded      bool
	Note         string
	Timer        time.Time
	Span         *telemetry.Place `json:",omitempty"` // of the exec
}

// recordVersion is the version of what recordJSON writes.
const recordVersion = 1

// storedCall is an open call.
type storedCall struct {
	ID      uint64
	Method  string
	Tool    string // as the guest named it
	ToolID  string
	Input   []byte // the worker's word: not known to be JSON
	Info    int
	Started bool // it may have taken effect
	Repeats bool // it can be made again all the same
	Reason  string
}

// The kinds of log entries: what happened since the record was written.
const (
	logStarted = "started" // a call's tool begins; the call may be one that the record does not know
	logHeld    = "held"    // it did not, it waits for a person
	logResult  = "result"  // a call settled
	logResumed = "resumed" // a worker has the snapshot; for people who read a log
)

// logEntry is one of them.
type logEntry struct {
	Kind   string
	ID     uint64                  `json:",omitempty"`
	Ref    string                  `json:",omitempty"`
	Tool   string                  `json:",omitempty"`
	Result *workerproto.ToolResult `json:",omitempty"`
}

// recordJSON writes the run's record and marks the calls that are in it.
func (r *run) recordJSON() []byte {
	rec := record{
		Version: recordVersion, Scope: r.p.Scope, Parent: r.p.ParentCallID, Hooked: r.hooked, Limits: r.p.Limits,
		Began: r.began, Cell: r.cell,
		Next: r.ledger.next, Infos: r.ledger.infos, Omitted: r.ledger.omitted, Counts: r.ledger.counts, Done: r.ledger.done, Failed: r.ledger.failed,
		Spent: r.budget.Limit - r.budget.Left(), Hit: r.limits, OmittedBytes: r.omitted,
		Snapshot: r.snap, Waits: r.waits, Yielded: r.yielded, Note: r.note, Timer: r.timer, Span: telemetry.PlaceOf(r.span),
	}
	if r.leg.staying || r.ask.taken.Load() { // nobody gets it with an answer now
		rec.Output = r.output
	}
	if c := r.p.Catalog; c != nil {
		rec.Tools = c.Entries()
		rec.Search[0], rec.Search[1] = c.SearchLimits()
		rec.Gone = c.Unavailable()
	}
	for _, c := range r.ledger.unsettled() {
		started := c.started.Load()
		c.saved, c.down = true, started && !c.repeats
		_, _, reason := c.wait()
		rec.Calls = append(rec.Calls, storedCall{c.id, c.method, c.tool, toolIDOf(c), c.input, c.info, started, started && c.repeats, reason})
	}
	for _, res := range r.kept {
		rec.Kept = append(rec.Kept, res.m)
	}
	return encodeJSON(rec)
}

// errCutOff is the cause of the end of a run whose worker was at work when the supervisor
// ended, and had made calls that must not be made a second time.
var errCutOff = errors.New("the supervisor ended while the cell was running, after it had made calls that must not be repeated")

// pending lists what a stored run waits for.
func (rec *record) pending(runID string, log [][]byte) []PendingCall {
	settled, started := map[uint64]bool{}, map[uint64]bool{}
	for _, raw := range log {
		var e logEntry
		if json.Unmarshal(raw, &e) != nil {
			break
		}
		settled[e.ID] = settled[e.ID] || e.Kind == logResult
		started[e.ID] = e.Kind == logStarted
	}
	l := ledger{runID: runID}
	var calls []PendingCall
	for _, c := range rec.Calls {
		if !(&call{method: c.Method}).nested() || settled[c.ID] {
			continue
		}
		p := PendingCall{ID: l.ref(c.ID), ToolID: c.ToolID, State: NotStarted, Reason: c.Reason}
		if c.Started || started[c.ID] {
			p.State = InFlight
		}
		calls = append(calls, p)
	}
	return calls
}

// adopt makes a run of what a durable store has of one, as it stood when the supervisor
// before us ended. A failure is the run's end.
func (s *Supervisor) adopt(saved snapshot.Saved, w WaitRequest) (*run, *failure, error) {
	var rec record
	if err := json.Unmarshal(saved.Record, &rec); err != nil || rec.Version != recordVersion {
		return nil, nil, fmt.Errorf("%w: the record of the run is of another version (%d, %v)", snapshot.ErrBroken, rec.Version, err)
	}
	p := Program{
		Limits: rec.Limits, Scope: rec.Scope, ParentCallID: rec.Parent,
		Executor: w.Executor, Hooks: w.Hooks, Output: w.Output, Update: w.Update, Trajectory: w.Trajectory,
		Namespaces: w.Namespaces, NamespaceConfig: w.NamespaceConfig,
	}
	if rec.Tools != nil {
		c, _, err := catalog.Build(rec.Tools, catalog.Options{SearchDefault: rec.Search[0], SearchMax: rec.Search[1], Unavailable: rec.Gone})
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %v", snapshot.ErrBroken, err)
		}
		p.Catalog = c
	}
	r := newRun(s, p, saved.Meta.ID)
	if r.hasNamespaces() {
		r.scopes.of, r.scopes.err = p.Namespaces.Build(r.ctx, p.Catalog, r.identity())
	}
	r.began, r.cell, r.limits, r.omitted, r.snap, r.waits = rec.Began, rec.Cell, rec.Hit, rec.OmittedBytes, rec.Snapshot, rec.Waits
	r.yielded, r.note, r.timer, r.expires, r.output = rec.Yielded, rec.Note, rec.Timer, saved.Meta.Expires, rec.Output
	r.budget.Spend(rec.Spent)
	r.span = rec.Span.Context()
	r.parked, r.known, r.hooked = true, true, r.hooked || rec.Hooked
	r.journal.Store(true)
	l := &r.ledger
	l.next, l.infos, l.omitted, l.counts, l.done, l.failed = rec.Next, rec.Infos, rec.Omitted, rec.Counts, rec.Done, rec.Failed
	for _, sc := range rec.Calls {
		c := &call{
			id: sc.ID, ref: l.ref(sc.ID), method: sc.Method, tool: sc.Tool, input: sc.Input,
			info: sc.Info, saved: true, down: sc.Started && !sc.Repeats,
		}
		c.toolID.Store(sc.ToolID)
		l.open[c.id] = c
		l.bytes += len(c.input)
		if c.info >= 0 {
			l.calls[c.info] = c
		}
	}
	for _, m := range rec.Kept {
		r.keep(storedResult(&call{id: m.ID, ref: l.ref(m.ID)}, m))
	}
	return r, r.replay(saved.Log), nil
}

// storedResult is the end of a call, from what was stored of it.
func storedResult(c *call, m *workerproto.ToolResult) callResult {
	res := callResult{call: c, value: m.Value, m: m}
	if m.Failed {
		c.toolID.Store(m.ToolID)
		res.err = &ToolError{Message: m.Error, Code: m.Code, Started: m.Started}
	}
	return res
}

// replay does again what the log says, and then decides about each call that is open:
// what had not begun and what can be made again is made again; the rest rejects. A
// failure ends the run.
func (r *run) replay(log [][]byte) *failure {
	l := &r.ledger
	lost := map[uint64]*call{} // begun by a leg whose worker is gone, and which would begin them again
	var settled []callResult
	for _, raw := range log {
		var e logEntry
		if json.Unmarshal(raw, &e) != nil {
			return hostf(SnapshotRestoreFailed, "the log of the parked run is damaged; run the program again with exec%s", l.story())
		}
		c := l.open[e.ID]
		switch {
		case e.Kind == logStarted && c == nil:
			lost[e.ID] = &call{id: e.ID, ref: e.Ref, method: "call", tool: e.Tool, info: -1}
		case e.Kind == logHeld && c == nil:
			delete(lost, e.ID)
		case c == nil:
		case e.Kind == logStarted:
			c.down = true
		case e.Kind == logHeld:
			c.down = false
		case e.Kind == logResult && e.Result != nil:
			res := storedResult(c, e.Result)
			c.started.Store(res.err == nil || res.err.Started != "no")
			settled = append(settled, res)
		}
	}
	for _, res := range settled {
		res.call.saved = false // the log has it
		r.keep(res)
		l.settle(res)
	}
	if len(lost) > 0 {
		for _, c := range l.open {
			c.started.Store(c.down)
		}
		for _, id := range slices.Sorted(maps.Keys(lost)) {
			c := lost[id]
			c.started.Store(true)
			l.counts.Call++
			l.list(c)
			l.open[id] = c
		}
		return r.cancelled(errCutOff, "")
	}
	for _, c := range l.unsettled() {
		if !c.down {
			l.queue = append(l.queue, c)
			continue
		}
		c.started.Store(true)
		res := callResult{call: c}
		res.fail(&ToolError{
			Message: fmt.Sprintf("tool %q was at work when the supervisor ended, and nobody knows whether it took effect. Look before you call it again", toolIDOf(c)),
			Code:    codeInterrupted, Started: "unknown",
		})
		r.settle(res)
	}
	r.dispatch()
	return nil
}
