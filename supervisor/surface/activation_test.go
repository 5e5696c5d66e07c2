package surface_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

// SPEC 2.1: which value decides, and what becomes of the limits.
// Validation 1: a disabled config leaves the exposed tools as they are
// Validation 2: an object config without enabled: true leaves code mode off
func TestDecideSwitch(t *testing.T) {
	on := limits.DefaultConfig()
	on.Enabled, on.Limits.Timeout = true, 3*time.Second
	tests := []struct {
		global, agent string
		base          *limits.Config
		want          surface.State
		timeout       time.Duration
	}{
		{"", "", nil, surface.Off, 0},
		{"false", "", nil, surface.Off, 0},
		{"true", "", nil, surface.Engaged, 10 * time.Second},
		{"{}", "", nil, surface.Off, 0},
		{"{timeoutMs: 5000}", "", nil, surface.Off, 0}, // options alone do not enable
		{"{enabled: false, timeoutMs: 5000}", "", nil, surface.Off, 0},
		{"{enabled: true, timeoutMs: 5000}", "", nil, surface.Engaged, 5 * time.Second},
		// An agent's own value.
		{"{timeoutMs: 5000}", "true", nil, surface.Engaged, 5 * time.Second},
		{"{enabled: true, timeoutMs: 5000}", "true", nil, surface.Engaged, 5 * time.Second},
		{"{enabled: true, timeoutMs: 5000}", "false", nil, surface.Off, 0},
		{"true", "{timeoutMs: 7000}", nil, surface.Engaged, 7 * time.Second},
		{"true", "{}", nil, surface.Engaged, 10 * time.Second},
		{"true", "{enabled: false, timeoutMs: 7000}", nil, surface.Off, 0},
		{"false", "{enabled: true, timeoutMs: 7000}", nil, surface.Engaged, 7 * time.Second},
		{"false", "{timeoutMs: 7000}", nil, surface.Off, 0},
		{"", "{timeoutMs: 7000}", nil, surface.Off, 0},
		{"", "true", nil, surface.Engaged, 10 * time.Second},
		{"{enabled: true, timeoutMs: 5000}", "{maxPendingToolCalls: 3}", nil, surface.Engaged, 5 * time.Second},
		// A config that was parsed before.
		{"", "", &on, surface.Engaged, 3 * time.Second},
		{"false", "", &on, surface.Off, 0},
		{"{timeoutMs: 5000}", "true", &on, surface.Engaged, 5 * time.Second},
	}
	for _, tt := range tests {
		d, err := surface.Decide(surface.Run{Base: tt.base, Global: []byte(tt.global), Agent: []byte(tt.agent), AgentID: "main", Entries: entries})
		if err != nil {
			t.Errorf("global %s, agent %s: %v", tt.global, tt.agent, err)
			continue
		}
		if d.State != tt.want || d.Limits.Timeout != tt.timeout || d.Reason == "" {
			t.Errorf("global %s, agent %s: %s (%s), timeout %v; want %s, %v", tt.global, tt.agent, d.State, d.Reason, d.Limits.Timeout, tt.want, tt.timeout)
		}
	}
}

// SPEC 1.3, 13.1: a value that cannot be used fails the run, whatever else is set.
func TestDecideFailsClosed(t *testing.T) {
	for _, tt := range []struct{ global, agent, text string }{
		{`null`, ``, "global value"},
		{`"true"`, ``, "global value"},
		{`{enabled: "true"}`, ``, "enabled"},
		{`{enabled: 1}`, ``, "enabled"},
		{`{enabled: false, timeoutMS: 1}`, ``, `did you mean "timeoutMs"?`},
		{`{enabled: true`, ``, "not JSON5"},
		{`true`, `{mode: "all"}`, `agent "main"`},
		{`true`, `[]`, `agent "main"`},
		{`{timeoutMs: 1.5}`, `false`, "global value"}, // the agent's false does not repair it
		{`true`, `{"` + strings.Repeat("x\\u001b", 100_000) + `": 1}`, "unknown field"},
	} {
		d, err := surface.Decide(surface.Run{Global: []byte(tt.global), Agent: []byte(tt.agent), AgentID: "main", Entries: entries})
		var e *surface.Error
		var cause *limits.ConfigError
		if d != nil || !errors.As(err, &e) || e.Code != surface.InvalidConfig || !errors.As(err, &cause) {
			t.Errorf("global %.40s, agent %.40s: %v, %v; want an *Error with invalid_config and its cause", tt.global, tt.agent, d, err)
			continue
		}
		if !strings.Contains(e.Text, tt.text) || len(e.Text) > surface.MaxErrorBytes || strings.ContainsAny(e.Text, "\n\x1b") {
			t.Errorf("global %.40s, agent %.40s: %s; want it to speak of %q", tt.global, tt.agent, e.Text, tt.text)
		}
	}
	many := make([]catalog.Entry, catalog.MaxTools+1)
	_, err := surface.Decide(surface.Run{Global: []byte("true"), Entries: many})
	if e, ok := errors.AsType[*surface.Error](err); !ok || e.Code != surface.RuntimeUnavailable {
		t.Errorf("too many tools: %v, want runtime_unavailable", err)
	}
}

