package snapshot

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestKeyIsNotShown(t *testing.T) {
	k := exampleKey()
	var b strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%c", "%U", "%b", "%t"} {
		fmt.Fprintf(&b, verb+" "+verb+"\n", k, *k)
	}
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "key", k, "value", *k)
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "key", k, "value", *k)
	if err := json.NewEncoder(&b).Encode(map[string]any{"key": k, "value": *k}); err != nil {
		t.Fatal(err)
	}
	b.WriteString(k.String() + k.GoString())
	want := strings.Count(b.String(), keyShown)
	if want != 2*13+6+2 {
		t.Errorf("got %d times %q in\n%s", want, keyShown, b.String())
	}
	if rest := strings.ReplaceAll(b.String(), keyShown, ""); strings.Contains(rest, "1 2 3") || strings.Contains(rest, "010203") {
		t.Errorf("the key is in\n%s", b.String())
	}
}

func TestParseKey(t *testing.T) {
	digits := hex.EncodeToString(exampleKey().secret[:])
	for _, text := range []string{digits, " \n" + digits + "\r\n", strings.ToUpper(digits)} {
		if k, err := ParseKey(text); err != nil || *k != *exampleKey() {
			t.Errorf("%q: got %v, %v", text, k, err)
		}
	}
	for _, text := range []string{"", digits[1:], digits + "0", digits + digits, strings.Repeat("é", 32), digits[:63] + "x", digits[:32] + " " + digits[32:]} {
		if k, err := ParseKey(text); err == nil || k != nil || strings.Contains(err.Error(), "0102") {
			t.Errorf("%q: got %v, %v", text, k, err)
		}
	}
}

func TestLoadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	k, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	again, err := LoadKey(path)
	if err != nil || *again != *k {
		t.Errorf("loaded again: another key, %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 || info.Size() != 65 {
		t.Errorf("got mode %v, %d bytes, %v", info.Mode(), info.Size(), err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("got %v, want the key alone", entries)
	}
}

func TestLoadKeyRefuses(t *testing.T) {
	digits := hex.EncodeToString(exampleKey().secret[:])
	write := func(text string, mode os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := map[string]struct {
		make func(*testing.T, string)
		want string
	}{
		"group reads":   {write(digits, 0o640), "chmod 600"},
		"others write":  {write(digits, 0o602), "chmod 600"},
		"empty":         {write("", 0o600), "64 hex digits"},
		"short":         {write(digits[:10], 0o600), "64 hex digits"},
		"long":          {write(strings.Repeat(digits, 100), 0o600), "64 hex digits"},
		"link":          {func(t *testing.T, path string) { write(digits, 0o600)(t, path+"1"); os.Symlink(path+"1", path) }, "symbolic link"},
		"dangling link": {func(t *testing.T, path string) { os.Symlink(path+"1", path) }, "symbolic link"},
		"directory":     {func(t *testing.T, path string) { os.Mkdir(path, 0o700) }, "not a regular file"},
		"fifo":          {func(t *testing.T, path string) { unix.Mkfifo(path, 0o600) }, "not a regular file"},
		"nowhere":       {func(t *testing.T, path string) { os.Remove(filepath.Dir(path)) }, "no such file"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "in", "key")
			if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			tt.make(t, path)
			k, err := LoadKey(path)
			if err == nil || k != nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, %v, want %q and the path", k, err, tt.want)
			}
		})
	}
}

func TestReadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if k, err := ReadKey(path); k != nil || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, %v", k, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it made the file: %v", err)
	}
	made, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	if k, err := ReadKey(path); err != nil || *k != *made {
		t.Errorf("another key, %v", err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if k, err := ReadKey(path); err == nil || k != nil {
		t.Errorf("got %v, %v of a file that others can read", k, err)
	}
}

// TestLoadKeyRace lets many make the file at once. That processes agree, too, is in
// process_test.go.
func TestLoadKeyRace(t *testing.T) {
	for range 20 {
		path := filepath.Join(t.TempDir(), "key")
		var wg sync.WaitGroup
		keys := make([]*Key, 8)
		for i := range keys {
			wg.Go(func() {
				var err error
				if keys[i], err = LoadKey(path); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, k := range keys {
			if k == nil || *k != *keys[0] {
				t.Fatal("they do not have the same key")
			}
		}
	}
}
