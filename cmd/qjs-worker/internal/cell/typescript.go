package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// transformStack bounds the Go stack while esbuild runs. Nested brackets in the source
// deepen it; past the bound the runtime ends the process, which nothing can catch. A
// small bound makes that quick and cheap: Go's default of 1 GiB takes seconds and all
// of the worker's memory. 64 MiB are far above what any real source needs.
const transformStack = 64 << 20

// transformed is what a transform made of a text: JavaScript and the runs that map it
// to that text, or the transformer's complaint.
type transformed struct {
	js   string
	runs []run
	err  *complaint
}

// complaint is a diagnostic at an offset of the text that was transformed.
type complaint struct {
	text string
	at   int
}

// transformFunc removes the types from a text. Tests put their own in place.
type transformFunc func(text string) (*transformed, error)

// esbuildTransform is the real one. It does not check types and resolves nothing. The
// syntax stays as new as it is, except for decorators, which QuickJS does not have.
func esbuildTransform(text string) (*transformed, error) {
	defer debug.SetMaxStack(debug.SetMaxStack(transformStack))
	r := api.Transform(text, api.TransformOptions{
		Loader:         api.LoaderTS,
		Target:         api.ESNext,
		Supported:      map[string]bool{"decorators": false},
		TsconfigRaw:    `{"compilerOptions":{"verbatimModuleSyntax":true}}`, // an unused import must stay, to be refused
		Charset:        api.CharsetUTF8,
		LegalComments:  api.LegalCommentsNone,
		Sourcefile:     "cell.ts",
		Sourcemap:      api.SourceMapExternal,
		SourcesContent: api.SourcesContentExclude,
		LogLevel:       api.LogLevelSilent,
		LogLimit:       1,
	})
	if len(r.Errors) > 0 {
		m := r.Errors[0]
		c := &complaint{text: m.Text, at: len(text)}
		if m.Location != nil {
			starts := lineStarts(text)
			c.at = min(starts[min(max(m.Location.Line, 1), len(starts))-1]+m.Location.Column, len(text))
		}
		return &transformed{err: c}, nil
	}
	var sourceMap struct{ Mappings string }
	if err := json.Unmarshal(r.Map, &sourceMap); err != nil {
		return nil, fmt.Errorf("reading the source map of the TypeScript transform: %w", err)
	}
	js := string(r.Code)
	runs, err := mapRuns(sourceMap.Mappings, js, text)
	if err != nil {
		return nil, err
	}
	return &transformed{js: js, runs: runs}, nil
}

// attempt is one way to put a body before the transformer: cells are no modules, and
// esbuild takes a top-level return and a top-level await only inside of a function.
// What comes out is JavaScript of the same form, which acorn judges as if the model had
// written it. A body that closes the wrapper's brace and opens another one comes out
// unbalanced and fails there.
type attempt struct {
	open, close string
	unwrap      func(js string) (from, to int, ok bool)
}

var (
	asStatements = attempt{"(async () => {\n", "\n})", func(js string) (int, int, bool) {
		const open, end = "(async () => {\n", "});\n"
		// esbuild may put helpers in front, at the start of lines. They stay: it has
		// renamed whatever in the source would have collided with them.
		from := strings.Index("\n"+js, "\n"+open)
		return from, len(js) - len(end), from >= 0 && strings.HasSuffix(js, end) && from+len(open) <= len(js)-len(end)
	}}
	// An object literal or a function without a name, which no statement can begin with.
	asExpression = attempt{"export default\n", "", whole}
	// With an export default of its own, or with a namespace, which may stand at the top
	// level of a file only. There a return and an await exclude each other.
	asModule = attempt{"", "", whole}
)

func whole(js string) (int, int, bool) { return 0, len(js), true }

