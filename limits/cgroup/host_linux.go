package cgroup

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"golang.org/x/sys/unix"
)

// Host is where one supervisor's workers get their groups. A Host without any tree that it may
// use works too: its groups are no groups.
type Host struct {
	trees  []*tree
	status map[string]isolation.Status // by controller
	born   bool                        // the kernel has CLONE_INTO_CGROUP
	number atomic.Int64                // of the last group

	mu     sync.RWMutex // held by New for reading: Close waits until its groups are complete
	closed bool         // guarded by mu
	err    error        // guarded by mu: of Close
}

// A tree is one of the host's trees, with our instance's group in it.
type tree struct {
	v2          bool
	controllers []string // those of ours that work here; on v2 maybe none
	point       string   // the mount's directory
	parent      string   // the directory in which ours is
	dir         string   // our instance's
	lock        int      // a descriptor of dir, with the flock that says that we live
}

// controllers are those that we use, in the order of the layers. Memory comes first; see enable.
var controllers = []string{"memory", "pids", "cpu"}

var layer = map[string]isolation.Layer{
	"memory": isolation.CgroupMemory,
	"pids":   isolation.CgroupPids,
	"cpu":    isolation.CgroupCPU,
}

const (
	remedyV2 = "run the supervisor in a systemd unit with Delegate=yes and DelegateSubgroup=supervisor, or set supervisor.isolation.cgroupParent to a delegated cgroup without processes of its own, or run as root"
	remedyV1 = "set supervisor.isolation.cgroupParent to a cgroup that this user may write, or run as root"
)

// Open looks for the cgroup under which this process may make others, removes there what dead
// instances left, and makes the group of this instance.
//
// parent is a cgroup's name as in /proc/PID/cgroup ("/codemode.slice"), or the path of its
// directory; it has to exist. Empty means the supervisor's own cgroup; on v2, where a cgroup
// with processes in it cannot give controllers to its children, the one above it.
// Controllers that parent does not give to its children yet are switched on in its
// cgroup.subtree_control, and stay so.
//
// Open does not fail for lack of rights: the layers are unavailable then, and [Host.Report]
// says why. It fails for a configured parent under which no limit at all can be had.
func Open(parent string) (*Host, error) {
	mounts, self, err := trees()
	name := ""
	if parent != "" {
		var ok bool
		if name, ok = parentName(parent, mounts); !ok {
			return nil, fmt.Errorf("supervisor.isolation.cgroupParent is %q; it must be an absolute path: a cgroup's name as in /proc/PID/cgroup, or its directory", parent)
		}
	}

	h := &Host{status: map[string]isolation.Status{}, born: intoCgroup()}
	id := newID()
	h.openV2(mounts, self, name, id)
	h.openV1(mounts, self, name, id)
	for _, t := range h.trees {
		h.probe(t)
	}
	if err != nil {
		for _, c := range controllers {
			h.unavailable(c, err.Error(), "mount /proc")
		}
	}
	if parent != "" && !slices.ContainsFunc(controllers, h.has) {
		why := h.status["memory"]
		_ = h.Close() // the reason is the better news
		return nil, fmt.Errorf("supervisor.isolation.cgroupParent is %q, and no limit can be had under it: %s (%s)", parent, why.Reason, why.Remedy)
	}
	return h, nil
}

// trees reads where cgroup trees are mounted, and our places in them.
func trees() ([]mount, []membership, error) {
	mountinfo, err := readFile("/proc/self/mountinfo")
	if err != nil {
		return nil, nil, err
	}
	self, err := readFile("/proc/self/cgroup")
	if gone(err) { // a kernel without cgroups
		return nil, nil, nil
	}
	return parseMounts(mountinfo), parseSelf(self), err
}

