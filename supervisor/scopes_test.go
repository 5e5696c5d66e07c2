package supervisor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// calendar registers a namespace of plugin cal, whose one tool is list_events.
func calendar(t *testing.T, scope func(context.Context, namespace.Run) (any, error)) *namespace.Registry {
	t.Helper()
	var r namespace.Registry
	if err := r.Register("cal", namespace.Namespace{ID: "calendar", GlobalName: "calendar", Description: "Events.", RequiredTools: []string{"list_events"}, Scope: scope}); err != nil {
		t.Fatal(err)
	}
	return &r
}

func plainScope(context.Context, namespace.Run) (any, error) {
	return map[string]any{"list": namespace.Tool("list_events"), "zone": "UTC"}, nil
}

// hiddenTools is a catalog with a denied tool of each kind, and an executor that nobody should
// reach for those.
func hiddenTools(t *testing.T, called *[]string) (*catalog.Catalog, Executor) {
	t.Helper()
	c, warnings, err := catalog.Build([]catalog.Entry{
		{Name: "echo", Source: catalog.Client}, {Name: "echo", Source: catalog.MCP, SourceName: "shelf"},
		{Name: "list_events", Source: catalog.Plugin, SourceName: "cal"},
		{Name: "open", Source: catalog.MCP, SourceName: "vault", Denied: true}, {Name: "open-up", Source: catalog.Plugin, SourceName: "vault", Denied: true},
	}, catalog.Options{})
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	var mu sync.Mutex
	return c, ExecutorFunc(func(_ context.Context, call *Call) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		*called = append(*called, call.Tool.ID)
		return call.Input, nil
	})
}

