package serve

import (
	"fmt"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/guest"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// valueRoom is what cut output leaves for the value, in bytes.
const valueRoom = 256

// host is what the guest reports to. It runs inside guest code, on the loop's goroutine.
type host struct {
	engine *Engine
	conn   *workerproto.Conn
	start  time.Time // of the leg
	before float64   // milliseconds of the guest's clock before the leg

	budget   workerproto.Budget
	truncate bool
	full     bool   // an item did not fit: all that follows is only counted
	omitted  uint64 // bytes of items that were cut

	maxPending int
	waiting    map[uint64]int            // input bytes of unsettled calls by the guest's id
	bytes      int                       // their sum
	sent       uint64                    // calls sent: the last id on the wire, where ids have no gaps
	wire       map[uint64]uint64         // the guest's id of a call that was sent
	tooMany    string                    // why the calls were too many
	refused    []*workerproto.ToolResult // calls that cannot cross, to be settled by the loop
	called     bool                      // a call was sent since the last Idle
	yielded    bool                      // a yield of this leg is open
	newYield   bool                      // and no Idle has said so
	said       string                    // with the last one
	missed     map[string]bool           // what the supervisor knows that the guest looked for
	lost       error                     // the channel failed
}

// begin puts in place what is known when a leg begins.
func (h *host) begin(conn *workerproto.Conn, outputBytes uint64, truncate bool, maxPending uint32) {
	h.conn, h.start, h.truncate = conn, time.Now(), truncate
	h.budget = workerproto.Budget{Limit: outputBytes}
	h.maxPending, h.waiting, h.wire = int(maxPending), map[uint64]int{}, map[uint64]uint64{}
}

// Now is the guest's clock: milliseconds since the cell began, those that it was parked
// for among them.
func (h *host) Now() float64 {
	return h.before + float64(time.Since(h.start))/float64(time.Millisecond)
}

// at is when the guest's clock shows ms.
func (h *host) at(ms float64) time.Time {
	return h.start.Add(time.Duration((ms - h.before) * float64(time.Millisecond)))
}

// Yield notes a yield. The first of a leg earns an Idle: whether the supervisor parks the
// run depends on it.
func (h *host) Yield(note string) {
	h.newYield = h.newYield || !h.yielded
	h.yielded = true
	h.said = cutNote(note)
}

// Missed says what the guest looked for and has not, once.
func (h *host) Missed(name string) {
	if len(h.missed) == workerproto.MaxMissed || h.missed[name] {
		return
	}
	if h.missed == nil {
		h.missed = map[string]bool{}
	}
	h.missed[name] = true
	h.queue(&workerproto.Missed{Name: name})
}

// Output sends an item, or what fits of it. Over the limit the guest is stopped, so it
// dispatches nothing more (SPEC 9.2).
func (h *host) Output(item guest.Item) {
	if h.full {
		h.omitted += workerproto.ItemCost(item.Kind, item.JSON)
		return
	}
	if cost := workerproto.ItemCost(item.Kind, item.JSON); cost <= h.room() {
		h.budget.Spend(cost)
		h.write(&workerproto.Output{Kind: item.Kind, JSON: item.JSON})
		return
	}
	h.full = true
	cut, omitted := cutItem(item, h.room())
	h.omitted += omitted
	if cut != nil && h.budget.Spend(workerproto.ItemCost("text", cut)) {
		h.write(&workerproto.Output{Kind: "text", JSON: cut})
	}
	if !h.truncate {
		h.engine.stop.set(stopOutput)
	}
}

// room is what output may still take. Where it is cut instead of failing the cell, some is
// left for the value, which would be lost otherwise.
func (h *host) room() uint64 {
	left := h.budget.Left()
	if !h.truncate {
		return left
	}
	return left - min(left, valueRoom, h.budget.Limit/4)
}

// Call reports a nested call. The supervisor dispatches nothing before the burst ends.
func (h *host) Call(c guest.Call) {
	h.waiting[c.ID] = len(c.Input)
	h.bytes += len(c.Input)
	switch {
	case h.tooMany != "":
		return
	case len(h.waiting) > h.maxPending:
		h.tooMany = fmt.Sprintf("more than %d calls are in flight or queued", h.maxPending)
	case h.bytes > workerproto.MaxWaitingInput:
		h.tooMany = fmt.Sprintf("the inputs of unfinished calls have more than %d bytes", workerproto.MaxWaitingInput)
	default:
		h.forward(c)
		return
	}
	h.engine.stop.set(stopPending)
}

// forward sends a call up, or notes that it is too big to cross.
func (h *host) forward(c guest.Call) {
	// What is longer cannot be the name of a tool, and a query needs no more.
	tool := strings.ToValidUTF8(c.Tool, "\ufffd")
	if len(tool) > workerproto.MaxName {
		tool = strings.ToValidUTF8(tool[:workerproto.MaxName], "")
	}
	if len(c.Input) > workerproto.MaxToolInput {
		h.refused = append(h.refused, &workerproto.ToolResult{
			ID: c.ID, Failed: true, ToolID: tool, Code: "invalid_input", Started: "no",
			Error: fmt.Sprintf("the input of %.100q has %d bytes, at most %d can be sent; the tool was not started", tool, len(c.Input), workerproto.MaxToolInput),
		})
		return
	}
	h.called = true
	h.sent++
	h.wire[h.sent] = c.ID
	h.queue(&workerproto.ToolCall{ID: h.sent, Method: c.Method, Tool: tool, Input: c.Input})
}

// refuse gives the next call that cannot cross, or nil.
func (h *host) refuse() *workerproto.ToolResult {
	if len(h.refused) == 0 {
		return nil
	}
	r := h.refused[0]
	h.refused = h.refused[1:]
	return r
}

func (h *host) settled(id uint64) bool {
	n, ok := h.waiting[id]
	h.bytes -= n
	delete(h.waiting, id)
	return ok
}

// queue keeps a message until the next write: a burst goes up in one piece.
func (h *host) queue(m workerproto.Message) { h.note(h.conn.Queue(m)) }

func (h *host) write(m workerproto.Message) { h.note(h.conn.Write(m)) }

func (h *host) note(err error) {
	if err != nil && h.lost == nil {
		h.lost = err
	}
}
