package lockdown

import (
	"errors"
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// ladder is all that can be forbidden, by the kernel's ABI.
var ladder = []landlock.Config{{}, landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
	landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11}

// landlock puts the process into a domain without any rule, which denies everything that it
// handles. Three layers are one ruleset.
func (l *Lockdown) landlock() {
	abi, abiErr := llsys.LandlockGetABIVersion()
	var deny landlock.Config
	if abiErr == nil {
		deny = ladder[min(abi, len(ladder)-1)]
	}
	// The proof of the scopes needs something from before.
	var outside abstractSock
	var outsideErr error
	if !l.plan.without(isolation.LandlockScopes) {
		if outside, outsideErr = abstractSocket(); outsideErr == nil {
			defer unix.Close(outside.fd)
		}
	}
	parts := []struct {
		layer isolation.Layer
		what  string
		abi   int
		linux string
		leave func()
		prove func() error
	}{
		{isolation.LandlockFiles, "file rules", 1, "5.13", func() { deny.HandledAccessFS = 0 }, proveFiles},
		{isolation.LandlockNetwork, "network rules", 4, "6.7", func() { deny.HandledAccessNet = 0 }, proveNetwork},
		{isolation.LandlockScopes, "scopes", 6, "6.12", func() { deny.Scoped = 0 }, func() error {
			if outsideErr != nil {
				return outsideErr
			}
			return outside.prove()
		}},
	}
	wanted := false
	for _, p := range parts {
		if l.plan.without(p.layer) {
			p.leave()
		} else {
			wanted = true
		}
	}
	var err error
	switch {
	case cgo:
		err = errCgo
	case abiErr != nil:
		err = remedied{fmt.Errorf("landlock_create_ruleset: %w; it needs Linux 5.13", abiErr), "run a kernel with CONFIG_SECURITY_LANDLOCK, and with landlock among those in /sys/kernel/security/lsm (boot parameter lsm=)"}
	case wanted:
		err = deny.Restrict()
	}
	for _, p := range parts {
		l.apply(p.layer, "run Linux "+p.linux+" or newer", func() error {
			if err != nil {
				return err
			}
			if abi < p.abi {
				return fmt.Errorf("landlock ABI %d, %s need ABI %d (Linux %s)", abi, p.what, p.abi, p.linux)
			}
			return p.prove()
		})
	}
}

func proveFiles() error {
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	if err != unix.EACCES {
		return fmt.Errorf("open of / under landlock: %v, want EACCES", err)
	}
	return nil
}

func proveNetwork() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("making a TCP socket to try landlock with: %w", err)
	}
	defer unix.Close(fd)
	loopback := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := unix.Bind(fd, loopback); err != unix.EACCES {
		return fmt.Errorf("bind of a TCP socket under landlock: %v, want EACCES", err)
	}
	loopback.Port = 1
	if err := unix.Connect(fd, loopback); err != unix.EACCES {
		return fmt.Errorf("connect of a TCP socket under landlock: %v, want EACCES", err)
	}
	return nil
}

// An abstractSock is a listening socket from outside the domain: unlike a process to signal, a
// worker can always have one.
type abstractSock struct {
	fd      int
	address unix.Sockaddr
}

func abstractSocket() (s abstractSock, err error) {
	if s.fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return s, fmt.Errorf("making an abstract socket to try landlock with: %w", err)
	}
	err = unix.Bind(s.fd, &unix.SockaddrUnix{}) // the kernel picks a name: unix(7), "Autobind feature"
	if err == nil {
		err = unix.Listen(s.fd, 1)
	}
	if err == nil {
		s.address, err = unix.Getsockname(s.fd)
	}
	if err != nil {
		unix.Close(s.fd)
		return s, fmt.Errorf("making an abstract socket to try landlock with: %w", err)
	}
	return s, nil
}

func (s abstractSock) prove() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("making a socket to try landlock with: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, s.address); !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("connect to an abstract socket from outside under landlock: %v, want EPERM", err)
	}
	return nil
}
