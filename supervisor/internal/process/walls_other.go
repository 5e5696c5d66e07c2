//go:build !linux

package process

import (
	"syscall"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// way is how a worker is forked; here there is only one.
type way struct {
	user   bool
	mapped bool
	born   bool
	why    error
}

func (way) has(isolation.Layer) bool { return false }

func (*Spawner) ways() []way { return []way{{}} }

func (way) attributes(int) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func (way) identify(pid, uid, gid int) error { return nil }

func refused(error) bool { return false }

func (way) report(*Spawner) isolation.Report {
	var r isolation.Report
	for _, layer := range []isolation.Layer{
		isolation.UserNamespace, isolation.MountNamespace, isolation.PIDNamespace, isolation.NetworkNamespace,
		isolation.IPCNamespace, isolation.UTSNamespace, isolation.CgroupNamespace,
	} {
		r.Set(notHere(layer))
	}
	return r
}

func notHere(layer isolation.Layer) isolation.Status {
	return isolation.Status{Layer: layer, State: isolation.Unavailable, Reason: "Linux has it, this system does not", Remedy: "run the supervisor on Linux"}
}

// parentLayers are the layers that every fork here has. There is no parent-death signal: the
// worker ends when it sees its channel close.
func parentLayers() isolation.Report {
	var r isolation.Report
	r.On(isolation.ProcessGroup)
	r.Set(notHere(isolation.ParentDeath))
	return r
}

// limitData does nothing here: a process's limits cannot be set from outside.
func limitData(int, uint64) error { return nil }

func verify(pid, uid int, r isolation.Report) error { return nil }

func checkHost() error { return nil }
