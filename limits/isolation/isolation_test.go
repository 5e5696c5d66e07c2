package isolation

import (
	"errors"
	"strings"
	"testing"

	"github.com/openclaw/codemode-supervisor/limits"
)

// SPEC 15.2: strict requires all layers, best-effort none, require what it names.
func TestPolicyRequires(t *testing.T) {
	for _, c := range []struct {
		config limits.IsolationConfig
		want   []Layer
	}{
		{limits.IsolationConfig{}, nil},
		{limits.IsolationConfig{Preset: "best-effort"}, nil},
		{limits.IsolationConfig{Preset: "strict"}, Layers()},
		{limits.IsolationConfig{Require: []string{"seccomp", "cgroup.memory"}}, []Layer{CgroupMemory, Seccomp}},
		{limits.IsolationConfig{Require: []string{"landlock"}}, []Layer{LandlockFiles, LandlockNetwork, LandlockScopes}},
		{limits.IsolationConfig{Preset: "strict", Require: []string{"seccomp"}}, Layers()},
	} {
		p, err := NewPolicy(c.config)
		if err != nil {
			t.Fatal(err)
		}
		required := map[Layer]bool{}
		for _, l := range c.want {
			required[l] = true
		}
		for _, l := range Layers() {
			if got := p.Requires(l); got != required[l] {
				t.Errorf("NewPolicy(%+v).Requires(%q) = %t, want %t", c.config, l, got, !got)
			}
		}
	}
}

func TestPolicyRefuses(t *testing.T) {
	for _, c := range []struct {
		config limits.IsolationConfig
		words  []string
	}{
		{limits.IsolationConfig{Preset: "paranoid"}, []string{`"paranoid"`, `"strict"`}},
		{limits.IsolationConfig{Require: []string{"secomp"}}, []string{`"secomp"`, "no layer", `did you mean "seccomp"?`}},
		{limits.IsolationConfig{Require: []string{"cgroups.memory"}}, []string{`did you mean "cgroup.memory"?`}},
		{limits.IsolationConfig{Require: []string{""}}, []string{"no layer"}},
		{limits.IsolationConfig{Require: []string{"cgroup."}}, []string{"no layer"}},
	} {
		_, err := NewPolicy(c.config)
		if err == nil {
			t.Errorf("NewPolicy(%+v) took it", c.config)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("NewPolicy(%+v): %v, want %s in it", c.config, err, w)
			}
		}
	}
}

// SPEC 15.2: a required layer that is not on fails closed, with layer, reason and remedy; one
// that nobody reported is not on.
func TestPolicyCheck(t *testing.T) {
	p, err := NewPolicy(limits.IsolationConfig{Require: []string{"seccomp", "cgroup.memory"}})
	if err != nil {
		t.Fatal(err)
	}
	var r Report
	r.On(Seccomp)
	if err := p.CheckKnown(r); err != nil {
		t.Errorf("CheckKnown without the other one: %v", err)
	}
	var missing *MissingError
	if err := p.Check(r); !errors.As(err, &missing) || len(missing.Layers) != 1 || missing.Layers[0].Layer != CgroupMemory {
		t.Errorf("Check without cgroup.memory: %v", err)
	}
	r.Set(Status{Layer: CgroupMemory, State: Unavailable, Reason: "nothing is writable", Remedy: "set Delegate=yes"})
	for _, check := range []func(Report) error{p.Check, p.CheckKnown} {
		err := check(r)
		if err == nil || !strings.Contains(err.Error(), "cgroup.memory is unavailable (nothing is writable): set Delegate=yes") {
			t.Errorf("with cgroup.memory unavailable: %v", err)
		}
	}
	r.On(CgroupMemory)
	if err := p.Check(r); err != nil {
		t.Errorf("with both on: %v", err)
	}
	r.Set(Status{Layer: Seccomp, State: Off})
	if err := p.Check(r); err == nil {
		t.Error("with seccomp off: no error")
	}
}

func TestReport(t *testing.T) {
	var r Report
	r.On(Seccomp)
	r.Set(Status{Layer: ProcessGroup, State: On})
	r.Merge(Report{{Layer: Seccomp, State: Unavailable, Reason: "no kernel support"}})
	if len(r) != 2 || r.Get(Seccomp).State != Unavailable {
		t.Errorf("after Merge: %+v", r)
	}
	all := r.Complete()
	if len(all) != len(Layers()) || all[0].Layer != ProcessGroup || all[0].State != On {
		t.Errorf("Complete: %+v", all)
	}
	if got := len(r.Missing()); got != len(Layers())-1 {
		t.Errorf("Missing gives %d layers, want all but process_group", got)
	}
}
