package gatewayrpc

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func (s *served) dialUnix(path string) *client {
	s.t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	c := &client{
		t: s.t, doc: s.doc, conn: conn, end: make(chan error, 1), answerTo: map[string]func(json.RawMessage) (any, error){},
		sent: map[string]string{}, asked: map[string]string{}, waiting: map[string]chan response{}, changed: make(chan struct{}), closed: make(chan struct{}),
	}
	go c.read()
	return c
}

// SPEC 21: the socket is ours alone from its first moment on, whatever the umask.
func TestSocketIsPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.sock")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Mode().Type() != os.ModeSocket {
		t.Errorf("the socket is %v, %v; want mode 0600", info.Mode(), err)
	}
	// A second one is refused, and says by whom.
	if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by process %d", os.Getpid())) {
		t.Errorf("a second one gave %v, want that process %d has it", err, os.Getpid())
	}
	l.Close()
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("after Close the directory has %v", entries)
	}
}

func TestSocketPlaces(t *testing.T) {
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close() // as if the process had been killed
	l2, err := ListenUnix(stale)
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	// Somebody else's in our place is not removed.
	if err := os.Remove(stale); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(stale, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l2.Close()
	if _, err := os.Lstat(stale); err != nil {
		t.Errorf("Close removed what is not its own: %v", err)
	}
	for _, test := range []struct{ path, want string }{
		{stale, "is no socket; it was not touched"},
		{filepath.Join(dir, "missing", "s"), "make it first"},
		{filepath.Join(stale, "s"), "no directory"},
	} {
		if _, err := ListenUnix(test.path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s gave %v, want %q", test.path, err, test.want)
		}
	}
	for _, mode := range []os.FileMode{0o770, 0o777, 0o777 | os.ModeSticky} {
		open := t.TempDir()
		if err := os.Chmod(open, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ListenUnix(filepath.Join(open, "s")); err == nil || !strings.Contains(err.Error(), "can be written to by others") {
			t.Errorf("in a directory of mode %v: %v", mode, err)
		}
	}
}

// connectAs is the test binary as another user: it connects and says what it reads.
func connectAs(path string) {
	c, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println("dial:", err)
		return
	}
	fmt.Fprintln(c, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
	b, _ := io.ReadAll(c)
	fmt.Printf("read %q\n", b)
}

// SPEC 21: another user is not let in, even if the file's mode would.
func TestPeerIsChecked(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("requires root, to become another user")
	}
	noLeaks(t)
	srv := serve(t, Options{Supervisor: fakeRunner{}}).srv
	dir, err := os.MkdirTemp("", "peer")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "test")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("requires /proc")
	}
	for _, err := range []error{os.WriteFile(binary, self, 0o755), os.Chmod(dir, 0o755), os.Chmod(path, 0o777)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Listen(t.Context(), l) }()
	for uid, want := range map[uint32]string{65534: `read ""`, 0: `"protocolVersion\":1`} {
		cmd := exec.Command(binary)
		cmd.Env = []string{"GATEWAYRPC_CONNECT=" + path}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		if uid == 0 {
			continue // it would read for ever; TestServerEnds connects as ourselves
		}
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("user %d: %s%v, want %s", uid, out, err, want)
		}
	}
	l.Close()
	<-ended
}

// SPEC 21: at most 64 clients; the next one is told so.
func TestTooManyClients(t *testing.T) {
	noLeaks(t)
	srv := serve(t, Options{Supervisor: fakeRunner{}}).srv
	path := filepath.Join(t.TempDir(), "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Listen(t.Context(), l) }()
	s := &served{t, srv, readDocument(t)}
	var clients []*client
	var all sync.WaitGroup
	for range maxConnections {
		c := s.dialUnix(path)
		clients = append(clients, c)
		c.initialize(nil)
	}
	one, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(one); !strings.Contains(string(b), "-32000") {
		t.Errorf("one client too many read %q", b)
	}
	one.Close()
	for _, c := range clients {
		all.Go(func() { c.conn.Close(); <-c.closed })
	}
	all.Wait()
	l.Close()
	<-ended
}
