package surface

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/limits"
)

// DebugVar is the environment variable that asks for the surface decision in the log, when it
// is "1" (SPEC 18.2): log.Info("code mode surface", "decision", d).
const DebugVar = "OPENCLAW_DEBUG_CODE_MODE"

// Run is what the decision about code mode is made of (SPEC 2.1–2.4): the run's context,
// resolved, and its tools, after policy.
type Run struct {
	// Base is a config that has been parsed before, such as the process's own. Nil means
	// the defaults, with code mode off.
	Base *limits.Config
	// Global and Agent are the values of tools.codeMode, global and the agent's own: JSON5
	// text, true, false or an object. Empty means that there is none; null is a value, and
	// a wrong one.
	//
	// Each is laid over what came before: true and false switch, and keep the limits; an
	// object replaces the fields that it names. enabled is such a field. So an agent's
	// {timeoutMs: 5000} changes the timeout of an agent for which code mode is on globally,
	// and does not switch it on for one for which it is not: whether code mode is on
	// is asked of the sum (SPEC 2.1). The other reading, that an object of the agent's must
	// repeat enabled, would show all tools to a model because somebody set a timeout.
	Global, Agent []byte
	// AgentID is for the texts of errors.
	AgentID string

	// RawModelCall, ToolsDisabled and AllowListEmpty say that the run has no tools on
	// purpose: a call of the bare model, disableTools, an allow list that was given and
	// holds nothing. (An allow list that was not given allows everything.)
	RawModelCall, ToolsDisabled, AllowListEmpty bool

	// Entries are the effective tools: the built-in ones, plugins', MCP servers' and
	// clients'. What policy denies is marked or left out ([catalog.Policy.Apply]); control
	// tools are marked or left in: the catalog leaves them out. A shell tool called exec is
	// an ordinary entry.
	Entries []catalog.Entry
	// Catalog are the options of the catalog; the search limits come from the config.
	Catalog catalog.Options
	// Namespaces are the plugins' (SPEC 8). Nil means none.
	Namespaces *namespace.Registry
}

// State says what the model is shown.
type State string

const (
	// Off: the tools stay as they are.
	Off State = "off"
	// NoTools: code mode is not engaged, because the run has no tools. Nothing is shown, and
	// the payload guard does not apply (SPEC 2.3).
	NoTools State = "no_tools"
	// Engaged: exec and wait are shown, and nothing else.
	Engaged State = "engaged"
)

// Decision is what [Decide] found. The fields after Reason are set only if State is Engaged,
// the warnings in any case.
type Decision struct {
	State State
	// Reason says why, in one line without secrets.
	Reason string

	Limits      limits.Limits
	Catalog     *catalog.Catalog
	Definitions Definitions

	// ConfigWarnings are numbers that were clamped; CatalogWarnings are tools that were left
	// out or are not as their owners meant them.
	ConfigWarnings  []limits.Warning
	CatalogWarnings []catalog.Warning

	visible []string
}

// Decide decides about code mode for one run. It is a pure function: equal runs give equal
// decisions. An error is of type *[Error] and fails the run; the tools must not be shown
// instead (SPEC 1.3, 2.2). Its code is [InvalidConfig] if a value of tools.codeMode cannot be
// used, even one that would have switched code mode off: nobody knows what it meant; and
// [RuntimeUnavailable] if the catalog cannot be built.
//
// A run without tools on purpose is decided first: no config can fail it.
func Decide(r Run) (*Decision, error) {
	if reason := r.noTools(); reason != "" {
		return &Decision{State: NoTools, Reason: reason}, nil
	}
	config, warnings, source, err := r.config()
	if err != nil {
		return nil, err
	}
	d := &Decision{State: Off, ConfigWarnings: warnings}
	if !config.Enabled {
		d.Reason = "tools.codeMode is not enabled (" + source + ")"
		d.visible = names(r.Entries)
		return d, nil
	}
	if err := d.engage(r, config); err != nil {
		return nil, err
	}
	if d.State == Engaged {
		d.Reason += "; enabled by " + source
	}
	return d, nil
}

