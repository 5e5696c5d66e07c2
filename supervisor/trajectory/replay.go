package trajectory

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Recording is what a trajectory has of one run for running its cell again: the source, the
// answers of its tools, and what came of it. It starts nothing: a [Player] gives the
// answers, and who runs the cell asks it. It is as true as the file that it is from.
type Recording struct {
	RunID    string
	Source   string
	Language string // that was given with the source; "" if none was
	// Tools are the exact ids of the tools that were called, Denied those that policy
	// denied, in the order in which the cell asked for them.
	Tools, Denied []string
	Answers       []*Answer // in the order in which the calls were made
	Outcome       Outcome
}

// Answer is what a nested call got.
type Answer struct {
	CallID, ToolID string
	// Sent: the tool was started with Input. A call that was refused before has no input in
	// the file, and Any is set: it answers any call of its tool that has no answer of its own.
	// That is so, too, if a hook gave the tool another input than the cell's.
	Sent, Any bool
	Input     *Data

	Failed        bool
	Value         json.RawMessage // unless it failed
	Message, Code string          // if it failed
	// Settled is its place among the answers, from 1 on, in the order in which the cell got
	// them; 0 if it got none.
	Settled int
	Gap     string // why the answer is not known; "" if it is
}

// NewRecording makes the recording of a run of a [Log]. It fails if the source is not there:
// because the policy kept no contents, or because the file begins later.
func NewRecording(events []Event, runID string) (*Recording, error) {
	r := &Recording{RunID: runID}
	var own []Event
	var source *Data
	began := false
	answers := map[string]*Answer{}
	answer := func(e Event) *Answer {
		a := answers[e.CallID]
		if a == nil {
			a = &Answer{CallID: e.CallID, ToolID: e.ToolID, Gap: "it has no end in the file"}
			answers[e.CallID], r.Answers = a, append(r.Answers, a)
		}
		return a
	}
	settled := 0
	for _, e := range events {
		if e.RunID != runID {
			continue
		}
		own = append(own, e)
		switch {
		case e.Kind == Exec && !began:
			began, source, r.Language = true, e.Data, e.Status
		case e.Kind == End:
			r.Outcome.Ended, r.Outcome.Status, r.Outcome.Code, r.Outcome.Data = true, e.Status, e.Code, e.Data
		case e.Kind == Resume: // that end was its supervisor's
			r.Outcome.Ended = false
		case e.Kind == ToolCall && e.Status == Denied:
			r.Denied = append(r.Denied, e.ToolID)
		case e.CallID == "":
		case e.Kind == ToolCall: // the last one counts: after a kill, the cell may have gone another way
			a := answer(e)
			a.Sent, a.ToolID, a.Input = true, e.ToolID, e.Data
		case e.Kind == Hook && e.Status == HookRewritten:
			answer(e).Any = true
		case e.Kind == ToolResult:
			settled++
			answer(e).settle(e, settled)
		}
	}
	switch {
	case len(own) == 0:
		return nil, fmt.Errorf("the trajectory has no run %q", runID)
	case !began:
		return nil, errors.New("the run's exec event is not in the trajectory, so its source is not known")
	case source == nil || len(source.Content) == 0:
		return nil, errors.New("the run's source was not kept in the trajectory, only its size and hash")
	case json.Unmarshal(source.Content, &r.Source) != nil:
		return nil, errors.New("the run's source in the trajectory is no text")
	}
	r.Outcome.emitted(NewTree(own).Runs[0])
	r.finish()
	return r, nil
}

// emitted takes the output of a run. A leg that was cut off is done again from its begin, or
// from where the run was stored since, which no event tells: of what such legs emitted,
// nobody knows what was emitted again.
func (o *Outcome) emitted(run *Run) {
	for _, leg := range run.Legs {
		before := len(o.Output)
		for _, item := range leg.Items {
			if item.Kind == Output {
				o.Output = append(o.Output, OutputItem{item.Status, item.Data})
			}
		}
		if cut := leg.End == LegKilled || leg.End == LegLeft; cut && len(o.Output) > before {
			if !o.Again {
				o.Again, o.head = true, before
			}
			o.tail = len(o.Output)
		}
	}
}

