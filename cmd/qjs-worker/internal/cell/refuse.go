package cell

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

// Codes of the errors of this package, as in SPEC 11.2.
const (
	CodeInvalidInput = "invalid_input"
	CodeLanguage     = "unsupported_language"
	CodeTransform    = "typescript_transform_failed"
	CodeModule       = "module_access_denied"
	CodeTimeout      = "timeout"
	CodeMemoryLimit  = "memory_limit_exceeded"
	CodeInternal     = "internal_error"
)

// Error says why a source is no program. Nothing of it has run.
type Error struct {
	Code    string // SPEC 11.2
	Message string // for the model: what, where, an excerpt, what next

	// Line and Column count from 1 in what the model wrote, as [Positions] counts.
	// 0 if the fault has no place.
	Line, Column int

	// Shell marks a source that is plainly a shell command, so that who knows the
	// catalog can add which tool runs those (SPEC 3.4).
	Shell bool
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// refuse turns a finding of the parser's into the cell's error.
func (s *source) refuse(f *finding) *Error {
	switch f.Kind {
	case "deep":
		return tooDeep()
	case "module":
		return s.moduleError(f.Message, s.place(newUnits(s.js).offset(f.Pos)))
	default:
		at := newUnits(s.js).offset(f.Pos)
		e := s.orShell(syntaxError(CodeInvalidInput, f.Message, s.whole, s.place(at)))
		if hint := s.hint(at); hint != "" && !e.Shell {
			e.Message += "\n" + hint
		}
		return e
	}
}

// What stands before a place where JavaScript ends and TypeScript goes on.
var (
	typeScriptBefore = pattern(`[\w)\]?]\s*$`)
	typeScriptWord   = pattern(`^(?:as|satisfies)\s`)
	wordBefore       = pattern(`\b(?:interface|type|namespace|declare|abstract|as|satisfies|implements|readonly|public|private|protected)\s+$`)
)

// oneFence tells how code may be fenced.
const oneFence = "Send the code alone, or inside of exactly one code fence with nothing around it."

// refuseFence refuses a source that begins with a fence which is not one around
// JavaScript or TypeScript. It could be parsed: three backticks are an empty template
// that tags another one. But it could only ever throw.
func (s *source) refuseFence(tag string) *Error {
	switch tag {
	case "sh", "bash", "zsh", "shell", "console", "shell-session", "sh-session":
		return shellError(nil)
	case "":
		return errorAt(CodeInvalidInput, "SyntaxError: a code fence is not JavaScript. "+oneFence, s.whole, strings.Index(s.whole, "```"))
	default:
		return &Error{Code: CodeInvalidInput, Message: fmt.Sprintf("the code fence is marked %q: mark it js or ts, or send the code alone", clip(printable(tag), maxFunction))}
	}
}

// hint guesses why JavaScript was rejected at an offset.
func (s *source) hint(at int) string {
	rest := s.js[at:]
	switch {
	case s.at == 0 && strings.HasPrefix(strings.TrimLeft(s.whole, blank), "~~~"):
		return oneFence
	case s.language != JavaScript:
		return ""
	case typeScriptWord().MatchString(rest),
		strings.HasPrefix(rest, "enum ") || strings.HasPrefix(rest, "@"),
		strings.HasPrefix(rest, ":") && typeScriptBefore().MatchString(s.js[max(0, at-40):at]),
		wordBefore().MatchString(s.js[max(0, at-40):at]) && !strings.HasPrefix(rest, "="):
		return "If this is TypeScript, say so with language: \"typescript\"."
	}
	return ""
}

// orShell gives e, or what is more helpful if the rejected source is a shell command.
func (s *source) orShell(e *Error) *Error {
	if s.shell() {
		return shellError(e)
	}
	return e
}

// moduleError refuses module access at an offset in what the model wrote.
func (s *source) moduleError(what string, at int) *Error {
	e := errorAt(CodeModule, what+": a cell has no module loader", s.whole, at)
	e.Message += "\nUse tools.* instead (await tools.search(\"…\") finds tools). JavaScript's own built-ins need no import."
	return e
}

// EngineError makes the error of a failure to evaluate Code, which only defines a
// function: what acorn accepts and QuickJS does not.
func (prog *Program) EngineError(err error) *Error {
	var x *engine.Exception
	switch {
	case errors.Is(err, engine.ErrInterrupted), errors.Is(err, engine.ErrOutOfMemory), !errors.As(err, &x):
		return failure("compiled", err)
	case x.Name == "RangeError":
		return tooDeep()
	case x.Name != "SyntaxError":
		return failure("compiled", err)
	}
	message := clip(x.Message, maxMessage)
	frames := prog.Frames(x.Stack)
	if len(frames) == 0 {
		return &Error{Code: CodeInvalidInput, Message: "SyntaxError: " + message}
	}
	e := &Error{Code: CodeInvalidInput, Line: frames[0].Line, Column: frames[0].Column}
	e.Message = fmt.Sprintf("SyntaxError: %s (%d:%d)\n%s", message, e.Line, e.Column, excerpt(prog.source, e.Line, e.Column))
	return e
}

func tooDeep() *Error {
	return &Error{Code: CodeInvalidInput, Message: "the source is nested too deeply: use fewer brackets, functions or else-ifs inside of each other"}
}

// failure turns an error of a VM, while a source was parsed or compiled, into the cell's.
func failure(doing string, err error) *Error {
	switch {
	case errors.Is(err, engine.ErrInterrupted):
		return &Error{Code: CodeTimeout, Message: "the time ran out while the source was being " + doing + "; nothing was run"}
	case errors.Is(err, engine.ErrOutOfMemory):
		return &Error{Code: CodeMemoryLimit, Message: "the source is too large to be " + doing + " within the memory limit; send a smaller cell"}
	default:
		return &Error{Code: CodeInternal, Message: "the source could not be " + doing + ": " + clip(err.Error(), maxMessage)}
	}
}

// pattern is a regular expression that is compiled when it is needed: a worker's start does
// not wait for what most cells do not need.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
