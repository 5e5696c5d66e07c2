package lockdown

import (
	"os"
	"slices"
	"strconv"
)

// KeepOnly closes every descriptor but those named, and the epoll and eventfd descriptors of the
// Go runtime's poller. It comes after all that opens something and before [Lockdown.Finish];
// files that the Go side still has open there are of no use afterwards.
func KeepOnly(fds ...int) error {
	return closeEach(func(fd int) bool {
		if slices.Contains(fds, fd) {
			return false
		}
		what, err := os.Readlink(fdDir + strconv.Itoa(fd))
		return err == nil && what != "anon_inode:[eventpoll]" && what != "anon_inode:[eventfd]"
	})
}
