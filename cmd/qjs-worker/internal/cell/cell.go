// Package cell turns what the model wrote into a program that the engine can run.
//
// The default way to use it, in the worker:
//
//	p, err := cell.NewParser(mod, image)           // image: BuildImage, at build time
//	defer p.Close()
//	prog, fault := p.Prepare(ctx, cell.Input{Source: src})
//	f, err := guest.Eval(prog.Code, cell.File, engine.Script) // an async function …
//	promise, err := guest.Call(f)                             // … the cell's value
//
// [Parser.Prepare] takes a Markdown fence off, transforms TypeScript, has acorn judge
// the syntax, refuses module access, finds the form of the cell and wraps it. Acorn
// runs in a QuickJS VM of the parser's own, so guest code can never meet it; nothing
// of the source is evaluated there. [Program.Frames] and [FormatError] bring positions
// in errors back to what the model wrote, through [Positions], which outlives the
// process in a snapshot.
//
// The module check is for a good message. It does not protect: the engine has no
// module loader (SPEC 5.3). Against a TypeScript source that overflows the
// transformer's stack only the process border helps; see [Input.Transforming].
package cell

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"
)

// File is the file name under which the engine must evaluate [Program.Code]: stack
// frames of another file are not the cell's.
const File = "cell.js"

// Language is what a cell is written in.
type Language string

// The languages.
const (
	JavaScript Language = "javascript"
	TypeScript Language = "typescript"
)

// Form says how a cell gives its value (SPEC 4.1).
type Form string

// The forms.
const (
	Statements Form = "statements"
	Expression Form = "expression"
	Function   Form = "function" // a lone function, which is called
)

// Input is one cell as it came.
type Input struct {
	Source string

	// Language is what the call said, "" if it said nothing: then a fence's tag
	// decides, and without one it is JavaScript.
	Language Language

	// Globals are names that the guest will have beyond the language's own, such as
	// those of namespaces: a source that begins with one is no shell command.
	Globals []string

	// Transforming, if not nil, is called right before TypeScript is transformed. A
	// hostile source can end the whole process there, which no recover stops: this is
	// the last chance to say what was going on.
	Transforming func()
}

// Program is a cell that can run.
type Program struct {
	// Code is a script whose value is an async function without parameters. The
	// promise that it returns is the cell's value. Evaluate it under the name [File].
	Code string

	Form     Form
	Fenced   bool
	Language Language

	// Positions maps the engine's positions to the model's. It is what a parked run
	// keeps of its program.
	Positions Positions

	source string // all that the model wrote, for excerpts
}

// Frames is [Positions.Frames] of the program's positions.
func (prog *Program) Frames(stack string) []Frame { return prog.Positions.Frames(stack) }

// The wrapper. It stands on lines of its own: a line comment at the end of the source
// cannot swallow it, and columns of the source stay what they are. An arrow, so that
// this, arguments and new.target mean what they mean in a script.
const (
	wrapperOpen  = "(async (__codemode_value) => {\n" // analyze.js assigns the parameter
	wrapperClose = "\n})"
)

// maxSource bounds a source in bytes: offsets are 32-bit here, and no tree of a larger
// source fits into [MaxParserMemory].
const maxSource = 64 << 20

// Prepare turns a source into a program. The context's deadline and end stop it, also
// in the middle of the parser; TypeScript's transform alone runs to its end (about
// 1 ms for 10 KB). The error is one of the codes above.
func (p *Parser) Prepare(ctx context.Context, in Input) (*Program, *Error) {
	if len(in.Source) > maxSource {
		return nil, &Error{Code: CodeInvalidInput, Message: fmt.Sprintf("the source has %d bytes, at most %d can be parsed", len(in.Source), maxSource)}
	}
	if i := invalidUTF8(in.Source); i >= 0 {
		return nil, &Error{Code: CodeInvalidInput, Message: fmt.Sprintf("the source is not valid UTF-8 at byte %d", i)}
	}
	prog := &Program{Language: in.Language, source: in.Source}
	s := &source{parser: p, ctx: ctx, in: in, whole: in.Source, body: in.Source}
	f, ok := findFence(in.Source)
	tagged, known := languages[f.tag]
	if ok && known {
		prog.Fenced, s.body, s.at = true, f.body, f.at
		if prog.Language == "" {
			prog.Language = tagged
		}
	} else if ok {
		return nil, s.refuseFence(f.tag)
	} else if strings.HasPrefix(strings.TrimLeft(in.Source, blank), "```") {
		return nil, s.refuseFence("")
	}
	if prog.Language == "" {
		prog.Language = JavaScript
	}
	s.language = prog.Language
	switch s.language {
	case JavaScript:
		s.js, s.runs = s.body, []run{{0, 0, copied}}
	case TypeScript:
		if e := s.transform(); e != nil {
			return nil, e
		}
	default:
		return nil, &Error{Code: CodeLanguage, Message: fmt.Sprintf("the language %q is not supported: use %q or %q", prog.Language, JavaScript, TypeScript)}
	}
	facts, err := p.analyze(ctx, s.js, s.command() != "")
	if err != nil {
		return nil, failure("parsed", err)
	}
	if facts.Error != nil {
		return nil, s.refuse(facts.Error)
	}
	if facts.Bare && s.command() != "" {
		return nil, shellError(nil)
	}
	prog.Form = facts.Form
	prog.wrap(s, facts)
	return prog, nil
}

