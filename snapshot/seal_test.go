package snapshot

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

var bindings = []Binding{
	{Kind: KindImage, RunID: "r1", Owner: Owner{AgentID: "main", SessionID: "s1", SessionKey: "k1", AgentRunID: "a1"}, Engine: engineA},
	{Kind: KindRecord, RunID: "r1", Owner: Owner{AgentID: "main"}},
	{Kind: KindLog, RunID: "r1"},
	{Kind: KindResult},
}

func TestSeal(t *testing.T) {
	k := NewKey()
	for _, b := range bindings {
		for _, plain := range []string{"", "x", strings.Repeat("text ", 10_000)} {
			sealed := k.Seal(b, []byte(plain))
			if len(sealed) != len(plain)+Overhead {
				t.Errorf("%v: got %d bytes for %d", b.Kind, len(sealed), len(plain))
			}
			if plain != "" && len(plain) > 1 && bytes.Contains(sealed, []byte(plain)) {
				t.Errorf("%v: the text is in the open", b.Kind)
			}
			if got, err := k.Open(b, sealed); err != nil || string(got) != plain {
				t.Errorf("%v: got %.20q, %v, want %.20q", b.Kind, got, err, plain)
			}
			if again := k.Seal(b, []byte(plain)); bytes.Equal(again, sealed) {
				t.Errorf("%v: sealed twice to the same bytes", b.Kind)
			}
		}
	}
}

// TestOpenRefuses opens for something else than what was sealed.
func TestOpenRefuses(t *testing.T) {
	b := bindings[0]
	k := NewKey()
	sealed := k.Seal(b, []byte("text"))
	tests := map[string]func(*Binding){
		"kind":         func(b *Binding) { b.Kind = KindRecord },
		"no kind":      func(b *Binding) { b.Kind = 0 },
		"unknown kind": func(b *Binding) { b.Kind = 9 },
		"run":          func(b *Binding) { b.RunID = "r2" },
		"no run":       func(b *Binding) { b.RunID = "" },
		"agent":        func(b *Binding) { b.Owner.AgentID = "other" },
		"no agent":     func(b *Binding) { b.Owner.AgentID = "" },
		"session":      func(b *Binding) { b.Owner.SessionID = "s2" },
		"session key":  func(b *Binding) { b.Owner.SessionKey = "" },
		"agent run":    func(b *Binding) { b.Owner.AgentRunID = "a2" },
		"moved":        func(b *Binding) { b.RunID, b.Owner.AgentID = "r1main", "" },
		"swapped":      func(b *Binding) { o := &b.Owner; o.SessionID, o.SessionKey = o.SessionKey, o.SessionID },
		"engine":       func(b *Binding) { b.Engine = engineB },
		"no engine":    func(b *Binding) { b.Engine = "" },
		"not a hash":   func(b *Binding) { b.Engine = "quickjs" },
		"upper case":   func(b *Binding) { b.Engine = strings.ToUpper(b.Engine) },
	}
	for name, change := range tests {
		other := b
		change(&other)
		plain, err := k.Open(other, sealed)
		if !errors.Is(err, ErrBroken) || plain != nil {
			t.Errorf("%s: got %q, %v, want ErrBroken", name, plain, err)
		}
		if want := other.Engine != b.Engine; errors.Is(err, ErrEngine) != want {
			t.Errorf("%s: got %v, want ErrEngine: %v", name, err, want)
		}
	}
	if _, err := NewKey().Open(b, sealed); !errors.Is(err, ErrBroken) {
		t.Errorf("another key: got %v, want ErrBroken", err)
	}
	if _, err := k.Open(Binding{Kind: KindLog}, make([]byte, MaxEntry+Overhead+1)); !errors.Is(err, ErrBroken) {
		t.Errorf("too large: got %v, want ErrBroken", err)
	}
	for n := range sealed {
		if _, err := k.Open(b, sealed[:n]); !errors.Is(err, ErrBroken) {
			t.Fatalf("cut to %d bytes: got %v, want ErrBroken", n, err)
		}
	}
	if _, err := k.Open(b, append(bytes.Clone(sealed), 0)); !errors.Is(err, ErrBroken) {
		t.Errorf("one byte more: got %v, want ErrBroken", err)
	}
}

func TestOpenFlips(t *testing.T) {
	k := NewKey()
	random := rand.New(rand.NewPCG(1, 2))
	for _, b := range bindings {
		sealed := k.Seal(b, []byte(strings.Repeat("page ", 200)))
		for range 10_000 {
			at, bit := random.IntN(len(sealed)), byte(1)<<random.IntN(8)
			sealed[at] ^= bit
			if plain, err := k.Open(b, sealed); !errors.Is(err, ErrBroken) || plain != nil {
				t.Fatalf("bit %08b of byte %d flipped: got %d bytes, %v, want ErrBroken", bit, at, len(plain), err)
			}
			sealed[at] ^= bit
		}
		if _, err := k.Open(b, sealed); err != nil {
			t.Fatalf("after all flips were undone: %v", err)
		}
	}
}

func TestSealPanics(t *testing.T) {
	for _, b := range []Binding{{}, {Kind: 5}, {Kind: KindImage, Engine: "x"}, {Kind: KindImage, Engine: strings.Repeat("g", 64)}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v was sealed", b)
				}
			}()
			NewKey().Seal(b, nil)
		}()
	}
}

// FuzzOpen opens anything: nothing but what was sealed may come out.
func FuzzOpen(f *testing.F) {
	k, salt := exampleKey(), exampleSalt()
	for _, b := range bindings {
		f.Add(k.seal(b, []byte("text"), salt), uint8(b.Kind), b.RunID, b.Owner.AgentID, b.Engine)
	}
	f.Add([]byte(magic), uint8(1), "r1", "", "")
	f.Fuzz(func(t *testing.T, sealed []byte, kind uint8, run, agent, engine string) {
		b := Binding{Kind: Kind(kind), RunID: run, Owner: Owner{AgentID: agent}, Engine: engine}
		plain, err := k.Open(b, sealed)
		if err != nil {
			if !errors.Is(err, ErrBroken) || plain != nil {
				t.Fatalf("got %q, %v, want ErrBroken and nothing", plain, err)
			}
			return
		}
		// It opened, so it is what we seal for this binding with the salt that it has.
		copy(salt[:], sealed[saltAt:])
		if again := k.seal(b, plain, salt); !bytes.Equal(again, sealed) {
			t.Fatalf("%x opened as %q, which seals to %x", sealed, plain, again)
		}
	})
}

// TestFuzzSeeds finds the seeds, so that the fuzz tests do not begin from nothing.
func TestFuzzSeeds(t *testing.T) {
	for _, name := range []string{"FuzzOpen", "FuzzRow"} {
		if seeds, err := filepath.Glob("testdata/fuzz/" + name + "/*"); err != nil || len(seeds) < 4 {
			t.Errorf("%s has the seeds %q, %v", name, seeds, err)
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	k, plain := NewKey(), make([]byte, 1<<20)
	b.SetBytes(int64(len(plain)))
	b.ReportAllocs()
	for b.Loop() {
		k.Seal(bindings[0], plain)
	}
}
