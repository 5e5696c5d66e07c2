//go:build unix

package lockdown

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// An rlimit is one limit and the most that the worker may have of it.
type rlimit struct {
	name  string
	which int
	value uint64
}

// maxFiles is more descriptors than a worker has open.
const maxFiles = 64

// setRlimits sets each limit, hard as soft, to the value or to what the hard limit already is
// below it, and reads it back.
func setRlimits(p Plan) error {
	for _, l := range rlimits(p) {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.which, &now); err != nil {
			return fmt.Errorf("reading %s: %w", l.name, err)
		}
		v := min(l.value, now.Max)
		want := unix.Rlimit{Cur: v, Max: v}
		if err := unix.Setrlimit(l.which, &want); err != nil {
			return fmt.Errorf("setting %s to %d: %w", l.name, v, err)
		}
		if err := unix.Getrlimit(l.which, &now); err != nil || now != want {
			return fmt.Errorf("%s is %d, hard %d, after both were set to %d (%v)", l.name, now.Cur, now.Max, v, err)
		}
	}
	return nil
}
