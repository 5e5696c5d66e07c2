package workerproto

import (
	"os"
	"strings"
)

// Launch is what a worker is told by its arguments (PROTOCOL.md, "Before the first frame"). Not by its
// environment: that is empty, and stays so in /proc/PID/environ.
type Launch struct {
	CacheDir string   // its compiled code
	Plan     string   // for its lock-down: a lockdown.Plan
	Vars     []string // NAME=VALUE: what go-plugin and the Go runtime look for in the environment
	Attack   bool     // make attacks instead of running a cell (SPEC 15.3); set by [AttackVar]
}

const (
	// WorkerName is a worker's argv[0], which ps shows.
	WorkerName = "codemode-worker"

	// AttackVar, among the variables, makes a worker wait for attacks to make.
	AttackVar = "CODEMODE_ATTACK=1"
)

// Args gives the arguments for a launch, the program's name among them.
func (l Launch) Args() []string {
	args := append([]string{WorkerName, l.CacheDir, l.Plan, "TZ="}, l.Vars...) // TZ: no look at /etc/localtime behind the lock-down
	if l.Attack {
		args = append(args, AttackVar)
	}
	return args
}

// ParseLaunch reads a worker's arguments. It is false for a process that no supervisor started.
func ParseLaunch(argv []string) (Launch, bool) {
	if len(argv) < 3 || argv[0] != WorkerName {
		return Launch{}, false
	}
	l := Launch{CacheDir: argv[1], Plan: argv[2]}
	cookie := false
	for _, v := range argv[3:] {
		switch v {
		case AttackVar:
			l.Attack = true
		case CookieKey + "=" + CookieValue:
			cookie = true
			fallthrough
		default:
			l.Vars = append(l.Vars, v)
		}
	}
	return l, cookie
}

// Setenv puts the variables into the process's own environment, which the kernel does not see.
func (l Launch) Setenv() {
	for _, v := range l.Vars {
		if name, value, ok := strings.Cut(v, "="); ok {
			os.Setenv(name, value)
		}
	}
}
