package cgroup

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// Group is one worker's group: a directory in each of the host's trees. [Group.Remove] ends it.
type Group struct {
	name  string
	trees []*tree // those in which it has a directory

	mu sync.Mutex
	fd int // guarded by mu: of the v2 directory, -1 if there is none
}

// make makes the directories and sets the limits.
func (g *Group) make(h *Host, l Limits) error {
	for _, t := range h.trees {
		dir := g.dir(t)
		if err := unix.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("making %q: %w", dir, err)
		}
		g.trees = append(g.trees, t)
		for _, c := range t.controllers {
			if err := t.limit(c, dir, l); err != nil {
				return err
			}
		}
		if t.v2 && h.born {
			fd, err := open(dir, unix.O_PATH|unix.O_DIRECTORY)
			if err != nil {
				return err
			}
			g.fd = fd
		}
	}
	return nil
}

func (g *Group) dir(t *tree) string { return filepath.Join(t.dir, g.name) }

// with gives the tree whose controller this is, nil if there is none.
func (g *Group) with(controller string) *tree {
	for _, t := range g.trees {
		if slices.Contains(t.controllers, controller) {
			return t
		}
	}
	return nil
}

// limit puts what l says about a controller into force.
func (t *tree) limit(controller, dir string, l Limits) error {
	switch {
	case controller == "memory" && l.MemoryBytes > 0:
		return t.setMemory(dir, l.MemoryBytes)
	case controller == "pids" && l.Pids > 0:
		return t.setPids(dir, l.Pids)
	case controller == "cpu" && l.CPUs > 0:
		return t.setCPU(dir, l.CPUs)
	}
	return nil
}

func (t *tree) setMemory(dir string, bytes uint64) error {
	// The kernel takes no more than the largest int64, which is as good as no limit.
	value := strconv.FormatUint(min(bytes, math.MaxInt64), 10)
	if !t.v2 {
		return setMemoryV1(dir, value)
	}
	// Without swap accounting there is no memory.swap.max; memory.oom.group came with Linux 4.19.
	for _, f := range []struct{ name, value string }{{"memory.swap.max", "0"}, {"memory.oom.group", "1"}} {
		if err := writeFile(filepath.Join(dir, f.name), f.value); err != nil && !gone(err) {
			return err
		}
	}
	return writeFile(filepath.Join(dir, "memory.max"), value)
}

// setMemoryV1 sets the limits of memory and of memory with swap. The second one, which exists only with
// swap accounting, is never lower than the first: EINVAL for the wrong order, which depends on
// what they were.
func setMemoryV1(dir, value string) error {
	memory, both := filepath.Join(dir, "memory.limit_in_bytes"), filepath.Join(dir, "memory.memsw.limit_in_bytes")
	if !exists(both) {
		return writeFile(memory, value)
	}
	err := writeFile(memory, value)
	if errors.Is(err, unix.EINVAL) {
		return errors.Join(writeFile(both, value), writeFile(memory, value))
	}
	if err != nil {
		return err
	}
	return writeFile(both, value)
}

func (t *tree) setPids(dir string, pids int) error {
	return writeFile(filepath.Join(dir, "pids.max"), strconv.Itoa(pids))
}

// period is that of the CPU limit, in microseconds: the kernel's default.
const period = 100000

func (t *tree) setCPU(dir string, cpus float64) error {
	// The kernel's least is 1 ms, and it takes no more than some days.
	quota := int64(min(max(cpus*period, 1000), 1e9))
	if t.v2 {
		return writeFile(filepath.Join(dir, "cpu.max"), fmt.Sprintf("%d %d", quota, period))
	}
	err := writeFile(filepath.Join(dir, "cpu.cfs_quota_us"), strconv.FormatInt(quota, 10))
	// v1 refuses a child that would get more than a cgroup above it, which is then the tighter limit.
	if errors.Is(err, unix.EINVAL) && t.tighter(quota) {
		return nil
	}
	return err
}

