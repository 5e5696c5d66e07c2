package view

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// What a page holds at most, so that a browser can open it.
const (
	maxRows    = 20_000   // of all runs
	maxBody    = 64 << 10 // bytes of one content
	maxBodies  = 16 << 20 // bytes of all of them
	maxOutline = 2_000    // bars of a run's outline
	maxSteps   = 100      // of one kind that a call unfolds to
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

var pageTemplate = template.Must(template.New("page").Parse(pageHTML))

// policy is the page's Content-Security-Policy: its own style and its own script, by
// their hashes, and nothing else from anywhere.
func policy() string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; style-src " + hash(pageCSS) + "; script-src " + hash(pageJS) + "; base-uri 'none'; form-action 'none'"
}

// HTML writes one page that needs nothing else: for each run a waterfall of its legs,
// calls, parks, kills and outputs, with details to unfold. name is shown as its title.
// Without script it lacks the filter and the arrow keys. What a page cannot hold is
// counted in it; [trajectory.Tree] as JSON has everything.
func HTML(w io.Writer, t *trajectory.Tree, name string) error {
	b := &builder{rows: maxRows, bodies: maxBodies}
	p := page{
		Policy: policy(), CSS: template.CSS(pageCSS), JS: template.JS(pageJS),
		Name: printable(clip(name, 200), ""), Tree: t,
		Count: count(t.Events, "event") + ", " + count(len(t.Runs), "run"),
	}
	for _, r := range t.Runs {
		if b.rows <= 0 {
			p.RunsLeft++
			continue
		}
		p.Runs = append(p.Runs, b.run(r))
	}
	p.RowsLeft = b.left
	out := bufio.NewWriter(w)
	if err := pageTemplate.Execute(out, p); err != nil {
		return err
	}
	return out.Flush()
}

// page is what the template gets.
type page struct {
	Policy   string
	CSS      template.CSS
	JS       template.JS
	Name     string
	Count    string
	Tree     *trajectory.Tree
	Runs     []*section
	RowsLeft int
	RunsLeft int
}

// section is a run.
type section struct {
	ID, Exec, State, Code string
	Took, Summary, Began  string
	Short                 bool // pauses are drawn shorter than they were
	Ticks                 []tick
	Outline               []bar
	Lanes                 int
	Legs                  []legRows
}

type tick struct{ X, Text string }

// bar is a part of the time axis: X and W are of 1000.
type bar struct {
	Class      string
	X, W, Y, H string
	Title      string
}

// legRows are a leg and what it did.
type legRows struct {
	Rows []row
	Left int
}

// row is a line of the waterfall, with what it unfolds to.
type row struct {
	Class  string // see page.css
	Label  string
	State  string
	At     string
	Took   string
	Brief  string
	Bar    bar
	Fields []field
}

type field struct {
	Name, Text string
	Body       bool // Text is a content
}

// builder makes the page's rows, within its bounds.
type builder struct {
	rows   int // there is room for
	left   int // for which there was none
	bodies int // bytes of contents that there is room for
}

func (b *builder) run(r *trajectory.Run) *section {
	axis := newAxis(r)
	s := &section{
		ID: r.RunID, Exec: r.ExecID, State: string(r.State), Code: r.Code, Took: duration(r.Duration()), Summary: summary(r),
		Began: r.Began.UTC().Format("2006-01-02 15:04:05.000 UTC"), Short: axis.short, Ticks: axis.ticks(r),
	}
	s.Outline, s.Lanes = outline(r, axis)
	for n, leg := range r.Legs {
		if n > 0 && b.rows <= 0 {
			b.left += 1 + len(leg.Items)
			continue
		}
		s.Legs = append(s.Legs, b.leg(r, n, leg, axis))
	}
	if n := len(s.Legs); over(r) {
		s.Legs[n-1].Rows = append(s.Legs[n-1].Rows, b.end(r, axis))
	}
	return s
}

func (b *builder) leg(r *trajectory.Run, n int, leg *trajectory.Leg, axis *axis) (rows legRows) {
	head := row{
		Class: "leg", Label: "leg " + strconv.Itoa(n+1), State: ending(leg), At: offset(r, leg.Began), Took: duration(leg.Duration()),
		Brief: starting(r, n), Bar: axis.bar("leg", leg.Began, leg.Ended),
		Fields: []field{{Name: "Began", Text: clock(leg.Began)}, {Name: "Ended", Text: clock(leg.Ended)}, {Name: "End", Text: ending(leg)}},
	}
	if n == 0 {
		head.Fields = b.content(head.Fields, "Source", r.Source)
	}
	b.rows -= 2 // it, and the pause after it
	rows.Rows = append(rows.Rows, head)
	for _, item := range leg.Items {
		if b.rows <= 0 {
			b.left++
			rows.Left++
			continue
		}
		b.rows--
		rows.Rows = append(rows.Rows, b.item(r, item, axis))
	}
	if from, to, what := gap(r, n); what != "" {
		rows.Rows = append(rows.Rows, row{
			Class: what, Label: what, Brief: gapText(what, over(r) || n+1 < len(r.Legs)), At: offset(r, from), Took: duration(max(0, to.Sub(from))), Bar: axis.bar(what, from, to),
			Fields: []field{{Name: "From", Text: clock(from)}, {Name: "To", Text: clock(to)}, {Name: "Reason", Text: leg.Reason}},
		})
	}
	return rows
}

