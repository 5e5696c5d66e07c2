//go:build unix

package process

import "syscall"

// killGroup kills the process group that pid leads. That it is gone is no error.
func killGroup(pid int) {
	if pid > 1 {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
