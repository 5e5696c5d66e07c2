// Package lockdown is the self half of a worker's isolation (SPEC 15.1): what a process can only
// take from itself, taken before its first untrusted byte.
//
//	lock := lockdown.Begin(plan, workerproto.ChannelFD+1) // first thing in main
//	…                                                     // load the engine, shake hands
//	report := lock.Finish()                               // from here on nothing can be opened
//	if err := conn.Write(report); err != nil { return }   // nobody is left to obey
//
// The supervisor gives the [Plan], compares the report with the operator's policy and kills a
// worker that lacks a required layer; nothing here decides. Whatever a step does, it then asks
// the kernel whether that holds, and reports what the kernel says.
//
// # The order, and why
//
// Begin does what needs /proc, or is cheaper while the process has few threads:
//
//  1. environment: /proc/self/environ is empty (proc_pid_environ(5)).
//  2. descriptors: those that were inherited are closed. They are the ones without FD_CLOEXEC;
//     all that the Go runtime opens has it.
//  3. oom_score: oom_score_adj 1000, so that the kernel takes the worker and not its supervisor.
//  4. capabilities, first half: the bounding set is emptied, which needs CAP_SETPCAP.
//     PR_CAPBSET_DROP drops one capability of one thread, so it is some forty rounds through all
//     threads: about 2 ms with those that a process begins with, 6 ms with eight more
//     (BenchmarkBoundingSet). It is by far the dearest step; a pool of spare workers hides it.
//
// Between the two the worker may read its compiled-code cache and shake hands. Finish then goes
// from what needs most rights to what takes the last:
//
//  1. identity: setgroups, setresgid, setresuid to the user namespace's root, which the host maps
//     to a uid that owns nothing. Until here the worker has its parent's uid.
//  2. parent_death: a change of uid clears PR_SET_PDEATHSIG (PR_SET_PDEATHSIG(2const)), so it is
//     armed again. A parent that died in between is found by the first write to the channel.
//  3. empty_root: needs CAP_SYS_ADMIN. pivot_root(2) moves all threads, because Go's share their
//     root (CLONE_FS). Where / is an initramfs it answers EINVAL; then the new root is moved over
//     the old one, and chroot(2), for which CAP_SYS_CHROOT must be among the ambient ones.
//  4. rlimits: setrlimit(2), hard and soft.
//  5. capabilities, second half: securebits locked, all sets emptied, not dumpable.
//  6. no_new_privs: without it an unprivileged process has neither Landlock nor seccomp.
//  7. landlock.*: deny-all, of everything that the kernel's ABI knows. It comes after the empty
//     root because a domain forbids mount(2).
//  8. seccomp: last, because the filter forbids all of the above. SECCOMP_FILTER_FLAG_TSYNC puts
//     it on all threads at once, or on none: then seccomp(2) returns a thread's id, not an error.
//
// What is per thread in the kernel and has no flag for all of them goes through
// [syscall.AllThreadsSyscall], which stops the world and kills the process if any thread's answer
// differs. That does not exist in binaries with cgo, whose C library also makes other system
// calls than the filter allows: in those, the layers from capabilities on are unavailable.
//
// # What the worker must do
//
//   - Be built with CGO_ENABLED=0.
//   - Say //go:debug updatemaxprocs=0, containermaxprocs=0 and decoratemappings=0: else Go 1.25
//     and later read the CPU limits again every second, which is SIGSYS.
//   - Use no local time before Begin, which sets [time.Local] to UTC: the first use would open
//     /etc/localtime.
//   - Have all files open, and started all that opens any, before Finish.
//
// # What it does not stop
//
// The kernel behind some thirty system calls stays in reach, and so do the CPU's side channels.
// Landlock before ABI 3 does not handle truncate(2), before ABI 10 no UDP; vsock and netlink
// sockets it never handles. seccomp alone stops those. See SECURITY.md.
package lockdown
