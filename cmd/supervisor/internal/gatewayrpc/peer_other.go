//go:build !linux && !darwin

package gatewayrpc

import (
	"errors"
	"net"
)

// peer says no: nobody is let in whose user is not known.
func peer(*net.UnixConn) (uid, pid int, err error) {
	return 0, 0, errors.New("this system does not tell who connected")
}
