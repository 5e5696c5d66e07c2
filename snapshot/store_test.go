package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// stores runs a test over each kind of store.
func stores(t *testing.T, test func(t *testing.T, open func(Bounds) Store)) {
	t.Run("memory", func(t *testing.T) {
		test(t, func(b Bounds) Store { return NewMemory(b) })
	})
	t.Run("disk", func(t *testing.T) {
		test(t, func(b Bounds) Store { return openDisk(t, DiskOptions{Dir: t.TempDir() + "/state", Bounds: b}) })
	})
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// ids are the runs of a list.
func ids(t testing.TB, s Store) (ids []string) {
	t.Helper()
	metas, err := s.List()
	must(t, err)
	for _, m := range metas {
		ids = append(ids, m.ID)
	}
	return ids
}

func TestStore(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		m := parked("r1", 1)
		must(t, s.Save(m, []byte("record"), []byte("image")))
		must(t, s.Append("r1", []byte("one")), s.Append("r1", nil), s.Append("r1", []byte("three")))

		want := m
		want.Held, want.Holder = true, os.Getpid()
		want.Bytes = int64(len("record") + len("image") + len("one") + len("three") + 5*Overhead)
		got, err := s.Find("r1")
		if must(t, err); got != want {
			t.Errorf("found %s", cmp.Diff(want, got))
		}
		for what, look := range map[string]func(string) (Saved, error){"load": s.Load, "claim": s.Claim} {
			saved, err := look("r1")
			must(t, err)
			wantSaved := Saved{want, []byte("record"), [][]byte{[]byte("one"), nil, []byte("three")}}
			if d := cmp.Diff(wantSaved, saved, cmp.Comparer(bytes.Equal)); d != "" {
				t.Errorf("%s: %s", what, d)
			}
		}
		image, err := s.Image("r1", engineA)
		if must(t, err); string(image) != "image" {
			t.Errorf("got image %q", image)
		}
		_, err = s.Image("r1", engineB)
		wantErr(t, "another engine", err, ErrEngine)

		// It goes on and parks again: nothing of the first time is left.
		m.State, m.Parked = Running, m.Parked.Add(time.Second)
		must(t, s.Save(m, nil, nil))
		saved, err := s.Load("r1")
		if must(t, err); saved.Record != nil || saved.Log != nil || saved.Meta.Bytes != 0 || saved.Meta.State != Running {
			t.Errorf("got %+v, want nothing but meta", saved)
		}
		_, err = s.Image("r1", engineA)
		wantErr(t, "no image", err, ErrUnknown)
		must(t, s.Append("r1", []byte("first")))
		saved, err = s.Load("r1")
		if must(t, err); len(saved.Log) != 1 || string(saved.Log[0]) != "first" {
			t.Errorf("got log %q", saved.Log)
		}

		// It ends: a result, no image, and nobody has it.
		must(t, s.Save(over("r1", 2), []byte("result"), []byte("image")))
		saved, err = s.Claim("r1")
		if must(t, err); string(saved.Record) != "result" || saved.Log != nil || saved.Meta.Held || saved.Meta.Holder != 0 {
			t.Errorf("got %+v", saved)
		}
		_, err = s.Image("r1", engineA)
		wantErr(t, "image of a run that is over", err, ErrUnknown)
		wantErr(t, "append to a run that is over", s.Append("r1", nil), ErrLost)

		lost, err := s.Lost()
		if must(t, err); len(lost) > 0 {
			t.Errorf("lost %q", lost)
		}
		must(t, s.Delete("r1"), s.Delete("r1"), s.Delete("../x"), s.Delete(""))
		if got := ids(t, s); len(got) > 0 {
			t.Errorf("got %q after the deletion", got)
		}
	})
}

func TestStoreUnknown(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		for _, id := range []string{"r1", "", "../../etc/passwd", "a\x00b", strings.Repeat("x", 100_000)} {
			_, findErr := s.Find(id)
			_, claimErr := s.Claim(id)
			_, loadErr := s.Load(id)
			_, imageErr := s.Image(id, engineA)
			for what, err := range map[string]error{"find": findErr, "claim": claimErr, "load": loadErr, "image": imageErr, "append": s.Append(id, nil)} {
				wantErr(t, fmt.Sprintf("%s %.20q", what, id), err, ErrUnknown)
			}
		}
	})
}

