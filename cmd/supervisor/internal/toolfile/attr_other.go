//go:build !linux

package toolfile

import "syscall"

// attributes gives a program a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
