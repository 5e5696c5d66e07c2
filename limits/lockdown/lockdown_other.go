//go:build unix && !linux

package lockdown

import (
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// Begin reports what does not exist here, and does nothing.
func Begin(p Plan, _ int) *Lockdown {
	time.Local = time.UTC // as on Linux: a worker's clock does not depend on where it runs
	l := &Lockdown{plan: p}
	l.missing(isolation.Environment, isolation.Descriptors, isolation.OOMScore)
	return l
}

// Finish sets the limits that exist here, and reports what does not.
func (l *Lockdown) Finish() isolation.Report {
	if l.plan.ParentDeath {
		l.missing(isolation.ParentDeath)
	}
	l.apply(isolation.Rlimits, "start the supervisor with hard limits that can be lowered", func() error { return setRlimits(l.plan) })
	l.missing(isolation.EmptyRoot, isolation.Capabilities, isolation.NoNewPrivs,
		isolation.LandlockFiles, isolation.LandlockNetwork, isolation.LandlockScopes, isolation.Seccomp)
	return l.report
}

func (l *Lockdown) missing(layers ...isolation.Layer) {
	for _, layer := range layers {
		l.apply(layer, "run the supervisor on Linux", func() error { return fmt.Errorf("not on %s", runtime.GOOS) })
	}
}

// CloseInherited does nothing here: descriptors cannot be listed without /proc.
func CloseInherited(int) error { return nil }

// rlimits leaves out RLIMIT_DATA, which does not bound mappings here, and RLIMIT_NPROC, which
// counts all that the user runs.
func rlimits(p Plan) []rlimit {
	all := []rlimit{
		{"RLIMIT_CORE", unix.RLIMIT_CORE, 0},
		{"RLIMIT_FSIZE", unix.RLIMIT_FSIZE, 0},
		{"RLIMIT_MEMLOCK", unix.RLIMIT_MEMLOCK, 0},
		{"RLIMIT_NOFILE", unix.RLIMIT_NOFILE, maxFiles},
	}
	if p.CPUSeconds > 0 {
		all = append(all, rlimit{"RLIMIT_CPU", unix.RLIMIT_CPU, p.CPUSeconds})
	}
	return all
}
