package declare

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

// declaration is one function with its types.
type declaration struct {
	*Method
	schema  *jsontree.Node // of the input; nil: any object
	input   *node
	output  *node
	aliases []*alias // that get names, in the order of the file
	mcp     bool     // the output is inside a Result
	short   bool
}

func newDeclaration(m *Method, nodes int) *declaration {
	d := &declaration{Method: m, input: anyObject, output: anything, short: nodes < maxNodes}
	if _, ok := operations[m.Kind]; ok {
		return d
	}
	if d.schema = parseSome(m.Input); d.schema != nil {
		d.input = build(d.schema, true, nodes)
	}
	if root := parseSome(m.Output); root != nil {
		d.output = build(root, false, nodes)
	}
	d.aliases = namedAliases(d.output, namedAliases(d.input, nil))
	return d
}

func parseSome(schema json.RawMessage) *jsontree.Node {
	if len(schema) == 0 {
		return nil
	}
	return parse(schema)
}

// nameAliases names the aliases, with names that are not in taken, and adds them there.
func (d *declaration) nameAliases(prefix, suffix string, taken map[string]bool) (given []string) {
	for _, a := range d.aliases {
		base := prefix + pascal(cut(a.label, 60))
		if first, _ := utf8.DecodeRuneInString(base); !unicode.IsLetter(first) {
			base = "T" + base
		}
		a.name = base + suffix
		for i := 2; taken[a.name]; i++ {
			a.name = base + strconv.Itoa(i) + suffix
		}
		taken[a.name] = true
		given = append(given, a.name)
	}
	return given
}

// write writes the types that have names, the comment, and the function. head is what
// stands in front of the parameter.
func (d *declaration) write(p *printer, function, head string, indent int) {
	d.writeAliases(p, indent)
	d.writeFunction(p, function, head, indent)
}

func (d *declaration) writeAliases(p *printer, indent int) {
	margin := strings.Repeat(" ", indent)
	for _, a := range d.aliases {
		p.str(margin, "type ", a.name, " = ")
		p.node(a.node, indent)
		p.str(";\n")
	}
}

func (d *declaration) writeFunction(p *printer, function, head string, indent int) {
	margin := strings.Repeat(" ", indent)
	d.writeComment(p, function, margin)
	p.str(margin, head)
	if op, ok := operations[d.Kind]; ok {
		p.str(op.input, "): Promise<", op.output, ">;\n")
		return
	}
	p.str("input", colon(acceptsEmpty(d.input)))
	p.node(d.input, indent)
	p.str("): Promise<")
	switch {
	case !d.mcp:
		p.node(d.output, indent)
	case d.output == anything:
		p.str("Result")
	default:
		p.str("Result<")
		p.node(d.output, indent)
		p.str(">")
	}
	p.str(">;\n")
}

func (d *declaration) writeComment(p *printer, function, margin string) {
	text := lines(d.Description)
	if d.Name != function && d.Kind == "" && d.Name != "" {
		if len(text) == 0 {
			text = []string{name(d.Name)}
		} else {
			text[0] = name(d.Name) + ": " + text[0]
		}
	}
	text = append(text, d.params()...)
	switch len(text) {
	case 0:
	case 1:
		p.str(margin, "/** ", text[0], " */\n")
	default:
		p.str(margin, "/**\n")
		for _, line := range text {
			p.str(margin, " * ", line, "\n")
		}
		p.str(margin, " */\n")
	}
}

// params returns a line for each property of the input that has more to say than its
// type.
func (d *declaration) params() []string {
	if d.schema == nil {
		return nil
	}
	c := collector{root: d.schema, room: maxNodes, seen: map[string]bool{}}
	if d.short {
		c.room = smallNodes
	}
	c.collect(d.schema, 0)
	return c.lines
}

type collector struct {
	root  *jsontree.Node
	room  int
	lines []string
	seen  map[string]bool
}

// collect goes where every value of the schema must fit as well.
func (c *collector) collect(s *jsontree.Node, depth int) {
	if s == nil || depth > 4 {
		return
	}
	if p := s.Get("properties"); p != nil {
		for i := range p.Members {
			c.add(&p.Members[i], depth == 0)
		}
	}
	if ref := s.Get("$ref"); ref != nil {
		b := builder{root: c.root}
		c.collect(b.resolve(ref.Text()), depth+1)
	}
	if all := s.Get("allOf"); all != nil {
		for i := range all.Items[:min(len(all.Items), maxMembers)] {
			c.collect(&all.Items[i], depth+1)
		}
	}
}

// add makes the line of a property. Below the root its type has the hints.
func (c *collector) add(m *jsontree.Member, withHints bool) {
	if c.room--; c.room < 0 || !declarable(m.Key) || c.seen[m.Key] {
		return
	}
	c.seen[m.Key] = true
	var text, more string
	if d := m.Value.Get("description"); d != nil {
		text = comment(cut(d.Text(), 1000), 140)
	}
	if withHints {
		more = hints(&m.Value)
	}
	switch {
	case text == "" && more == "":
		return
	case text == "":
		text = more
	case more != "":
		text += " (" + cut(more, 80) + ")"
	}
	key := "." + m.Key
	if !isIdentifier(m.Key) {
		key = comment("["+quote(m.Key)+"]", maxKey+8)
	}
	c.lines = append(c.lines, "@param input"+key+" "+text)
}

// pascal makes a word of an identifier that can begin the name of a type.
func pascal(s string) string {
	var b strings.Builder
	upper := true
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			upper = true
		case upper:
			b.WriteRune(unicode.ToUpper(r))
			upper = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