func TestStoreRefuses(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		tests := map[string]func(m *Meta){
			"saving run \"\":":     func(m *Meta) { m.ID = "" },
			"[A-Za-z0-9_-]":        func(m *Meta) { m.ID = "../r1" },
			"1 to 64":              func(m *Meta) { m.ID = strings.Repeat("r", 65) },
			"no state \"\"":        func(m *Meta) { m.State = "" },
			"no state \"parked\"":  func(m *Meta) { m.State = "parked" },
			"not UTF-8":            func(m *Meta) { m.Owner.SessionID = "\xff" },
			"engine \"\"":          func(m *Meta) { m.Engine = "" },
			"engine \"quickjs\" i": func(m *Meta) { m.Engine = "quickjs" },
		}
		for want, change := range tests {
			m := parked("r1", 0)
			change(&m)
			if err := s.Save(m, nil, []byte("image")); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		if err := s.Save(parked("r1", 0), make([]byte, MaxRecord+1), nil); err == nil {
			t.Error("a record that is too large was saved")
		}
		must(t, s.Save(parked("r1", 0), nil, nil))
		if err := s.Append("r1", make([]byte, MaxEntry+1)); err == nil {
			t.Error("a log entry that is too large was kept")
		}
		if got := ids(t, s); !slices.Equal(got, []string{"r1"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestStoreBounds(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{Runs: 3, Bytes: 1000})
		for i := range 3 {
			m := parked(fmt.Sprint("r", i), i)
			m.Owner.SessionID = fmt.Sprint("s", i)
			must(t, s.Save(m, make([]byte, 200-Overhead), nil))
		}
		must(t, s.Save(over("done", 3), make([]byte, 5000), nil)) // does not count
		var full *FullError
		err := s.Save(parked("r4", 60), nil, nil)
		if !errors.As(err, &full) || full.What != "runs" || full.Limit != 3 || full.Have != 3 || len(full.Oldest) != 3 || full.Oldest[0].ID != "r0" {
			t.Fatalf("got %+v", err)
		}
		want := `3 runs are parked, and no more than 3 may be; the oldest: run "r0" of agent "main", session "s0" (parked for 1m0s), run "r1" of agent "main", session "s1" (parked for 59s), run "r2" of agent "main", session "s2" (parked for 58s)`
		if err.Error() != want {
			t.Errorf("got  %v\nwant %v", err, want)
		}

		// One that is there does not count twice, and not more than what there is.
		must(t, s.Save(parked("r1", 70), make([]byte, 600-Overhead), nil))
		err = s.Save(parked("r1", 80), make([]byte, 601-Overhead), nil)
		if !errors.As(err, &full) || full.What != "bytes" || full.Limit != 1000 || full.Have != 400 || full.Need != 601 || len(full.Oldest) != 2 {
			t.Errorf("got %+v", err)
		}
		// What was refused changed nothing.
		saved, err := s.Load("r1")
		if must(t, err); len(saved.Record) != 600-Overhead || !saved.Meta.Parked.Equal(parked("", 70).Parked) {
			t.Errorf("got %+v", saved.Meta)
		}
		// The log counts, although Append does not ask.
		must(t, s.Append("r0", make([]byte, 100)))
		if err = s.Save(parked("r1", 80), make([]byte, 600-Overhead), nil); !errors.As(err, &full) {
			t.Errorf("got %v", err)
		}
		// Room is made by a run's end.
		must(t, s.Save(over("r0", 90), nil, nil))
		must(t, s.Save(parked("r1", 80), make([]byte, 600-Overhead), nil), s.Save(parked("r5", 91), nil, nil))
	})
}

func TestStoreReserve(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{Bytes: 1000, Runs: 2})
		must(t, s.Save(parked("r1", 0), make([]byte, 200-Overhead), nil), s.Save(parked("r2", 1), make([]byte, 200-Overhead), nil))
		if s.Durable() {
			must(t, s.Reserve("r1", 1<<40), s.Reserve("nix", 1))
			if m, err := s.Find("r1"); err != nil || m.Bytes != 200 {
				t.Errorf("got %d bytes, %v", m.Bytes, err)
			}
			return
		}
		must(t, s.Save(over("over", 0), nil, nil))
		wantErr(t, "unknown", s.Reserve("nix", 1), ErrUnknown)
		wantErr(t, "over", s.Reserve("over", 1), ErrLost)
		must(t, s.Reserve("r1", 500), s.Reserve("r1", 0), s.Reserve("r1", -500))
		for _, n := range []int64{101, math.MaxInt64} {
			var full *FullError
			if err := s.Reserve("r1", n); !errors.As(err, &full) || full.What != "bytes" || full.Have != 200 || len(full.Oldest) != 1 || full.Oldest[0].ID != "r2" {
				t.Errorf("reserved %d: got %v", n, err)
			}
		}
		if m, err := s.Find("r1"); err != nil || m.Bytes != 700 {
			t.Errorf("got %d bytes, %v", m.Bytes, err)
		}
		must(t, s.Reserve("r1", 100))
		var full *FullError
		if err := s.Save(parked("r2", 1), make([]byte, 201-Overhead), nil); !errors.As(err, &full) || full.Have != 800 {
			t.Errorf("saved over what is reserved: got %v", err)
		}
		// Until the next Save, or Delete.
		must(t, s.Save(parked("r1", 2), make([]byte, 200-Overhead), nil), s.Reserve("r1", 600), s.Delete("r1"), s.Reserve("r2", 800))
	})
}