// settle takes what a call got.
func (a *Answer) settle(e Event, place int) {
	a.Settled, a.Failed, a.Code, a.Value, a.Message = place, e.Part() == PartError, e.Code, nil, ""
	what := "result"
	if a.Failed {
		what = "error"
	}
	switch a.Gap = ""; {
	case e.Data == nil:
		a.Gap = "its " + what + " was not kept"
	case len(e.Data.Content) == 0:
		a.Gap = "of its " + what + " only size and hash were kept"
	case !a.Failed:
		a.Value = e.Data.Content
	case json.Unmarshal(e.Data.Content, &a.Message) != nil:
		a.Gap = "its error is no text"
	}
}

// The codes of calls that the supervisor itself refuses, before anybody is asked: another run
// of the cell may not bring them to whoever replays.
const (
	codeUnknownTool  = "unknown_tool"
	codeInvalidInput = "invalid_input"
)

// finish decides what is known only when all events were seen.
func (r *Recording) finish() {
	r.Answers = slices.DeleteFunc(r.Answers, func(a *Answer) bool { return !a.Sent && a.Code == codeUnknownTool })
	for _, a := range r.Answers {
		a.Any = a.Any || !a.Sent
		if a.Gap == "" && !a.Any && (a.Input == nil || len(a.Input.Content) == 0 && a.Input.SHA256 == "") {
			a.Gap = "its input was not kept"
		}
		r.Tools = append(r.Tools, a.ToolID)
	}
	r.Tools, r.Denied = distinct(r.Tools), distinct(r.Denied)
}

// distinct leaves the first of equal texts.
func distinct(texts []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(texts, func(s string) bool {
		old := seen[s]
		seen[s] = true
		return old
	})
}

// InOrder tells whether the answer has a place in the order of the answers that a replay can
// keep. What the supervisor may refuse by itself has none.
func (a *Answer) InOrder() bool { return a.Settled > 0 && (a.Sent || a.Code != codeInvalidInput) }

// Started is what the guest's error says of a tool's effects. Events do not have it.
func (a *Answer) Started() string {
	switch {
	case !a.Sent:
		return "no"
	case a.Code == "interrupted":
		return "unknown"
	}
	return "yes"
}

// Player gives recorded answers to the calls of another run of the cell, each once. It is for
// one goroutine at a time.
type Player struct {
	recording *Recording
	queues    map[string][]int // by what a call can be known by: answers that were not given
	used      []bool
	report    Answers
}

// Player makes one that has given no answer yet.
func (r *Recording) Player() *Player {
	p := &Player{recording: r, queues: map[string][]int{}, used: make([]bool, len(r.Answers))}
	for i, a := range r.Answers {
		key := a.ToolID
		switch {
		case a.Any:
		case a.Input == nil:
			continue // nothing can be told to be equal to it
		case len(a.Input.Content) > 0:
			key += contentKey(a.Input.Content)
		default:
			key += hashKey(a.Input.SHA256)
		}
		p.queues[key] = append(p.queues[key], i)
	}
	p.report.Recorded = len(r.Answers)
	return p
}

// The keys of inputs: no tool id has a control character.
func contentKey(input []byte) string { return "\x00=" + canonical(input) }
func hashKey(sum string) string      { return "\x00#" + sum }

// Take gives the answer for a call: the first one that was not given yet, of the same tool
// and for an equal input, else the first of that tool that fits any. Inputs are equal
// if they are as JSON, or if their hashes are, where the file has only that. The answer's Gap says
// if it is not known. Nil means that there is none.
func (p *Player) Take(toolID string, input []byte) *Answer {
	sum := sha256.Sum256(input)
	best := ""
	for _, key := range []string{toolID + contentKey(input), toolID + hashKey(hex.EncodeToString(sum[:]))} {
		if q := p.queues[key]; len(q) > 0 && (best == "" || q[0] < p.queues[best][0]) {
			best = key
		}
	}
	if best == "" && len(p.queues[toolID]) > 0 {
		best = toolID
	}
	if best == "" {
		p.report.missing(AnswerNote{ToolID: toolID, Reason: "no such call is in the recording, or its answer was given already"})
		return nil
	}
	i := p.queues[best][0]
	p.queues[best] = p.queues[best][1:]
	p.used[i] = true
	a := p.recording.Answers[i]
	if p.report.Used++; a.Gap != "" && a.Settled > 0 {
		p.Refused(a)
	}
	return a
}

