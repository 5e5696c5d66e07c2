package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/openclaw/codemode-supervisor/limits/cgroup"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/limits/lockdown"
)

// processRoom is what the Go part of a worker may use beside the guest's memory: its
// heap, the TypeScript transformer's stack, and both sides' copies of a big frame.
const processRoom = 320 << 20

// processBytes is what the cgroup of a worker gets whose guest may use guestBytes: the third
// wall of SPEC 13.3.
func processBytes(guestBytes int64) uint64 {
	return uint64(guestBytes + guestBytes/8 + processRoom)
}

// dataBytes is its RLIMIT_DATA. That counts memory that was never touched, too, so it is
// above the cgroup's limit, whose OOM killer leaves a trace; where there is no cgroup it is
// the wall.
func dataBytes(guestBytes int64) uint64 { return processBytes(guestBytes) + 128<<20 }

const (
	maxGuestBytes = 1 << 30 // the upper end of memoryLimitBytes (SPEC 13)

	// A guest runs on one thread. What is above that is for the Go runtime's collector.
	workerCPUs = 1.5

	// A worker has fewer than twenty threads, and forks nothing.
	workerPids = 64

	// A leg takes 60 s at most, on workerCPUs. This is for a worker whose supervisor does
	// not get to kill it.
	workerCPUSeconds = 180
)

// groupLimits are those of a worker's cgroup.
func groupLimits(guestBytes int64, without []isolation.Layer) cgroup.Limits {
	l := cgroup.Limits{MemoryBytes: processBytes(guestBytes), Pids: workerPids, CPUs: workerCPUs}
	if slices.Contains(without, isolation.CgroupMemory) {
		l.MemoryBytes = 0
	}
	if slices.Contains(without, isolation.CgroupPids) {
		l.Pids = 0
	}
	if slices.Contains(without, isolation.CgroupCPU) {
		l.CPUs = 0
	}
	return l
}

// plan is what a worker has to know of its surroundings to lock itself up.
func (s *Spawner) plan(w way) lockdown.Plan {
	return lockdown.Plan{
		User: w.user, Mount: w.has(isolation.MountNamespace), ParentDeath: true,
		// For the largest guest; [Child.Assign] lowers it, which takes no privilege.
		DataBytes: dataBytes(maxGuestBytes), CPUSeconds: workerCPUSeconds,
		Without: s.cfg.Without,
	}
}

// selfLayers are those that a worker applies by itself.
var selfLayers = []isolation.Layer{
	isolation.Environment, isolation.Descriptors, isolation.EmptyRoot, isolation.Rlimits, isolation.OOMScore, isolation.Capabilities,
	isolation.NoNewPrivs, isolation.LandlockFiles, isolation.LandlockNetwork, isolation.LandlockScopes, isolation.Seccomp,
}

// selfReport reads what a worker says that it did to itself, before its first untrusted
// byte. About the layers that are not its own it can only say that one is lost: a
// parent-death signal that could not be armed again, a user that it could not become.
func selfReport(text []byte) (isolation.Report, error) {
	var said, r isolation.Report
	if len(text) > 0 {
		if err := json.Unmarshal(text, &said); err != nil {
			return nil, fmt.Errorf("reading the worker's isolation report: %w", err)
		}
	}
	for _, s := range said {
		switch {
		case !slices.Contains(isolation.Layers(), s.Layer):
			return nil, fmt.Errorf("the worker reports about %.40q, which is no isolation layer", string(s.Layer))
		case s.State != isolation.On || slices.Contains(selfLayers, s.Layer):
			r.Set(s)
		}
	}
	return r, nil
}

// enclose compares what is around a worker that is ready with the policy and with what the
// first worker had, before it gets its first untrusted byte (SPEC 15.2).
func (s *Spawner) enclose(child *Child) error {
	self, err := selfReport(child.Ready.Isolation)
	if err != nil {
		return err
	}
	for _, said := range self {
		if said.Layer == isolation.UserNamespace && child.way.user {
			// It kept our own user, which no policy means.
			return fmt.Errorf("the worker could not become the user that it should be: %s", said.Reason)
		}
	}
	r := slices.Clone(s.host)
	r.Merge(child.way.report(s))
	r.Merge(self)
	if err := verify(child.Pid(), child.uid, r); err != nil {
		return err
	}
	child.Report = r.Complete()
	if err := s.cfg.Policy.Check(child.Report); err != nil {
		return err
	}
	first := s.first.Load()
	if first == nil {
		s.first.CompareAndSwap(nil, &child.Report)
		return nil
	}
	for _, was := range *first {
		if now := child.Report.Get(was.Layer); was.State == isolation.On && now.State != isolation.On {
			return fmt.Errorf("%s was on for the first worker and is %s now (%s): walls do not get lower while nobody looks; restart the supervisor if the host has changed for good", was.Layer, now.State, now.Reason)
		}
	}
	return nil
}

// hostReport finds what is known before a worker is forked.
func (s *Spawner) hostReport() isolation.Report {
	r := parentLayers()
	r.Merge(s.groups.Report())
	for _, layer := range s.cfg.Without {
		r.Set(isolation.Status{Layer: layer, State: isolation.Off, Reason: "left out on purpose"})
	}
	return r
}

// Assign gives a worker the limits of the run that it is for: what its guest may use, and
// with it the process. It comes before the first untrusted byte. The error is the run's end: a
// wall that should be there is not, or it is not as wide as the run needs.
func (c *Child) Assign(guestBytes int64) error {
	var errs []error
	if c.Report.Get(isolation.CgroupMemory).State == isolation.On && guestBytes != c.order.GuestBytes {
		errs = append(errs, c.group.SetMemory(processBytes(guestBytes)))
	}
	if c.Report.Get(isolation.Rlimits).State == isolation.On {
		errs = append(errs, limitData(c.Pid(), dataBytes(guestBytes)))
	}
	return errors.Join(errs...)
}
