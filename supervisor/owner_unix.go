//go:build unix

package supervisor

import (
	"fmt"
	"os"
	"syscall"
)

// checkOwner refuses a directory that is not ours.
func checkOwner(dir string, info os.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("the code cache %q belongs to another user, who could put code there; choose another directory", dir)
	}
	return nil
}

// inode tells files apart that have one name after the other.
func inode(info os.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Ino)
	}
	return 0
}
