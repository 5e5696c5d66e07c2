package surface

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// MaxArgumentBytes is how long the arguments of exec may be: a source of the greatest
// length under both of its names, with escapes.
const MaxArgumentBytes = 32 << 20

// No argument is an array or object; these bounds let an error say so.
var argumentBounds = bounds{bytes: MaxArgumentBytes, depth: 32, values: 1000}

// ExecInput is the input of exec (SPEC 2.5).
type ExecInput struct {
	// Code is the source, Command the other name for it. Empty means not given. The text
	// is as the model wrote it, byte for byte (SPEC 3.3).
	Code    string `json:"code"`
	Command string `json:"command"`
	// Language is as the model wrote it, known or not: Exec of package supervisor
	// refuses what is not supported. Empty means that none was given.
	Language string `json:"language,omitempty"`
}

// ParseExec reads the model's arguments for exec: a JSON object with code, command and
// language, each a string; null is as good as absent, which models take it for. Errors are
// *[Error] with the code [InvalidInput] and say what to write instead. Nothing has run then.
//
// A field that exec does not have is refused, though models invent some: code that was
// written in the belief that {"timeoutMs": 60000} or {"lang": "typescript"} is obeyed does
// something else without it, and the error costs one turn.
//
// Where the config allows TypeScript alone, that is the language of a cell that names none.
func ParseExec(arguments []byte, l limits.Languages) (ExecInput, error) {
	fields, err := readArguments(ExecName, arguments, "code", "command", "language")
	if err != nil {
		return ExecInput{}, err
	}
	in := ExecInput{fields["code"], fields["command"], fields["language"]}
	if in.Language == "" && l == limits.TypeScript {
		in.Language = "typescript"
	}
	return in, nil
}

// ParseWait reads the model's arguments for wait, a JSON object with runId, and returns that:
// it is not blank, and need not be the id of any run. Errors are as those of [ParseExec].
func ParseWait(arguments []byte) (runID string, err error) {
	const most = 200 // ours have 32 characters
	fields, err := readArguments(WaitName, arguments, "runId")
	if err != nil {
		return "", err
	}
	runID = fields["runId"]
	switch {
	case strings.TrimSpace(runID) == "":
		return "", invalidInput(`wait needs the runId of a result whose status was "waiting": {"runId": "…"}`)
	case len(runID) > most:
		return "", invalidInput(`the runId of wait has %d bytes and is none that exec gave; pass the runId of a result whose status was "waiting"`, len(runID))
	}
	return runID, nil
}

// readArguments returns the text of each known argument that is there.
func readArguments(tool string, arguments []byte, known ...string) (map[string]string, error) {
	if len(bytes.TrimSpace(arguments)) == 0 { // a model that called without arguments
		arguments = []byte("{}")
	}
	v, err := readJSON(arguments, argumentBounds)
	if err != nil {
		return nil, invalidInput("the arguments of %s cannot be read: %v; send one JSON object with %s", tool, err, listing(known))
	}
	if v.Kind != json5.Object {
		return nil, invalidInput("the arguments of %s are of type %s; send one JSON object with %s", tool, v.Kind, listing(known))
	}
	if m, nearest := v.Unknown(known); m != nil {
		hint := ""
		if nearest != "" {
			hint = fmt.Sprintf(" (did you mean %q?)", nearest)
		}
		return nil, invalidInput("%s has no argument %s%s; it takes %s", tool, quote(m.Key), hint, listing(known))
	}
	fields := map[string]string{}
	for i := range v.Members {
		m := &v.Members[i]
		if m.Value.Kind == json5.Null {
			continue
		}
		if m.Value.Kind != json5.String {
			return nil, invalidInput("the argument %s of %s is of type %s; it must be a string", m.Key, tool, m.Value.Kind)
		}
		if !utf8.ValidString(m.Value.Text) { // WTF-8: the text has a \ud800 that is half a character
			return nil, invalidInput(`the argument %s of %s has half of a surrogate pair, which is no character; in the source write it as an escape ("\\ud800" in JSON)`, m.Key, tool)
		}
		fields[m.Key] = m.Value.Text
	}
	return fields, nil
}

func listing(names []string) string { return strings.Join(names, ", ") }

