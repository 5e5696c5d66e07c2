package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/catalog/internal/jsontree"
)

const (
	// MaxIDBytes is how long an id may be (SPEC 6.4).
	MaxIDBytes = 512

	// MaxTools is how many entries Build takes.
	MaxTools = 50_000

	maxDescriptionBytes = 16 << 10

	// The largest input schema of 1,705 real tools has 44 KB, the largest output
	// schema 71 KB, and the deepest nests 13 levels.
	maxSchemaBytes = 256 << 10
	maxSchemaDepth = 128
)

// controlNames are the control tools of the surface, which no catalog shows
// (SPEC 2.4). The code mode exec is marked by Entry.Control: a shell tool may
// have the same name.
var controlNames = []string{"wait", "tool_search_code", "tool_search", "tool_describe", "tool_call"}

// Options are the settings of a catalog. The zero value is ready to use.
type Options struct {
	// SearchDefault is how many hits Search returns when no limit is given.
	// 0 means 8.
	SearchDefault int

	// SearchMax is the most that it returns, whatever the limit. 0 means 50.
	SearchMax int

	// Unavailable are the MCP servers that failed to start: cells are told of them (SPEC
	// 7.8). Their order does not matter.
	Unavailable []Unavailable

	// Warn gets the warnings that come after Build: a schema is compiled when its
	// tool is first called. Each is given once, on the goroutine that noticed it.
	// Nil drops them.
	Warn func(Warning)
}

// Warning says that something about a tool is not as its owner meant it.
type Warning struct {
	// Tool is its id, or what is known of it.
	Tool string
	// Text says what is wrong and what follows from it.
	Text string
}

// String returns "tool "id": text".
func (w Warning) String() string { return fmt.Sprintf("tool %q: %s", w.Tool, w.Text) }

// Catalog is the tools of one agent run (SPEC 2.4). It is immutable and safe for
// concurrent use.
type Catalog struct {
	tools  []*Tool            // all, by id
	native []*Tool            // those that `tools` shows, by id
	mcp    []*Tool            // the others, by id
	byID   map[string]*Tool   // all
	byName map[string][]*Tool // native
	byPath map[string]*Tool   // mcp
	opts   Options

	servers []*server
	gone    []Entry             // what policy denied, by id
	denied  map[string][]string // their ids by all names that they would go by
	surface Surface
	header  string // mcp/index.d.ts
	files   toolFiles

	indexing sync.Mutex
	index    atomic.Pointer[index] // of native; made by Warm
}

// Tool is one entry of a catalog. The fields of its [Entry] must not be changed.
type Tool struct {
	Entry

	function string // convenience name, "" if it has none
	path     string // of an MCP tool, under MCP
	warn     func(Warning)
	checker  checker
}

// Build makes a catalog. Equal entries give equal ids in an equal order, however
// they are sorted (SPEC 6.2). An entry without a name, of an unknown source, with
// an id that is too long or taken, or with the name of a control tool is left out
// with a warning; a schema that cannot be used is dropped with one. More than
// [MaxTools] entries are an error. The entries and their bytes are copied.
func Build(entries []Entry, opts Options) (*Catalog, []Warning, error) {
	if len(entries) > MaxTools {
		return nil, nil, fmt.Errorf("building the catalog: %d tools, at most %d are possible; narrow the tool policy", len(entries), MaxTools)
	}
	if opts.SearchDefault <= 0 {
		opts.SearchDefault = 8
	}
	if opts.SearchMax <= 0 {
		opts.SearchMax = 50
	}
	if opts.Warn == nil {
		opts.Warn = func(Warning) {}
	}
	opts.Unavailable = unavailable(opts.Unavailable)
	b := builder{catalog: &Catalog{byID: map[string]*Tool{}, byName: map[string][]*Tool{}, byPath: map[string]*Tool{}, opts: opts}}
	for _, e := range entries {
		b.add(e)
	}
	c := b.catalog
	b.deny()
	slices.SortFunc(c.tools, func(a, b *Tool) int { return strings.Compare(a.ID, b.ID) })
	for _, t := range c.tools {
		if t.Source == MCP {
			c.mcp = append(c.mcp, t)
			continue
		}
		c.native = append(c.native, t)
		c.byName[t.Name] = append(c.byName[t.Name], t)
	}
	nameFunctions(c.native)
	b.nameMCP()
	c.surface = c.newSurface()
	return c, b.warnings, nil
}

type builder struct {
	catalog  *Catalog
	warnings []Warning
}

func (b *builder) warnf(tool, format string, args ...any) {
	b.warnings = append(b.warnings, Warning{tool, fmt.Sprintf(format, args...)})
}

