package namespace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/openclaw/codemode-supervisor/catalog"
)

// Namespace is what a plugin registers (SPEC 8.1).
type Namespace struct {
	// ID is the namespace's own name, unique among all plugins, at most 512 bytes.
	// Space around it is removed.
	ID string

	// GlobalName is what cells call it: a JavaScript identifier of at most 128 bytes,
	// unique among all plugins, that hides no built-in. Space around it is removed.
	GlobalName string

	// Description tells the model what it is for; at most 2,000 characters. Longer ones
	// are refused, not cut.
	Description string

	// Prompt tells the model how to use it; optional, at most 2,000 characters.
	Prompt string

	// RequiredTools are the plugin's tools that the namespace needs, by their own names
	// (not ids); at least one, at most 256. Only these may be markers in the scope.
	RequiredTools []string

	// Scope returns the scope of one run: an object, see the package comment. ctx ends
	// with the run's abort. It is called by [Registry.Build], on its goroutine, and only
	// if all the required tools are there. What it returns is read before Build
	// returns; until then nobody may change it.
	Scope func(ctx context.Context, run Run) (any, error)
}

// Run is the identity that a scope is built for (SPEC 8.1).
type Run struct {
	AgentID    string
	SessionID  string
	SessionKey string
	AgentRunID string          // the agent run that the cell is part of
	RunID      string          // the run of this cell
	Config     json.RawMessage // the gateway's configuration; each Scope gets a copy
}

// Visible is a namespace as the model gets to see it (SPEC 8.2).
type Visible struct {
	GlobalName  string
	Description string
	Prompt      string // "" if it has none
}

// Registry holds the namespaces of all plugins. The zero value is ready to use, and a
// nil *Registry has no namespaces. It is safe for concurrent use, also from within a
// Scope function.
type Registry struct {
	mu  sync.RWMutex
	all []registration // guarded by mu; by GlobalName
}

type registration struct {
	pluginID string
	Namespace
}

// Register adds a namespace of the plugin, whose id must be the SourceName that its
// tools have in the catalog. An id or global name that is taken, by whichever plugin,
// is an error, and so is everything that [Namespace] does not allow and a namespace
// past [MaxNamespaces]; nothing is replaced. To register anew, clear the plugin first.
func (r *Registry) Register(pluginID string, n Namespace) error {
	added := registration{pluginID, n}
	if err := added.normalize(); err != nil {
		return fmt.Errorf("registering namespace %q of plugin %q: %w", shorten(n.ID), shorten(pluginID), err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.admit(&added); err != nil {
		return fmt.Errorf("registering namespace %q of plugin %q: %w", added.ID, pluginID, err)
	}
	at, _ := slices.BinarySearchFunc(r.all, added.GlobalName, func(a registration, name string) int {
		return strings.Compare(a.GlobalName, name)
	})
	r.all = slices.Insert(r.all, at, added)
	return nil
}

// admit says why the registration has no place beside the others. r.mu is held.
func (r *Registry) admit(added *registration) error {
	for i := range r.all {
		switch other := &r.all[i]; {
		case other.ID == added.ID:
			return fmt.Errorf("plugin %q has registered this id; choose another, or clear that plugin first", other.pluginID)
		case other.GlobalName == added.GlobalName:
			return fmt.Errorf("namespace %q of plugin %q has the global name %q; choose another", other.ID, other.pluginID, other.GlobalName)
		}
	}
	if len(r.all) >= MaxNamespaces {
		return fmt.Errorf("there are %d namespaces, and no more are possible; unload a plugin", len(r.all))
	}
	return nil
}

// ClearPlugin removes what the plugin registered, and nothing else. Runs that have
// their [Scopes] keep them as they are.
func (r *Registry) ClearPlugin(pluginID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = slices.DeleteFunc(r.all, func(a registration) bool { return a.pluginID == pluginID })
}

// Visible returns the namespaces that a run with this catalog has, by GlobalName: those
// whose required tools are all there and belong to the plugin (SPEC 8.2). Nothing about
// the others may reach the model.
func (r *Registry) Visible(c *catalog.Catalog) []Visible {
	var list []Visible
	for _, o := range r.offered(c) {
		list = append(list, Visible{o.GlobalName, o.Description, o.Prompt})
	}
	return list
}

// Build makes the scopes of one run, of the same namespaces as [Registry.Visible]: it
// calls their Scope functions one after the other, by GlobalName, and writes down what
// they return. The result is never nil without an error, and empty if nothing is visible.
//
// The first namespace that cannot be built ends it with a *[ScopeError]: its function
// failed, panicked, came back after ctx ended (errors.Is finds the context's error), or
// returned what no scope may hold. No guest code may run then (SPEC 8.3).
func (r *Registry) Build(ctx context.Context, c *catalog.Catalog, run Run) (*Scopes, error) {
	s := &Scopes{targets: map[string]Target{}}
	for _, o := range r.offered(c) {
		if err := s.add(ctx, o, run); err != nil {
			return nil, err
		}
	}
	s.close()
	return s, nil
}

// snapshot returns the registrations of this moment, so that no lock is held while the
// functions of plugins run.
func (r *Registry) snapshot() []registration {
	if r == nil {
		return nil
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Clone(r.all)
}

// offer is a visible namespace with its tools.
type offer struct {
	registration
	tools map[string]*catalog.Tool // the required ones, by name
}

// owned is what makes a tool a plugin's: the source is [catalog.Plugin], and both texts
// are equal to the byte. An id says nothing: anyone may choose a name that looks like one.
type owned struct{ pluginID, name string }

func (r *Registry) offered(c *catalog.Catalog) []offer {
	if c == nil {
		return nil
	}
	all := r.snapshot()
	found := ownTools(all, c)
	var offers []offer
	for _, a := range all {
		tools := map[string]*catalog.Tool{}
		for _, name := range a.RequiredTools {
			if list := found[owned{a.pluginID, name}]; len(list) == 1 { // of two, neither is the one that was meant
				tools[name] = list[0]
			}
		}
		if len(tools) == len(a.RequiredTools) {
			offers = append(offers, offer{a, tools})
		}
	}
	return offers
}

// ownTools returns, for each tool that a namespace requires, those in the catalog that
// belong to its plugin.
func ownTools(all []registration, c *catalog.Catalog) map[owned][]*catalog.Tool {
	found := map[owned][]*catalog.Tool{}
	for _, a := range all {
		for _, name := range a.RequiredTools {
			found[owned{a.pluginID, name}] = nil
		}
	}
	if len(found) == 0 {
		return nil
	}
	for _, t := range c.All() {
		if t.Source != catalog.Plugin {
			continue
		}
		key := owned{t.SourceName, t.Name}
		if list, required := found[key]; required {
			found[key] = append(list, t)
		}
	}
	return found
}

// scope calls the plugin's function. Its panic is an error, so that a plugin costs a run
// and not the gateway.
func (o *offer) scope(ctx context.Context, run Run) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			value, err = nil, fmt.Errorf("its Scope function panicked: %s", shorten(fmt.Sprint(p)))
		}
	}()
	run.Config = bytes.Clone(run.Config)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("the run ended before its Scope function was called: %w", err)
	}
	value, err = o.Scope(ctx, run)
	if ended := ctx.Err(); ended != nil {
		return nil, fmt.Errorf("the run ended while its Scope function was at work: %w", ended)
	}
	if err != nil {
		return nil, fmt.Errorf("its Scope function: %w", err)
	}
	return value, nil
}
