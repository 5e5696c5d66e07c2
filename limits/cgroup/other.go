//go:build !linux

package cgroup

import "github.com/openclaw/codemode-supervisor/limits/isolation"

// Host is where one supervisor's workers get their groups: here, nowhere.
type Host struct{}

// Group is one worker's group: here, nothing.
type Group struct{}

// Open gives a Host whose layers are all unavailable. A parent is ignored: only a policy that
// requires the layers makes them an error.
func Open(parent string) (*Host, error) { return &Host{}, nil }

// Report says that there are no cgroups here.
func (h *Host) Report() isolation.Report {
	var r isolation.Report
	for _, l := range []isolation.Layer{isolation.CgroupMemory, isolation.CgroupPids, isolation.CgroupCPU} {
		r.Set(isolation.Status{Layer: l, State: isolation.Unavailable, Reason: "cgroups are Linux's", Remedy: "run on Linux"})
	}
	return r
}

// Close does nothing.
func (h *Host) Close() error { return nil }

// New gives a group that does nothing.
func (h *Host) New(l Limits) (*Group, error) { return &Group{}, nil }

// FD is -1.
func (g *Group) FD() int { return -1 }

// Join does nothing.
func (g *Group) Join(pid int, born bool) error { return nil }

// SetMemory does nothing.
func (g *Group) SetMemory(bytes uint64) error { return nil }

// Kill does nothing.
func (g *Group) Kill() error { return nil }

// Counters are zero.
func (g *Group) Counters() Counters { return Counters{} }

// Remove does nothing.
func (g *Group) Remove() error { return nil }
