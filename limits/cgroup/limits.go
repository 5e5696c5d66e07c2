package cgroup

// Limits are what one group may use. A zero field leaves that controller alone; so does one
// whose layer is not on in [Host.Report].
type Limits struct {
	// MemoryBytes is memory.max, and no swap beside it. The kernel rounds it down to whole
	// pages. v1: memory.limit_in_bytes, and memory.memsw.limit_in_bytes where there is one.
	MemoryBytes uint64

	// Pids is pids.max: processes and threads. Above it clone(2) fails with EAGAIN.
	Pids int

	// CPUs is how many CPUs' time the group gets, in each period of 100 ms; 0.5 is 50 ms of
	// it. cpu.max; v1: cpu.cfs_quota_us. The kernel's least is 0.01.
	CPUs float64
}

// Counters are what the kernel counted in one group. What the kernel does not count is 0.
type Counters struct {
	// OOMKills is how many of its processes the OOM killer ended; with memory.oom.group it
	// may count one death twice, so compare with 0. memory.events oom_kill; v1:
	// memory.oom_control oom_kill (Linux 4.13).
	OOMKills int64

	// PeakBytes is the most memory the group ever had. memory.peak (Linux 5.19); v1:
	// memory.max_usage_in_bytes.
	PeakBytes int64

	// PidsMax is how many times clone(2) failed for pids.max. pids.events max.
	PidsMax int64

	// Throttled is in how many periods the group had used up its CPU time. cpu.stat
	// nr_throttled.
	Throttled int64
}