// TestStoreLargeEntry has bounds that are reached: what settled is known, what it gave is
// not kept.
func TestStoreLargeEntry(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{Bytes: 20_000})
		must(t, s.Save(parked("r1", 0), make([]byte, 5000-Overhead), nil), s.Save(parked("r2", 1), make([]byte, 10_000-Overhead), nil))
		must(t, s.Append("r1", make([]byte, 5000-Overhead))) // all there is
		before, err := s.Load("r1")
		must(t, err)
		var full *FullError
		if err := s.Append("r1", make([]byte, SmallEntry+1)); !errors.As(err, &full) || full.What != "bytes" || full.Have != 10_000 || full.Need != 10_000+SmallEntry+1+Overhead {
			t.Errorf("got %v", err)
		}
		if after, err := s.Load("r1"); err != nil || !cmp.Equal(before, after) {
			t.Errorf("it was refused, and changed: %v, %s", err, cmp.Diff(before, after))
		}
		for range 3 {
			must(t, s.Append("r1", make([]byte, SmallEntry)))
		}
		must(t, s.Delete("r2"))
		if err := s.Append("r1", make([]byte, SmallEntry+1)); !errors.As(err, &full) {
			t.Errorf("it has more than the bound alone: got %v", err)
		}
		wantErr(t, "unknown", s.Append("nix", make([]byte, SmallEntry+1)), ErrUnknown)
	})
}

func TestStoreSetState(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		must(t, s.Save(parked("r1", 0), []byte("record"), []byte("image")), s.Append("r1", []byte("entry")), s.Save(over("over", 1), nil, nil))
		want, err := s.Load("r1")
		must(t, err)
		for _, state := range []State{Running, Running, Waiting, Running} {
			want.Meta.State = state
			must(t, s.SetState("r1", state))
			got, err := s.Load("r1")
			if must(t, err); !cmp.Equal(want, got) {
				t.Errorf("set to %q: %s", state, cmp.Diff(want, got))
			}
			if m, err := s.Find("r1"); err != nil || m != want.Meta {
				t.Errorf("found %+v, %v", m, err)
			}
			if metas, err := s.List(); err != nil || metas[0] != want.Meta {
				t.Errorf("got list %+v, %v", metas, err)
			}
		}
		if image, err := s.Image("r1", engineA); err != nil || string(image) != "image" {
			t.Errorf("got image %q, %v", image, err)
		}
		for _, state := range []State{Completed, Failed, Expired, Aborted, "", "x"} {
			if err := s.SetState("r1", state); err == nil {
				t.Errorf("set to %q", state)
			}
		}
		wantErr(t, "unknown", s.SetState("nix", Running), ErrUnknown)
		wantErr(t, "over", s.SetState("over", Running), ErrLost)
		if m, err := s.Find("over"); err != nil || m.State != Completed {
			t.Errorf("got %+v, %v", m, err)
		}
	})
}