// openV2 takes the v2 tree, if there is one.
func (h *Host) openV2(mounts []mount, self []membership, name, id string) {
	m, own, ok := reach(mounts, self, name, func(m mount) bool { return m.v2 })
	if !ok {
		return
	}
	candidates := []string{own}
	if name == "" && own != m.point {
		candidates = append(candidates, filepath.Dir(own))
	}
	// The candidate that gives the most controllers is first; without any, a group can still be
	// born in and killed.
	var reasons []string
	given := map[string][]string{}
	note := func(err error) {
		if err != nil && !slices.Contains(reasons, err.Error()) {
			reasons = append(reasons, err.Error())
		}
	}
	for _, dir := range candidates {
		enabled, err := enable(dir)
		given[dir] = enabled
		note(err)
	}
	slices.SortStableFunc(candidates, func(a, b string) int { return len(given[b]) - len(given[a]) })
	for _, dir := range candidates {
		t := &tree{v2: true, point: m.point, parent: dir}
		if err := t.make(id); err != nil {
			note(err)
			continue
		}
		h.trees = append(h.trees, t)
		if len(given[dir]) > 0 {
			// The same again, one level down: for the workers' groups.
			enabled, err := enable(t.dir)
			t.controllers = enabled
			note(err)
		}
		break
	}
	// What the tree has and we have not is said here; what it has not, openV1 looks for.
	listed, _ := words(filepath.Join(m.point, "cgroup.controllers"))
	for _, c := range controllers {
		if slices.Contains(listed, c) {
			h.unavailable(c, strings.Join(reasons, "; "), remedyV2)
		}
	}
}

// enable makes the v2 cgroup dir give our controllers to its children, and tells which ones it
// gives. The error says why some are missing.
func enable(dir string) ([]string, error) {
	wanted, err := words(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return nil, err
	}
	control := filepath.Join(dir, "cgroup.subtree_control")
	given, err := words(control)
	if err != nil {
		return nil, err
	}
	if len(intersect(wanted)) > len(intersect(given)) {
		if err := unix.Access(dir, unix.W_OK); err != nil {
			return intersect(given), noGroup(dir, err)
		}
		// A cgroup with processes of its own, unless it is the tree's real root (which has no
		// cgroup.type), cannot give the memory controller to its children: EBUSY. It could
		// give pids and cpu, and its children would then be of no use to anybody ("domain
		// invalid"). So do not even try.
		if busy, _ := readFile(filepath.Join(dir, "cgroup.procs")); busy != "" && exists(filepath.Join(dir, "cgroup.type")) {
			return intersect(given), fmt.Errorf("cgroup %q has processes of its own, so that it cannot give controllers to others", dir)
		}
	}
	var errs []error
	for _, c := range controllers {
		if !slices.Contains(wanted, c) {
			errs = append(errs, fmt.Errorf("%q does not list %q", filepath.Join(dir, "cgroup.controllers"), c))
		} else if !slices.Contains(given, c) {
			if err := writeFile(control, "+"+c); err != nil {
				errs = append(errs, err)
			}
		}
	}
	given, err = words(control)
	return intersect(given), errors.Join(append(errs, err)...)
}

// intersect leaves those of list that are ours.
func intersect(list []string) []string {
	var ours []string
	for _, c := range controllers {
		if slices.Contains(list, c) {
			ours = append(ours, c)
		}
	}
	return ours
}

// openV1 takes the v1 trees of those controllers that the v2 tree does not know at all.
func (h *Host) openV1(mounts []mount, self []membership, name, id string) {
	for _, c := range controllers {
		if h.has(c) || h.status[c].Reason != "" {
			continue
		}
		m, dir, ok := reach(mounts, self, name, func(m mount) bool { return !m.v2 && slices.Contains(m.controllers, c) })
		if !ok && name != "" {
			h.unavailable(c, fmt.Sprintf("no cgroup tree with the controller %s has a cgroup %q", c, name), "make it, or set supervisor.isolation.cgroupParent to one that exists")
			continue
		}
		if !ok {
			h.unavailable(c, "no cgroup tree with the controller "+c+" can be reached", "mount one with the controller "+c+", or boot without cgroup_disable="+c)
			continue
		}
		// "cpu,cpuacct" is one tree; one with two of ours is taken once.
		if i := slices.IndexFunc(h.trees, func(t *tree) bool { return t.point == m.point }); i >= 0 {
			h.trees[i].controllers = append(h.trees[i].controllers, c)
			continue
		}
		t := &tree{controllers: []string{c}, point: m.point, parent: dir}
		if err := t.make(id); err != nil {
			h.unavailable(c, err.Error(), remedyV1)
			continue
		}
		h.trees = append(h.trees, t)
	}
}

