package cgroup

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	hybridMounts = `23 1 254:0 / / rw,relatime - ext4 /dev/root rw
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 master:3 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
`
	hybridSelf = `9:name=systemd:/user.slice
8:pids:/user.slice/a:b
4:memory:/process_api/f73a
2:cpu,cpuacct:/
0::/user.slice/session-1.scope
`
	pureMounts = `29 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`
	containerMounts = `700 680 0:30 /docker/abc /sys/fs/cgroup/memory ro,nosuid - cgroup cgroup rw,memory
701 680 0:31 /docker/abc /sys/fs/cgroup/pids ro,nosuid - cgroup cgroup rw,pids
`
	outsideMounts = `29 23 0:26 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw
`
	escapedMounts = `29 23 0:26 / /mnt/a\040tree\134x\011 rw - cgroup2 cgroup2 rw
`
)

// SPEC 15.1 (cgroups of v2, and of v1 where the host still has them): where our cgroup is, on every kind of
// host.
func TestFindsOurCgroup(t *testing.T) {
	for _, c := range []struct {
		name, mounts, self string
		want               map[string]string // by controller; "" is the v2 tree
	}{
		{"hybrid", hybridMounts, hybridSelf, map[string]string{
			"memory": "/sys/fs/cgroup/memory/process_api/f73a",
			"pids":   "/sys/fs/cgroup/pids/user.slice/a:b",
			"cpu":    "/sys/fs/cgroup/cpu,cpuacct",
			"":       "/sys/fs/cgroup/unified/user.slice/session-1.scope",
		}},
		{"pure v2", pureMounts, "0::/system.slice/x.service/supervisor\n", map[string]string{"": "/sys/fs/cgroup/system.slice/x.service/supervisor"}},
		{"cgroup namespace", pureMounts, "0::/\n", map[string]string{"": "/sys/fs/cgroup"}},
		{"container without a cgroup namespace", containerMounts, "5:memory:/docker/abc\n6:pids:/docker/abc/in\n", map[string]string{
			"memory": "/sys/fs/cgroup/memory", "pids": "/sys/fs/cgroup/pids/in",
		}},
		{"a neighbour's mount", containerMounts, "5:memory:/docker/abcd\n6:pids:/\n", map[string]string{}},
		{"a mount from outside of our namespace", outsideMounts, "0::/\n", map[string]string{}},
		{"outside of our own namespace", pureMounts, "0::/../x\n", map[string]string{}},
		{"octal escapes", escapedMounts, "0::/a\n", map[string]string{"": "/mnt/a tree\\x\t/a"}},
		{"nothing mounted", "23 1 254:0 / / rw - ext4 /dev/root rw\n", "0::/\n", map[string]string{}},
		{"no cgroups in the kernel", pureMounts, "", map[string]string{}},
	} {
		mounts, self := parseMounts(c.mounts), parseSelf(c.self)
		got := map[string]string{}
		for _, controller := range append(slices.Clone(controllers), "") {
			for _, m := range mounts {
				if (controller == "") != m.v2 || !m.v2 && !slices.Contains(m.controllers, controller) {
					continue
				}
				if name, ok := ownName(m, self); ok {
					if dir, ok := m.dir(name); ok {
						got[controller] = dir
					}
				}
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestParsersRefuse(t *testing.T) {
	for _, line := range []string{"", "\n", "1 2 3 4 5 - cgroup2 x rw", "29 23 0:26 / /a rw - cgroup2", "29 23 0:26 / /a rw shared:4", " - - - "} {
		if got := parseMounts(line); got != nil {
			t.Errorf("parseMounts(%q) = %+v, want none", line, got)
		}
	}
	for _, line := range []string{"", "0:", "0:::", "4:memory", "4:memory:relative", "1::/a"} {
		if got := parseSelf(line); got != nil {
			t.Errorf("parseSelf(%q) = %+v, want none", line, got)
		}
	}
}

// SPEC 13.4: cgroupParent is a cgroup's name or its directory.
func TestParentName(t *testing.T) {
	mounts := parseMounts(hybridMounts + containerMounts)
	for _, c := range []struct{ parent, want string }{
		{"/codemode.slice", "/codemode.slice"},
		{"/a/b/", "/a/b"},
		{"/sys/fs/cgroup/unified/a/b", "/a/b"},
		{"/sys/fs/cgroup/unified", "/"},
		{"/sys/fs/cgroup/cpu,cpuacct/a", "/a"},
		{"/sys/fs/cgroupx", "/sys/fs/cgroupx"},
		{"codemode.slice", ""},
		{"/a/../../b", ""},
		{".", ""},
	} {
		if got, ok := parentName(c.parent, mounts); got != c.want || ok != (c.want != "") {
			t.Errorf("parentName(%q) = %q, %t, want %q", c.parent, got, ok, c.want)
		}
	}
	if got, _ := parentName("/sys/fs/cgroup/memory/a", parseMounts(containerMounts)); got != "/docker/abc/a" {
		t.Errorf("in a container: %q, want /docker/abc/a", got)
	}
}

func TestField(t *testing.T) {
	const events = "low 0\nhigh 0\nmax 19\noom 1\noom_kill 2\noom_group_kill x\n"
	for key, want := range map[string]int64{"max": 19, "oom": 1, "oom_kill": 2, "oom_group_kill": 0, "none": 0, "oo": 0} {
		if got := field(events, key); got != want {
			t.Errorf("field(%q) = %d, want %d", key, got, want)
		}
	}
}

// Only this form is ever removed (SPEC 16.3).
func TestInstanceName(t *testing.T) {
	good := "codemode-" + strings.Repeat("0af9", 8)
	if !instanceName.MatchString(good) {
		t.Errorf("%q is no instance's name", good)
	}
	for _, bad := range []string{good[1:], good + "0", good[:len(good)-1], strings.ToUpper(good), good + "\n", "codemode-", "x" + good} {
		if instanceName.MatchString(bad) {
			t.Errorf("%q is an instance's name", bad)
		}
	}
}

// Whatever is in these files, a directory that comes out of them is inside of its mount.
func FuzzFind(f *testing.F) {
	for _, m := range []string{hybridMounts, pureMounts, containerMounts, outsideMounts, escapedMounts} {
		f.Add(m, hybridSelf, "/sys/fs/cgroup/unified/a")
		f.Add(m, "0::/../x (deleted)\n", "/codemode.slice")
	}
	f.Fuzz(func(t *testing.T, mountinfo, cgroups, parent string) {
		mounts, self := parseMounts(mountinfo), parseSelf(cgroups)
		names := []string{}
		if name, ok := parentName(parent, mounts); ok {
			names = append(names, name)
		}
		for _, m := range mounts {
			if name, ok := ownName(m, self); ok {
				names = append(names, name)
			}
			for _, name := range names {
				dir, ok := m.dir(name)
				if _, inside := below(dir, m.point); ok && !hasDotDot(m.point) && strings.HasPrefix(m.point, "/") && m.point == path.Clean(m.point) && !inside {
					t.Errorf("%q of %+v is %q", name, m, dir)
				}
			}
		}
	})
}

// What the kernel escapes, unescape gives back.
func FuzzUnescape(f *testing.F) {
	f.Add("a tree\\x\t\n")
	f.Add(`\040\`)
	f.Fuzz(func(t *testing.T, s string) {
		escaped := strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(s)
		if got := unescape(escaped); got != s {
			t.Errorf("unescape(%q) = %q, want %q", escaped, got, s)
		}
		unescape(s)
	})
}

func FuzzField(f *testing.F) {
	f.Add("oom_kill 2\nmax 1\n", "max")
	f.Fuzz(func(t *testing.T, text, key string) { field(text, key) })
}