func (b *builder) item(r *trajectory.Run, item *trajectory.Item, axis *axis) row {
	if item.Call != nil {
		return b.call(r, item.Call, axis)
	}
	out := row{
		Class: "note", Label: string(item.Kind), State: item.Status, At: offset(r, item.Time), Brief: brief(item.Data), Bar: axis.bar("note", item.Time, item.Time),
		Fields: []field{{Name: "Time", Text: clock(item.Time)}},
	}
	switch {
	case item.Status == trajectory.Denied:
		out.Class, out.Label, out.Bar.Class = "denied", item.ToolID, "denied"
	case item.Kind == trajectory.Output:
		out.Class, out.Label, out.State, out.Bar.Class = "output", "output "+item.Status, "", "output"
	case item.Kind == trajectory.Yield:
		out.Class, out.Bar.Class = "yield", "yield"
	}
	out.Took = sizeOf(item.Data)
	if item.Data == nil {
		out.Took = ""
	}
	out.Fields = b.content(out.Fields, "Content", item.Data)
	return out
}

func (b *builder) call(r *trajectory.Run, c *trajectory.Call, axis *axis) row {
	class := string(c.State)
	ended := c.Ended
	if ended.IsZero() {
		ended = r.Ended
	}
	out := row{
		Class: class, Label: c.ToolID, State: string(c.State), At: offset(r, c.Began), Took: duration(span(c.Began, ended)), Brief: join(callNote(c), stepsNote(c)),
		Bar: axis.bar(class, c.Began, ended),
		Fields: []field{
			{Name: "Tool", Text: c.ToolID}, {Name: "Call", Text: c.ID}, {Name: "Parent", Text: r.ExecID}, {Name: "Sent", Text: strconv.Itoa(c.Sends) + "×"},
			{Name: "Began", Text: clock(c.Began)}, {Name: "Ended", Text: clock(c.Ended)}, {Name: "Code", Text: c.Code},
		},
	}
	if len(c.Denied) > 0 {
		out.Label = c.Denied[0]
	}
	for i, id := range c.Denied {
		if i == 20 {
			out.Fields = append(out.Fields, field{Name: "Denied", Text: count(len(c.Denied)-i, "other tool")})
			break
		}
		out.Fields = append(out.Fields, field{Name: "Denied", Text: id})
	}
	out.Fields = b.steps(out.Fields, c)
	out.Fields = b.content(out.Fields, "Input", c.Input)
	out.Fields = b.content(out.Fields, "Result", c.Result)
	out.Fields = b.content(out.Fields, "Error", c.Error)
	return out
}

// steps adds what hooks, approvals and updates are known of a call.
func (b *builder) steps(fields []field, c *trajectory.Call) []field {
	shown, left := map[trajectory.Kind]int{}, 0
	for _, s := range c.Steps {
		if shown[s.Kind]++; shown[s.Kind] > maxSteps {
			left++
			continue
		}
		name, what := stepName(s.Kind), "Note"
		if s.Kind == trajectory.Update {
			what = "Content"
		}
		fields = append(fields, field{Name: name, Text: join(s.Status, clock(s.Time), "+"+duration(span(c.Began, s.Time)))})
		fields = b.content(fields, what, s.Data)
	}
	if left > 0 {
		fields = append(fields, field{Name: "Left out", Text: count(left, "step")})
	}
	return fields
}

func stepName(k trajectory.Kind) string {
	switch k {
	case trajectory.Hook:
		return "Hook"
	case trajectory.Approval:
		return "Approval"
	}
	return "Update"
}

// join puts the parts that there are into one text.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

func (b *builder) end(r *trajectory.Run, axis *axis) row {
	out := row{
		Class: string(r.State), Label: "end", State: string(r.State), At: offset(r, r.Ended), Brief: r.Code, Bar: axis.bar(string(r.State), r.Ended, r.Ended),
		Fields: []field{{Name: "Time", Text: clock(r.Ended)}, {Name: "Code", Text: r.Code}},
	}
	out.Fields = b.content(out.Fields, "Value", r.Value)
	out.Fields = b.content(out.Fields, "Error", r.Error)
	return out
}

// content adds what is known of a content.
func (b *builder) content(fields []field, name string, d *trajectory.Data) []field {
	if d == nil {
		return fields
	}
	fields = append(fields, field{Name: name, Text: size(d.Bytes) + ", SHA-256 " + d.SHA256})
	if len(d.Content) == 0 || b.bodies <= 0 {
		return fields
	}
	text := body(d, min(maxBody, b.bodies))
	b.bodies -= len(text)
	return append(fields, field{Text: text, Body: true})
}

func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("15:04:05.000000")
}
