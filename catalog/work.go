package catalog

import (
	"fmt"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxSteps bounds one check. A step is about one look at a value by one keyword.
// Real inputs take a few steps a value; a schema whose anyOf branches meet again
// further down takes exponentially many.
const maxSteps = 300_000

// work counts what the running check of one tool has cost. The validator takes no
// context and cannot be stopped from outside, so it stops itself: every compiled
// schema carries a meter that counts, and panics when the check has cost too much.
type work struct {
	steps    int
	patterns time.Duration
}

// tooMuch is the panic of a check that was stopped.
type tooMuch struct{ reason string }

// run calls check with fresh counters and returns why it was stopped, or "". A
// fault of the validator stops the check, too: the schema and the input are both
// other people's, and neither may end the process.
func (w *work) run(check func()) (stopped string) {
	w.steps, w.patterns = 0, 0
	defer func() {
		switch r := recover().(type) {
		case nil:
		case tooMuch:
			stopped = r.reason
		default:
			stopped = cut(fmt.Sprintf("the check broke down: %v", r), 200)
		}
	}()
	check()
	return ""
}

func (w *work) step(n int) {
	if w.steps += n; w.steps > maxSteps {
		panic(tooMuch{"it is too large or too deep for the tool's schema"})
	}
}

// meter is an extension of a compiled schema that counts its visits. It also
// takes over the keywords whose cost in the validator is the product of two
// sizes: enum, const and uniqueItems.
type meter struct {
	work   *work
	weight int // schemas that a value is handed on to
	unique bool
	enum   map[string]bool // canonical texts; nil if any value will do
	want   []any
}

// newMeter moves those keywords from s to a meter.
func newMeter(w *work, s *jsonschema.Schema, weight int) *meter {
	m := &meter{work: w, weight: weight, unique: s.UniqueItems}
	s.UniqueItems = false
	if s.Const != nil {
		m.allow([]any{*s.Const})
		s.Const = nil
	}
	if s.Enum != nil {
		m.allow(s.Enum.Values)
		s.Enum = nil
	}
	return m
}

// allow narrows the allowed values to those of want; const and enum may stand
// together.
func (m *meter) allow(want []any) {
	before := m.enum
	m.enum, m.want = map[string]bool{}, nil
	for _, v := range want {
		if key := canonical(v); before == nil || before[key] {
			m.enum[key] = true
			m.want = append(m.want, v)
		}
	}
}

// Validate counts one visit of the schema to v and checks the keywords.
func (m *meter) Validate(ctx *jsonschema.ValidatorContext, v any) {
	size := 1
	switch v := v.(type) {
	case map[string]any:
		size += len(v)
	case []any:
		size += len(v)
		if m.unique {
			m.checkUnique(ctx, v)
		}
	}
	m.work.step(m.weight + size)
	if m.enum != nil && !m.enum[canonical(v)] {
		ctx.AddError(&kind.Enum{Got: v, Want: m.want})
	}
}

func (m *meter) checkUnique(ctx *jsonschema.ValidatorContext, items []any) {
	seen := make(map[string]int, len(items))
	for i, item := range items {
		key := canonical(item)
		m.work.step(1 + len(key)/64)
		if j, ok := seen[key]; ok {
			ctx.AddError(&kind.UniqueItems{Duplicates: [2]int{j, i}})
			return
		}
		seen[key] = i
	}
}