// Refused says that a call got no answer, though there is one: the answer of a call that has no
// end in the recording is to have none again, for as long as that can be.
func (p *Player) Refused(a *Answer) {
	p.report.Used--
	p.report.missing(AnswerNote{a.CallID, a.ToolID, a.Gap})
}

// maxListed bounds the lists of a report.
const maxListed = 100

// Answers is what became of a recording's answers.
type Answers struct {
	Recorded    int `json:"recorded"`
	Used        int `json:"used"`
	Unused      int `json:"unused"`
	NotRecorded int `json:"notRecorded"` // calls of the replay that had no answer

	// The first 100 of each.
	UnusedCalls      []AnswerNote `json:"unusedCalls"`
	NotRecordedCalls []AnswerNote `json:"notRecordedCalls"`
}

// AnswerNote is about one answer. CallID is the recording's; a call that is not in it has none.
type AnswerNote struct {
	CallID string `json:"callId,omitempty"`
	ToolID string `json:"toolId"`
	Reason string `json:"reason,omitempty"`
}

func (s *Answers) missing(n AnswerNote) {
	if s.NotRecorded++; len(s.NotRecordedCalls) < maxListed {
		s.NotRecordedCalls = append(s.NotRecordedCalls, n)
	}
}

// Answers counts what was given so far. A call that the supervisor refused by itself, then and
// perhaps now, is not counted as unused.
func (p *Player) Answers() Answers {
	s := p.report
	s.NotRecordedCalls = append([]AnswerNote{}, s.NotRecordedCalls...)
	s.UnusedCalls = []AnswerNote{}
	for i, a := range p.recording.Answers {
		switch {
		case p.used[i]:
			continue
		case !a.Sent && a.Code == codeInvalidInput:
			s.Recorded--
			continue
		}
		if s.Unused++; len(s.UnusedCalls) < maxListed {
			s.UnusedCalls = append(s.UnusedCalls, AnswerNote{a.CallID, a.ToolID, a.Gap})
		}
	}
	return s
}

// Outcome is what came of a run.
type Outcome struct {
	Ended        bool // false: the file does not have its end, and nothing below means anything but Output
	Status, Code string
	Data         *Data // the value or the error's text
	Output       []OutputItem
	// Again: a worker was killed after it had emitted something, which may be in Output twice.
	Again bool

	head, tail int // if Again: what is before head, and from tail on, is there once
}

// OutputItem is something that the cell emitted, of type text or json.
type OutputItem struct {
	Type string
	Data *Data
}

// NewOutcome makes the outcome of a run that ended here. Content is the value if the status is
// completed, else the error's text as a JSON string.
func NewOutcome(status, code string, content []byte) Outcome {
	return Outcome{Ended: true, Status: status, Code: code, Data: describe(content, KeepContent)}
}

// Emitted adds what the cell emitted.
func (o *Outcome) Emitted(kind string, content []byte) {
	o.Output = append(o.Output, OutputItem{kind, describe(content, KeepContent)})
}

// Verdict is what a comparison found.
type Verdict string

// The verdicts.
const (
	Same    Verdict = "same"
	Differs Verdict = "differs"
	Unknown Verdict = "unknown" // the recording does not have it
)

// Check compares one thing of two outcomes.
type Check struct {
	Item     string  `json:"item"` // status, code, value, error, outputs (how many), output 1, output 2, …
	Verdict  Verdict `json:"verdict"`
	Recorded string  `json:"recorded,omitempty"` // a status or code itself; of a content its size and the start of its hash
	Replayed string  `json:"replayed,omitempty"`
}

// Checks are the comparison of two outcomes.
type Checks struct {
	Same    bool `json:"same"` // nothing differs, as far as is known
	Equal   int  `json:"equal"`
	Differs int  `json:"differs"`
	Unknown int  `json:"unknown"`
	// Checks are the first 100 that differ or are not known.
	Checks []Check `json:"checks"`
}