// reach gives the first mount that is asked for and shows our own cgroup (or the one of that name),
// with the cgroup's directory.
func reach(mounts []mount, self []membership, name string, want func(mount) bool) (mount, string, bool) {
	for _, m := range mounts {
		cgroup, ok := name, name != ""
		if !want(m) {
			continue
		}
		if !ok {
			if cgroup, ok = ownName(m, self); !ok {
				continue
			}
		}
		dir, ok := m.dir(cgroup)
		if !ok {
			continue
		}
		magic := int64(unix.CGROUP_SUPER_MAGIC)
		if m.v2 {
			magic = unix.CGROUP2_SUPER_MAGIC
		}
		var fs unix.Statfs_t
		// No such directory: our cgroup was removed, or this is another namespace's view of it. Another
		// file system: something is mounted above it, a tmpfs for one, in which mkdir would work as well.
		if unix.Statfs(dir, &fs) == nil && int64(fs.Type) == magic {
			return m, dir, true
		}
	}
	return mount{}, "", false
}

// instanceName is the only form of directory that is ever removed.
var instanceName = regexp.MustCompile(`^codemode-[0-9a-f]{32}$`)

// newID is the random part of an instance's name: 128 bits.
func newID() string {
	var id [16]byte
	rand.Read(id[:])
	return hex.EncodeToString(id[:])
}

// make makes our instance's group in the tree and locks it, after it removed what dead instances left.
func (t *tree) make(id string) error {
	sweep(t.parent)
	var err error
	for range 8 { // a sweep of another process may take the new directory before it has its lock
		dir := filepath.Join(t.parent, "codemode-"+id)
		// Closed to others: whoever can open it can hold its lock.
		if err = unix.Mkdir(dir, 0o700); err != nil {
			return noGroup(t.parent, err)
		}
		if t.lock, err = lock(dir); err == nil {
			t.dir = dir
			return nil
		}
		_ = unix.Rmdir(dir)
		id = newID()
	}
	return err
}

// noGroup says where a group could not be made, without its random name: reasons are compared, and shown
// once.
func noGroup(parent string, err error) error {
	return fmt.Errorf("making a cgroup in %q: %w", parent, err)
}

// lock takes a directory's flock (flock(2); the directories of cgroups have it as others do) and makes
// sure that the path still leads to it.
func lock(dir string) (int, error) {
	fd, err := open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	var held, found unix.Stat_t
	if _, err = retry(func() (int, error) { return 0, unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) }); err == nil {
		if err = errors.Join(unix.Fstat(fd, &held), unix.Lstat(dir, &found)); err == nil && (held.Dev != found.Dev || held.Ino != found.Ino) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("locking cgroup %q: %w", dir, err)
	}
	return fd, nil
}

// sweep removes the groups of instances whose owners are gone: those whose lock is free (SPEC 16.3).
// What cannot be removed stays for the next one.
func sweep(parent string) {
	for _, dir := range children(parent) {
		if !instanceName.MatchString(filepath.Base(dir)) {
			continue
		}
		if fd, err := lock(dir); err == nil {
			_ = killTree(dir)
			_ = removeTree(dir)
			unix.Close(fd)
		}
	}
}

// has tells whether a controller works in one of the trees.
func (h *Host) has(controller string) bool {
	return slices.ContainsFunc(h.trees, func(t *tree) bool { return slices.Contains(t.controllers, controller) })
}

func (h *Host) unavailable(controller, reason, remedy string) {
	if strings.Contains(reason, unix.EROFS.Error()) {
		remedy = "mount the cgroup tree read-write; in a container that is an option of its runtime"
	}
	h.status[controller] = isolation.Status{Layer: layer[controller], State: isolation.Unavailable, Reason: reason, Remedy: remedy}
}