// SPEC 6.5, 8.5, 15.5: what a taken-over worker may name is refused as if it did not exist, and
// what policy denied is audited, however it is named.
func TestForgedCalls(t *testing.T) {
	forged := [][3]string{
		{"call", "mcp:vault:open", "{}"}, {"call", "plugin:vault:open-up", "{}"}, {"call", "open-up", "{}"}, {"describe", "plugin:vault:open-up", "{}"}, {"mcp", "vault.open", "{}"},
		{"api", "$api", `{"server":"vault"}`}, {"api", "read", `{"path":"tools/open_up.d.ts"}`}, {"api", "read", `{"path":"tools/plugin:vault:open-up.d.ts"}`},
		{"call", "mcp:shelf:echo", "{}"}, {"mcp", "shelf", "{}"}, {"mcp", "shelf.echo.", "{}"}, {"mcp", "mcp:shelf:echo", "{}"}, {"mcp", "client:app:echo", "{}"}, {"mcp", "", "{}"},
		{"namespace", "calendar", "[]"}, {"namespace", "calendar\x1fzone", "[]"}, {"namespace", "calendar\x1flist\x1f", "[]"}, {"namespace", "calendar.list", "[]"},
		{"namespace", "other\x1flist", "[]"}, {"namespace", "", "[]"}, {"namespace", "plugin:cal:list_events", "[]"}, {"namespace", "calendar\x1flist", "{}"}, {"namespace", "calendar\x1flist", "not JSON"},
		{"namespace", "calendar\x1flist", "[1,2"}, {"mcp", "shelf.echo", "not JSON"}, {"mcp", "shelf.echo", "[1"},
		{"api", "write", "{}"}, {"api", "read", "[]"}, {"api", "$api", `"x"`}, {"api", "read", `{"path":"../../etc/passwd"}`}, {"api", "list", "garbage"}, {"search", "open", "garbage"},
		{"search", "open", `{"limit":-1}`},
	}
	source, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	var log, events bytes.Buffer
	s := fakeWith(t, "forges", Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var called []string
	p := Program{Code: string(source), Namespaces: calendar(t, plainScope), Trajectory: trajectory.New(trajectory.JSONLines(&events), trajectory.Policy{})}
	p.Catalog, p.Executor = hiddenTools(t, &called)
	res := s.Exec(t.Context(), p)
	var answers []string
	if err := json.Unmarshal(res.Value, &answers); err != nil {
		t.Fatalf("%s", res.JSON())
	}
	for i, a := range answers {
		if !strings.HasPrefix(a, "unknown_tool: ") && !strings.HasPrefix(a, "invalid_input: ") {
			t.Errorf("%q: %s", forged[i], a)
		}
		if strings.Contains(a, "denie") || strings.Contains(a, "policy") {
			t.Errorf("%q tells of the policy: %s", forged[i], a)
		}
	}
	if len(called) > 0 {
		t.Errorf("executed: %v", called)
	}
	for id, want := range map[string]int{"mcp:vault:open": 3, "plugin:vault:open-up": 5} {
		if n := strings.Count(log.String(), "a cell asked for a tool that policy denies"+`" run=`+res.RunID+" tool="+id); n != want {
			t.Errorf("the log has %d lines of %s, want %d:\n%s", n, id, want, log.String())
		}
		if n := strings.Count(events.String(), `"toolId":"`+id+`","status":"denied"`); n != want {
			t.Errorf("the trajectory has %d events of %s, want %d:\n%s", n, id, want, events.String())
		}
	}
	if n := res.Telemetry.Counts; n.Call != 22 || n.Describe != 1 || n.Search != 2 {
		t.Errorf("counts: %+v", n)
	}
}

// SPEC 15.5: wrong names cost the supervisor a bounded amount of comparing, and of log.
func TestFloodOfWrongNames(t *testing.T) {
	var forged [][3]string
	for range 300 {
		forged = append(forged, [3]string{"call", "ecoh", "{}"}, [3]string{"call", "open-up", "{}"})
	}
	source, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := fakeWith(t, "forges", Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var called []string
	p := Program{Code: string(source)}
	p.Catalog, p.Executor = hiddenTools(t, &called)
	res := s.Exec(t.Context(), p)
	var answers []string
	if err := json.Unmarshal(res.Value, &answers); err != nil {
		t.Fatalf("%s", res.JSON())
	}
	suggested := 0
	for _, a := range answers {
		if strings.Contains(a, "did you mean") {
			suggested++
		} else if !strings.Contains(a, "there is no tool") {
			t.Errorf("got %s", a)
		}
	}
	if suggested == 0 || suggested > maxSuggested {
		t.Errorf("%d names were compared with the catalog, want some, and %d at most", suggested, maxSuggested)
	}
	if n := strings.Count(log.String(), "policy denies"); n != maxAudited+1 || !strings.Contains(log.String(), "more often than is noted") {
		t.Errorf("%d lines in the log, want %d", n, maxAudited+1)
	}
}

// The honest way goes through the same door.
func TestNamespaceCall(t *testing.T) {
	s := fake(t, "forges")
	var called []string
	p := Program{Code: `[["namespace","calendar\u001flist","[{\"day\":1}]"],["mcp","shelf.echo","{\"a\":1}"],["api","list",""],["api","$api","{}"]]`, Namespaces: calendar(t, plainScope)}
	p.Catalog, p.Executor = hiddenTools(t, &called)
	res := s.Exec(t.Context(), p)
	var answers []string
	if err := json.Unmarshal(res.Value, &answers); err != nil {
		t.Fatalf("%s", res.JSON())
	}
	if answers[0] != `done: {"day":1}` || answers[1] != `done: {"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}` || !strings.Contains(answers[2], "invalid_input") || !strings.Contains(answers[3], "shelf") {
		t.Errorf("got %q", answers)
	}
	if len(called) != 2 || len(res.Telemetry.Calls) != 2 || res.Telemetry.Calls[0].ToolID != "plugin:cal:list_events" || res.Telemetry.Calls[1].ToolID != "mcp:shelf:echo" {
		t.Errorf("called %v, calls %+v", called, res.Telemetry.Calls)
	}
}

// SPEC 8.3: a scope that cannot be built ends the run before guest code, and a worker that does
// not wait for it is no worker of ours.
func TestScopesThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		scope func(context.Context, namespace.Run) (any, error)
		code  Code
		text  string
	}{
		"a function": {func(context.Context, namespace.Run) (any, error) { return map[string]any{"f": func() {}}, nil }, InvalidConfig, "calendar.f"},
		"a bad key": {func(context.Context, namespace.Run) (any, error) {
			return map[string]any{"a": map[string]any{"__proto__": 1}}, nil
		}, InvalidConfig, "__proto__"},
		"an error": {func(context.Context, namespace.Run) (any, error) { return nil, errors.New("no calendar today") }, RuntimeUnavailable, "no calendar today"},
		"a panic":  {func(context.Context, namespace.Run) (any, error) { panic("oh no") }, RuntimeUnavailable, "oh no"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fake(t, "forges")
			p := Program{Code: `[]`, Namespaces: calendar(t, c.scope)}
			var called []string
			p.Catalog, p.Executor = hiddenTools(t, &called)
			res := s.Exec(t.Context(), p)
			if res.Code != c.code || res.Phase != PhaseHost || !strings.Contains(res.Error, c.text) || !strings.Contains(res.Error, "cal") {
				t.Errorf("got %s", res.JSON())
			}
		})
	}
	t.Run("eager", func(t *testing.T) {
		s := fake(t, "eager")
		hold := make(chan struct{})
		p := Program{Code: `1`, Namespaces: calendar(t, func(ctx context.Context, _ namespace.Run) (any, error) {
			select {
			case <-hold:
			case <-ctx.Done():
			}
			return map[string]any{}, nil
		})}
		var called []string
		p.Catalog, p.Executor = hiddenTools(t, &called)
		res := s.Exec(t.Context(), p)
		close(hold)
		if res.Code != InternalError || !strings.Contains(res.Error, "output event out of turn") {
			t.Errorf("got %s", res.JSON())
		}
	})
}

