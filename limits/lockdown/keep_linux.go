package lockdown

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// KeepOnly closes every descriptor but those named, and the epoll and eventfd descriptors of the
// Go runtime's poller. It comes after all that opens something and before [Lockdown.Finish];
// files that the Go side still has open there are of no use afterwards.
func KeepOnly(fds ...int) error {
	const dir = "/proc/self/fd/"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		fd, err := strconv.Atoi(e.Name())
		if err != nil || slices.Contains(fds, fd) {
			continue
		}
		what, err := os.Readlink(dir + e.Name())
		if err != nil || what == "anon_inode:[eventpoll]" || what == "anon_inode:[eventfd]" {
			continue // the descriptor of the listing itself is gone
		}
		if err := unix.Close(fd); err != nil && err != unix.EINTR { // close(2): EINTR has closed it
			return fmt.Errorf("closing descriptor %d (%s): %w", fd, what, err)
		}
	}
	return nil
}
