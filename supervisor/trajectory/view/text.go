package view

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// The colours of a terminal.
const (
	plain  = ""
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	reset  = "\x1b[0m"
)

// Text draws the runs of a tree, a line an event: exec → legs → what the cell did. Lines
// are cut to a bounded length; colour is for a terminal.
func Text(w io.Writer, t *trajectory.Tree, colour bool) error {
	p := &pen{w: bufio.NewWriter(w), colour: colour}
	for i, r := range t.Runs {
		if i > 0 {
			p.line("")
		}
		p.run(r)
	}
	return p.w.Flush() // the first error of any write
}

// pen draws a tree.
type pen struct {
	w      *bufio.Writer
	colour bool
	indent []string // what stands before a line: a part for each level
}

func (p *pen) paint(code, s string) string {
	if !p.colour || code == plain || s == "" {
		return s
	}
	return code + s + reset
}

// line draws a line from its parts; the empty ones are left out.
func (p *pen) line(prefix string, parts ...string) {
	p.w.WriteString(prefix)
	space := ""
	for _, part := range parts {
		if part != "" {
			p.w.WriteString(space + part)
			space = "  "
		}
	}
	p.w.WriteByte('\n')
}

// node draws a child of what the pen is in, and, with deeper, what is below it.
func (p *pen) node(last bool, deeper func(), parts ...string) {
	branch, below := "├─ ", "│  "
	if last {
		branch, below = "└─ ", "   "
	}
	p.line(p.paint(dim, strings.Join(p.indent, "")+branch), parts...)
	if deeper != nil {
		p.indent = append(p.indent, below)
		deeper()
		p.indent = p.indent[:len(p.indent)-1]
	}
}

// stateColour is the colour of a state of a run or call.
func stateColour(state string) string {
	switch state {
	case "completed", "done":
		return green
	case "failed", "denied":
		return red
	case "waiting", "in_flight", "open":
		return yellow
	}
	return plain
}

func (p *pen) state(s string) string {
	return p.paint(stateColour(s), strings.ReplaceAll(s, "_", " "))
}

func (p *pen) run(r *trajectory.Run) {
	exec := r.ExecID
	if exec == "" {
		exec = "-"
	}
	p.line("", p.paint(bold, "exec "+exec), p.state(string(r.State)), p.paint(red, r.Code), duration(r.Duration()), p.paint(dim, "run "+r.RunID))
	ends := over(r)
	if r.Source != nil {
		p.node(false, nil, "source "+size(r.Source.Bytes), p.paint(dim, brief(r.Source)))
	}
	for n, leg := range r.Legs {
		from, to, what := gap(r, n)
		more := ends || n+1 < len(r.Legs)
		p.node(!more && what == "", func() { p.leg(r, leg) },
			p.paint(bold, "leg "+strconv.Itoa(n+1)), starting(r, n)+" "+offset(r, leg.Began), p.end(leg)+" after "+duration(leg.Duration()))
		if what != "" {
			took := duration(span(from, to))
			if !more {
				took = "" // nobody knows
			}
			p.node(!more, nil, p.paint(gapColour(what), gapText(what, more)), took)
		}
	}
	if ends {
		p.ended(r)
	}
}

func (p *pen) end(l *trajectory.Leg) string { return p.paint(gapColour(string(l.End)), ending(l)) }

func gapColour(what string) string {
	switch what {
	case "killed":
		return red
	case "parked", "left", "open":
		return yellow
	}
	return plain
}

// gapText says what the time between two legs was, or that nothing came after it.
func gapText(what string, more bool) string {
	switch {
	case what == "parked" && !more:
		return "still parked"
	case what == "parked":
		return "parked for"
	case what == "killed":
		return "its process was killed; another went on after"
	}
	return "its supervisor was closed; another went on after"
}

func (p *pen) leg(r *trajectory.Run, l *trajectory.Leg) {
	for i, item := range l.Items {
		at := p.paint(dim, offset(r, item.Time))
		parts := p.item(item)
		p.node(i == len(l.Items)-1, nil, append([]string{at}, parts...)...)
	}
}

// item gives the parts of an item's line.
func (p *pen) item(item *trajectory.Item) []string {
	if c := item.Call; c != nil {
		return p.call(c)
	}
	text := p.paint(dim, brief(item.Data))
	switch {
	case item.Kind == trajectory.Output:
		return []string{p.paint(cyan, item.Status), sizeOf(item.Data), text}
	case item.Status == trajectory.Denied:
		return []string{item.ToolID, p.state(trajectory.Denied)}
	case item.Kind == trajectory.Yield:
		return []string{p.paint(cyan, "yield"), text}
	}
	return []string{string(item.Kind), item.ToolID, item.Status, text}
}

func (p *pen) call(c *trajectory.Call) []string {
	id := c.ToolID
	if len(c.Denied) > 0 {
		id = c.Denied[0]
		if n := len(c.Denied) - 1; n > 0 {
			id += " and " + strconv.Itoa(n) + " more"
		}
	}
	took := ""
	if c.Sends > 0 && !c.Ended.IsZero() {
		took = duration(c.Duration())
	}
	data := ""
	switch {
	case c.State == trajectory.CallDone:
		data = sizeOf(c.Input) + " → " + sizeOf(c.Result)
	case c.Sends > 0:
		data = sizeOf(c.Input) + " →"
	}
	content := brief(c.Input)
	if after := brief(c.Result) + brief(c.Error); after != "" {
		content = strings.TrimSpace(content + " → " + after)
	}
	return []string{p.paint(bold, id), p.state(string(c.State)), p.paint(red, callNote(c)), p.paint(yellow, stepsNote(c)), took, data, p.paint(dim, content)}
}

func (p *pen) ended(r *trajectory.Run) {
	parts := []string{p.paint(bold, "end"), p.state(string(r.State)), p.paint(red, r.Code)}
	switch {
	case r.Value != nil:
		parts = append(parts, "value "+size(r.Value.Bytes), p.paint(dim, brief(r.Value)))
	case r.Error != nil:
		parts = append(parts, "error "+size(r.Error.Bytes), p.paint(dim, brief(r.Error)))
	}
	p.node(true, nil, append(parts, p.paint(dim, summary(r)))...)
}

// offset is the time since the run began, fine enough to tell the calls of a leg apart.
func offset(r *trajectory.Run, at time.Time) string {
	d := span(r.Began, at)
	if d < time.Second {
		return "+" + duration(d)
	}
	return "+" + d.Round(time.Millisecond).String()
}
