// Package cgroup puts each worker into a control group of its own: memory, pids and cpu
// limits that the kernel keeps, a way to kill all that came of the worker, and the counters
// that say why it died (SPEC 13.3, 15.1, 16.2, 16.3).
//
//	host, err := cgroup.Open(policy.CgroupParent())
//	…
//	defer host.Close()
//	group, err := host.New(cgroup.Limits{MemoryBytes: 256 << 20, Pids: 64, CPUs: 1})
//	…
//	attr.UseCgroupFD, attr.CgroupFD = group.FD() >= 0, group.FD()
//	// start the worker; it runs only our code until its first frame
//	err = group.Join(pid, attr.UseCgroupFD)
//	…
//	err = group.Kill()          // reap the worker
//	counters := group.Counters()
//	err = group.Remove()
//
// Control groups come as trees ("hierarchies"): one of version 2, and on older hosts one for
// each version 1 controller. A group here is a directory in each tree that we need: the v2
// tree, where processes can be born inside and killed together, and those v1 trees whose
// controllers the v2 tree lacks. Both may exist, with all of the controllers in v1 (systemd's
// "hybrid").
//
//	PARENT/codemode-<32 hex digits>/      one for each Host; it holds a flock on it while it lives
//	PARENT/codemode-<32 hex digits>/w1/   one for each Group
//
// The flock is how others know that the owner lives: a Host that opens removes the groups
// beside its own whose lock is free, with what runs in them. It touches no directory with
// another form of name.
//
// Whoever calls [Open] closes the Host, whoever calls [Host.New] removes the Group. All
// methods may be called from any goroutine.
//
// What this does not do: memory that a process used before it joined stays with its old
// group (about 10 MB of a worker's own start on v1, nothing where it is born inside); a
// process that an operator froze with the v1 freezer dies only when it is thawed.
//
// Read for more: cgroups(7), Linux Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/.
package cgroup