func TestStoreTerminal(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		must(t, s.Save(parked("old", -100), nil, nil))
		for i := range maxTerminal {
			must(t, s.Save(over(fmt.Sprintf("r%03d", i), i), nil, nil))
		}
		if got := ids(t, s); len(got) != 1+maxTerminal {
			t.Fatalf("got %d, want all", len(got))
		}
		must(t, s.Save(over("new", 1000), nil, nil))
		if got := ids(t, s); len(got) != 1+maxTerminal || got[0] != "old" || got[1] != "r001" || got[maxTerminal] != "new" {
			t.Errorf("got %d: %q …", len(got), got[:3])
		}
		// By size: this one alone is all that fits, and it is kept.
		must(t, s.Save(over("large", -50), make([]byte, maxTerminalBytes-Overhead), nil))
		if got := ids(t, s); len(got) != 2+maxTerminal-1 {
			t.Errorf("got %d, want all but the oldest: the others have no bytes", len(got))
		}
		must(t, s.Save(over("larger", 2000), make([]byte, 1), nil))
		if got := ids(t, s); slices.Contains(got, "large") || !slices.Contains(got, "larger") || got[0] != "old" {
			t.Errorf("the large one was not dropped for the new one: %q …", got[:3])
		}
	})
}

func TestStoreList(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		must(t, s.Save(parked("b", 5), nil, nil), s.Save(over("c", 3), nil, nil), s.Save(parked("a", 5), nil, nil), s.Save(parked("d", 1), nil, nil))
		if got, want := ids(t, s), []string{"d", "c", "a", "b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestStoreExpireHeld(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		never := over("never", 0)
		never.Expires = time.Time{}
		must(t, s.Save(parked("r1", 0), []byte("x"), nil), s.Save(over("r2", 10), []byte("x"), nil), s.Save(never, nil, nil))
		expire := func(at, wantNext time.Time, want ...string) {
			t.Helper()
			next, err := s.Expire(at)
			if must(t, err); !next.Equal(wantNext) {
				t.Errorf("next is %v, want %v", next, wantNext)
			}
			if got := ids(t, s); !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		end1, end2 := parked("", 0).Expires, parked("", 10).Expires
		expire(begin, end1, "never", "r1", "r2")
		expire(end1, end2, "never", "r1", "r2") // held: for the holder to end
		expire(end2.Add(-1), end2, "never", "r1", "r2")
		expire(end2, time.Time{}, "never", "r1")
	})
}

func TestStoreClosed(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		must(t, s.Save(parked("r1", 0), nil, nil), s.Close(), s.Close())
		if err := s.Save(parked("r2", 0), nil, nil); err == nil {
			t.Error("saved in a closed store")
		}
		_, err := s.List()
		wantErr(t, "list", err, errClosed)
		_, err = s.Load("r1")
		wantErr(t, "load", err, errClosed)
		_, err = s.Image("r1", engineA)
		wantErr(t, "image", err, errClosed)
		_, err = s.Expire(begin)
		wantErr(t, "expire", err, errClosed)
		wantErr(t, "delete", s.Delete("r1"), errClosed)
		wantErr(t, "append", s.Append("r1", nil), errClosed)
		wantErr(t, "set state", s.SetState("r1", Running), errClosed)
	})
}

// TestStoreDoesNotShare changes what it gave and what it got.
func TestStoreDoesNotShare(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		record, image, entry := []byte("record"), []byte("image"), []byte("entry")
		must(t, s.Save(parked("r1", 0), record, image), s.Append("r1", entry))
		first, err := s.Load("r1")
		must(t, err)
		for _, b := range [][]byte{record, image, entry, first.Record, first.Log[0]} {
			clear(b)
		}
		second, err := s.Load("r1")
		must(t, err)
		got, err := s.Image("r1", engineA)
		if must(t, err); string(second.Record)+string(got)+string(second.Log[0]) != "recordimageentry" {
			t.Errorf("got %q %q %q", second.Record, got, second.Log)
		}
	})
}

