//go:build linux

package lockdown

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// ownPid is the pid in the filters of these tests.
const ownPid = 4321

// verdict is the filter's answer to one call, in x/net/bpf's machine. That loads big-endian
// words, so struct seccomp_data is laid out in them; the halves of an argument keep their order.
func verdict(t testing.TB, vm *bpf.VM, audit, nr uint32, args [6]uint64) uint32 {
	t.Helper()
	var data [64]byte
	put := func(at int, v uint32) { binary.BigEndian.PutUint32(data[at:], v) }
	put(0, nr)
	put(4, audit)
	put(8, 0xdead) // the instruction pointer decides nothing
	for i, a := range args {
		put(16+8*i, uint32(a))
		put(20+8*i, uint32(a>>32))
	}
	got, err := vm.Run(data[:])
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}

func machine(t testing.TB, arch string) *bpf.VM {
	t.Helper()
	program, err := filter(arch, ownPid)
	if err != nil {
		t.Fatal(err)
	}
	vm, err := bpf.NewVM(program)
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

var audits = map[string]uint32{"amd64": 0xc000003e, "arm64": 0xc00000b7} // linux/audit.h

// expected is SPEC 15.1's allow-list written down a second time, from the manual pages and the
// kernel's tables and not from filter.go: numbers, flags and answers are literals here.
func expected(arch string, nr uint32, args [6]uint64) uint32 {
	const enosys, einval, enotty = 0x00050000 | 38, 0x00050000 | 22, 0x00050000 | 25
	yes := func(ok bool) uint32 {
		if ok {
			return 0x7fff0000
		}
		return 0x80000000
	}
	in := func(v uint64, set ...uint64) bool {
		for _, x := range set {
			if v == x {
				return true
			}
		}
		return false
	}
	names := map[uint32]string{
		0: "read", 1: "write", 3: "close", 9: "mmap", 11: "munmap", 14: "rt_sigprocmask", 15: "rt_sigreturn", 16: "ioctl",
		24: "sched_yield", 28: "madvise", 35: "nanosleep", 39: "getpid", 56: "clone", 60: "exit", 131: "sigaltstack",
		157: "prctl", 186: "gettid", 202: "futex", 219: "restart_syscall", 228: "clock_gettime", 231: "exit_group",
		233: "epoll_ctl", 234: "tgkill", 271: "ppoll", 281: "epoll_pwait", 318: "getrandom", 435: "clone3",
	}
	threads := uint64(0xd0f00)
	if arch == "arm64" {
		names = map[uint32]string{
			21: "epoll_ctl", 22: "epoll_pwait", 29: "ioctl", 57: "close", 63: "read", 64: "write", 73: "ppoll", 93: "exit",
			94: "exit_group", 98: "futex", 101: "nanosleep", 113: "clock_gettime", 124: "sched_yield", 128: "restart_syscall",
			131: "tgkill", 132: "sigaltstack", 135: "rt_sigprocmask", 139: "rt_sigreturn", 167: "prctl", 172: "getpid",
			178: "gettid", 215: "munmap", 220: "clone", 222: "mmap", 233: "madvise", 278: "getrandom", 435: "clone3",
		}
		threads = 0x50f00
	}
	switch names[nr] {
	case "":
		return yes(false)
	case "clone3":
		return enosys
	case "prctl":
		return einval
	case "ioctl":
		if args[1] == 0x5401 { // TCGETS
			return enotty
		}
		return yes(false)
	case "clone":
		return yes(args[0] == threads)
	case "mmap":
		return yes(args[2] <= 3 && in(args[3], 0x22, 0x32, 0x4022, 0x4032, 0x28))
	case "madvise":
		return yes(in(args[2]&0xffffffff, 4, 8, 14, 15, 25))
	case "futex":
		return yes(in(args[1]&0xffffffff, 128, 129))
	case "tgkill":
		return yes(args[0]&0xffffffff == ownPid)
	}
	return yes(true)
}

// interesting argument values: flags that are allowed, their neighbours, and both halves.
var interesting = []uint64{
	0, 1, 2, 3, 4, 5, 7, 8, 14, 15, 25, 100, 101, 0x22, 0x28, 0x32, 0x38, 0x21, 0x4022, 0x4032, 0x4028, 0x100022, 128, 129, 130, 134, 139,
	0x5400, 0x5401, 0x5402, 0x5412, 1<<32 | 0x5401, 0x50f00, 0xd0f00, 0x1000_0000, 0x100d0f00, 0x11, ownPid, ownPid - 1, ownPid + 1, 1 << 31, 1<<32 - 1, 1 << 32,
	1<<32 | 0x22, 1<<32 | 0xd0f00, 1<<32 | 0x50f00, 1<<32 | ownPid, 1<<32 | 3, 1<<63 | 128, 1<<64 - 1,
}

// SPEC 15.1: "seccomp allow-list (kill on violation)": every number of both architectures, with
// interesting values in each argument.
func TestFilterEveryCall(t *testing.T) {
	for arch, audit := range audits {
		vm := machine(t, arch)
		allowed := 0
		check := func(nr uint32, args [6]uint64) uint32 {
			want := expected(arch, nr, args)
			if got := verdict(t, vm, audit, nr, args); got != want {
				t.Fatalf("%s: call %d%v: got %#x, want %#x", arch, nr, args, got, want)
			}
			return want
		}
		for nr := uint32(0); nr <= 600; nr++ {
			some := false
			for i := range 4 {
				for _, v := range interesting {
					args := [6]uint64{0, 0, 0, 0, 5, 6}
					args[i] = v
					some = check(nr, args) != kill || some
				}
			}
			// mmap's two flag words are the only pair that is looked at together.
			for _, v := range interesting {
				for _, w := range interesting {
					some = check(nr, [6]uint64{0, 1 << 20, v, w, 1<<64 - 1, 0}) != kill || some
				}
			}
			if some {
				allowed++
			}
		}
		if want := len(calls(arch, ownPid)); allowed != want {
			t.Errorf("%s: %d numbers are answered by anything but a kill, %d are in the list", arch, allowed, want)
		}
		for nr := uint32(0); nr <= 600; nr++ {
			for _, bits := range []uint32{0x40000000, 0x80000000, 0xc0000000, 0x20000000, 0x10000} {
				check(nr|bits, [6]uint64{}) // x32 and nonsense
			}
		}
		check(1<<32-1, [6]uint64{}) // what a tracer puts there to skip a call
	}
}

// Every other architecture is killed, whatever the number: the kernel of amd64 also answers
// 32-bit calls, that of arm64 also arm's.
func TestFilterForeignArchitectures(t *testing.T) {
	for arch, own := range audits {
		vm := machine(t, arch)
		for _, audit := range []uint32{audits["amd64"], audits["arm64"], 0x40000003 /* i386 */, 0x40000028 /* arm */, 0xc00000f3 /* riscv64 */, 0, 1<<32 - 1} {
			if audit == own {
				continue
			}
			for nr := uint32(0); nr <= 600; nr++ {
				if got := verdict(t, vm, audit, nr, [6]uint64{}); got != kill {
					t.Fatalf("%s: call %d of architecture %#x: got %#x", arch, nr, audit, got)
				}
			}
		}
	}
	if _, err := filter("riscv64", ownPid); err == nil {
		t.Error("a filter was made for an architecture that has no list")
	}
}

// FuzzFilter: no arguments whatever get more than the second list allows. The properties that
// matter are checked once more by themselves.
func FuzzFilter(f *testing.F) {
	for _, nr := range []uint32{9, 28, 56, 202, 234, 98, 131, 220, 222, 233} {
		for _, v := range interesting {
			f.Add(true, nr, v, v, v, v, v, v)
			f.Add(false, nr, v, v, uint64(3), uint64(0x22), v, v)
		}
	}
	machines := map[string]*bpf.VM{"amd64": machine(f, "amd64"), "arm64": machine(f, "arm64")}
	f.Fuzz(func(t *testing.T, arm bool, nr uint32, a, b, c, d, e, g uint64) {
		arch, mmap, clone, tgkill, threads := "amd64", uint32(9), uint32(56), uint32(234), uint64(0xd0f00)
		if arm {
			arch, mmap, clone, tgkill, threads = "arm64", 222, 220, 131, 0x50f00
		}
		args := [6]uint64{a, b, c, d, e, g}
		got := verdict(t, machines[arch], audits[arch], nr, args)
		if want := expected(arch, nr, args); got != want {
			t.Errorf("%s: call %d%x: got %#x, want %#x", arch, nr, args, got, want)
		}
		if got != allow {
			return
		}
		switch {
		case nr == mmap && c&unix.PROT_EXEC != 0:
			t.Errorf("%s: mmap of executable memory: %x", arch, args)
		case nr == mmap && d&unix.MAP_ANONYMOUS == 0:
			t.Errorf("%s: mmap of a file: %x", arch, args)
		case nr == clone && a != threads:
			t.Errorf("%s: clone of something but a thread: %x", arch, args)
		case nr == tgkill && uint32(a) != ownPid:
			t.Errorf("%s: tgkill of another process: %x", arch, args)
		}
	})
}

// The numbers are those of x/sys, for the architecture that does not run this test as well.
func TestFilterNumbers(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("requires the go command, to find golang.org/x/sys")
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	if err != nil {
		t.Fatal(err)
	}
	for arch := range audits {
		source, err := os.ReadFile(filepath.Join(string(dir[:len(dir)-1]), "unix", "zsysnum_linux_"+arch+".go"))
		if err != nil {
			t.Fatal(err)
		}
		numbers := map[string]uint32{}
		for _, m := range regexp.MustCompile(`(?m)^\s+SYS_(\w+)\s+= (\d+)$`).FindAllSubmatch(source, -1) {
			n, _ := strconv.ParseUint(string(m[2]), 10, 32)
			numbers[string(m[1])] = uint32(n)
		}
		for _, c := range calls(arch, ownPid) {
			nr := c.amd64
			if arch == "arm64" {
				nr = c.arm64
			}
			if want, ok := numbers[strings.ToUpper(c.name)]; !ok || nr != want {
				t.Errorf("%s is %d on %s, x/sys says %d", c.name, nr, arch, want)
			}
		}
	}
}

// The kernel refuses more than 4096 instructions, and a jump of more than 255.
func TestFilterAssembles(t *testing.T) {
	for arch := range audits {
		program, err := filter(arch, ownPid)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := assemble(program)
		if err != nil || len(raw) != len(program) {
			t.Errorf("%s: %d instructions of %d, %v", arch, len(raw), len(program), err)
		}
	}
}

func BenchmarkFilterBuild(b *testing.B) {
	for b.Loop() {
		program, err := filter(runtime.GOARCH, ownPid)
		if err == nil {
			_, err = assemble(program)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