// SPEC 2.2, 2.3, 2.4: what leaves a run without code mode though it is on.
// Validation 3: an enabled config shows the model exec and wait only, if the run has tools
// Validation 4: raw runs without tools, disableTools and empty allow lists trigger no payload guard
// Validation 11: the control tools of Tool Search are hidden from the model and from the catalog
func TestDecideNoTools(t *testing.T) {
	control := []catalog.Entry{
		{Name: "exec", Source: catalog.OpenClaw, Control: true}, {Name: "wait", Source: catalog.OpenClaw},
		{Name: "tool_search_code", Source: catalog.OpenClaw}, {Name: "tool_search", Source: catalog.OpenClaw},
		{Name: "tool_describe", Source: catalog.OpenClaw}, {Name: "tool_call", Source: catalog.OpenClaw},
	}
	shell := catalog.Entry{Name: "exec", Source: catalog.OpenClaw}
	tests := []struct {
		name string
		run  surface.Run
		want surface.State
	}{
		{"raw model call", surface.Run{RawModelCall: true, Entries: entries}, surface.NoTools},
		{"disableTools", surface.Run{ToolsDisabled: true, Entries: entries}, surface.NoTools},
		{"empty allow list", surface.Run{AllowListEmpty: true, Entries: entries}, surface.NoTools},
		{"no config can fail a run without tools", surface.Run{RawModelCall: true, Agent: []byte("[]")}, surface.NoTools},
		{"no entries", surface.Run{}, surface.NoTools},
		{"control tools", surface.Run{Entries: control}, surface.NoTools},
		{"all denied", surface.Run{Entries: catalog.Policy{Deny: []string{"*"}}.Apply(entries)}, surface.NoTools},
		{"none allowed", surface.Run{Entries: catalog.Policy{Allow: []string{"nothing"}}.Apply(entries)}, surface.NoTools},
		{"denied and control", surface.Run{Entries: append(catalog.Policy{Deny: []string{"*"}}.Apply(entries), control...)}, surface.NoTools},
		{"unusable", surface.Run{Entries: []catalog.Entry{{Source: catalog.Client}}}, surface.NoTools},
		{"a shell tool called exec", surface.Run{Entries: append(slices.Clone(control), shell)}, surface.Engaged},
		{"one MCP tool", surface.Run{Entries: entries[3:]}, surface.Engaged},
	}
	for _, tt := range tests {
		tt.run.Global = []byte("true")
		d, err := surface.Decide(tt.run)
		if err != nil || d.State != tt.want {
			t.Errorf("%s: %+v, %v; want %s", tt.name, d, err, tt.want)
			continue
		}
		want := []string(nil)
		if tt.want == surface.Engaged {
			want = []string{"exec", "wait"}
		}
		if diff := cmp.Diff(want, d.VisibleTools()); diff != "" {
			t.Errorf("%s: visible (-want +got):\n%s", tt.name, diff)
		}
		// SPEC 2.3: the guard applies to engaged runs alone.
		if err := d.CheckPayload([]byte(`{"messages": []}`), surface.OpenAIChat); (err != nil) != (tt.want == surface.Engaged) {
			t.Errorf("%s: the guard says %v", tt.name, err)
		}
	}
}

// SPEC 2.2, 2.5: an engaged run has all that it needs; off, the tools stay as they are.
func TestDecision(t *testing.T) {
	run := surface.Run{Global: []byte(`{enabled: true, timeoutMs: 1, searchDefaultLimit: 3, languages: ["javascript"]}`), Entries: entries}
	d, err := surface.Decide(run)
	if err != nil {
		t.Fatal(err)
	}
	if byDefault, _ := d.Catalog.SearchLimits(); byDefault != 3 || d.Catalog.Len() != len(entries) {
		t.Errorf("catalog of %d with search default %d", d.Catalog.Len(), byDefault)
	}
	if len(d.ConfigWarnings) != 1 || d.Limits.Timeout != 100*time.Millisecond {
		t.Errorf("warnings %v, timeout %v: want 1 ms to be clamped", d.ConfigWarnings, d.Limits.Timeout)
	}
	if strings.Contains(string(d.Definitions.Exec.Parameters), "language") || !strings.Contains(d.Definitions.Exec.Description, "MCP.github") {
		t.Errorf("exec: %s", d.Definitions.Exec.Parameters)
	}
	again, _ := surface.Decide(run)
	if diff := cmp.Diff(d.Definitions, again.Definitions); diff != "" {
		t.Errorf("two decisions differ:\n%s", diff)
	}
	off, err := surface.Decide(surface.Run{Entries: catalog.Policy{Deny: []string{"weather"}}.Apply(entries)})
	if err != nil || off.Catalog != nil || len(off.Definitions.Exec.Name) > 0 {
		t.Errorf("off: %+v, %v", off, err)
	}
	if diff := cmp.Diff([]string{"get-user", "then", "create_issue"}, off.VisibleTools()); diff != "" {
		t.Errorf("off, visible (-want +got):\n%s", diff)
	}
}

// SPEC 18.2: the log has the decision and the visible names, bounded, and nothing secret.
func TestDecisionLog(t *testing.T) {
	log := func(r surface.Run) string {
		d, err := surface.Decide(r)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		slog.New(slog.NewTextHandler(&b, nil)).Info("code mode surface", "decision", d)
		return b.String()
	}
	line := log(surface.Run{Global: []byte("true"), Entries: entries})
	for _, want := range []string{"decision.state=engaged", `decision.visible="exec wait"`, "4 of 4 tools", "decision.catalog=4"} {
		if !strings.Contains(line, want) {
			t.Errorf("%s: want %s", line, want)
		}
	}
	if strings.Contains(line, "Forecast") {
		t.Errorf("a description in the log: %s", line)
	}
	var many []catalog.Entry
	for i := range 5000 {
		many = append(many, catalog.Entry{Name: fmt.Sprintf("t%d\n%s", i, strings.Repeat("x", 1000)), Source: catalog.Client})
	}
	line = log(surface.Run{Entries: many})
	if len(line) > 20_000 || strings.Count(line, "\n") != 1 || !strings.Contains(line, "visibleCount=5000") {
		t.Errorf("a line of %d bytes", len(line))
	}
}