// probe takes away the controllers whose limits cannot be written or do not read back, in a group like
// a worker's. Nothing else proves that a limit would hold.
func (h *Host) probe(t *tree) {
	dir := filepath.Join(t.dir, "w0")
	err := unix.Mkdir(dir, 0o700)
	if err != nil {
		err = noGroup(t.dir, err)
	}
	t.controllers = slices.DeleteFunc(t.controllers, func(c string) bool {
		err := err
		if err == nil {
			err = t.try(c, dir)
		}
		if err != nil {
			h.unavailable(c, err.Error(), t.name(remedyV2, remedyV1))
		}
		return err != nil
	})
	_ = unix.Rmdir(dir)
}

// try sets a limit and reads it.
func (t *tree) try(controller, dir string) error {
	var file, want string
	var err error
	switch controller {
	case "memory":
		file, want = t.name("memory.max", "memory.limit_in_bytes"), "67108864"
		err = t.setMemory(dir, 67108864)
		if err == nil && !t.v2 {
			err = t.wakeOOMKiller()
		}
	case "pids":
		file, want = "pids.max", "64"
		err = t.setPids(dir, 64)
	case "cpu":
		file, want = t.name("cpu.max", "cpu.cfs_quota_us"), t.name("1000 100000", "1000")
		err = t.setCPU(dir, 0.01)
	}
	if err != nil {
		return err
	}
	got, err := readFile(filepath.Join(dir, file))
	if err == nil && strings.TrimSpace(got) != want {
		err = fmt.Errorf("%q reads back as %q, not %q", filepath.Join(dir, file), strings.TrimSpace(got), want)
	}
	return err
}

// wakeOOMKiller undoes memory.oom_control's oom_kill_disable, which a v1 group has from the one above
// it: processes that reach their limit would hang there instead of dying.
func (t *tree) wakeOOMKiller() error {
	file := filepath.Join(t.dir, "memory.oom_control")
	text, err := readFile(file)
	if err == nil && field(text, "oom_kill_disable") != 0 {
		err = writeFile(file, "0") // what is made below it from now on has it too
	}
	return err
}

// name picks one of two by the tree's version.
func (t *tree) name(v2, v1 string) string {
	if t.v2 {
		return v2
	}
	return v1
}

// intoCgroup tells whether the kernel has CLONE_INTO_CGROUP (Linux 5.7) and lets us use it: some
// container runtimes refuse clone3(2). The call cannot succeed: the descriptor is out of range. A kernel
// that knows it says EINVAL; one that does not, E2BIG for a longer struct than it knows, or ENOSYS.
func intoCgroup() bool {
	const cloneIntoCgroup = 1 << 33
	args := [11]uint64{0: cloneIntoCgroup, 10: 1 << 63} // struct clone_args: flags first, cgroup last
	_, _, errno := unix.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	return errno == unix.EINVAL
}

// Report says what became of the layers cgroup.memory, cgroup.pids and cgroup.cpu. One is on if its
// limit could be written in a group like a worker's, and read back.
func (h *Host) Report() isolation.Report {
	var r isolation.Report
	for _, c := range controllers {
		if h.has(c) {
			r.On(layer[c])
		} else {
			r.Set(h.status[c])
		}
	}
	return r
}

// New makes one worker's group, with its limits. Every write is checked: after an error nothing of the
// group is left.
func (h *Host) New(l Limits) (*Group, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.closed {
		return nil, errors.New("making a worker's cgroup: the host is closed")
	}
	g := &Group{fd: -1, name: "w" + strconv.FormatInt(h.number.Add(1), 10)}
	if err := g.make(h, l); err != nil {
		return nil, errors.Join(fmt.Errorf("making a worker's cgroup: %w", err), g.Remove())
	}
	return g, nil
}

// Close kills what is left in this instance's groups and removes them. Called again, it gives the same
// error.
func (h *Host) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return h.err
	}
	h.closed = true
	var errs []error
	for _, t := range h.trees {
		errs = append(errs, killTree(t.dir), removeTree(t.dir))
		unix.Close(t.lock)
	}
	h.err = errors.Join(errs...)
	return h.err
}