// SPEC 8.1: what a scope is built for.
func TestScopeIdentity(t *testing.T) {
	s := fake(t, "forges")
	var got namespace.Run
	p := Program{
		Code: `[]`, Limits: limits.Default(), Scope: Scope{AgentID: "a", SessionID: "s", SessionKey: "k", AgentRunID: "r"}, NamespaceConfig: json.RawMessage(`{"x":1}`),
		Namespaces: calendar(t, func(_ context.Context, run namespace.Run) (any, error) { got = run; return map[string]any{}, nil }),
	}
	var called []string
	p.Catalog, p.Executor = hiddenTools(t, &called)
	res := s.Exec(t.Context(), p)
	want := namespace.Run{AgentID: "a", SessionID: "s", SessionKey: "k", AgentRunID: "r", RunID: res.RunID, Config: json.RawMessage(`{"x":1}`)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, res.JSON())
	}
}

// nilError is an error type whose nil pointer is no nil error.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// What an executor and a plugin may do wrong costs their call, or their run. SPEC 16.4
func TestGatewayFaults(t *testing.T) {
	t.Run("an error that is a nil pointer", func(t *testing.T) {
		s := fake(t, "forges")
		p := Program{Code: `[["call","echo","{}"]]`}
		var called []string
		p.Catalog, _ = hiddenTools(t, &called)
		p.Executor = ExecutorFunc(func(context.Context, *Call) (json.RawMessage, error) { var e *nilError; return nil, e })
		if res := s.Exec(t.Context(), p); !strings.Contains(string(res.Value), "failed inside the gateway") {
			t.Errorf("got %s", res.JSON())
		}
	})
	t.Run("a scope that ends its goroutine", func(t *testing.T) {
		s := fake(t, "forges")
		p := Program{Code: `[]`, Namespaces: calendar(t, func(context.Context, namespace.Run) (any, error) { runtime.Goexit(); return nil, nil })}
		var called []string
		p.Catalog, p.Executor = hiddenTools(t, &called)
		if res := s.Exec(t.Context(), p); res.Code != RuntimeUnavailable || !strings.Contains(res.Error, "without a result") {
			t.Errorf("got %s", res.JSON())
		}
	})
	t.Run("namespaces without a catalog", func(t *testing.T) {
		s := fake(t, "forges")
		if res := s.Exec(t.Context(), Program{Code: `[]`, Namespaces: calendar(t, plainScope)}); res.Status != Completed {
			t.Errorf("got %s", res.JSON())
		}
		if got := calendar(t, plainScope).Visible(nil); len(got) > 0 {
			t.Errorf("got %v", got)
		}
	})
}
