package trajectory

import (
	"slices"
	"time"
)

// Tree is a trajectory as people read it: each run is its exec call, with its legs, and in
// them what the cell did. It is also what `supervisor trajectory show --json` prints.
type Tree struct {
	Runs    []*Run `json:"runs"` // in the order in which they begin
	Events  int    `json:"events"`
	Skipped int    `json:"skipped"`           // lines that were no events
	Omitted int    `json:"omitted,omitempty"` // events over MaxEvents
	Cut     bool   `json:"cut,omitempty"`     // the file was longer than MaxFile
}

// Run is the original exec call with all that came of it, over any number of suspensions,
// processes and kills.
type Run struct {
	RunID  string    `json:"runId"`
	ExecID string    `json:"execId,omitempty"` // the model's exec call
	State  RunState  `json:"state"`
	Code   string    `json:"code,omitempty"` // of a failure
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended"` // the last that is known of it
	// Partial: the exec event is not in the file, which is the case in one that `supervisor
	// wait` wrote.
	Partial bool   `json:"partial,omitempty"`
	Source  *Data  `json:"source,omitempty"`
	Value   *Data  `json:"value,omitempty"`
	Error   *Data  `json:"error,omitempty"`
	Counts  Counts `json:"counts"`
	Legs    []*Leg `json:"legs"`

	calls map[string]*Call
	over  bool   // the last word is an end
	seq   uint64 // of the event before
}

// RunState is how far a run came.
type RunState string

// The states.
const (
	Completed RunState = "completed"
	Failed    RunState = "failed"
	Waiting   RunState = "waiting" // parked
	Open      RunState = "open"    // at work when the file ends: it goes on, or its supervisor was killed
)

// Counts counts what is in a run.
type Counts struct {
	Calls   int `json:"calls"` // nested calls, denied ones included
	Failed  int `json:"failed"`
	Denied  int `json:"denied"`
	Outputs int `json:"outputs"`
	Parks   int `json:"parks"`
	Kills   int `json:"kills"`
	// Approvals counts the calls that needed somebody's approval, whatever the answer was.
	Approvals int `json:"approvals,omitempty"`
}

// Leg is the part of a run that one worker did.
type Leg struct {
	Resumed bool      `json:"resumed"` // from a snapshot; the first leg of a whole file is not
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended"` // when it was parked, or its last event
	End     LegEnd    `json:"end"`
	Reason  string    `json:"reason,omitempty"` // of a park: yield or pending_tools
	Items   []*Item   `json:"items"`            // in order; results that came while the run was parked are in their calls
}

// LegEnd is what a leg ended with.
type LegEnd string

// The ends of a leg.
const (
	LegParked LegEnd = "parked"
	LegKilled LegEnd = "killed" // the run went on elsewhere, and this leg never said goodbye
	LegLeft   LegEnd = "left"   // its supervisor was closed, and another one went on
	LegEnded  LegEnd = "ended"  // with the run
	LegOpen   LegEnd = "open"   // nothing is known
)

// Item is something that the cell did: a call, or an event of a kind that needs no pair.
type Item struct {
	Kind   Kind      `json:"kind"`
	Time   time.Time `json:"time"`
	Status string    `json:"status,omitempty"`
	ToolID string    `json:"toolId,omitempty"` // of a denied attempt that was no call
	Data   *Data     `json:"data,omitempty"`
	Call   *Call     `json:"call,omitempty"` // of kind tool_call
}

// Call is a nested call, from its first event, which is what a hook or somebody who was asked
// said of it if they were asked, to the one that settled it.
type Call struct {
	ID     string    `json:"id"`
	ToolID string    `json:"toolId"`
	State  CallState `json:"state"`
	Code   string    `json:"code,omitempty"`
	Began  time.Time `json:"began"`
	Ended  time.Time `json:"ended,omitzero"`
	// Sends counts how often it was handed to the executor: 0 for one that was refused, 2
	// for one that was made again after a kill.
	Sends  int      `json:"sends"`
	Denied []string `json:"denied,omitempty"` // the ids of tools that policy kept it from
	Steps  []Step   `json:"steps,omitempty"`
	Input  *Data    `json:"input,omitempty"`
	Result *Data    `json:"result,omitempty"`
	Error  *Data    `json:"error,omitempty"`
}

