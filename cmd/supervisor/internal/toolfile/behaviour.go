package toolfile

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// The fields that say what a tool does, and those that say how.
var (
	behaviours = []string{"result", "echo", "error", "sequence", "command"}
	modifiers  = []string{"delayMs", "park"}
)

// maxDelay bounds delayMs.
const maxDelay = 24 * time.Hour

// behaviour reads the one behaviour of v with its modifiers. Those beside a
// sequence are what its steps have if they do not say otherwise.
func (p *parser) behaviour(v *json5.Value) ([]step, error) {
	name, err := p.only(v)
	if err != nil {
		return nil, err
	}
	var s step
	if err := p.modifiers(v, &s); err != nil {
		return nil, err
	}
	m := v.Get(name)
	if name == "sequence" {
		return p.sequence(m, s)
	}
	s.run, err = p.runner(name, m)
	return []step{s}, err
}

// only returns the name of the behaviour that v has, which must be one.
func (p *parser) only(v *json5.Value) (string, error) {
	found := ""
	for i := range v.Members {
		m := &v.Members[i]
		if !slices.Contains(behaviours, m.Key) {
			continue
		}
		if found != "" {
			return "", p.errorf(&m.Value, m.Key, "there is %s already; a tool has one behaviour (for one after the other there is sequence)", found)
		}
		found = m.Key
	}
	if found == "" {
		return "", p.errorf(v, "", "it has no behaviour; give it one of %s", strings.Join(behaviours, ", "))
	}
	return found, nil
}

func (p *parser) modifiers(v *json5.Value, s *step) error {
	if m := v.Get("delayMs"); m != nil {
		ms, err := strconv.ParseFloat(m.Text, 64)
		if m.Kind != json5.Number || err != nil || ms != float64(int64(ms)) || ms < 0 || ms > float64(maxDelay.Milliseconds()) {
			return p.errorf(m, "delayMs", "expected a whole number from 0 to %d, got %s", maxDelay.Milliseconds(), describe(m))
		}
		s.delay = time.Duration(ms) * time.Millisecond
	}
	if m := v.Get("park"); m != nil {
		if m.Kind != json5.Bool {
			return p.errorf(m, "park", "expected true or false, got %s", describe(m))
		}
		s.park = m.Text == "true"
	}
	return nil
}

func (p *parser) sequence(v *json5.Value, base step) ([]step, error) {
	if v.Kind != json5.Array || len(v.Items) == 0 {
		return nil, p.errorf(v, "sequence", "expected a list of at least one behaviour, got %s", describe(v))
	}
	if len(v.Items) > MaxSteps {
		return nil, p.errorf(v, "sequence", "has %d behaviours, at most %d are possible", len(v.Items), MaxSteps)
	}
	defer func() { p.path = "" }()
	var steps []step
	for i := range v.Items {
		item := &v.Items[i]
		p.path = fmt.Sprintf("sequence[%d]", i)
		if item.Kind != json5.Object {
			return nil, p.errorf(item, "", "expected an object with a behaviour, got %s", describe(item))
		}
		if err := p.knownFields(item, slices.Concat(behaviours, modifiers)); err != nil {
			return nil, err
		}
		name, err := p.only(item)
		if err != nil {
			return nil, err
		}
		if name == "sequence" {
			return nil, p.errorf(item, name, "a sequence cannot stand inside a sequence")
		}
		s := base
		if err := p.modifiers(item, &s); err != nil {
			return nil, err
		}
		if s.run, err = p.runner(name, item.Get(name)); err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// runner makes the function that a behaviour is.
func (p *parser) runner(name string, v *json5.Value) (func(context.Context, json.RawMessage) (json.RawMessage, error), error) {
	switch name {
	case "result":
		data, err := v.JSON()
		if err != nil {
			return nil, p.syntax(err)
		}
		return func(context.Context, json.RawMessage) (json.RawMessage, error) { return data, nil }, nil
	case "echo":
		if v.Kind != json5.Bool || v.Text != "true" {
			return nil, p.errorf(v, name, "expected true, got %s", describe(v))
		}
		return func(_ context.Context, input json.RawMessage) (json.RawMessage, error) { return input, nil }, nil
	case "error":
		if v.Kind != json5.String || v.Text == "" {
			return nil, p.errorf(v, name, "expected a text that is not empty, got %s", describe(v))
		}
		text := v.Text
		return func(context.Context, json.RawMessage) (json.RawMessage, error) {
			return nil, &ToolError{CodeError, text}
		}, nil
	}
	argv, err := p.argv(v)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
		return runCommand(ctx, argv, input)
	}, nil
}

func (p *parser) argv(v *json5.Value) ([]string, error) {
	if v.Kind != json5.Array || len(v.Items) == 0 {
		return nil, p.errorf(v, "command", `expected a list ["program", "argument"…], got %s`, describe(v))
	}
	var argv []string
	for i := range v.Items {
		word := &v.Items[i]
		field := fmt.Sprintf("command[%d]", i)
		if word.Kind != json5.String {
			return nil, p.errorf(word, field, "expected text, got %s", describe(word))
		}
		if i == 0 && word.Text == "" {
			return nil, p.errorf(word, field, "the program must not be empty")
		}
		if strings.ContainsRune(word.Text, 0) {
			return nil, p.errorf(word, field, "must not contain NUL")
		}
		argv = append(argv, word.Text)
	}
	return argv, nil
}