// tighter tells whether a cgroup above ours has less CPU time than quota in each period (v1).
func (t *tree) tighter(quota int64) bool {
	number := func(dir, file string) int64 {
		text, _ := readFile(filepath.Join(dir, file))
		n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
		return n
	}
	for dir := t.parent; ; dir = filepath.Dir(dir) {
		q, p := number(dir, "cpu.cfs_quota_us"), number(dir, "cpu.cfs_period_us")
		if q > 0 && p > 0 && q*period < quota*p {
			return true
		}
		if dir == t.point || dir == "/" {
			return false
		}
	}
}

// FD is a descriptor of the v2 group's directory, for SysProcAttr.CgroupFD: the process is born inside
// (CLONE_INTO_CGROUP, Linux 5.7). It is -1 without a v2 tree, on kernels and under filters
// that lack the call, and after [Group.Remove], which closes it.
func (g *Group) FD() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fd
}

// Join moves a process with all its threads into the group. born says that it was started with
// [Group.FD] and is in the v2 tree already. After an error it may be in some of the trees: kill it.
//
// A move costs 35 µs, and 6 to 15 ms now and then, when the kernel waits for an RCU grace period; the
// trees wait side by side.
func (g *Group) Join(pid int, born bool) error {
	var wg sync.WaitGroup
	errs := make([]error, len(g.trees))
	for i, t := range g.trees {
		if t.v2 && born {
			continue
		}
		wg.Go(func() { // ends with its one write
			errs[i] = writeFile(filepath.Join(g.dir(t), "cgroup.procs"), strconv.Itoa(pid))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("moving the worker into its cgroup: %w", err)
	}
	return nil
}

// SetMemory raises or lowers the memory limit of a group in use, in bytes; 0 changes nothing. A limit
// below what the group uses makes the kernel reclaim, then: v2 its OOM killer ends the group, v1 the call
// fails with EBUSY and the old limit stays.
func (g *Group) SetMemory(bytes uint64) error {
	t := g.with("memory")
	if t == nil || bytes == 0 {
		return nil
	}
	if err := t.setMemory(g.dir(t), bytes); err != nil {
		return fmt.Errorf("setting the worker's memory limit: %w", err)
	}
	return nil
}

// Kill sends SIGKILL to all processes of the group, those that left the worker's session too, and
// frozen ones. Where there is cgroup.kill (v2, Linux 5.14) it returns at once; else it takes the
// processes one by one until the group is empty, and fails if it is not after 2 s.
func (g *Group) Kill() error {
	for _, t := range g.trees {
		// Every process of the group is in the v2 tree, if there is one.
		if t.v2 && writeFile(filepath.Join(g.dir(t), "cgroup.kill"), "1") == nil {
			return nil
		}
	}
	var dirs []string
	for _, t := range g.trees {
		dirs = append(dirs, g.dir(t))
	}
	return killEach(dirs)
}

// Counters reads what the kernel counted. It must come before [Group.Remove].
func (g *Group) Counters() Counters {
	number := func(controller, v2, v1, key string) int64 {
		t := g.with(controller)
		if t == nil {
			return 0
		}
		text, _ := readFile(filepath.Join(g.dir(t), t.name(v2, v1))) // a counter that the kernel lacks is 0
		if key == "" {
			n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return n
		}
		return field(text, key)
	}
	return Counters{
		OOMKills:  number("memory", "memory.events", "memory.oom_control", "oom_kill"),
		PeakBytes: number("memory", "memory.peak", "memory.max_usage_in_bytes", ""),
		PidsMax:   number("pids", "pids.events", "pids.events", "max"),
		Throttled: number("cpu", "cpu.stat", "cpu.stat", "nr_throttled"),
	}
}

// Remove removes the group, whose processes must be dead or dying: it waits up to 2 s for the last of
// them. It may be called again, also after an error.
func (g *Group) Remove() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fd >= 0 {
		unix.Close(g.fd)
		g.fd = -1
	}
	var errs []error
	for _, t := range g.trees {
		errs = append(errs, remove(g.dir(t)))
	}
	return errors.Join(errs...)
}
