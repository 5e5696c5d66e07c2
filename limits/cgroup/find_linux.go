package cgroup

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// A mount is one mount of a cgroup tree, as /proc/self/mountinfo lists it (proc_pid_mountinfo(5)).
type mount struct {
	v2          bool
	controllers []string // v1: the controllers of the tree, "name=systemd" for one without
	root        string   // which cgroup of the tree is at point: "/", or another one in a container
	point       string   // where it is mounted
}

// parseMounts gives the cgroup mounts of /proc/self/mountinfo:
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//	(1)(2)(3)   (4)   (5)      (6)      (7)   (8) (9)   (10)         (11)
//
// What has another form is left out: kernels add fields, and other file systems are not our business.
func parseMounts(text string) []mount {
	var mounts []mount
	for line := range strings.Lines(text) {
		before, after, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		fields, super := strings.Split(before, " "), strings.Split(after, " ")
		if !ok || len(fields) < 6 || len(super) < 3 {
			continue
		}
		m := mount{root: unescape(fields[3]), point: unescape(fields[4])}
		switch super[0] {
		case "cgroup2":
			m.v2 = true
		case "cgroup":
			// The tree's controllers are among its options: rw,cpu,cpuacct.
			m.controllers = strings.Split(super[2], ",")
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape undoes the octal escapes of mountinfo: "\040" is a space. The kernel writes space, tab,
// newline and backslash so (and "#" in places).
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// A membership is a process's place in one tree.
type membership struct {
	controllers []string // none for the v2 tree
	name        string   // the cgroup, as seen from the root of our cgroup namespace
}

// parseSelf reads /proc/self/cgroup (cgroups(7)): "4:memory:/a/b", and "0::/a/b" for v2.
func parseSelf(text string) []membership {
	var all []membership
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 || !strings.HasPrefix(parts[2], "/") {
			continue
		}
		m := membership{name: parts[2]}
		if parts[1] != "" {
			m.controllers = strings.Split(parts[1], ",")
		} else if parts[0] != "0" {
			continue
		}
		all = append(all, m)
	}
	return all
}

// ownName is our cgroup in m's tree.
func ownName(m mount, self []membership) (string, bool) {
	for _, s := range self {
		if m.v2 && s.controllers == nil {
			return s.name, true
		}
		// "cpu,cpuacct" is one tree; its mount has the same controllers, and options beside them.
		if !m.v2 && s.controllers != nil && slices.Contains(m.controllers, s.controllers[0]) {
			return s.name, true
		}
	}
	return "", false
}

// below gives name relative to the cgroup dir: "" if it is the same one. Both are names with a leading
// "/". Names with ".." are outside of our cgroup namespace (cgroup_namespaces(7)); such a mount or
// cgroup cannot be reached by name.
func below(name, dir string) (string, bool) {
	if hasDotDot(name) || hasDotDot(dir) {
		return "", false
	}
	if dir == "/" {
		return strings.TrimPrefix(name, "/"), true
	}
	rest, ok := strings.CutPrefix(name, dir)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	return strings.TrimPrefix(rest, "/"), true
}

func hasDotDot(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

// dir is the directory of a cgroup in this mount, if the mount shows it.
func (m mount) dir(name string) (string, bool) {
	rest, ok := below(name, m.root)
	if !ok {
		return "", false
	}
	return path.Join(m.point, rest), true
}

// parentName makes a cgroup's name of what an operator wrote: the name itself, as /proc/PID/cgroup
// shows it, or the path of its directory in one of the mounts.
func parentName(parent string, mounts []mount) (string, bool) {
	if !strings.HasPrefix(parent, "/") || hasDotDot(parent) {
		return "", false
	}
	parent = path.Clean(parent)
	var at *mount
	for i, m := range mounts {
		// The longest one: on hybrid hosts /sys/fs/cgroup/unified is in /sys/fs/cgroup.
		if _, ok := below(parent, m.point); ok && (at == nil || len(m.point) > len(at.point)) {
			at = &mounts[i]
		}
	}
	if at == nil {
		return parent, true
	}
	rest, _ := below(parent, at.point)
	return path.Join(at.root, rest), true
}

// field gives the number behind a key in a file of "key number" lines, 0 if there is none: memory.events,
// memory.oom_control, pids.events, cpu.stat.
func field(text, key string) int64 {
	for line := range strings.Lines(text) {
		if k, v, _ := strings.Cut(strings.TrimSpace(line), " "); k == key {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return 0
}