// Compare compares what was recorded with what came of a replay: contents as JSON, or by
// their hashes where only those were kept.
func (o Outcome) Compare(replayed Outcome) Checks {
	s := Checks{Checks: []Check{}}
	status := func(item, a, b string) {
		v := Unknown
		if o.Ended {
			v = verdict(a == b)
		}
		s.add(Check{item, v, a, b})
	}
	status("status", o.Status, replayed.Status)
	if o.Code != "" || replayed.Code != "" {
		status("code", o.Code, replayed.Code)
	}
	item := "value"
	if replayed.Status != "completed" {
		item = "error"
	}
	switch {
	case !o.Ended:
		s.add(Check{item, Unknown, "", digest(replayed.Data)})
	case o.Status == replayed.Status: // else one has a value, and the other an error
		s.compare(item, o.Data, replayed.Data)
	}
	o.outputs(&s, replayed.Output)
	return s.done()
}

// outputs compares them one by one. Where some may be recorded twice, those before and after
// these are compared.
func (o *Outcome) outputs(s *Checks, replayed []OutputItem) {
	n, m := len(o.Output), len(replayed)
	item := func(i, j int) {
		name, a, b := fmt.Sprintf("output %d", j+1), o.Output[i], replayed[j]
		if a.Type != b.Type {
			s.add(Check{name, Differs, a.Type, b.Type})
			return
		}
		s.compare(name, a.Data, b.Data)
	}
	if !o.Again {
		if o.Ended || m < n { // else there may be more to come
			s.add(Check{"outputs", verdict(n == m), count(o.Output), count(replayed)})
		}
		for i := range min(n, m) {
			item(i, i)
		}
		return
	}
	last := 0 // how many there are for certain after those
	if o.Ended {
		last = n - o.tail
	}
	v := Unknown
	if m < o.head+last || o.Ended && m > n {
		v = Differs
	}
	s.add(Check{"outputs", v, count(o.Output), count(replayed)})
	for i := range min(o.head, m) {
		item(i, i)
	}
	for i := range min(last, max(0, m-o.head)) {
		item(n-1-i, m-1-i)
	}
}

func count(items []OutputItem) string { return strconv.Itoa(len(items)) }

func (s *Checks) done() Checks {
	s.Same = s.Differs == 0
	return *s
}

func verdict(same bool) Verdict {
	if same {
		return Same
	}
	return Differs
}

func (s *Checks) compare(item string, a, b *Data) {
	v := Unknown
	switch {
	case a == nil || b == nil:
	case len(a.Content) > 0 && len(b.Content) > 0:
		v = verdict(canonical(a.Content) == canonical(b.Content))
	case a.SHA256 != "":
		v = verdict(a.SHA256 == b.SHA256)
	}
	s.add(Check{item, v, digest(a), digest(b)})
}

func (s *Checks) add(c Check) {
	switch c.Verdict {
	case Same:
		s.Equal++
		return
	case Differs:
		s.Differs++
	default:
		s.Unknown++
	}
	if len(s.Checks) < maxListed {
		s.Checks = append(s.Checks, c)
	}
}

// digest says a content in a few characters, without what is in it.
func digest(d *Data) string {
	if d == nil {
		return ""
	}
	return strings.TrimSpace(fmt.Sprintf("%d B %.12s", d.Bytes, d.SHA256))
}

// canonical is a text that equal JSON values share: keys in order, numbers by their value.
// What is no JSON stands for itself.
func canonical(content []byte) string {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return string(content)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return string(content)
	}
	text, err := marshal(plainNumbers(v)) // sorts keys
	if err != nil {
		return string(content)
	}
	return string(text)
}

// plainNumbers writes each number in one way. An integer that a double does not hold stays
// as it is: two of them must not become equal.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plainNumbers(v[k])
		}
	case json.Number:
		const exact = 15 // digits that every double keeps
		f, err := v.Float64()
		if err != nil || len(v) > exact && !strings.ContainsAny(string(v), ".eE") {
			return v
		}
		if f == 0 {
			return 0 // and -0
		}
		return f
	}
	return v
}
