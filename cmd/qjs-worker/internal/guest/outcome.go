package guest

import "encoding/json"

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
	state := g.board.At(boardOutcome)
	if state != completed && state != failed {
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
