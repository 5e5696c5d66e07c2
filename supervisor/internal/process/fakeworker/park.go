package fakeworker

import (
	"bytes"
	"os"
	"strings"

	"github.com/openclaw/codemode-supervisor/workerproto"
)

// Engine is the hash of the engine that all of them claim to have.
var Engine = strings.Repeat("0f", 32)

// image is what those that park make of their guest.
var image = []byte("the guest, asleep")

// parking are the behaviours of workers that park, or should.
var parking = map[string]func(*worker){
	// It says a, yields and parks; resumed, it says b and completes with 3.
	"park": func(w *worker) {
		if w.first(nil) {
			w.park()
		}
		w.say("b")
		w.conn.Write(&workerproto.Done{Value: []byte(`3`)})
		block()
	},
	// It makes one call and parks when it is told to; resumed, it takes the result.
	"park-call": func(w *worker) {
		if w.first(&workerproto.ToolCall{ID: 1, Method: "call", Tool: "echo", Input: []byte(`{"v":1}`)}) {
			w.park()
		}
		w.conn.Write(&workerproto.Idle{Timer: workerproto.NoTimer})
		w.conn.Write(&workerproto.Done{Value: w.result().Value})
		block()
	},
	// It yields in each leg.
	"park-for-ever": func(w *worker) {
		if !w.first(nil) {
			w.conn.Write(&workerproto.Idle{Yielded: true, Timer: workerproto.NoTimer})
		}
		w.park()
	},
	"park-unasked": func(w *worker) {
		w.begin()
		w.conn.Write(&workerproto.ParkPart{Data: image})
		block()
	},
	"park-empty": func(w *worker) { w.first(nil); w.told(); w.conn.Write(&workerproto.Parked{}); block() },
	"park-unrest": func(w *worker) { // in the middle of a burst
		w.first(nil)
		w.told()
		w.call(1, "echo", `{}`)
		w.conn.Write(&workerproto.ParkPart{Data: image})
		block()
	},
	"park-flood": func(w *worker) {
		w.first(nil)
		w.told()
		part := make([]byte, workerproto.MaxPart)
		for w.conn.Write(&workerproto.ParkPart{Data: part}) == nil {
		}
	},
	"park-talk": func(w *worker) { // it goes on while it claims to sleep
		w.first(nil)
		w.told()
		w.conn.Write(&workerproto.ParkPart{Data: image})
		w.say("awake")
		block()
	},
	"park-deaf": func(w *worker) { w.first(nil); block() },
	"park-dies": func(w *worker) { w.first(nil); w.told(); os.Exit(7) },
	"park-done": func(w *worker) { // it was done already
		w.first(nil)
		w.told()
		w.conn.Write(&workerproto.Done{Value: []byte(`1`)})
		block()
	},
	"park-too-big": func(w *worker) {
		w.first(nil)
		w.told()
		w.conn.Write(&workerproto.Failed{Code: "snapshot_limit_exceeded", Phase: "limit", Error: "too big"})
		block()
	},
	"park-overflow": func(w *worker) { // which is only for those that stay
		w.first(nil)
		w.told()
		w.conn.Write(&workerproto.Parked{Overflow: true})
		block()
	},
	// Resumed, it makes a call, and must be asked for a checkpoint before the call is made.
	"checkpoint": func(w *worker) {
		if w.first(nil) {
			w.park()
		}
		w.conn.Write(&workerproto.ToolCall{ID: 1, Method: "call", Tool: "echo", Input: []byte(`{"v":1}`)})
		w.conn.Write(&workerproto.Idle{Pending: 1, Timer: workerproto.NoTimer})
		if park := w.command().(*workerproto.Park); !park.Stay {
			os.Exit(9)
		}
		w.conn.Write(&workerproto.ParkPart{Data: image})
		w.conn.Write(&workerproto.Parked{Timer: workerproto.NoTimer})
		w.conn.Write(&workerproto.Done{Value: w.result().Value})
		block()
	},
	"checkpoint-overflow": func(w *worker) {
		if w.first(nil) {
			w.park()
		}
		w.conn.Write(&workerproto.ToolCall{ID: 1, Method: "call", Tool: "echo", Input: []byte(`{"v":1}`)})
		w.conn.Write(&workerproto.Idle{Pending: 1, Timer: workerproto.NoTimer})
		w.told()
		w.conn.Write(&workerproto.ParkPart{Data: image[:3]})
		w.conn.Write(&workerproto.Parked{Timer: workerproto.NoTimer, Overflow: true})
		w.conn.Write(&workerproto.Done{Value: w.result().Value})
		block()
	},
	"checkpoint-deaf": func(w *worker) {
		if w.first(nil) {
			w.park()
		}
		w.conn.Write(&workerproto.ToolCall{ID: 1, Method: "call", Tool: "echo", Input: []byte(`{"v":1}`)})
		w.conn.Write(&workerproto.Idle{Pending: 1, Timer: workerproto.NoTimer})
		block()
	},
	"idle-ahead": func(w *worker) { // it has taken results that were not sent
		w.begin()
		w.conn.Write(&workerproto.Idle{Settled: 1, Timer: workerproto.NoTimer})
		block()
	},
	"resume-talk": func(w *worker) { w.dozed(); w.say("not yet"); block() },
	"resume-idle": func(w *worker) { w.dozed(); w.conn.Write(&workerproto.Idle{}); block() },
	"resume-twice": func(w *worker) {
		w.dozed()
		w.conn.Write(&workerproto.Resumed{})
		w.conn.Write(&workerproto.Resumed{})
		block()
	},
	"resume-prepared": func(w *worker) {
		w.dozed()
		w.conn.Write(&workerproto.Resumed{})
		w.conn.Write(&workerproto.Prepared{Language: "javascript", Form: "expression"})
		block()
	},
	"resume-fails": func(w *worker) {
		w.dozed()
		w.conn.Write(&workerproto.Failed{Code: "snapshot_restore_failed", Phase: "host", Error: "it does not fit"})
		block()
	},
	"resume-dies": func(w *worker) { w.dozed(); os.Exit(7) },
	"resume-deaf": func(w *worker) { w.dozed(); block() },
	"resume-idles": func(w *worker) { // more often than it has earned
		w.dozed()
		w.conn.Write(&workerproto.Resumed{})
		for w.conn.Write(&workerproto.Idle{Timer: workerproto.NoTimer}) == nil {
		}
	},
}

