package snapshot

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestRow(t *testing.T) {
	key := exampleKey().derive(nil, rowInfo, 32)
	want := row{Meta: parked("r1", 1), Instance: "i", Image: "r1.x.snap", Sum: []byte("sum")}
	text, err := encodeRow(key, &want)
	must(t, err)
	got, err := decodeRow(key, "r1", text)
	if must(t, err); got.Meta != want.Meta || got.Instance != want.Instance || got.Image != want.Image || string(got.Sum) != "sum" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for i := range text {
		for bit := range 8 {
			text[i] ^= 1 << bit
			if got, err := decodeRow(key, "r1", text); !errors.Is(err, ErrBroken) || !got.Broken {
				t.Errorf("bit %d of byte %d flipped: got %+v, %v", bit, i, got, err)
			}
			text[i] ^= 1 << bit
		}
	}
	for what, err := range map[string]error{
		"another run": func() error { _, err := decodeRow(key, "r2", text); return err }(),
		"another key": func() error { _, err := decodeRow(key[1:], "r1", text); return err }(),
	} {
		wantErr(t, what, err, ErrBroken)
	}
	huge := want
	huge.Owner.SessionKey = string(make([]byte, maxMeta))
	if _, err := encodeRow(key, &huge); err == nil {
		t.Error("a row that is too large was made")
	}
}

// FuzzRow decodes anything: only what was signed is not broken.
func FuzzRow(f *testing.F) {
	key := exampleKey().derive(nil, rowInfo, 32)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeRow(key, "r1", text)
		if err != nil {
			if !errors.Is(err, ErrBroken) || !r.Broken || r.ID != "r1" || r.Held {
				t.Fatalf("got %+v, %v", r, err)
			}
		} else if r.Broken || r.ID != "r1" {
			t.Fatalf("got %+v without an error", r)
		}
		r.imageFile()
		if _, err := json.Marshal(r.Meta); err != nil {
			t.Fatal(err)
		}
	})
}
