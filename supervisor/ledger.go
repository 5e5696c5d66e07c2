package supervisor

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/telemetry"
	"github.com/openclaw/codemode-supervisor/workerproto"
	"go.opentelemetry.io/otel/trace"
)

// call is one nested call.
type call struct {
	id      uint64 // on the wire
	ref     string // run:id, which the gateway and the telemetry know it by
	method  string
	tool    string // as the guest named it
	input   json.RawMessage
	info    int         // place in the ledger's list, -1 past its end
	started atomic.Bool // the executor has it
	ended   atomic.Bool // it has its result
	toolID  atomic.Value
	target  atomic.Pointer[catalog.Tool] // what it named, once that is known
	during  trace.SpanContext            // of the exec or wait in which it was dispatched
	span    telemetry.Call               // only its goroutine's
	at      time.Time                    // of its dispatch
	settled bool                         // only the loop's
	saved   bool                         // the record of a parked run has it; only the loop's
	down    bool                         // it is written down that the tool began; only the loop's
	repeats bool                         // it can be made again; written before it begins

	mu     sync.Mutex
	parked bool   // guarded by mu: the executor said that it takes long
	held   bool   // guarded by mu: it waits for a person, and the tool has not begun
	reason string // guarded by mu

	turn <-chan struct{} // closed when the call before it has begun, or never will
	next chan struct{}   // the same for the call behind it
	pass sync.Once       // closes next
}

// nested tells that it is a call of a tool: it is counted, limited, listed and recorded. The
// others ask about tools.
func (c *call) nested() bool {
	return c.method == "call" || c.method == "mcp" || c.method == "namespace"
}

// named is what the guest called, for people.
func (c *call) named() string {
	switch c.method {
	case "mcp":
		return "MCP." + c.tool
	case "namespace":
		return strings.ReplaceAll(c.tool, namespace.Separator, ".")
	}
	return c.tool
}

// begun lets the next call begin.
func (c *call) begun() { c.pass.Do(func() { close(c.next) }) }

// wait gives what the executor said of the call's waiting.
func (c *call) wait() (parked, held bool, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parked, c.held, c.reason
}

// goOn says that the call waits for nobody any more.
func (c *call) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked, c.held, c.reason = false, false, ""
}

// callResult is a call's end, from its goroutine.
type callResult struct {
	call  *call
	value json.RawMessage
	err   *ToolError
	m     *workerproto.ToolResult // what the worker is to have of it
	sent  bool                    // it is on its way there; else the run keeps it
}

// ledger is a run's nested calls. Only the loop uses it.
type ledger struct {
	runID  string
	limits limits.Limits

	next    uint64           // id that the next call must have
	burst   []*call          // announced, and not admitted yet
	queue   []*call          // admitted, waiting for a place
	turn    chan struct{}    // of the call that was dispatched last
	running map[uint64]*call // have a place; until the worker has taken the result
	open    map[uint64]*call // announced and not settled
	bytes   int              // input bytes of those
	results chan callResult  // never blocks its writers: one place for each running call

	infos   []CallInfo    // the first maxCallInfos
	omitted int           // how many more there were
	calls   map[int]*call // those of infos that did not settle
	counts  Counts
	done    int // of counts.Call
	failed  int
	busy    time.Time     // when running became non-empty
	tools   time.Duration // how long it was
}

func (l *ledger) init(runID string, lim limits.Limits) {
	l.runID, l.limits, l.next = runID, lim, 1
	l.turn = make(chan struct{})
	close(l.turn)
	l.running, l.calls, l.open = map[uint64]*call{}, map[int]*call{}, map[uint64]*call{}
	l.results = make(chan callResult, lim.PendingToolCalls)
}

// ref is the id by which the world knows a call.
func (l *ledger) ref(id uint64) string { return fmt.Sprintf("%s:%d", l.runID, id) }

// announce takes a call of the burst that goes on.
func (l *ledger) announce(m *workerproto.ToolCall) error {
	if m.ID != l.next {
		return fmt.Errorf("call id %d, the next one is %d", m.ID, l.next)
	}
	if len(l.open) >= l.limits.PendingToolCalls+l.limits.QueuedToolCalls {
		return fmt.Errorf("more than %d calls are open", l.limits.PendingToolCalls+l.limits.QueuedToolCalls)
	}
	// The worker stops a guest at MaxWaitingInput, so more than that is a lie.
	const most = workerproto.MaxWaitingInput + workerproto.MaxToolInput
	if l.bytes += len(m.Input); l.bytes > most {
		return fmt.Errorf("inputs of open calls have more than %d bytes", most)
	}
	l.next++
	c := &call{id: m.ID, ref: l.ref(m.ID), method: m.Method, tool: m.Tool, input: m.Input, info: -1}
	switch m.Method {
	case "search":
		l.counts.Search++
	case "describe":
		l.counts.Describe++
	case "api":
	default:
		l.counts.Call++
		l.list(c)
	}
	l.open[c.id] = c
	l.burst = append(l.burst, c)
	return nil
}

