//go:build !linux

package channel

import (
	"net"
	"os"
)

// Open takes over the descriptor of a stream socket.
func Open(fd uintptr) (Conn, error) {
	f := os.NewFile(fd, "channel")
	defer f.Close()
	return net.FileConn(f)
}