// transform sets s.js and s.runs for a TypeScript cell.
func (s *source) transform() *Error {
	// Types are erased, and imports of types with them: look before.
	facts := new(facts)
	if strings.Contains(s.body, "import") || strings.Contains(s.body, "export") {
		var err error
		if facts, err = s.parser.scan(s.ctx, s.body); err != nil {
			return failure("parsed", err)
		}
		if facts.Error != nil {
			return tooDeep()
		}
	}
	if facts.Module != nil {
		return s.moduleError(facts.Module.Message, s.at+newUnits(s.body).offset(facts.Module.Pos))
	}
	attempts := []attempt{asStatements}
	switch first := firstToken().FindString(s.body); {
	case facts.ExportDefault:
		attempts = []attempt{asModule}
	case strings.HasSuffix(first, "{"):
		attempts = []attempt{asExpression, asStatements}
	case first != "":
		attempts = []attempt{asStatements, asExpression}
	case namespace().MatchString(s.body):
		attempts = []attempt{asStatements, asModule}
	}
	if s.in.Transforming != nil {
		s.in.Transforming()
	}
	var worst *complaint
	for _, a := range attempts {
		c, err := s.try(a)
		if err != nil {
			return failure("transformed", err)
		}
		if c == nil {
			return nil
		}
		if worst == nil || c.at > worst.at { // the reading that got further is what was meant
			worst = c
		}
	}
	if strings.HasPrefix(worst.text, "Top-level return cannot be used") {
		worst.text = "a cell with a namespace cannot have both return and await at the top level: end it with the value as an expression instead"
	}
	rest := s.body[worst.at:]
	if declaration().MatchString(s.body[:worst.at]) || reexport().MatchString(rest) {
		return s.moduleError("import and export declarations do not work here", s.at+worst.at)
	}
	e := s.orShell(errorAt(CodeTransform, "TypeScript: "+worst.text, s.whole, s.at+worst.at))
	if strings.HasPrefix(rest, "export") {
		e.Message += "\n'export' works in a cell only as one 'export default' at the top level; return the value instead"
	}
	return e
}

var (
	// What may begin an expression that is no statement.
	firstToken = pattern(`^(?:[\s\x{feff}]|//[^\r\n]*|/\*(?s:.*?)\*/)*(?:\{|(?:async\s+)?function\b|class\b)`)
	namespace  = pattern(`\b(?:namespace|module|global)\b`)
	// esbuild complains about the token behind an import that is not at a module's top level.
	declaration = pattern(`(?:^|[\s;}])import(?:\s+type)?\s+$`)
	reexport    = pattern(`^export\s+(?:type\s+)?(?:\*|\{[^{}]*\}\s*from\b)`)
)

// try transforms the body in one way. The complaint is nil if s.js and s.runs are set;
// its offset is in the body.
func (s *source) try(a attempt) (*complaint, error) {
	body := s.body
	if a.open == asExpression.open {
		// export default takes one semicolon itself; a second one would be a statement.
		body = strings.TrimRight(body, "; \t\r\n")
	}
	if strings.HasPrefix(body, "#!") {
		body = "//" + body[2:] // behind the wrapper it is not at the start any more
	}
	t, err := s.parser.transform(a.open + body + a.close)
	if err != nil {
		return nil, err
	}
	if t.err != nil {
		c := complaint{t.err.text, max(t.err.at-len(a.open), 0)}
		if c.at > len(body) {
			c = complaint{"Unexpected end of input", len(body)} // it speaks of our wrapper there
		}
		return &c, nil
	}
	from, to, ok := a.unwrap(t.js)
	if !ok {
		return &complaint{errUnbalanced.Error(), len(body)}, nil
	}
	s.js, s.runs = cutWrapper(t, from, to, len(a.open), len(body))
	return nil, nil
}

var errUnbalanced = errors.New("a closing brace has no opening one")

// cutWrapper takes the wrapper's first line at from, and what is behind to, out of a
// transform's output, and moves the runs along. src says where the body was in the
// input: at offset open, of size bytes.
func cutWrapper(t *transformed, from, to, open, size int) (string, []run) {
	head := 0
	if to < len(t.js) {
		head = len(asStatements.open)
	}
	var runs []run
	for _, r := range t.runs {
		gen := int(r.gen)
		switch {
		case gen >= to:
			continue
		case gen >= from+head:
			gen -= head
		case gen > from:
			gen = from // inside of the wrapper's line: the next run covers it
		}
		r.gen = int32(gen)
		if src := int(r.src) - open; r.kind != ours {
			if src < 0 || src > size {
				r = run{r.gen, 0, ours} // the wrapper itself
			} else {
				r.src = int32(src)
			}
		}
		if n := len(runs); n > 0 && runs[n-1].gen == r.gen {
			runs[n-1] = r
		} else {
			runs = append(runs, r)
		}
	}
	return t.js[:from] + t.js[from+head:to], runs
}
