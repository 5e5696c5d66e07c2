//go:build linux

// Command init is the first process of the test VM (scripts/e2e-vm.sh): a machine with cgroup v2 only, and
// nothing in it but our static binaries. It prepares the machine, runs the steps below one after the
// other, and powers off. What it prints:
//
//	e2e-vm: kernel 6.1.0-57-cloud-amd64, up after 2.1s
//	e2e-vm: ok      3.4s  cgroup as root in the root cgroup (2 tests skipped)
//	e2e-vm: FAILED  0.2s  run as nobody: exit code 4, want 0
//	    … its whole output …
//	e2e-vm: verdict: 5 ok, 1 failed
//
// Under QEMU's emulation everything takes 10 to 20 times as long as outside.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A step is one program that has to end well.
type step struct {
	name string
	args []string // a program of /bin, with its arguments
	// group is the cgroup in which it starts; it is made at its first use. In "/" only a real root
	// can give controllers to others. "/x/main" is what systemd makes of a unit x with Delegate=yes and
	// DelegateSubgroup=main: x is the user's, and has no processes of its own.
	group  string
	nobody bool     // run it as uid 65534
	env    []string // beside HOME, TMPDIR and PATH
	exit   int      // the code that it has to end with
	says   string   // what has to be in its output; empty: anything
}

// mustRun makes a test that cannot run a failure.
var mustRun = []string{"CODEMODE_TEST_REQUIRE=1"}

// slow are tests of limits/lockdown that take minutes here: they run the filter in an interpreter of their own,
// which needs no kernel, or for many seconds by the clock, or start a process for each of some hundred attacks.
const slow = "-test.skip=^(TestFilter.*|Fuzz.*|TestUnprivileged|TestLive|TestAttacks|TestSingleLayers)$"

var steps = []step{
	{name: "limits/cgroup as root in the root cgroup", args: []string{"cgroup.test", "-test.v", "-test.run=^(TestMemory|TestPids|TestCPU|TestConfiguredParent|TestUnprivileged)$"}, group: "/", env: mustRun},
	{name: "limits/cgroup as root in a service", args: []string{"cgroup.test", "-test.v"}, group: "/service/main", env: mustRun},
	{name: "limits/cgroup as nobody in a delegated cgroup", args: []string{"cgroup.test", "-test.v"}, group: "/delegated/main", nobody: true, env: mustRun},
	{name: "limits/lockdown as root", args: []string{"lockdown.test", "-test.v", slow}, group: "/service/main"},
	{name: "limits/lockdown as nobody", args: []string{"lockdown.test", "-test.v", slow}, group: "/delegated/main", nobody: true},

	// A cell that takes 20 ms outside takes up to 4 s here, with an empty cache or a full one.
	{name: "supervisor run as root", args: cell("1 + 2"), group: "/service/main", says: "3"},
	{name: "supervisor run as nobody", args: cell("1 + 2"), group: "/delegated/main", nobody: true, says: "3"},
	{name: "supervisor run of a memory hog as nobody", args: cell(hog), group: "/delegated/main", nobody: true, exit: 3, says: "memory_limit_exceeded"},
	// Its guests have no limit of their own: the cgroup has to end it.
	{name: "supervisor run of a memory hog that only the cgroup stops", args: cell(bytes1M, "supervisor.worker=/bin/hungry-worker", "memoryLimitBytes=1048576"),
		group: "/service/main", exit: 3, says: "ended by signal 9 (killed)"},
	// All that Linux 6.1 has: Landlock's ABI 2 knows no network and no scopes.
	{name: "supervisor doctor --attack as root", args: doctor, group: "/service/main", says: "5 attacks: 5 refused"},
	{name: "supervisor doctor --attack as nobody", args: doctor, group: "/delegated/main", nobody: true, says: "5 attacks: 5 refused"},
}

