package namespace

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/openclaw/codemode-supervisor/catalog"
)

// Bounds of the scopes of a run.
const (
	// MaxValues is how many values a scope may hold: containers, markers and what they
	// contain, each as often as it stands there. Pointers and raw JSON count as one more.
	MaxValues = 10_000

	// MaxDepth is how deep objects and arrays may nest, the scope itself included.
	MaxDepth = 64

	// MaxBytes is how long the JSON of all the scopes of a run may be together. Raw JSON
	// in a scope counts as it is written there, its spaces too.
	MaxBytes = 1 << 20

	// MaxPathBytes is how long the path to a tool may be.
	MaxPathBytes = 1024

	// Separator stands between the parts of a path. No key holds it.
	Separator = "\x1f"
)

// ErrNoTool is what [Scopes.Resolve] returns for every path that leads to no tool, so
// that a guest that guesses learns nothing from the difference. Its text is meant for
// the model.
var ErrNoTool = errors.New("no tool of a namespace is there; call the functions that the namespace's object has, as they stand in it")

// ScopeError says that the scope of a namespace cannot be built, and that no guest code
// ran (SPEC 8.3). It is meant for the plugin's author.
type ScopeError struct {
	PluginID   string
	GlobalName string
	// Place is what is wrong there, as a cell would write it, shortened if it is long:
	// github.issues[0]. It is empty if the trouble is with no place in the scope.
	Place string
	// Err says what is wrong and what to do. It may wrap what the Scope function
	// returned, whatever its size, or the error of the context.
	Err error
}

// Error returns the whole story in at most some 2,000 bytes.
func (e *ScopeError) Error() string {
	text := fmt.Sprintf("building the scope of namespace %q of plugin %q: ", shorten(e.GlobalName), shorten(e.PluginID))
	if e.Place != "" {
		text += e.Place + ": "
	}
	return text + shorten(e.Err.Error())
}

// Unwrap returns Err.
func (e *ScopeError) Unwrap() error { return e.Err }

// Scopes are the scopes of one run, as [Registry.Build] wrote them down. They never
// change, whatever becomes of the plugins, and may be used by any number of goroutines.
// A nil *Scopes is one without namespaces.
type Scopes struct {
	json    []byte
	targets map[string]Target // by path
}

// Target is a tool that a path leads to.
type Target struct {
	// Tool is the tool to call, by its exact ID: the one that Build found to be the
	// plugin's.
	Tool *catalog.Tool

	// Place is how a cell calls it, shortened if it is long: github.issues.create.
	Place string

	mapper InputMapper
}

// JSON returns what the guest makes its namespaces from, or nil if there are none: an
// array, by global name, of
//
//	{"name": "github", "value": NODE}
//
// where NODE has exactly one member:
//
//	{"v": any JSON}            data without markers, as it is
//	{"o": [["key", NODE], …]}  an object, by key
//	{"a": [NODE, …]}           an array
//	{"t": true}                a tool
//
// The path of a tool is the global name and the keys and indices down to its place,
// joined by [Separator]. Data cannot look like a tool: it stands below a "v", where
// nothing is looked for. Keys are sorted by their bytes, so equal scopes give equal JSON;
// it is for whole runs, a snapshot too, to compare. It must not be changed.
func (s *Scopes) JSON() []byte {
	if s == nil {
		return nil
	}
	return s.json
}

// Resolve returns the tool that stands at a path. The path comes from the guest and may
// be anything; all that lead to no tool give [ErrNoTool].
func (s *Scopes) Resolve(path string) (Target, error) {
	if s == nil || len(path) > MaxPathBytes {
		return Target{}, ErrNoTool
	}
	t, ok := s.targets[path]
	if !ok {
		return Target{}, ErrNoTool
	}
	return t, nil
}

// add builds the scope of one namespace and appends it.
func (s *Scopes) add(ctx context.Context, o offer, run Run) error {
	fail := func(place string, err error) error {
		return &ScopeError{PluginID: o.pluginID, GlobalName: o.GlobalName, Place: place, Err: err}
	}
	value, err := o.scope(ctx, run)
	if err != nil {
		return fail("", err)
	}
	w := walker{tools: o.tools, targets: s.targets, path: []string{o.GlobalName}}
	root, err := w.scope(value)
	if err != nil {
		return fail(place(w.path, w.indices), err)
	}
	start := len(s.json)
	s.json = append(s.json, ",{\"name\":"...)
	s.json = append(s.json, quote(o.GlobalName)...)
	s.json = append(s.json, ",\"value\":"...)
	s.json = append(root.appendNode(s.json), '}')
	if size := len(s.json) + len("]"); size > MaxBytes {
		return fail("", fmt.Errorf("its JSON has %d bytes, and with that of the namespaces before it %d, at most %d are possible; leave data out, or offer a tool that returns it", len(s.json)-start, size, MaxBytes))
	}
	return nil
}

// close turns what add has written into an array.
func (s *Scopes) close() {
	if len(s.json) > 0 {
		s.json[0] = '[' // in place of the first comma
		s.json = append(s.json, ']')
	}
}

// place is a path as a cell would write it.
func place(path []string, indices []bool) string {
	text := path[0]
	for i, part := range path[1:] {
		switch {
		case len(text) > 400: // shortened below
		case indices[i]:
			text += "[" + part + "]"
		case part != "" && catalog.ConvenienceName(part) == part:
			text += "." + part
		default:
			text += "[" + strconv.Quote(shorten(part)) + "]"
		}
	}
	return shorten(text)
}
