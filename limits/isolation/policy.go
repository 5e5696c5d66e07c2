package isolation

import (
	"fmt"
	"strings"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// Policy is what an operator wants of the layers (SPEC 15.2). It is immutable and
// comparable; the zero value requires nothing and uses what the host offers.
type Policy struct {
	required     uint64 // a bit for each layer, by its place in the order
	cgroupParent string
	uid, gid     uint32
}

// NewPolicy makes the policy of a config. A name that several layers begin with, as
// "landlock", stands for all of them. It fails for a preset or a layer that does not
// exist, and names those that do.
func NewPolicy(c limits.IsolationConfig) (Policy, error) {
	p := Policy{cgroupParent: c.CgroupParent, uid: c.UID, gid: c.GID}
	switch c.Preset {
	case "", "best-effort":
	case "strict":
		p.required = 1<<len(layers) - 1
	default:
		return Policy{}, fmt.Errorf("supervisor.isolation.preset is %q; it must be \"best-effort\" or \"strict\"", c.Preset)
	}
	for _, name := range c.Require {
		known := false
		for i, l := range layers {
			// "landlock" stands for landlock.files, landlock.network and landlock.scopes.
			if string(l) == name || strings.HasPrefix(string(l), name+".") {
				p.required |= 1 << i
				known = true
			}
		}
		if !known {
			return Policy{}, fmt.Errorf("supervisor.isolation.require names %q, which is no layer%s; the layers are %s", name, suggest(name), names())
		}
	}
	return p, nil
}

// suggest points at the layer or family that was probably meant.
func suggest(name string) string {
	var known []string
	for _, l := range layers {
		known = append(known, string(l))
		if family, _, ok := strings.Cut(string(l), "."); ok {
			known = append(known, family)
		}
	}
	if near := json5.Nearest(name, known); near != "" {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

func names() string {
	var all []string
	for _, l := range layers {
		all = append(all, string(l))
	}
	return strings.Join(all, ", ")
}

// Requires tells whether no worker may start without the layer.
func (p Policy) Requires(layer Layer) bool {
	i := layer.index()
	return i >= 0 && p.required&(1<<i) != 0
}

// CgroupParent is the cgroup under which workers get theirs; empty means the supervisor's own.
func (p Policy) CgroupParent() string { return p.cgroupParent }

// Identity is the uid and gid of workers when the supervisor is root; 0 means one that is
// picked for each.
func (p Policy) Identity() (uid, gid uint32) { return p.uid, p.gid }

// Check compares a report with the policy. A layer that nobody reported is missing. The error
// is a *[MissingError].
func (p Policy) Check(r Report) error { return p.CheckKnown(r.Complete()) }

// CheckKnown is Check for a report that is not complete yet: only the layers in it count.
func (p Policy) CheckKnown(r Report) error {
	var missing Report
	for _, s := range r {
		if s.State != On && p.Requires(s.Layer) {
			missing = append(missing, s)
		}
	}
	if len(missing) > 0 {
		return &MissingError{Layers: missing}
	}
	return nil
}

// A MissingError says which required layers this host does not give, and what to do about it.
type MissingError struct {
	Layers Report // those that are missing
}

// Error names the layer and the remedy (SPEC 15.2).
func (e *MissingError) Error() string {
	var parts []string
	for _, s := range e.Layers {
		text := fmt.Sprintf("%s is %s", s.Layer, s.State)
		if s.Reason != "" {
			text += " (" + s.Reason + ")"
		}
		if s.Remedy != "" {
			text += ": " + s.Remedy
		}
		parts = append(parts, text)
	}
	return "supervisor.isolation requires what this host does not give: " + strings.Join(parts, "; ") +
		". \"supervisor doctor\" shows every layer"
}

// Lenient is the policy without its requirements.
func (p Policy) Lenient() Policy {
	p.required = 0
	return p
}
