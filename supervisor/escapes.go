package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/escape"
)

// EscapeResult is what came of the attempts to leave the guest by its own language.
type EscapeResult struct {
	// Attempts are the tricks that were tried, each with how it went.
	Attempts []EscapeAttempt `json:"attempts"`
	// Reachable counts what a guest's program can reach: objects, functions, accessors.
	Reachable int `json:"reachable"`
	// Added and Missing compare that with the list that was looked through by people.
	Added   []string `json:"added"`
	Missing []string `json:"missing"`
}

// EscapeAttempt is one trick, and how it went.
type EscapeAttempt struct {
	Name    string `json:"name"`
	Escaped bool   `json:"escaped"`
	Detail  string `json:"detail,omitempty"`
}

// Escaped counts the attempts that succeeded.
func (r EscapeResult) Escaped() int {
	n := 0
	for _, a := range r.Attempts {
		if a.Escaped {
			n++
		}
	}
	return n
}

// Escapes runs two cells: one walks everything that a guest's program can reach and compares
// it with a list, one tries known tricks of getting out (SPEC 15.3).
func (s *Supervisor) Escapes(ctx context.Context) (EscapeResult, error) {
	cat, _, err := catalog.Build(escape.Tools(), catalog.Options{})
	if err != nil {
		return EscapeResult{}, err
	}
	run := func(code string) (json.RawMessage, error) {
		p := Program{Code: code, Catalog: cat, Executor: ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
			answer, err := escape.Answer(call.Tool.Name, call.Input)
			var said *escape.Error
			if errors.As(err, &said) {
				err = &ToolError{Message: said.Message, Code: said.Code}
			}
			return answer, err
		})}
		p.Limits = s.opts.Limits
		p.Limits.OutputBytes = max(p.Limits.OutputBytes, escape.OutputBytes)
		res := s.Exec(ctx, p)
		if res.Status != Completed {
			return nil, fmt.Errorf("%s: %s", res.Code, res.Error)
		}
		return res.Value, nil
	}
	var r EscapeResult
	value, err := run(escape.Cell())
	if err != nil {
		return r, fmt.Errorf("walking what a guest can reach: %w", err)
	}
	var lines []string
	if err := json.Unmarshal(value, &lines); err != nil {
		return r, err
	}
	r.Reachable = len(lines)
	added, missing := escape.Compare(lines)
	r.Added, r.Missing = append([]string{}, added...), append([]string{}, missing...) // as JSON they are lists, empty too
	if value, err = run(escape.Attempts()); err != nil {
		return r, fmt.Errorf("trying to escape: %w", err)
	}
	attempts, err := escape.Judge(value)
	for _, a := range attempts {
		r.Attempts = append(r.Attempts, EscapeAttempt{a.Name, a.Outcome != escape.Refused, a.Detail})
	}
	return r, err
}
