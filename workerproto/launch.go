package workerproto

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Launch is what a worker is told by its arguments (PROTOCOL.md, "Before the first frame"). Not by its
// environment: that is empty, and stays so in /proc/PID/environ.
type Launch struct {
	CacheDir string   // its compiled code
	Plan     string   // for its lock-down: a lockdown.Plan
	Vars     []string // NAME=VALUE: what go-plugin would put into the environment, the cookie among it
	Attack   bool     // make attacks instead of running a cell (SPEC 15.3)
	Spare    bool     // nobody waits for this start: prepare what can be prepared
}

const (
	// WorkerName is a worker's argv[0], which ps shows.
	WorkerName = "codemode-worker"

	attackVar = "CODEMODE_ATTACK=1"
	spareVar  = "CODEMODE_SPARE=1"
	socketVar = "PLUGIN_UNIX_SOCKET_DIR="
)

// Args gives the arguments for a launch, the program's name among them.
func (l Launch) Args() []string {
	args := append([]string{WorkerName, l.CacheDir, l.Plan}, l.Vars...)
	if l.Attack {
		args = append(args, attackVar)
	}
	if l.Spare {
		args = append(args, spareVar)
	}
	return args
}

// ParseLaunch reads a worker's arguments. It is false for a process that no supervisor started.
func ParseLaunch(argv []string) (Launch, bool) {
	if len(argv) < 3 || argv[0] != WorkerName {
		return Launch{}, false
	}
	l := Launch{CacheDir: argv[1], Plan: argv[2]}
	for _, v := range argv[3:] {
		switch v {
		case attackVar:
			l.Attack = true
		case spareVar:
			l.Spare = true
		default:
			l.Vars = append(l.Vars, v)
		}
	}
	return l, slices.Contains(l.Vars, CookieKey+"="+CookieValue)
}

// Handshake gives the line that go-plugin waits for on a worker's stdout, for a version of the
// protocol. It names a socket, as the line has to, and there is none: nobody will connect.
func (l Launch) Handshake(version uint) string {
	dir := ""
	for _, v := range l.Vars {
		if d, ok := strings.CutPrefix(v, socketVar); ok {
			dir = d
		}
	}
	const core = 1 // go-plugin's CoreProtocolVersion
	return fmt.Sprintf("%d|%d|unix|%s|netrpc|\n", core, version, filepath.Join(dir, "none"))
}
