package lockdown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// Plan is what the supervisor tells a worker about its surroundings. The zero value is a process
// without namespaces, which gets every layer that it can have there.
type Plan struct {
	// User: the worker is in a user namespace of its own and becomes its root.
	User bool `json:"user,omitempty"`
	// Mount: the worker is in a mount namespace of its own and swaps its root for an empty one.
	Mount bool `json:"mount,omitempty"`
	// ParentDeath: the kernel kills the worker when the thread that forked it ends.
	ParentDeath bool `json:"parent_death,omitempty"`
	// DataBytes is RLIMIT_DATA, in bytes: heap and all private writable mappings since Linux
	// 4.7, which RLIMIT_AS would count together with reserved address space. 0 leaves it.
	DataBytes uint64 `json:"data_bytes,omitempty"`
	// CPUSeconds is RLIMIT_CPU, in seconds: the kernel sends SIGKILL. 0 leaves it.
	CPUSeconds uint64 `json:"cpu_seconds,omitempty"`
	// Without names layers that are left out and reported Off, for tests and benchmarks of
	// single layers. Landlock and seccomp need no_new_privs: it is left out only if they are.
	Without []isolation.Layer `json:"without,omitempty"`
}

// Encode gives the plan as an argument for the worker.
func (p Plan) Encode() string {
	b, _ := json.Marshal(p) // bools, numbers and strings cannot fail
	return string(b)
}

// Decode reads what Encode gave. It refuses what it does not know: a worker that misunderstood
// its plan would be less locked than its supervisor believes.
func Decode(s string) (Plan, error) {
	d := json.NewDecoder(bytes.NewReader([]byte(s)))
	d.DisallowUnknownFields()
	var p *Plan
	if err := d.Decode(&p); err != nil {
		return Plan{}, fmt.Errorf("reading the lock-down plan %q: %w", s, err)
	}
	if _, err := d.Token(); err != io.EOF || p == nil {
		return Plan{}, fmt.Errorf("reading the lock-down plan %q: it is not one JSON object", s)
	}
	for _, layer := range p.Without {
		if !slices.Contains(isolation.Layers(), layer) {
			return Plan{}, fmt.Errorf("reading the lock-down plan: %q in \"without\" is no layer; the layers are %q", layer, isolation.Layers())
		}
	}
	return *p, nil
}

func (p Plan) without(layer isolation.Layer) bool {
	if layer == isolation.NoNewPrivs {
		for _, needs := range []isolation.Layer{isolation.LandlockFiles, isolation.LandlockNetwork, isolation.LandlockScopes, isolation.Seccomp} {
			if !p.without(needs) {
				return false
			}
		}
	}
	return slices.Contains(p.Without, layer)
}

// A Lockdown is one that has begun. Finish ends it, once.
type Lockdown struct {
	plan   Plan
	report isolation.Report
	begun  error // why the first half of the capabilities failed
}

// remedied is an error that knows better than its step what an operator can do.
type remedied struct {
	error
	remedy string
}

// apply does one layer, unless the plan leaves it out, and reports what became of it.
func (l *Lockdown) apply(layer isolation.Layer, remedy string, do func() error) {
	if l.plan.without(layer) {
		l.report.Set(isolation.Status{Layer: layer, State: isolation.Off, Reason: "the plan leaves it out"})
		return
	}
	switch err := do().(type) {
	case nil:
		l.report.On(layer)
	case remedied:
		l.unavailable(layer, err, err.remedy)
	default:
		l.unavailable(layer, err, remedy)
	}
}

func (l *Lockdown) unavailable(layer isolation.Layer, err error, remedy string) {
	l.report.Set(isolation.Status{Layer: layer, State: isolation.Unavailable, Reason: err.Error(), Remedy: remedy})
}
