package gatewayrpc

import (
	"net"

	"golang.org/x/sys/unix"
)

// peer says who has the other end of a socket: who connected, or who listens. pid is 0 if it
// is not known.
func peer(c *net.UnixConn) (uid, pid int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Xucred
	if control := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		pid, _ = unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	}); control != nil {
		err = control
	}
	if err != nil {
		return 0, 0, err
	}
	return int(cred.Uid), pid, nil
}