// Mirror copies the source to the name that has none, so that a hook that looks at one of the
// names sees it (SPEC 2.7). Blank counts as not given, as in SPEC 3.1. An *[Error]
// says that both are blank, or differ.
func (in ExecInput) Mirror() (ExecInput, error) {
	code, command := !blank(in.Code), !blank(in.Command)
	switch {
	case !code && !command:
		return in, invalidInput("exec needs the program's source in code, and it is empty")
	case code && command && in.Code != in.Command:
		return in, invalidInput("code and command are two names for the same source and must be equal; give only code")
	case code:
		in.Command = in.Code
	default:
		in.Code = in.Command
	}
	return in, nil
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// Rewrite is what a hook changed. Nil means that it left the field alone.
type Rewrite struct {
	Code, Command, Language *string
}

// ParseRewrite reads a hook's rewrite: a JSON object with those of code, command and
// language that the hook wants to have changed, or all of them. A field that is absent is
// left alone; null blanks it. Other fields are refused: the call cannot obey them.
func ParseRewrite(rewrite []byte) (Rewrite, error) {
	fail := func(format string, args ...any) (Rewrite, error) {
		return Rewrite{}, invalidInput("the before-tool hook rewrote exec to what cannot be run: "+format, args...)
	}
	v, err := readJSON(rewrite, argumentBounds)
	if err != nil {
		return fail("%v", err)
	}
	if v.Kind != json5.Object {
		return fail("its parameters are of type %s, not an object", v.Kind)
	}
	var w Rewrite
	targets := map[string]**string{"code": &w.Code, "command": &w.Command, "language": &w.Language}
	for i := range v.Members {
		m := &v.Members[i]
		target := targets[m.Key]
		switch {
		case target == nil:
			return fail("exec has no parameter %s", quote(m.Key))
		case m.Value.Kind == json5.Null:
			*target = new(string)
		case m.Value.Kind == json5.String && utf8.ValidString(m.Value.Text):
			*target = &m.Value.Text
		default:
			return fail("%s is no text", m.Key)
		}
	}
	return w, nil
}

// Reconcile applies a hook's rewrite to what the hook was shown, the result of
// [ExecInput.Mirror] (SPEC 2.7). If it changed one of code and command, the other follows; if
// it changed both, differently, or blanked one, the call fails with an *[Error] whose code is
// [InvalidInput]: nobody knows which source the hook let through.
func (in ExecInput) Reconcile(w Rewrite) (ExecInput, error) {
	code, command := apply(in.Code, w.Code), apply(in.Command, w.Command)
	switch {
	case blank(code) || blank(command):
		return in, invalidInput("a before-tool hook blanked the source of this exec, so it was not run")
	case code != in.Code && command != in.Command && code != command:
		return in, invalidInput("a before-tool hook rewrote code and command of this exec differently, so it was not run; the hook must rewrite one, or both alike")
	case code != in.Code:
		command = code
	default:
		code = command
	}
	return ExecInput{code, command, apply(in.Language, w.Language)}, nil
}

func apply(old string, rewritten *string) string {
	if rewritten == nil {
		return old
	}
	return *rewritten
}

// Identity is who makes a call. It has the fields of supervisor.Scope and converts
// from it: surface.Identity(scope).
type Identity struct {
	AgentID    string `json:"agentId,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	SessionKey string `json:"sessionKey,omitempty"`
	AgentRunID string `json:"agentRunId,omitempty"`
	Sender     string `json:"sender,omitempty"`
	Channel    string `json:"channel,omitempty"`
}

// ToolKind is what tells an exec of code mode from a shell tool that is called exec.
const ToolKind = "code_mode_exec"

// HookEvent is what the gateway's before-tool hook gets before a tool is started: the exec
// of the model (SPEC 2.7), and each nested call (SPEC 10.1).
type HookEvent struct {
	ToolName   string `json:"toolName"`             // "exec", or the nested tool's own name
	ToolKind   string `json:"toolKind,omitempty"`   // [ToolKind]; absent of a nested call
	ToolCallID string `json:"toolCallId,omitempty"` // the model's, or the nested call's
	// ToolInputKind is, of an exec, "javascript" or "typescript", and absent if the language is
	// neither. No language is JavaScript; a Markdown fence that says otherwise is read later, in
	// the worker.
	ToolInputKind string `json:"toolInputKind,omitempty"`
	// Params are the input, JSON: of an exec an object with code, command and perhaps
	// language, of a nested call what the tool would get, checked against its schema.
	Params json.RawMessage `json:"params"`

	RunID string `json:"runId,omitempty"`
	// Of a nested call: the exec call of the model that it belongs to, also after a resume;
	// the tool's exact catalog id; where the tool comes from.
	ParentCallID string         `json:"parentToolCallId,omitempty"`
	ToolID       string         `json:"toolId,omitempty"`
	Source       catalog.Source `json:"source,omitempty"`
	SourceName   string         `json:"sourceName,omitempty"`
	Identity
}

// Verdict is what a before-tool hook says of a call. The zero value lets it through as it is.
type Verdict struct {
	// Block refuses the call: nothing is started. Reason is told to the cell, or to the model.
	Block  bool   `json:"block,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Params, if not nil, replace the input: of an exec as [ParseRewrite] and
	// [ExecInput.Reconcile] have it; of a nested call as a whole, checked again.
	Params json.RawMessage `json:"params,omitempty"`
	// Approve asks for an approval first, also where policy asks for none.
	Approve bool `json:"approve,omitempty"`
}

// Event makes the event of an exec. in must have been mirrored.
func (in ExecInput) Event(callID string, who Identity) HookEvent {
	e := HookEvent{ToolName: ExecName, ToolKind: ToolKind, ToolCallID: callID, Params: encode(in), Identity: who}
	switch in.Language {
	case "", "javascript":
		e.ToolInputKind = "javascript"
	case "typescript":
		e.ToolInputKind = "typescript"
	}
	return e
}

// JSON returns the event as JSON; the source in it is not escaped for HTML.
func (e HookEvent) JSON() json.RawMessage { return encode(e) }
