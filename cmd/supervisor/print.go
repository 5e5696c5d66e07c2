package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/openclaw/codemode-supervisor/supervisor"
	"golang.org/x/term"
)

// printer prints what a cell says. On a terminal it takes the power out of control
// characters: the text is a stranger's.
type printer struct {
	w   io.Writer
	tty bool
}

func newPrinter(w io.Writer) *printer {
	if o, ok := w.(*output); ok {
		return &printer{w, newPrinter(o.w).tty}
	}
	file, ok := w.(*os.File)
	return &printer{w, ok && term.IsTerminal(int(file.Fd()))}
}

// item prints an output item, a line each.
func (p *printer) item(i supervisor.Item) {
	fmt.Fprintln(p.w, p.clean(i.Text()))
}

// value prints the value: a string as it is, anything else as JSON, null not at all.
func (p *printer) value(v json.RawMessage) {
	if string(v) == "null" {
		return
	}
	text := string(v)
	var s string
	if json.Unmarshal(v, &s) == nil {
		text = s
	}
	fmt.Fprintln(p.w, p.clean(text))
}

func (p *printer) clean(s string) string {
	if !p.tty {
		return s
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// printJSON prints v as one line.
func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.stdout)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