// TestStoreHammer uses a store from many sides and closes it in the middle.
func TestStoreHammer(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		var wg sync.WaitGroup
		half := make(chan struct{}, 4)
		for g := range 4 {
			wg.Go(func() {
				for i := range 40 {
					id := fmt.Sprint("r", (g+i)%6)
					errs := []error{s.Save(parked(id, i), []byte(id), []byte("image of "+id)), s.Append(id, []byte(id))}
					saved, err := s.Load(id)
					if err == nil && string(saved.Record) != id {
						t.Errorf("run %s has record %q", id, saved.Record)
					}
					image, imageErr := s.Image(id, engineA)
					if imageErr == nil && string(image) != "image of "+id {
						t.Errorf("run %s has image %q", id, image)
					}
					_, listErr := s.List()
					errs = append(errs, err, imageErr, listErr, s.Delete(id))
					for _, err := range errs {
						if err != nil && !errors.Is(err, errClosed) && !errors.Is(err, ErrUnknown) {
							t.Error(err)
						}
					}
					if i == 20 {
						half <- struct{}{}
					}
				}
			})
		}
		<-half
		must(t, s.Close())
		wg.Wait()
	})
}

func TestDurable(t *testing.T) {
	if NewMemory(Bounds{}).Durable() || !openDisk(t, DiskOptions{Dir: t.TempDir() + "/state"}).Durable() {
		t.Error("the disk is durable, the memory is not")
	}
}

func TestErrors(t *testing.T) {
	for err, want := range map[error]string{
		&HeldError{"r1", 42}: `run "r1" is held by process 42, which is still running`,
		&HeldError{"r1", 0}:  `run "r1" is held by another process, which is still running`,
		&FullError{What: "bytes", Limit: 10, Have: 8, Need: 5, Now: begin.Add(time.Hour), Oldest: []Meta{{ID: "r1", Owner: Owner{SessionKey: "k"}, Parked: begin}}}: `the parked runs have 8 bytes and this one needs 5, and no more than 10 may be kept; the oldest: run "r1" of session "k" (parked for 1h0m0s)`,
	} {
		if err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	if !errors.Is(ErrEngine, ErrBroken) {
		t.Error("ErrEngine is no ErrBroken")
	}
}

func TestStates(t *testing.T) {
	var over []State
	for _, s := range []State{Running, Waiting, Completed, Failed, Expired, Aborted, "", "x"} {
		if s.Terminal() {
			over = append(over, s)
		}
	}
	if want := []State{Completed, Failed, Expired, Aborted}; !reflect.DeepEqual(over, want) {
		t.Errorf("got %q, want %q", over, want)
	}
}

// SPEC 14.5: a run that is given up is nobody's: it waits, and any process may have it.
func TestStoreRelease(t *testing.T) {
	stores(t, func(t *testing.T, open func(Bounds) Store) {
		s := open(Bounds{})
		must(t, s.Save(parked("r1", 0), []byte("record"), []byte("image")), s.Save(over("over", 1), nil, nil), s.SetState("r1", Running))
		wantErr(t, "unknown", s.Release("nix"), ErrUnknown)
		wantErr(t, "over", s.Release("over"), ErrLost)
		must(t, s.Release("r1"))
		if !s.Durable() {
			return
		}
		if m, err := s.Find("r1"); err != nil || m.Held || m.State != Waiting {
			t.Errorf("got %+v, %v", m, err)
		}
		wantErr(t, "append", s.Append("r1", nil), ErrLost)
		wantErr(t, "release again", s.Release("r1"), ErrLost)
		if lost, err := s.Lost(); err != nil || len(lost) > 0 {
			t.Errorf("it was given up, not lost: %q, %v", lost, err)
		}
		saved, err := s.Claim("r1")
		if must(t, err); !saved.Meta.Held || string(saved.Record) != "record" {
			t.Errorf("got %+v", saved)
		}
		must(t, s.Append("r1", []byte("entry")), s.Release("r1"))
		if _, err := s.Expire(parked("r1", 0).Expires.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if m, err := s.Find("r1"); err == nil && m.State != Expired || err != nil && !errors.Is(err, ErrUnknown) {
			t.Errorf("past its time: %+v, %v", m, err)
		}
	})
}
