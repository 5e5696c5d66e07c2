package guest

import (
	"encoding/json"
	"fmt"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

// States of prelude/control.js.
const (
	completed = 1
	failed    = 2
)

// Outcome is how a cell ended: with a value or with a failure.
type Outcome struct {
	Value   []byte // JSON, null if it had none
	Failure *Failure
}

// Failure is an exception of the guest's that nobody caught.
type Failure struct {
	Name    string `json:"name"`    // "" if what was thrown is no Error
	Message string `json:"message"` // of the Error, or what was thrown as text
	// Stack has the engine's frames, one a line, without the message and without frames
	// of ours: the positions are those of the code given to Run.
	Stack string `json:"stack"`
	// Tool is that it is, by identity, an error that a nested call rejected with.
	Tool bool `json:"tool"`
	// JSON is what was thrown, by the table of values.
	JSON json.RawMessage `json:"-"`
	// Suggestions are up to three names that exist and are like the one that does not.
	Suggestions []string `json:"suggestions"`
	// Hint says what there is instead of a global that other hosts have. Mostly "".
	Hint string `json:"hint"`
}

// Error gives "Name: message".
func (f *Failure) Error() string {
	if f.Name == "" {
		return f.Message
	}
	if f.Message == "" {
		return f.Name
	}
	return f.Name + ": " + f.Message
}

// Outcome tells whether the cell's promise is settled, or something that nobody can
// catch was thrown, and what came of it. Work may be left all the same: see Pending.
func (g *Guest) Outcome() (Outcome, bool) {
	state, err := g.number("outcome")
	if err != nil || state != completed && state != failed {
		return Outcome{}, false
	}
	text, err := g.text("result")
	if err != nil {
		return Outcome{Failure: lostFailure(err)}, true
	}
	if state == completed {
		return Outcome{Value: []byte(text)}, true
	}
	return Outcome{Failure: parseFailure(text)}, true
}

// Unhandled is the first rejection, in the order they came, that has no handler now. The
// cell's own promise is not among them. An engine stop while its fields are read makes
// a failure that names the stop; ask [Guest.Stopped].
func (g *Guest) Unhandled() *Failure {
	text, err := g.text("firstUnhandled")
	if err == nil {
		if text == "" {
			return nil
		}
		err = g.reasonStop()
	}
	if err != nil {
		g.lost = err
		return lostFailure(err)
	}
	return parseFailure(text)
}

// Stopped is the engine stop that happened in the guest and that no other call has
// returned, or nil.
func (g *Guest) Stopped() error { return g.verdict() }

func parseFailure(text string) *Failure {
	var f struct {
		Failure
		JSON string `json:"json"`
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return lostFailure(err)
	}
	f.Failure.JSON = json.RawMessage(f.JSON)
	if len(f.Suggestions) == 0 {
		f.Suggestions = nil
	}
	return &f.Failure
}

// lostFailure stands for a failure that could not be read out of the guest.
func lostFailure(err error) *Failure {
	return &Failure{Name: "InternalError", Message: err.Error(), JSON: json.RawMessage("null")}
}

// invoke calls a function of the control object. Its functions are looked up once.
func (g *Guest) invoke(name string, args ...engine.Value) (engine.Value, error) {
	f, ok := g.control[name]
	if !ok {
		var err error
		if f, err = g.vm.Get(g.vm.Root(), name); err != nil {
			return 0, fmt.Errorf("control.%s: %w", name, err)
		}
		g.control[name] = f
	}
	return g.vm.Call(f, args...)
}

func (g *Guest) void(v engine.Value, err error) error {
	if err == nil {
		g.vm.Free(v)
	}
	return err
}

func (g *Guest) truth(v engine.Value, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	defer g.vm.Free(v)
	return g.vm.Truth(v), nil
}

func (g *Guest) number(name string) (float64, error) {
	v, err := g.invoke(name)
	if err != nil {
		return 0, err
	}
	defer g.vm.Free(v)
	return g.vm.Float(v), nil
}

func (g *Guest) text(name string) (string, error) {
	v, err := g.invoke(name)
	if err != nil {
		return "", err
	}
	defer g.vm.Free(v)
	return g.vm.String(v)
}

// send calls a function of the control object with a text.
func (g *Guest) send(name string, text []byte) error {
	s, err := g.vm.NewString(string(text))
	if err != nil {
		return err
	}
	defer g.vm.Free(s)
	return g.void(g.invoke(name, s))
}

var _ error = (*Failure)(nil)