// source is one cell on its way through Prepare.
type source struct {
	parser *Parser
	ctx    context.Context
	in     Input
	whole  string // what the model wrote
	body   string // the part of it inside of the fence
	at     int    // where body begins in whole

	language Language
	js       string // body as JavaScript
	runs     []run  // js to body
}

// wrap makes Code and Positions out of the JavaScript and the edits that acorn's tree asked for.
func (prog *Program) wrap(s *source, facts *facts) {
	var code strings.Builder
	code.Grow(len(wrapperOpen) + len(s.js) + 64 + len(wrapperClose))
	runs := []run{{0, 0, ours}}
	code.WriteString(wrapperOpen)
	units := newUnits(s.js)
	type piece struct{ js, code int } // where a kept stretch of js starts in code
	var pieces []piece
	js := 0
	keep := func(to int) {
		if js == to {
			return
		}
		pieces = append(pieces, piece{js, code.Len()})
		runs = s.copyRuns(runs, code.Len(), js, to)
		code.WriteString(s.js[js:to])
		js = to
	}
	for _, e := range facts.Edits {
		keep(units.offset(e.At))
		if e.Insert != "" {
			text := int32(code.Len())
			if strings.HasPrefix(e.Insert, "__codemode_value") { // the statement's place is the expression's
				if next := s.copyRuns(nil, code.Len(), js, js+1); len(next) > 0 && next[0].kind != ours {
					runs = append(runs, run{text, next[0].src, point})
					text++
				}
			}
			runs = append(runs, run{text, 0, ours})
			code.WriteString(e.Insert)
		}
		js = units.offset(e.At + e.Remove)
	}
	keep(len(s.js))
	runs = append(runs, run{int32(code.Len()), 0, ours})
	code.WriteString(wrapperClose)
	prog.Code = code.String()

	breaks := make([]int, 0, len(facts.Breaks))
	units = newUnits(s.js)
	for _, b := range facts.Breaks {
		at := units.offset(b)
		for len(pieces) > 1 && pieces[1].js <= at {
			pieces = pieces[1:]
		}
		breaks = append(breaks, at-pieces[0].js+pieces[0].code)
	}
	prog.Positions = newPositions(prog.Code, s.whole, breaks, runs)
}

// copyRuns appends the runs of js[from:to], which is put at gen, to runs.
func (s *source) copyRuns(runs []run, gen, from, to int) []run {
	for i, r := range s.runs {
		start, end := int(r.gen), len(s.js)
		if i+1 < len(s.runs) {
			end = int(s.runs[i+1].gen)
		}
		if end <= from || start >= to {
			continue
		}
		src := int(r.src) + s.at
		if start < from {
			if r.kind == copied {
				src += from - start
			}
			start = from
		}
		runs = append(runs, run{int32(gen + start - from), int32(src), r.kind})
	}
	return runs
}

// place gives the offset in what the model wrote of an offset in the JavaScript. Text
// that is not the model's stands where the model's goes on.
func (s *source) place(js int) int {
	i := sort.Search(len(s.runs), func(i int) bool { return int(s.runs[i].gen) > js }) - 1
	for i >= 0 && i < len(s.runs) && s.runs[i].kind == ours {
		i++
	}
	if i < 0 || i == len(s.runs) {
		return s.at + len(s.body)
	}
	at := s.at + int(s.runs[i].src)
	if s.runs[i].kind == copied {
		at += max(0, js-int(s.runs[i].gen))
	}
	return min(at, s.at+len(s.body))
}

// units converts positions of JavaScript (UTF-16 units) to bytes. They must come in
// ascending order; a position outside of the text is its end.
type units struct {
	s        string
	at, unit int
}

func newUnits(s string) *units { return &units{s: s} }

func (u *units) offset(unit int) int {
	for u.unit < unit && u.at < len(u.s) {
		if u.s[u.at] < utf8.RuneSelf {
			u.at++
			u.unit++
			continue
		}
		r, n := utf8.DecodeRuneInString(u.s[u.at:])
		u.at += n
		u.unit++
		if r > 0xffff {
			u.unit++
		}
	}
	return u.at
}

func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return i
			}
		}
	}
	return -1
}