// noTools says why the run has no tools on purpose, or "" (SPEC 2.3).
func (r *Run) noTools() string {
	switch {
	case r.RawModelCall:
		return "a raw model call has no tools"
	case r.ToolsDisabled:
		return "the run's tools are disabled"
	case r.AllowListEmpty:
		return "the run's allow list is empty"
	}
	return ""
}

// config lays the values over each other, and says which one made code mode on or off.
func (r *Run) config() (limits.Config, []limits.Warning, string, error) {
	const nobody = "no config sets it"
	config, source := limits.DefaultConfig(), nobody
	if r.Base != nil {
		config, source = *r.Base, "the process's config"
	}
	var warnings []limits.Warning
	for _, layer := range []struct {
		owner string
		value []byte
	}{{"the global value", r.Global}, {fmt.Sprintf("the value of agent %s", quote(r.AgentID)), r.Agent}} {
		if len(layer.value) == 0 {
			continue
		}
		next, w, err := config.Override(layer.value)
		if err != nil {
			return config, nil, "", &Error{
				Code: InvalidConfig, Err: err,
				Text: oneLine(fmt.Sprintf("%s of tools.codeMode cannot be used: %v; correct it, or set it to false to run without code mode", layer.owner, err), MaxErrorBytes),
			}
		}
		if source == nobody || next.Enabled != config.Enabled {
			source = layer.owner
		}
		config = next
		warnings = append(warnings, w...)
	}
	return config, warnings, source, nil
}

// engage builds the catalog, and the definitions if anything is in it.
func (d *Decision) engage(r Run, config limits.Config) error {
	options := r.Catalog
	options.SearchDefault, options.SearchMax = config.Limits.SearchDefault, config.Limits.SearchMax
	c, warnings, err := catalog.Build(r.Entries, options)
	if err != nil {
		return errorf(RuntimeUnavailable, "code mode is on and cannot run: %v", err)
	}
	d.CatalogWarnings = warnings
	if c.Len() == 0 {
		d.State, d.Reason = NoTools, fmt.Sprintf("no tool is left of %d: all are denied, control tools, or unusable", len(r.Entries))
		return nil
	}
	d.State, d.Reason = Engaged, fmt.Sprintf("%d of %d tools are in the catalog", c.Len(), len(r.Entries))
	d.Limits, d.Catalog = config.Limits, c
	d.Definitions = Define(View{Catalog: c, Namespaces: r.Namespaces.Visible(c), Limits: config.Limits})
	d.visible = []string{ExecName, WaitName}
	return nil
}

// VisibleTools returns the names of the tools that the model is shown: exec and wait; or
// nothing; or, if code mode is off, the run's own. The caller owns the slice.
func (d *Decision) VisibleTools() []string { return slices.Clone(d.visible) }

// CheckPayload is [CheckPayload] if code mode is engaged, and nil if it is not (SPEC 2.6).
func (d *Decision) CheckPayload(payload []byte, s Shape) error {
	if d.State != Engaged {
		return nil
	}
	return CheckPayload(payload, s)
}

// maxLogged is how many names a log line has.
const maxLogged = 100

// LogValue shows the decision in a log (SPEC 18.2): no descriptions, no schemas.
func (d *Decision) LogValue() slog.Value {
	shown := d.visible[:min(len(d.visible), maxLogged)]
	attrs := []slog.Attr{
		slog.String("state", string(d.State)),
		slog.String("reason", d.Reason),
		slog.String("visible", strings.Join(shown, " ")),
		slog.Int("visibleCount", len(d.visible)),
	}
	if d.Catalog != nil {
		attrs = append(attrs, slog.Int("catalog", d.Catalog.Len()))
	}
	return slog.GroupValue(attrs...)
}

// names lists the tools that a run has when code mode is off.
func names(entries []catalog.Entry) []string {
	var list []string
	for i := range entries {
		e := &entries[i]
		if !e.Denied {
			list = append(list, oneLine(cmp.Or(e.Name, string(e.Operation)), 120))
		}
	}
	return list
}
