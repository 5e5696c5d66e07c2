//go:build unix

package process

import (
	"os"
	"syscall"
)

// killGroup kills the process group that pid leads. That it is gone is no error.
func killGroup(pid int) {
	if pid > 1 {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}

// ours tells whether a file belongs to our user.
func ours(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