func init() {
	for name, f := range parking {
		behaviours[name] = f
	}
}

// first takes the first command. After a start it says that it prepared, says a, makes
// the call or yields, and rests; after a resume it checks the snapshot. It tells whether
// it was a start.
func (w *worker) first(call *workerproto.ToolCall) bool {
	w.ready()
	switch w.command().(type) {
	case *workerproto.Start:
		w.conn.Write(&workerproto.Prepared{Language: "javascript", Form: "expression"})
		w.say("a")
		idle := &workerproto.Idle{Yielded: call == nil, Note: "resting", Timer: workerproto.NoTimer}
		if call != nil {
			w.conn.Write(call)
			idle = &workerproto.Idle{Pending: 1, Timer: workerproto.NoTimer}
		}
		w.conn.Write(idle)
		return true
	case *workerproto.Resume:
		w.restore()
		w.conn.Write(&workerproto.Resumed{RestoreMicros: 1})
	}
	return false
}

// dozed parks if it is started; resumed, it has its snapshot and has not said so.
func (w *worker) dozed() {
	w.ready()
	if _, started := w.command().(*workerproto.Start); started {
		w.conn.Write(&workerproto.Prepared{Language: "javascript", Form: "expression"})
		w.conn.Write(&workerproto.Idle{Yielded: true, Timer: workerproto.NoTimer})
		w.park()
	}
	w.restore()
}

// restore reads a snapshot and dies if it is not the one that park sent.
func (w *worker) restore() {
	var got []byte
	for {
		part := w.command().(*workerproto.ResumePart)
		if got = append(got, part.Data...); part.Last {
			break
		}
	}
	if !bytes.Equal(got, image) {
		os.Exit(8)
	}
}

// park does as it is told, and waits for its end.
func (w *worker) park() {
	w.told()
	w.conn.Write(&workerproto.ParkPart{Data: image[:5]})
	w.conn.Write(&workerproto.ParkPart{Data: image[5:]})
	w.conn.Write(&workerproto.Parked{Timer: workerproto.NoTimer})
	block()
}

// told waits until it is told to park.
func (w *worker) told() {
	for {
		if _, ok := w.command().(*workerproto.Park); ok {
			return
		}
	}
}

// command gives the next one. The catalog means nothing to a fake worker.
func (w *worker) command() workerproto.Message {
	for {
		m, err := w.conn.ReadCommand()
		if err != nil {
			os.Exit(0)
		}
		if t := m.Type(); t != workerproto.TypeSurface && t != workerproto.TypeFile {
			return m
		}
	}
}

func (w *worker) say(text string) {
	w.conn.Write(&workerproto.Output{Kind: "text", JSON: []byte(`"` + text + `"`)})
}