// list gives a call a place among those that results show.
func (l *ledger) list(c *call) {
	if len(l.infos) == maxCallInfos {
		l.omitted++
		return
	}
	c.info = len(l.infos)
	l.infos = append(l.infos, CallInfo{ID: c.ref, ToolID: c.named(), State: NotStarted})
	l.calls[c.info] = c
}

// admit queues the burst, or says why none of it may run.
func (l *ledger) admit() (tooMany string) {
	if most := l.limits.ToolCalls; most > 0 && l.counts.Call > most {
		return fmt.Sprintf("the cell made %d tool calls, and maxToolCalls allows %d in all", l.counts.Call, most)
	}
	l.queue = append(l.queue, l.burst...)
	l.burst = nil
	return ""
}

// take gives the next call that may start, or nil.
func (l *ledger) take() *call {
	if len(l.queue) == 0 || len(l.running) >= l.limits.PendingToolCalls {
		return nil
	}
	c := l.queue[0]
	l.queue[0] = nil // its input must not live as long as the queue
	l.queue = l.queue[1:]
	c.at = time.Now()
	c.turn, c.next = l.turn, make(chan struct{})
	l.turn = c.next
	if len(l.running) == 0 {
		l.busy = c.at
	}
	l.running[c.id] = c
	return c
}

// settle notes a call's end, and gives what became of it, if it is a nested call.
func (l *ledger) settle(res callResult) CallState {
	c := res.call
	delete(l.open, c.id)
	l.bytes -= len(c.input)
	c.settled = true
	state := NotStarted
	switch {
	case !c.nested():
		return ""
	case res.err == nil:
		state = Done
		l.done++
	case c.started.Load():
		state = CallFailed
		l.failed++
	}
	if c.info < 0 {
		return state
	}
	delete(l.calls, c.info)
	l.infos[c.info].State = state
	l.infos[c.info].ToolID = toolIDOf(c)
	if !c.at.IsZero() { // else the process that began it is gone
		l.infos[c.info].Millis = millis(time.Since(c.at))
	}
	return state
}

// free gives the place of a call back whose result the worker, or the parked run, has
// taken.
func (l *ledger) free(id uint64) {
	if _, ok := l.running[id]; !ok {
		return
	}
	if delete(l.running, id); len(l.running) == 0 {
		l.tools += time.Since(l.busy)
	}
}

// quiet tells that no call is left.
func (l *ledger) quiet() bool { return len(l.open) == 0 }

// unsettled lists the open calls in the order in which the guest made them.
func (l *ledger) unsettled() []*call {
	return slices.SortedFunc(maps.Values(l.open), func(a, b *call) int { return cmp.Compare(a.id, b.id) })
}

// stuck tells that nothing can settle soon: all that runs was parked by its executor, and
// what is queued finds no place.
func (l *ledger) stuck() bool { return !l.quiet() && l.moving() == 0 }

// moving counts the calls that are under way and that no executor has parked, and those
// that will get there: a call that has settled holds its place only until the worker has
// taken the result.
func (l *ledger) moving() int {
	n, held := len(l.burst), 0
	for _, c := range l.running {
		if c.settled {
			continue
		}
		held++
		if parked, _, _ := c.wait(); !parked {
			n++
		}
	}
	if held < l.limits.PendingToolCalls {
		n += len(l.queue)
	}
	return n
}

// pending lists the nested calls that did not settle, for a result (SPEC 11.4).
func (l *ledger) pending() []PendingCall {
	list := []PendingCall{}
	for _, c := range l.unsettled() {
		if !c.nested() {
			continue
		}
		p := PendingCall{ID: c.ref, ToolID: toolIDOf(c), State: NotStarted}
		if c.started.Load() {
			p.State = InFlight
		}
		_, _, p.Reason = c.wait()
		if list = append(list, p); len(list) == maxCallInfos {
			break
		}
	}
	return list
}

// shown gives the ledger for a result (SPEC 10.7).
func (l *ledger) shown() []CallInfo {
	infos := append([]CallInfo{}, l.infos...)
	for i, c := range l.calls { // those that did not settle
		infos[i].ToolID = toolIDOf(c)
		if c.started.Load() {
			infos[i].State = InFlight
			if !c.at.IsZero() {
				infos[i].Millis = millis(time.Since(c.at))
			}
		}
	}
	return infos
}

// story says what became of the calls, so that nobody retries blindly.
func (l *ledger) story() string {
	if l.counts.Call == 0 {
		return ""
	}
	inFlight := 0
	for _, c := range l.open {
		if c.nested() && c.started.Load() {
			inFlight++
		}
	}
	return fmt.Sprintf(" (of %d nested tool calls %d were done, %d failed, %d were in flight and may have taken effect, %d were not started)",
		l.counts.Call, l.done, l.failed, inFlight, l.counts.Call-l.done-l.failed-inFlight)
}
