package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/unix"
)

// The files of a cgroup are read and written with bare system calls: package os would put each into its
// poller first (kernfs files can be polled), which costs more than the write.

// readFile gives a file's text.
func readFile(name string) (string, error) {
	fd, err := open(name, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var text []byte
	for {
		text = append(text, make([]byte, 4096)...)
		n, err := retry(func() (int, error) { return unix.Read(fd, text[len(text)-4096:]) })
		if err != nil {
			return "", fmt.Errorf("reading %q: %w", name, err)
		}
		text = text[:len(text)-4096+n]
		if n == 0 {
			return string(text), nil
		}
	}
}

// writeFile writes value to a file that exists, in one write(2), as cgroup files want it.
func writeFile(name, value string) error {
	fd, err := open(name, unix.O_WRONLY)
	if err != nil {
		return fmt.Errorf("writing %q: %w", value, err)
	}
	defer unix.Close(fd)
	if _, err = retry(func() (int, error) { return unix.Write(fd, []byte(value)) }); err != nil {
		return fmt.Errorf("writing %q to %q: %w", value, name, err)
	}
	return nil
}

// open opens name, not through a symbolic link, and not for the programs that we start.
func open(name string, flags int) (int, error) {
	fd, err := retry(func() (int, error) { return unix.Open(name, flags|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0) })
	if err != nil {
		return -1, fmt.Errorf("opening %q: %w", name, err)
	}
	return fd, nil
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

func exists(name string) bool { return unix.Access(name, unix.F_OK) == nil }

// words gives the words of a file, as cgroup.controllers has them.
func words(name string) ([]string, error) {
	text, err := readFile(name)
	return strings.Fields(text), err
}

// gone tells that a group is not there any more: its directory cannot be found (ENOENT), or a file of it
// was open when it went (ENODEV).
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) }
