package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// settleAll notes the calls whose ends have been posted.
func (r *run) settleAll() {
	for len(r.ledger.results) > 0 {
		r.settle(<-r.ledger.results)
	}
}

// handle takes one event. An error means that the worker lied.
func (r *run) handle(ctx context.Context, m workerproto.Message) (*end, error) {
	l := r.leg
	if _, failed := m.(*workerproto.Failed); !failed {
		switch m.(type) {
		case *workerproto.ParkPart, *workerproto.Parked:
			if !l.parking || len(r.ledger.burst) > 0 {
				return nil, fmt.Errorf("a %s event out of turn", m.Type())
			}
		case *workerproto.Resumed:
			if !l.resuming {
				return nil, errors.New("resumed out of turn")
			}
		default:
			if l.resuming || len(l.image) > 0 || l.waits {
				return nil, fmt.Errorf("a %s event out of turn", m.Type())
			}
		}
	}
	switch m := m.(type) {
	case *workerproto.Stage:
		if l.stage != "" || r.cell != nil {
			return nil, errors.New("a stage out of turn")
		}
		l.stage = m.Name
	case *workerproto.Prepared:
		if r.cell != nil {
			return nil, errors.New("prepared twice")
		}
		l.stage = "guest"
		r.cell = &CellInfo{m.Language, m.Form, m.Fenced}
		if !r.p.Limits.Languages.Has(m.Language) { // a fence chose it (SPEC 3.2); nothing was called yet
			return &end{fail: inputf(UnsupportedLanguage, "the cell is %s, and the config switches that off (tools.codeMode.languages); use %s", m.Language, strings.Join(r.p.Limits.Languages.Names(), " or "))}, nil
		}
		r.timings.Transform = float64(m.TransformMicros) / 1000
		r.buildScopes(ctx)
	case *workerproto.Output:
		return nil, r.emit(m)
	case *workerproto.ToolCall:
		if r.cell == nil {
			return nil, errors.New("a tool call before the source was prepared")
		}
		if l.idle = false; len(r.ledger.burst) == 0 {
			l.credit++
		}
		return nil, r.ledger.announce(m)
	case *workerproto.Missed:
		if l.missed++; r.cell == nil || l.missed > workerproto.MaxMissed {
			return nil, errors.New("a missed event out of turn")
		}
		if r.p.Catalog != nil {
			r.audit("", m.Name, r.p.Catalog.Denied(m.Name))
		}
		if l.missed == workerproto.MaxMissed {
			r.s.opts.Logger.Warn("a cell asked for more names that do not exist than are looked at", "run", r.id, "names", l.missed)
		}
	case *workerproto.Idle:
		return r.idled(m)
	case *workerproto.ParkPart:
		if int64(len(l.image)+len(m.Data)) > l.maxImage {
			return nil, fmt.Errorf("a snapshot of more than %d bytes", l.maxImage)
		}
		l.image = append(l.image, m.Data...)
	case *workerproto.Parked:
		if len(l.image) == 0 && !m.Overflow || m.Overflow && !l.staying {
			return nil, errors.New("parked without a snapshot")
		}
		r.settleAll()
		if l.staying {
			return r.checkpoint(m), nil
		}
		return &end{parked: m}, nil
	case *workerproto.Resumed:
		l.resuming = false
		r.timings.Restore = float64(m.RestoreMicros) / 1000
	case *workerproto.Done:
		return r.completed(m)
	case *workerproto.Failed:
		return r.failed(m)
	default:
		return nil, fmt.Errorf("a %s event out of turn", m.Type())
	}
	return nil, nil
}

