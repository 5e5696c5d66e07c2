package isolation

import "slices"

// Layer is the name of one layer, as in isolation.require, telemetry and doctor.
type Layer string

// The layers (SPEC 15.1), in the order in which reports list them.
const (
	ProcessGroup     Layer = "process_group"     // own session and process group: setsid(2)
	Environment      Layer = "environment"       // /proc/PID/environ is empty
	Descriptors      Layer = "descriptors"       // the channel, a bounded stderr, and what the Go runtime needs
	ParentDeath      Layer = "parent_death"      // PR_SET_PDEATHSIG, armed by a thread that lives as long as the supervisor
	UserNamespace    Layer = "namespace.user"    // user_namespaces(7); as root also a uid of its own
	MountNamespace   Layer = "namespace.mount"   // mount_namespaces(7)
	PIDNamespace     Layer = "namespace.pid"     // pid_namespaces(7): what it forks dies with it
	NetworkNamespace Layer = "namespace.network" // network_namespaces(7): a loopback that is down
	IPCNamespace     Layer = "namespace.ipc"     // ipc_namespaces(7)
	UTSNamespace     Layer = "namespace.uts"     // uts_namespaces(7)
	CgroupNamespace  Layer = "namespace.cgroup"  // cgroup_namespaces(7)
	EmptyRoot        Layer = "empty_root"        // pivot_root(2) into an empty, read-only tmpfs
	CgroupMemory     Layer = "cgroup.memory"     // memory.max, memory.oom.group; v1: memory.limit_in_bytes
	CgroupPids       Layer = "cgroup.pids"       // pids.max
	CgroupCPU        Layer = "cgroup.cpu"        // cpu.max; v1: cpu.cfs_quota_us
	Rlimits          Layer = "rlimits"           // setrlimit(2): core, fsize, nofile, nproc, cpu, data, memlock …
	OOMScore         Layer = "oom_score"         // oom_score_adj 1000: the first to go
	Capabilities     Layer = "capabilities"      // all sets empty, the bounding set too: capabilities(7)
	NoNewPrivs       Layer = "no_new_privs"      // PR_SET_NO_NEW_PRIVS
	LandlockFiles    Layer = "landlock.files"    // landlock(7), ABI 1, Linux 5.13
	LandlockNetwork  Layer = "landlock.network"  // TCP bind and connect: ABI 4, Linux 6.7
	LandlockScopes   Layer = "landlock.scopes"   // signals and abstract sockets: ABI 6, Linux 6.12
	Seccomp          Layer = "seccomp"           // allow-list, kill on violation, all threads: seccomp(2)
)

// layers fixes their order.
var layers = []Layer{
	ProcessGroup, Environment, Descriptors, ParentDeath,
	UserNamespace, MountNamespace, PIDNamespace, NetworkNamespace, IPCNamespace, UTSNamespace, CgroupNamespace, EmptyRoot,
	CgroupMemory, CgroupPids, CgroupCPU, Rlimits, OOMScore,
	Capabilities, NoNewPrivs, LandlockFiles, LandlockNetwork, LandlockScopes, Seccomp,
}

// Layers lists all layers, in the order of reports.
func Layers() []Layer { return slices.Clone(layers) }

// index is the layer's place in the order, -1 for a name that is none.
func (l Layer) index() int { return slices.Index(layers, l) }

// State is what became of a layer.
type State string

// The states.
const (
	On          State = "on"          // the kernel enforces it
	Off         State = "off"         // it could be had and was left out on purpose
	Unavailable State = "unavailable" // this host, or this user, cannot have it
)

// Status is one layer's state.
type Status struct {
	Layer  Layer  `json:"layer"`
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"` // why it is not on: the call that failed, and how
	Remedy string `json:"remedy,omitempty"` // what an operator can do about that
}

// Report is what became of the layers, each of them at most once. The zero value is empty and
// ready to use.
type Report []Status

// Set puts a layer's state into the report, in place of what it had.
func (r *Report) Set(s Status) {
	if i := slices.IndexFunc(*r, func(x Status) bool { return x.Layer == s.Layer }); i >= 0 {
		(*r)[i] = s
		return
	}
	*r = append(*r, s)
}

// On notes that a layer is on.
func (r *Report) On(layer Layer) { r.Set(Status{Layer: layer, State: On}) }

// Merge puts all states of other into the report.
func (r *Report) Merge(other Report) {
	for _, s := range other {
		r.Set(s)
	}
}

// Get gives a layer's state; one that nobody reported is unavailable.
func (r Report) Get(layer Layer) Status {
	for _, s := range r {
		if s.Layer == layer {
			return s
		}
	}
	return Status{Layer: layer, State: Unavailable, Reason: "nothing was reported about it"}
}

// Complete gives the report with every layer in it, in order.
func (r Report) Complete() Report {
	all := make(Report, 0, len(layers))
	for _, layer := range layers {
		all = append(all, r.Get(layer))
	}
	return all
}

// Missing gives the layers that are not on, in order.
func (r Report) Missing() Report {
	var missing Report
	for _, layer := range layers {
		if s := r.Get(layer); s.State != On {
			missing = append(missing, s)
		}
	}
	return missing
}
