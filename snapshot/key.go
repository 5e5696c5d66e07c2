package snapshot

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A Key is 32 secret bytes, with which everything is sealed that is kept of runs. It never
// shows them: not to fmt with any verb, not to slog, not to encoding/json. It does not
// change and may be used by any number of goroutines.
type Key struct{ secret [32]byte }

const keyShown = "snapshot.Key(secret)"

// NewKey makes a random key.
func NewKey() *Key {
	k := new(Key)
	rand.Read(k.secret[:])
	return k
}

// ParseKey reads a key from 64 hex digits; white space around them does not count. The
// error does not repeat the text.
func ParseKey(text string) (*Key, error) {
	k := new(Key)
	text = strings.TrimSpace(text)
	if n, err := hex.Decode(k.secret[:], []byte(text[:min(len(text), 64)])); err != nil || n != 32 || len(text) != 64 {
		return nil, errors.New("a key is 64 hex digits")
	}
	return k, nil
}

// String is always the same text.
func (Key) String() string { return keyShown }

// GoString is always the same text.
func (Key) GoString() string { return keyShown }

// MarshalText is always the same text. It cannot be read back.
func (Key) MarshalText() ([]byte, error) { return []byte(keyShown), nil }

// Format is always the same text: without it, %d would show the bytes.
func (Key) Format(s fmt.State, _ rune) { io.WriteString(s, keyShown) }

// LoadKey reads the key in a file, and makes file and key if there is none; processes that
// do so at the same moment end with the same key. A key that others could read or choose
// is refused: the file must be regular, ours, and closed to others. The errors say what to
// do about it.
func LoadKey(path string) (*Key, error) {
	if k, err := ReadKey(path); !errors.Is(err, os.ErrNotExist) {
		return k, err
	}
	unlock, err := lockDir(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("making the key file %q: %w", path, err)
	}
	defer unlock()
	return loadKey(path, nil)
}

// loadKey is LoadKey for a caller that has the directory's lock.
func loadKey(path string, f fault) (*Key, error) {
	k, err := ReadKey(path)
	if !errors.Is(err, os.ErrNotExist) {
		return k, err
	}
	k = NewKey()
	if err := f.writeFile(path, []byte(hex.EncodeToString(k.secret[:])+"\n")); err != nil {
		return nil, fmt.Errorf("making the key file: %w", err)
	}
	return k, nil
}

// ReadKey is LoadKey for a file that must be there: it never makes one.
func ReadKey(path string) (*Key, error) {
	// O_NONBLOCK, because opening a fifo would wait for its writer.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("the key file %q is a symbolic link: put the file itself there", path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the key file: %w", err)
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return nil, fmt.Errorf("the key file %q is not a regular file: move it away", path)
	case !ours(info):
		return nil, fmt.Errorf("the key file %q belongs to another user, who knows the key: chown it, or choose another file", path)
	case mode.Perm()&0o077 != 0:
		return nil, fmt.Errorf("the key file %q has mode %04o and others could read or change it: chmod 600 it, or make a new key if others may have read it", path, mode.Perm())
	}
	text := make([]byte, 256)
	n, err := io.ReadFull(f, text)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, fmt.Errorf("reading the key file: %w", err)
	}
	k, err := ParseKey(string(text[:n]))
	if err != nil {
		return nil, fmt.Errorf("the key file %q does not hold 64 hex digits: put the right key back, or move the file and the runs sealed with it away to begin anew", path)
	}
	return k, nil
}