// Step is what happened to a call between its begin and its end, in order, over parks, and
// over processes: who waits for an approval when a supervisor ends is asked again.
type Step struct {
	Kind   Kind      `json:"kind"` // hook, approval or update
	Status string    `json:"status,omitempty"`
	Time   time.Time `json:"time"`
	Data   *Data     `json:"data,omitempty"`
}

// CallState is what became of a call.
type CallState string

// The states of a call.
const (
	CallDone     CallState = "done"
	CallFailed   CallState = "failed"
	CallDenied   CallState = "denied"
	CallInFlight CallState = "in_flight" // its end is not in the file
)

// Duration is how long the call took, as far as is known; never negative.
func (c *Call) Duration() time.Duration { return span(c.Began, c.Ended) }

// Duration is how long the leg was at work.
func (l *Leg) Duration() time.Duration { return span(l.Began, l.Ended) }

// Duration is from the run's first event to its last, parked time included.
func (r *Run) Duration() time.Duration { return span(r.Began, r.Ended) }

// span is the time between two events. A clock that went back, or that somebody made up,
// gives 0.
func span(from, to time.Time) time.Duration {
	if to.IsZero() {
		return 0
	}
	return max(0, to.Sub(from))
}

// Tree orders the events of each run under its exec call. Runs may be mixed, the lines of
// one run are in their order.
func (l *Log) Tree() *Tree {
	t := NewTree(l.Events)
	t.Skipped, t.Omitted, t.Cut = l.Skipped, l.Omitted, l.Cut
	return t
}

// NewTree is [Log.Tree] for events that were not read from a file, such as those of a
// [Memory].
func NewTree(events []Event) *Tree {
	t := &Tree{Runs: []*Run{}, Events: len(events)}
	byID := map[string]*Run{}
	for _, e := range events {
		r := byID[e.RunID]
		if r == nil {
			r = &Run{RunID: e.RunID, ExecID: e.Parent, Began: e.Time, Partial: e.Kind != Exec, calls: map[string]*Call{}}
			byID[e.RunID] = r
			t.Runs = append(t.Runs, r)
		}
		r.add(e)
	}
	for _, r := range t.Runs {
		r.close()
	}
	return t
}

// add takes the run's next event.
func (r *Run) add(e Event) {
	if e.Time.After(r.Ended) {
		r.Ended = e.Time
	}
	if n := len(r.Legs); n > 0 && r.Legs[n-1].End == LegOpen && r.seq >= e.Seq && e.Seq > 0 {
		r.Legs[n-1].End = LegKilled // another recorder goes on, and first says what became of the calls
	}
	r.seq = e.Seq
	if len(r.Legs) == 0 || e.Kind == Resume {
		r.nextLeg(e)
	}
	leg := r.Legs[len(r.Legs)-1]
	if leg.End == LegOpen && e.Time.After(leg.Ended) {
		leg.Ended = e.Time
	}
	switch e.Kind {
	case Exec:
		if r.Source == nil {
			r.Source = e.Data
		}
	case Resume:
	case Park:
		leg.End, leg.Reason = LegParked, e.Status
	case End:
		if r.over = true; leg.End == LegOpen {
			leg.End = LegEnded // and not one that expired or was aborted while it was parked
		}
		r.State, r.Code = RunState(e.Status), e.Code
		if r.Value, r.Error = e.Data, nil; e.Part() == PartError {
			r.Value, r.Error = nil, e.Data
		}
	case ToolCall:
		r.called(leg, e)
	case ToolResult:
		r.settled(leg, e)
	case Hook, Approval, Update:
		r.stepped(leg, e)
	default:
		leg.add(e)
	}
}

