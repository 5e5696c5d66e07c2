package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of an input. It is checked against them before it is decoded.
const (
	// MaxInputBytes is how long the JSON of an input may be.
	MaxInputBytes = 8 << 20

	// MaxInputDepth is how deep it may nest: what guest values are cut at (SPEC 4.3).
	MaxInputDepth = 1000

	maxInputValues = 100_000
	maxInputWork   = 2_000_000
)

// InputError says that an input does not fit its tool, and that the tool was not
// started (SPEC 6.7). Its text is meant for the model.
type InputError struct {
	// Tool is the id of the tool.
	Tool string
	// Violations are what is wrong, ordered by path; at most eight.
	Violations []Violation
	// Omitted counts those that are not listed.
	Omitted int
}

// Violation is one thing that is wrong with an input.
type Violation struct {
	// Path is the place: input.items[0].name, or input for all of it.
	Path string
	// Problem says what was expected there and what came.
	Problem string
}

// Error lists the violations.
func (e *InputError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the input does not fit tool %q, which was not started: ", cut(e.Tool, 120))
	for i, v := range e.Violations {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(v.Path + ": " + v.Problem)
	}
	if e.Omitted > 0 {
		fmt.Fprintf(&b, "; and %d more", e.Omitted)
	}
	return b.String()
}

// checker checks input. The schema is compiled when it is first needed.
type checker struct {
	once   sync.Once
	schema *compiled // nil if any input will do

	// mu keeps checks of one tool apart: they share the counters of their work.
	mu sync.Mutex
}

// CheckInput returns the input that the tool is to be called with: as it was
// given, byte for byte, but with the defaults of the schema added where members
// are missing. No input at all is {} (SPEC 6.4, 6.7). It never changes input.
//
// An input that is no JSON, has a key twice, is too large or too deep, or does
// not fit the schema gives an *[InputError]. A tool without a usable schema takes
// every input within the bounds. Safe for concurrent use.
func (t *Tool) CheckInput(input json.RawMessage) (json.RawMessage, error) {
	input = bytes.TrimSpace(input)
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	if len(input) > MaxInputBytes {
		return nil, t.refuse("has %d bytes, at most %d are possible", len(input), MaxInputBytes)
	}
	root, err := jsontree.Parse(input, jsontree.Limits{Depth: MaxInputDepth, Values: maxInputValues, Work: maxInputWork})
	if err != nil {
		return nil, t.refuse("cannot be used: %v", err)
	}
	t.checker.once.Do(t.compile)
	s := t.checker.schema
	if s == nil {
		return input, nil
	}
	t.checker.mu.Lock()
	defer t.checker.mu.Unlock()
	var result json.RawMessage
	var failed *InputError
	if stopped := s.work.run(func() { result, failed = s.check(input, root) }); stopped != "" {
		return nil, t.refuse("could not be checked: %s", stopped)
	}
	if failed != nil {
		failed.Tool = t.ID
		return nil, failed
	}
	return result, nil
}

// check validates the input with its defaults filled in, and as it is if that
// does not fit: a default must not be what breaks an input.
func (c *compiled) check(input json.RawMessage, root *jsontree.Node) (json.RawMessage, *InputError) {
	given := root.Any()
	if c.fill(c.root, root) {
		filled := root.Append(nil)
		if c.validate(root.Any()) == nil && len(filled) <= MaxInputBytes {
			return filled, nil
		}
	}
	if err := c.validate(given); err != nil {
		return nil, c.explain(err, given)
	}
	return input, nil
}

func (c *compiled) validate(v any) *jsonschema.ValidationError {
	var err *jsonschema.ValidationError
	errors.As(c.root.Validate(v), &err)
	return err
}

func (t *Tool) compile() {
	if len(t.Parameters) == 0 {
		return
	}
	s, warnings, err := compileSchema(t.Parameters)
	if err != nil {
		t.warn(Warning{t.ID, fmt.Sprintf("its input is not checked, the schema cannot be used: %s", cut(err.Error(), 300))})
		return
	}
	for _, text := range warnings {
		t.warn(Warning{t.ID, text})
	}
	t.checker.schema = s
}

func (t *Tool) refuse(format string, args ...any) *InputError {
	return &InputError{Tool: t.ID, Violations: []Violation{{"input", fmt.Sprintf(format, args...)}}}
}
