package attack

import (
	"slices"
	"sync"
	"syscall"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// Attack is one thing that must be refused.
type Attack struct {
	Name  string // "open /etc/passwd": stable, unique, one line
	About string // what an attacker would gain, a few words

	// Refused says which answers count as a refusal, by the layer that gives it: names of
	// errno values ("EACCES"), or "SIGSYS". Each layer gives its answer also alone, to root and to
	// others. Seccomp is always among them.
	Refused map[isolation.Layer][]string

	try func() syscall.Errno // 0: the kernel let it through
}

// killed is the outcome of an attack at which the kernel ended the process.
const killed = "SIGSYS"

// all builds the table once, on its first use: it allocates, and most processes that link this
// package never look.
var all = sync.OnceValue(attacks)

// All lists the attacks that this architecture has, in a stable order: files, network,
// processes, memory, privileges, kernel interfaces, and calls that only amd64 has.
func All() []Attack { return slices.Clone(all()) }

// Find gives the attack of that name.
func Find(name string) (Attack, bool) {
	i := slices.IndexFunc(all(), func(a Attack) bool { return a.Name == name })
	if i < 0 {
		return Attack{}, false
	}
	return all()[i], true
}

// Verdict is what an outcome says about the layers.
type Verdict struct {
	Refused  bool              // a layer that is on answered as it must
	Covered  bool              // a layer that is on refuses this; if none does, nothing was promised
	By       []isolation.Layer // those that could have given the answer, in the order of reports
	Expected []string          // the answers that would have been a refusal
}

// Judge compares an outcome, of [Run] or "SIGSYS", with what the layers that are on must answer.
//
// Where seccomp is on it sees the call before any other layer, so only its own answer counts:
// an EACCES from a worker whose filter should have killed it means that the filter let the call
// through.
func (a Attack) Judge(outcome string, r isolation.Report) Verdict {
	var v Verdict
	for _, layer := range isolation.Layers() {
		answers := a.Refused[layer]
		if len(answers) == 0 || r.Get(layer).State != isolation.On {
			continue
		}
		if layer == isolation.Seccomp {
			v = Verdict{} // the layers before it in the order are behind it in the kernel
		}
		v.Covered = true
		for _, answer := range answers {
			if !slices.Contains(v.Expected, answer) {
				v.Expected = append(v.Expected, answer)
			}
		}
		if slices.Contains(answers, outcome) {
			v.Refused = true
			v.By = append(v.By, layer)
		}
	}
	// A call that is not in this kernel cannot be let through by it. With seccomp on the kernel
	// is not asked: there this would be a hole.
	if v.Covered && absent(outcome) && r.Get(isolation.Seccomp).State != isolation.On {
		v.Refused = true
	}
	return v
}

// absent tells whether the kernel was built without what the attack uses.
func absent(outcome string) bool { return outcome == "ENOSYS" || outcome == "EAFNOSUPPORT" }