var doctor = []string{"supervisor", "doctor", "--attack=^(open /etc/passwd|run /bin/sh|make a directory|socket of IPv4, UDP|map shared memory)$",
	"--set", "timeoutMs=60000", "--set", `supervisor.isolation.require=["namespace", "empty_root", "cgroup", "rlimits", "capabilities", "no_new_privs", "landlock.files", "seccomp", "parent_death"]`}

const bytes1M = "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))"

const hog = "const a = []; for (;;) a.push(new Array(1e5).fill(a.length))"

// cell is a command that runs a cell, with as much time as it may have.
func cell(source string, set ...string) []string {
	args := []string{"supervisor", "run", "--set", "timeoutMs=60000"}
	for _, field := range set {
		args = append(args, "--set", field)
	}
	return append(args, "-e", source)
}

// stepTimeout ends a step that hangs; the script ends a VM that does.
const stepTimeout = 60 * time.Second

const nobody = 65534

func main() {
	if os.Getpid() != 1 {
		return // this is /bin/true, which attacks try to start
	}
	err := prepare()
	if err != nil {
		fmt.Println("e2e-vm: preparing the machine:", err)
	} else {
		runAll()
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// prepare mounts what programs expect, under a root that is no initramfs: pivot_root(2) refuses that one.
func prepare() error {
	if err := newRoot(); err != nil {
		return err
	}
	for _, m := range []struct{ source, dir, kind, options string }{
		{"proc", "/proc", "proc", ""},
		{"sysfs", "/sys", "sysfs", ""},
		{"devtmpfs", "/dev", "devtmpfs", ""},
		{"tmpfs", "/tmp", "tmpfs", "mode=1777"},
		{"cgroup2", cgroups, "cgroup2", "nsdelegate"},
	} {
		if err := os.MkdirAll(m.dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.source, m.dir, m.kind, 0, m.options); err != nil {
			return fmt.Errorf("mounting %q: %w", m.dir, err)
		}
	}
	if err := victims(); err != nil {
		return err
	}
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return err
	}
	uptime, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return err
	}
	seconds, _, _ := strings.Cut(string(uptime), " ")
	fmt.Printf("e2e-vm: kernel %s, up after %ss\n", unix.ByteSliceToString(name.Release[:]), seconds)
	return nil
}

const cgroups = "/sys/fs/cgroup"

// newRoot moves /bin into a tmpfs and makes that the root.
func newRoot() error {
	const root = "/root.new"
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mounting the new root: %w", err)
	}
	if err := os.CopyFS(filepath.Join(root, "bin"), os.DirFS("/bin")); err != nil {
		return err
	}
	if err := os.RemoveAll("/bin"); err != nil { // its memory
		return err
	}
	return errors.Join(os.Chdir(root), unix.Mount(".", "/", "", unix.MS_MOVE, ""), unix.Chroot("."), os.Chdir("/"))
}

// victims makes what attacks try to read and to start: that it is refused proves something only where it
// exists.
func victims() error {
	const users = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n"
	return errors.Join(
		os.MkdirAll("/etc", 0o755),
		os.WriteFile("/etc/passwd", []byte(users), 0o644),
		os.Symlink("true", "/bin/sh"),
	)
}

func runAll() {
	arguments, _ := os.ReadFile("/proc/cmdline")
	verbose := strings.Contains(string(arguments), "e2e.verbose")
	ok, failed := 0, 0
	for _, s := range steps {
		if _, err := os.Stat(s.program()); err != nil {
			fmt.Printf("e2e-vm: not in this VM: %s\n", s.name)
			continue
		}
		start := time.Now()
		output, err := s.run()
		took := time.Since(start).Seconds()
		note := ""
		if skipped := strings.Count(output, "--- SKIP"); skipped > 0 {
			note = fmt.Sprintf(" (%d tests skipped)", skipped)
		}
		if err == nil {
			ok++
			fmt.Printf("e2e-vm: ok     %5.1fs  %s%s\n", took, s.name, note)
		} else {
			failed++
			fmt.Printf("e2e-vm: FAILED %5.1fs  %s%s: %v\n", took, s.name, note, err)
		}
		if err == nil && !verbose {
			continue
		}
		for line := range strings.Lines(output) {
			fmt.Printf("    %s\n", strings.TrimRight(line, "\r\n"))
		}
	}
	fmt.Printf("e2e-vm: verdict: %d ok, %d failed\n", ok, failed)
}

