//go:build linux && !amd64

package attack

import "golang.org/x/sys/unix"

const sysFstatat = unix.SYS_FSTATAT

// legacy is empty: newer architectures began without the old calls.
func legacy() []Attack { return nil }
