package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/assets/dist"
)

// What a snapshot fits is computed by the build and not by each worker. SPEC 14.3
func TestSum(t *testing.T) {
	a, err := Load()
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	wasm := sha256.Sum256(a.Wasm)
	sum := sha256.Sum256(append(wasm[:], dist.Guest...))
	if want := hex.EncodeToString(sum[:]); a.Sum != want {
		t.Errorf("got %s, want %s: run make deps", a.Sum, want)
	}
}
