package attack_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/limits/attack"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

func TestAll(t *testing.T) {
	all := attack.All()
	if runtime.GOOS != "linux" {
		if len(all) > 0 {
			t.Errorf("%d attacks on %s", len(all), runtime.GOOS)
		}
		if _, err := attack.Run("fork"); err == nil {
			t.Error("Run gives no error")
		}
		return
	}
	if len(all) < 90 {
		t.Errorf("%d attacks, want 90", len(all))
	}
	names := map[string]bool{}
	for _, a := range all {
		if a.Name == "" || a.About == "" || strings.ContainsAny(a.Name+a.About, "\n\r\t") {
			t.Errorf("name %q, about %q: want one line each", a.Name, a.About)
		}
		if names[a.Name] {
			t.Errorf("two attacks are called %q", a.Name)
		}
		names[a.Name] = true
		if len(a.Refused[isolation.Seccomp]) == 0 {
			t.Errorf("%q: seccomp does not refuse it", a.Name)
		}
		for layer, answers := range a.Refused {
			if !slices.Contains(isolation.Layers(), layer) || len(answers) == 0 {
				t.Errorf("%q: layer %q refuses with %q", a.Name, layer, answers)
			}
		}
		if got, ok := attack.Find(a.Name); !ok || got.Name != a.Name {
			t.Errorf("Find(%q): %q, %v", a.Name, got.Name, ok)
		}
	}
	if _, ok := attack.Find("no such attack"); ok {
		t.Error("found what is not there")
	}
	if outcome, err := attack.Run("no such attack"); err == nil {
		t.Errorf("Run of what is not there gives %q", outcome)
	}
}

func TestJudge(t *testing.T) {
	a := attack.Attack{Refused: map[isolation.Layer][]string{
		isolation.Seccomp:       {"SIGSYS"},
		isolation.LandlockFiles: {"EACCES"},
		isolation.EmptyRoot:     {"ENOENT"},
		isolation.Capabilities:  {"EPERM", "EACCES"},
	}}
	type layers = []isolation.Layer
	const landlock, root, caps, seccomp = isolation.LandlockFiles, isolation.EmptyRoot, isolation.Capabilities, isolation.Seccomp
	for _, c := range []struct {
		on      layers
		outcome string
		want    attack.Verdict
	}{
		{nil, "OK", attack.Verdict{}},
		{nil, "EACCES", attack.Verdict{}},
		{nil, "ENOSYS", attack.Verdict{}},
		{layers{isolation.Rlimits}, "EACCES", attack.Verdict{}},
		{layers{landlock}, "OK", attack.Verdict{Covered: true, Expected: []string{"EACCES"}}},
		{layers{landlock}, "ENOENT", attack.Verdict{Covered: true, Expected: []string{"EACCES"}}}, // of a layer that is not on
		{layers{landlock}, "SIGSYS", attack.Verdict{Covered: true, Expected: []string{"EACCES"}}},
		{layers{landlock}, "EACCES", attack.Verdict{Refused: true, Covered: true, By: layers{landlock}, Expected: []string{"EACCES"}}},
		{layers{landlock}, "ENOSYS", attack.Verdict{Refused: true, Covered: true, Expected: []string{"EACCES"}}}, // not in this kernel
		{layers{landlock}, "EAFNOSUPPORT", attack.Verdict{Refused: true, Covered: true, Expected: []string{"EACCES"}}},
		{layers{landlock, root, caps}, "EACCES", attack.Verdict{Refused: true, Covered: true, By: layers{caps, landlock}, Expected: []string{"ENOENT", "EPERM", "EACCES"}}},
		{layers{landlock, root, caps, seccomp}, "SIGSYS", attack.Verdict{Refused: true, Covered: true, By: layers{seccomp}, Expected: []string{"SIGSYS"}}},
		{layers{landlock, root, caps, seccomp}, "EACCES", attack.Verdict{Covered: true, Expected: []string{"SIGSYS"}}}, // the filter let it through
		{layers{seccomp}, "ENOSYS", attack.Verdict{Covered: true, Expected: []string{"SIGSYS"}}},
		{layers{seccomp}, "SIGKILL", attack.Verdict{Covered: true, Expected: []string{"SIGSYS"}}},
		{layers{seccomp}, "", attack.Verdict{Covered: true, Expected: []string{"SIGSYS"}}},
	} {
		var r isolation.Report
		for _, layer := range c.on {
			r.On(layer)
		}
		// These make no difference.
		r.Set(isolation.Status{Layer: isolation.UserNamespace, State: isolation.Off})
		r.Set(isolation.Status{Layer: isolation.PIDNamespace, State: isolation.Unavailable})
		if diff := cmp.Diff(c.want, a.Judge(c.outcome, r)); diff != "" {
			t.Errorf("%v, outcome %q (-want +got):\n%s", c.on, c.outcome, diff)
		}
	}
	// A layer that is off or unavailable promises nothing.
	var r isolation.Report
	r.Set(isolation.Status{Layer: seccomp, State: isolation.Off})
	r.Set(isolation.Status{Layer: landlock, State: isolation.Unavailable})
	if v := a.Judge("SIGSYS", r); v.Covered || v.Refused {
		t.Errorf("no layer is on: %+v", v)
	}
}