// emit takes an output item. The worker stops a guest at the limit, so an item over it
// is a lie.
func (r *run) emit(m *workerproto.Output) error {
	if r.cell == nil {
		return errors.New("output before the source was prepared")
	}
	if !r.budget.Spend(workerproto.ItemCost(m.Kind, m.JSON)) {
		return fmt.Errorf("output over the limit of %d bytes", r.budget.Limit)
	}
	if !json.Valid(m.JSON) || m.Kind == "text" && m.JSON[0] != '"' {
		return errors.New("output that is not JSON of its kind")
	}
	item := Item{m.Kind, m.JSON}
	r.output = append(r.output, item)
	r.record(trajectory.Event{Kind: trajectory.Output, Status: m.Kind, Data: r.p.Trajectory.Describe(trajectory.PartOutput, "", m.JSON)})
	if r.p.Output != nil {
		r.emitter.add(func() { r.p.Output(item) }, true)
	}
	return nil
}

// idled ends a burst: its calls are admitted together or not at all (SPEC 10.2).
func (r *run) idled(m *workerproto.Idle) (*end, error) {
	if err := r.rested(m); err != nil {
		return nil, err
	}
	if tooMany := r.ledger.admit(); tooMany != "" {
		r.hit("maxToolCalls")
		return &end{fail: limitf(TooManyPendingToolCalls, "%s; none of the calls made in this burst was started", tooMany)}, nil
	}
	if r.journal.Load() && r.risky() {
		// What may not be repeated begins only when the store has a snapshot that knows of it.
		if !r.leg.parking {
			r.serialise(!r.leg.last.yielded)
		}
		return nil, nil
	}
	r.dispatch()
	r.consider(false)
	return nil, nil
}

func (r *run) completed(m *workerproto.Done) (*end, error) {
	r.settleAll() // results are posted before the worker has them
	if r.cell == nil || !r.ledger.quiet() {
		return nil, errors.New("done while work is left")
	}
	if string(m.Value) != "null" && !r.budget.Spend(uint64(len(m.Value))) {
		return nil, fmt.Errorf("a value over the limit of %d bytes", r.budget.Limit)
	}
	if !json.Valid(m.Value) {
		return nil, errors.New("a value that is not JSON")
	}
	r.timings.Guest = float64(m.Stats.GuestMicros) / 1000
	if r.omitted = m.Omitted; r.omitted > 0 {
		r.hit("maxOutputBytes")
	}
	return &end{value: m.Value}, nil
}

// workerCodes are the codes that a worker may give, with the config field of a limit.
var workerCodes = map[Code]string{
	"": "", InvalidInput: "", ModuleAccessDenied: "", TypeScriptTransformFailed: "", NestedToolFailed: "", InternalError: "",
	UnsupportedLanguage: "", Timeout: "timeoutMs", MemoryLimitExceeded: "memoryLimitBytes", OutputLimitExceeded: "maxOutputBytes",
	TooManyPendingToolCalls: "maxQueuedToolCalls", SnapshotLimitExceeded: "maxSnapshotBytes", SnapshotRestoreFailed: "",
}

func (r *run) failed(m *workerproto.Failed) (*end, error) {
	code := Code(m.Code)
	field, ok := workerCodes[code]
	if !ok {
		return nil, fmt.Errorf("an unknown error code %.40q", m.Code)
	}
	r.timings.Guest = float64(m.Stats.GuestMicros) / 1000
	if r.omitted = m.Omitted; r.omitted > 0 {
		r.hit("maxOutputBytes")
	}
	if field != "" {
		r.hit(field)
	}
	text := m.Error
	if code == Timeout { // one text for it, whichever side's clock was first
		return &end{fail: r.cancelled(errDeadline, "")}, nil
	}
	// The worker cuts a guest's text at what is left of the output limit, 256 bytes at
	// least, and adds a note.
	if limit := int(max(r.budget.Left(), 256)) + 4096; len(text) > limit {
		return nil, fmt.Errorf("an error text of %d bytes", len(text))
	}
	if m.Shell {
		text += r.shellHint()
	}
	if Phase(m.Phase) == PhaseLimit {
		text += r.ledger.story()
	}
	return &end{fail: &failure{code, Phase(m.Phase), text}}, nil
}
