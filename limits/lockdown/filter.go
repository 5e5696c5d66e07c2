//go:build linux

package lockdown

import (
	"fmt"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A call is a system call that a locked worker may make. It has its number on each architecture,
// so that each filter can be made, and tested, on every other.
type call struct {
	name         string
	amd64, arm64 uint32
	answer       uint32 // seccomp's return value if all rules hold
	rules        []rule
}

// A rule says which values half of an argument may have. There are at least two halves because
// BPF computes with 32 bits; one is enough where the kernel itself takes an int.
type rule struct {
	word   uint32   // where it is in struct seccomp_data
	ignore uint32   // bits that may be anything
	values []uint32 // what the others may be
}

const (
	allow = unix.SECCOMP_RET_ALLOW
	kill  = unix.SECCOMP_RET_KILL_PROCESS

	nrWord, archWord = 0, 4 // struct seccomp_data in seccomp(2)
)

// low and high are an argument's halves, counted from 0; both architectures are little-endian.
func low(arg uint32) uint32  { return 16 + 8*arg }
func high(arg uint32) uint32 { return low(arg) + 4 }

func refuse(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// The flags with which Go makes a thread: runtime.cloneFlags in runtime/os_linux.go, to which
// amd64 adds CLONE_SETTLS in assembly.
const threadFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES | unix.CLONE_SIGHAND | unix.CLONE_SYSVSEM | unix.CLONE_THREAD

// calls is the whole list, those that a waiting or computing worker makes most first. Who adds
// one says what dies without it, and adds it to the test's own table.
func calls(arch string, pid int) []call {
	flags := uint32(threadFlags)
	if arch == "amd64" {
		flags |= unix.CLONE_SETTLS
	}
	const private = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	return []call{
		// Frames and the error pipe; the runtime's eventfd.
		{"read", 0, 63, allow, nil},
		{"write", 1, 64, allow, nil},
		// The channel waits with a deadline.
		{"ppoll", 271, 73, allow, nil},
		// The scheduler, and only what it uses: neither PI nor requeue, where the holes were.
		{"futex", 202, 98, allow, []rule{{word: low(1), values: []uint32{128, 129}}}}, // FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE
		// The poller, which was made before.
		{"epoll_pwait", 281, 22, allow, nil},
		{"epoll_ctl", 233, 21, allow, nil},
		// The heap and the guest's memory. No file, nothing shared, and nothing executable: all
		// code was mapped before. MAP_DROPPABLE is for the vDSO's getrandom, once a few dozen
		// threads have drawn random numbers.
		{"mmap", 9, 222, allow, []rule{
			{word: low(2), ignore: unix.PROT_READ | unix.PROT_WRITE, values: []uint32{0}},
			{word: high(2), values: []uint32{0}},
			{word: low(3), values: []uint32{
				private, private | unix.MAP_FIXED, private | unix.MAP_NORESERVE, private | unix.MAP_FIXED | unix.MAP_NORESERVE,
				unix.MAP_DROPPABLE | unix.MAP_ANONYMOUS,
			}},
			{word: high(3), values: []uint32{0}},
		}},
		// A thread's stack at its end; a guest's memory when it is closed.
		{"munmap", 11, 215, allow, nil},
		// The heap gives memory back and, like the guest's memory, asks for huge pages. Not the
		// advices that pin, poison or inject pages.
		{"madvise", 28, 233, allow, []rule{{word: low(2), values: []uint32{
			unix.MADV_DONTNEED, unix.MADV_FREE, unix.MADV_HUGEPAGE, unix.MADV_NOHUGEPAGE, unix.MADV_COLLAPSE,
		}}}},
		// The monitor's pauses, and spinning.
		{"nanosleep", 35, 101, allow, nil},
		{"sched_yield", 24, 124, allow, nil},
		// Where the vDSO cannot read the clock itself, as with some hypervisors' clock sources.
		{"clock_gettime", 228, 113, allow, nil},
		// The vDSO draws a new seed now and then.
		{"getrandom", 318, 278, allow, nil},
		// A new thread: exactly Go's flags, so neither a process nor a namespace.
		{"clone", 56, 220, allow, []rule{{word: low(0), values: []uint32{flags}}, {word: high(0), values: []uint32{0}}}},
		// A filter cannot see clone3's flags, which are in memory. Programs that get ENOSYS use
		// clone (seccomp(2) has no better way either); Go never asks.
		{"clone3", 435, 435, refuse(unix.ENOSYS), nil},
		// The first steps of a new thread.
		{"sigaltstack", 131, 132, allow, nil},
		{"rt_sigprocmask", 14, 135, allow, nil},
		{"gettid", 186, 178, allow, nil},
		// Preemption of a goroutine by SIGURG to its thread, never to another process.
		{"getpid", 39, 172, allow, nil},
		{"tgkill", 234, 131, allow, []rule{{word: low(0), values: []uint32{uint32(pid)}}}},
		// The end of every signal handler, that of a nil dereference among them.
		{"rt_sigreturn", 15, 139, allow, nil},
		// What a wait goes on with after SIGCONT or the thaw of a cgroup.
		{"restart_syscall", 219, 128, allow, nil},
		// The end of a descriptor, of a thread, and of the process.
		{"close", 3, 57, allow, nil},
		{"exit", 60, 93, allow, nil},
		{"exit_group", 231, 94, allow, nil},
		// Go names its mappings (PR_SET_VMA) until it is told that it cannot. The answer also
		// proves that the filter is there.
		{"prctl", 157, 167, refuse(unix.EINVAL), nil},
		// esbuild asks before each transform whether stderr is a terminal. It is told that it is not.
		{"ioctl", 16, 29, refuse(unix.ENOTTY), []rule{{word: low(1), values: []uint32{unix.TCGETS}}, {word: high(1), values: []uint32{0}}}},
	}
}

// filter is the allow-list as a program: everything else kills the process, as do other
// architectures' calls, 32-bit ones among them, and x32's.
func filter(arch string, pid int) ([]bpf.Instruction, error) {
	audit := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[arch]
	if audit == 0 {
		return nil, fmt.Errorf("there is no system-call list for %s", arch)
	}
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archWord, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: audit, SkipTrue: 1},
		bpf.RetConstant{Val: kill},
		// An x32 number is one of amd64's with bit 30 set, and equals none in the list.
		bpf.LoadAbsolute{Off: nrWord, Size: 4},
	}
	for _, c := range calls(arch, pid) {
		nr := c.amd64
		if arch == "arm64" {
			nr = c.arm64
		}
		block := c.block()
		p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: nr, SkipFalse: uint8(len(block))})
		p = append(p, block...)
	}
	return append(p, bpf.RetConstant{Val: kill}), nil
}

// block ends in a return whatever happens, so what comes after it still has the number loaded.
func (c call) block() []bpf.Instruction {
	var b []bpf.Instruction
	for _, r := range c.rules {
		b = append(b, bpf.LoadAbsolute{Off: r.word, Size: 4})
		if r.ignore != 0 {
			b = append(b, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^r.ignore})
		}
		for i, v := range r.values {
			// Past the other values and the kill, to the next rule.
			b = append(b, bpf.JumpIf{Cond: bpf.JumpEqual, Val: v, SkipTrue: uint8(len(r.values) - i)})
		}
		b = append(b, bpf.RetConstant{Val: kill})
	}
	return append(b, bpf.RetConstant{Val: c.answer})
}

// assemble gives the form that the kernel takes.
func assemble(program []bpf.Instruction) ([]unix.SockFilter, error) {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("assembling the system-call filter: %w", err)
	}
	out := make([]unix.SockFilter, len(raw))
	for i, r := range raw {
		out[i] = unix.SockFilter{Code: r.Op, Jt: r.Jt, Jf: r.Jf, K: r.K}
	}
	return out, nil
}