func (s step) program() string { return filepath.Join("/bin", s.args[0]) }

// run runs the step and looks at what it left.
func (s step) run() (output string, err error) {
	group, err := s.enter()
	if err != nil {
		return "", err
	}
	defer group.Close()
	home, err := s.home()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	defer cancel()
	var out bytes.Buffer
	c := exec.CommandContext(ctx, s.program(), s.args[1:]...)
	c.Dir = home
	c.Env = append([]string{"HOME=" + home, "TMPDIR=/tmp", "PATH=/bin"}, s.env...)
	c.Stdout, c.Stderr = &out, &out
	c.WaitDelay = 5 * time.Second // for those that hold its output after its end
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(group.Fd())}
	if s.nobody {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		err = fmt.Errorf("not done after %v", stepTimeout)
	case errors.As(err, &exit) && exit.Exited() || err == nil:
		err = nil
		if code := c.ProcessState.ExitCode(); code != s.exit {
			err = fmt.Errorf("exit code %d, want %d", code, s.exit)
		} else if !strings.Contains(out.String(), s.says) {
			err = fmt.Errorf("%q is not in its output", s.says)
		}
	}
	return out.String(), errors.Join(err, leftovers())
}

// home makes the user's home.
func (s step) home() (string, error) {
	uid := 0
	if s.nobody {
		uid = nobody
	}
	dir := fmt.Sprintf("/tmp/home-%d", uid)
	return dir, errors.Join(os.MkdirAll(dir, 0o700), os.Chown(dir, uid, uid))
}

// enter makes the step's cgroup as systemd would, and opens its directory.
func (s step) enter() (*os.File, error) {
	dir := filepath.Join(cgroups, s.group)
	if s.group != "/" {
		unit := filepath.Dir(dir)
		if err := os.WriteFile(filepath.Join(cgroups, "cgroup.subtree_control"), []byte("+memory +pids +cpu"), 0); err != nil {
			return nil, err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, err
		}
		for _, d := range []string{unit, dir} {
			for _, file := range []string{"", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"} {
				uid := 0
				if s.nobody {
					uid = nobody
				}
				if err := os.Chown(filepath.Join(d, file), uid, uid); err != nil {
					return nil, err
				}
			}
		}
	}
	return os.Open(dir)
}

// leftovers is an error about processes and cgroups that a step left (SPEC 14.2). What was killed
// a moment ago gets a moment to be gone; what stays is killed, for the next step's sake.
func leftovers() error {
	var left []string
	for wait := time.Millisecond; wait < 2*time.Second; wait *= 2 {
		if left = append(processes(), instances()...); len(left) == 0 {
			return nil
		}
		time.Sleep(wait)
	}
	_ = unix.Kill(-1, unix.SIGKILL) // everybody but us
	processes()
	return fmt.Errorf("it left %q", left)
}

// processes lists all processes but us and the kernel's.
func processes() []string {
	for { // orphans are ours
		if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); pid <= 0 || err != nil {
			break
		}
	}
	var found []string
	programs, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range programs {
		if program, err := os.Readlink(link); err == nil && link != "/proc/1/exe" { // the kernel's threads have none
			found = append(found, filepath.Dir(link)+" "+program)
		}
	}
	return found
}

// instances lists the cgroups of our making.
func instances() []string {
	var found []string
	_ = filepath.WalkDir(cgroups, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "codemode-") {
			found = append(found, path)
			return fs.SkipDir
		}
		return nil // what is gone meanwhile is no leftover
	})
	return found
}
