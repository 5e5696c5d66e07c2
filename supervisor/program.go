package supervisor

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// Program is one cell and what it may use: the input of [Supervisor.Exec].
type Program struct {
	// Code is the source; Command is another name for it. One of them must be
	// non-blank, and both, if both are given, equal (SPEC 3.1). It reaches the worker
	// byte for byte.
	Code, Command string
	// Language is "", "javascript" or "typescript". Empty means JavaScript, unless a
	// Markdown fence around the source says typescript (SPEC 4.1).
	Language string
	// Catalog is what the cell may call. Nil means nothing.
	Catalog *catalog.Catalog
	// Executor runs the nested calls. It may be nil if Catalog is.
	Executor Executor
	// Hooks are asked before the cell, and before each nested call, is started.
	Hooks Hooks
	// Namespaces are the plugins' (SPEC 8). Those whose tools are all in the catalog are built
	// for the run once its source has been accepted, and before guest code runs. Nil means
	// none.
	Namespaces *namespace.Registry
	// NamespaceConfig is handed to the functions that build scopes.
	NamespaceConfig json.RawMessage
	// Limits are the run's. Zero, as a whole or in a field that cannot be zero, means what
	// the supervisor's options say.
	Limits limits.Limits
	// Scope says who owns the run.
	Scope Scope
	// ParentCallID is the id of the exec call that the model made, for nested calls and
	// the trajectory.
	ParentCallID string
	// Output, if not nil, receives each output item as it is emitted, in order, one at a
	// time (SPEC 9.4). Exec returns after the last one was taken: a function that blocks
	// holds the answer up, and neither the run's limits nor its worker's end.
	Output func(Item)
	// Update, if not nil, receives what executors tell of calls that are at work, in order,
	// one at a time, as Output does. Updates that it is too slow for are dropped.
	Update func(Update)
	// Trajectory, if not nil, receives the run's events, in order. Events that its sink
	// is too slow for are dropped and counted.
	Trajectory *trajectory.Recorder
}

// Scope is the identity that owns a run, and the context of its calls (SPEC 10.1). Empty
// fields are unknown. The first four own the run: who waits for it must have those that
// its owner had. A gateway that lets a later turn wait for a run leaves AgentRunID out.
type Scope struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
	AgentRunID string `json:"agentRunId,omitempty"`
	Sender     string `json:"sender,omitempty"`
	Channel    string `json:"channel,omitempty"`
}

// source checks what does not need a parser (SPEC 3.1, 3.2) and gives the source.
func (p *Program) source(l limits.Limits) (string, *failure) {
	if n := max(len(p.Code), len(p.Command)); n > workerproto.MaxSource {
		return "", inputf(InvalidInput, "the source has %d bytes, at most %d are allowed", n, workerproto.MaxSource)
	}
	in, err := surface.ExecInput{Code: p.Code, Command: p.Command}.Mirror()
	if err != nil {
		return "", inputf(InvalidInput, "%v", err)
	}
	switch {
	case p.Language != "" && p.Language != "javascript" && p.Language != "typescript":
		return "", inputf(UnsupportedLanguage, "language %.40q is not supported; use %s", p.Language, strings.Join(l.Languages.Names(), " or "))
	case p.Language != "" && !l.Languages.Has(p.Language):
		return "", inputf(UnsupportedLanguage, "language %q is switched off by the config (tools.codeMode.languages); use %s", p.Language, strings.Join(l.Languages.Names(), " or "))
	case !utf8.ValidString(in.Code):
		return "", inputf(InvalidInput, "the source is not UTF-8")
	}
	return in.Code, nil
}

// catalogFrames are what the worker gets of the catalog, before the cell or the snapshot.
func catalogFrames(c *catalog.Catalog) []workerproto.Message {
	if c == nil || c.Len() == 0 && len(c.Unavailable()) == 0 {
		return nil
	}
	s := c.Surface()
	ms := []workerproto.Message{&workerproto.Surface{Tools: s.List, Functions: s.Functions, MCP: s.MCP, Down: s.Down}}
	for _, f := range s.Files {
		ms = append(ms, &workerproto.File{Path: f.Path, Description: f.Description, Bytes: uint32(f.Bytes), Text: f.Text})
	}
	return ms
}

// checkSurface tells whether a cell can be shown the catalog.
func checkSurface(c *catalog.Catalog) *failure {
	if c == nil {
		return nil
	}
	if n := c.Surface().Largest; n > workerproto.MaxTools {
		return inputf(InvalidInput, "the catalog's entries have %d bytes, at most %d can be shown to a cell; narrow the tool policy", n, workerproto.MaxTools)
	}
	return nil
}
