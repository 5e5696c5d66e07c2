package toolfile

import "syscall"

// attributes gives a program a group of its own, and its death when the thread that
// started it ends: with the supervisor, even by SIGKILL. Go keeps threads that no goroutine
// has locked. What the program itself has started survives that.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
