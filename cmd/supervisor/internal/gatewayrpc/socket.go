package gatewayrpc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// ListenUnix makes the socket of [Server.Listen]. It is the user's alone from its first moment
// on, whatever the umask: it is made in a directory of its own that nobody else can enter, and
// moved to its place when its mode is set. Its directory must be one that nobody else can write
// to. A socket that nobody listens on any more is replaced; a living one is an error.
// Closing the listener removes the socket.
func ListenUnix(path string) (net.Listener, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := checkDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	if err := checkPlace(path); err != nil {
		return nil, err
	}
	private, err := os.MkdirTemp(filepath.Dir(path), ".s") // 0700; short, for a socket's path has 100 bytes
	if err != nil {
		return nil, fmt.Errorf("making a private directory for the socket: %w", err)
	}
	defer os.RemoveAll(private)
	made := filepath.Join(private, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("making the socket %q: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // it is about to have another name
	if err = os.Chmod(made, 0o600); err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("making the socket %q: %w", path, err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("making the socket %q: %w", path, err)
	}
	return &unixListener{l, path, info}, nil
}

// unixListener removes its socket, unless somebody put another one in its place.
type unixListener struct {
	*net.UnixListener
	path string
	info fs.FileInfo
}

func (l *unixListener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.info) {
		_ = os.Remove(l.path)
	}
	return l.UnixListener.Close()
}

// checkDir tells whether nobody else can put a socket of theirs in the place of ours.
func checkDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("the socket's directory: %w; make it first: mkdir -m 700 %s", err, dir)
	}
	if !info.IsDir() {
		return fmt.Errorf("the socket's directory %q is no directory", dir)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("the socket's directory %q can be written to by others (mode %#o), who could put theirs in its place; use one of your own: mkdir -m 700 DIR", dir, info.Mode().Perm())
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("the socket's directory %q belongs to user %d; use one of your own: mkdir -m 700 DIR", dir, stat.Uid)
	}
	return nil
}

// checkPlace tells whether a socket can be put there. One that nobody listens on can be
// replaced.
func checkPlace(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("the socket's place: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%q is there and is no socket; it was not touched", path)
	}
	c, err := net.Dial("unix", path)
	switch {
	case err == nil:
		defer c.Close()
		return fmt.Errorf("%q is in use%s; end that first, or take another path", path, peerPID(c))
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil // it is replaced by the rename
	case errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("nobody knows whether %q is in use: %w", path, err)
}

// checkPeer tells whether who connected is the user that we are.
func checkPeer(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil // a test's
	}
	uid, _, err := peer(u)
	if err != nil {
		return fmt.Errorf("asking who connected: %w", err)
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("user %d connected; only user %d may", uid, os.Geteuid())
	}
	return nil
}

// peerPID says who has the other end, if that is known.
func peerPID(c net.Conn) string {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return ""
	}
	if _, pid, err := peer(u); err == nil && pid > 0 {
		return fmt.Sprintf(" by process %d", pid)
	}
	return ""
}