// nextLeg begins a leg, and decides what became of the one before it.
func (r *Run) nextLeg(e Event) {
	if n := len(r.Legs); n > 0 {
		switch before := r.Legs[n-1]; before.End {
		case LegOpen:
			before.End = LegKilled
		case LegEnded:
			before.End = LegLeft
		}
		if r.over { // that was the end of a supervisor, not of the run
			r.over, r.State, r.Code, r.Value, r.Error = false, "", "", nil, nil
		}
	}
	r.Legs = append(r.Legs, &Leg{Resumed: e.Kind == Resume, Began: e.Time, Ended: e.Time, End: LegOpen, Items: []*Item{}})
}

func (l *Leg) add(e Event) *Item {
	item := &Item{Kind: e.Kind, Time: e.Time, Status: e.Status, ToolID: e.ToolID, Data: e.Data}
	l.Items = append(l.Items, item)
	return item
}

// call gives the call that an event is of, the leg's if it is new.
func (r *Run) call(leg *Leg, e Event) *Call {
	if c := r.calls[e.CallID]; c != nil {
		return c
	}
	c := &Call{ID: e.CallID, ToolID: e.ToolID, State: CallInFlight, Began: e.Time}
	r.calls[e.CallID] = c
	leg.Items = append(leg.Items, &Item{Kind: ToolCall, Time: e.Time, Call: c})
	return c
}

func (r *Run) called(leg *Leg, e Event) {
	switch {
	case e.CallID == "":
		leg.add(e)
		return
	case e.Status == Denied:
		c := r.call(leg, e)
		c.State, c.Denied = CallDenied, append(c.Denied, e.ToolID)
		return
	}
	c := r.call(leg, e)
	c.Sends++
	if c.Input == nil {
		c.Input = e.Data
	}
}

// stepped takes what belongs to a call. It may be the call's first event, and, of one that was
// blocked or refused, comes with no event that sent it.
func (r *Run) stepped(leg *Leg, e Event) {
	if e.CallID == "" {
		leg.add(e)
		return
	}
	c := r.call(leg, e)
	c.Steps = append(c.Steps, Step{Kind: e.Kind, Status: e.Status, Time: e.Time, Data: e.Data})
}

func (r *Run) settled(leg *Leg, e Event) {
	if e.CallID == "" {
		leg.add(e)
		return
	}
	c := r.call(leg, e)
	c.Ended, c.Code = e.Time, e.Code
	switch {
	case e.Part() == PartResult:
		c.State, c.Result = CallDone, e.Data
	case c.State == CallDenied: // that the guest is told of no such tool is part of it
		c.Error = e.Data
	default:
		c.State, c.Error = CallFailed, e.Data
	}
}

// close decides what is known only when there are no more events.
func (r *Run) close() {
	switch {
	case r.over && r.State != Completed:
		r.State = Failed
	case r.over:
	case r.Legs[len(r.Legs)-1].End == LegParked:
		r.State = Waiting
	default:
		r.State = Open
	}
	for _, leg := range r.Legs {
		r.count(leg)
	}
}

func (r *Run) count(leg *Leg) {
	switch leg.End {
	case LegParked:
		r.Counts.Parks++
	case LegKilled:
		r.Counts.Kills++
	}
	for _, item := range leg.Items {
		switch {
		case item.Kind == Output:
			r.Counts.Outputs++
		case item.Call != nil:
			r.Counts.Calls++
			if slices.ContainsFunc(item.Call.Steps, func(s Step) bool { return s.Kind == Approval }) {
				r.Counts.Approvals++
			}
			switch item.Call.State {
			case CallFailed:
				r.Counts.Failed++
			case CallDenied:
				r.Counts.Denied++
			}
		case item.Status == Denied:
			r.Counts.Denied++
		}
	}
}