func (b *builder) add(e Entry) {
	if e.Control {
		return
	}
	if !e.Source.valid() {
		b.warnf(e.Name, "left out: source %q is none of openclaw, plugin, mcp, client", e.Source)
		return
	}
	if e.Operation != "" {
		if e.Source != MCP || operationInput[e.Operation] == "" {
			b.warnf(e.Name, "left out: %q is no operation of an MCP server", cut(string(e.Operation), 80))
			return
		}
		e.Name = string(e.Operation)
		e.Annotations.ReadOnly = true // by MCP's definition of all of them
		if len(e.Parameters) == 0 {
			e.Parameters = json.RawMessage(operationInput[e.Operation])
		}
	}
	e.ID = e.id()
	switch {
	case e.Name == "":
		b.warnf(e.ID, "left out: it has no name")
	case len(e.ID) > MaxIDBytes:
		b.warnf(cut(e.ID, 80), "left out: its id has %d bytes, at most %d are possible", len(e.ID), MaxIDBytes)
	case len(e.SourceName) > MaxIDBytes:
		b.warnf(cut(e.ID, 80), "left out: its owner's name has %d bytes, at most %d are possible", len(e.SourceName), MaxIDBytes)
	case !utf8.ValidString(e.ID) || !utf8.ValidString(e.Name):
		b.warnf(strings.ToValidUTF8(e.ID, "\ufffd"), "left out: its name is not UTF-8")
	case e.Source != MCP && slices.Contains(controlNames, e.Name):
		b.warnf(e.ID, "left out: the name belongs to a control tool")
	case e.Denied:
		b.catalog.gone = append(b.catalog.gone, Entry{ID: strings.Clone(e.ID), Name: strings.Clone(e.Name), Source: e.Source, SourceName: strings.Clone(e.SourceName), Operation: e.Operation, Denied: true})
	case b.catalog.byID[e.ID] != nil:
		b.warnf(e.ID, "left out: another tool has the same id")
	default:
		t := &Tool{Entry: b.clean(e), warn: b.catalog.opts.Warn}
		b.catalog.byID[t.ID] = t
		b.catalog.tools = append(b.catalog.tools, t)
	}
}

// clean makes what the catalog shows of an entry well-formed and bounded, in
// memory of its own.
func (b *builder) clean(e Entry) Entry {
	if len(e.Description) > maxDescriptionBytes {
		b.warnf(e.ID, "its description has %d bytes and was cut at %d", len(e.Description), maxDescriptionBytes)
		e.Description = cut(e.Description, maxDescriptionBytes)
	}
	e.Description = strings.ToValidUTF8(e.Description, "\ufffd")
	e.Label = cut(strings.ToValidUTF8(e.Label, "\ufffd"), MaxIDBytes)
	e.SourceName = strings.ToValidUTF8(e.SourceName, "\ufffd")
	if e.Source == MCP && e.SourceName == "" {
		e.SourceName = e.Source.owner()
	}
	e.Parameters = b.schema(e.ID, "parameters", e.Parameters)
	e.OutputSchema = b.schema(e.ID, "outputSchema", e.OutputSchema)
	return e
}

// schema checks what can be checked without compiling: 5,000 tools should not
// cost a second before the first of them is called.
func (b *builder) schema(id, field string, raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if len(raw) > maxSchemaBytes {
		b.warnf(id, "its %s schema has %d bytes, at most %d are possible; the tool goes on without it", field, len(raw), maxSchemaBytes)
		return nil
	}
	kind, err := jsontree.Check(raw, jsontree.Limits{Depth: maxSchemaDepth, Values: maxSchemaBytes, Work: 8 * maxSchemaBytes})
	if err != nil {
		b.warnf(id, "its %s schema cannot be used: %v; the tool goes on without it", field, err)
		return nil
	}
	if kind != jsontree.Object && kind != jsontree.Bool {
		b.warnf(id, "its %s schema is neither an object nor a boolean; the tool goes on without it", field)
		return nil
	}
	return slices.Clone(raw)
}

// All returns the tools that the guest's `tools` object shows, by id: ALL_TOOLS.
// The slice must not be changed.
func (c *Catalog) All() []*Tool { return c.native }

// Entries returns what the catalog can be built from again, with [Catalog.Unavailable]: its
// tools, and of those that were denied what is kept of them. The entries share its
// memory and must not be changed.
func (c *Catalog) Entries() []Entry {
	entries := make([]Entry, len(c.tools), len(c.tools)+len(c.gone))
	for i, t := range c.tools {
		entries[i] = t.Entry
	}
	return append(entries, c.gone...)
}

// Unavailable returns the MCP servers that failed to start, by name. The slice must not be
// changed.
func (c *Catalog) Unavailable() []Unavailable { return c.opts.Unavailable }

// SearchLimits returns how many hits [Catalog.Search] gives by default, and at most.
func (c *Catalog) SearchLimits() (byDefault, most int) { return c.opts.SearchDefault, c.opts.SearchMax }

// MCP returns what MCP servers offer, their tools and operations, by id. The slice must not be changed.
func (c *Catalog) MCP() []*Tool { return c.mcp }

// Get returns the tool with exactly this id, of any source, or nil.
func (c *Catalog) Get(id string) *Tool { return c.byID[id] }

// Len returns how many tools there are, those of MCP servers included.
func (c *Catalog) Len() int { return len(c.tools) }

// BySource counts the tools of each source that has any.
func (c *Catalog) BySource() map[Source]int {
	counts := map[Source]int{}
	for _, t := range c.tools {
		counts[t.Source]++
	}
	return counts
}

// cut shortens s to at most limit bytes and a mark, at a character boundary.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit] + "…"
}
