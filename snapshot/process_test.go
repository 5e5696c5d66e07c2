package snapshot

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestHeldByAnotherProcess(t *testing.T) {
	dir := t.TempDir() + "/state"
	c := start(t, "commands", dir)
	if got := c.ask("park r1"); got != "ok" {
		t.Fatal(got)
	}
	d := openDisk(t, DiskOptions{Dir: dir})
	var held *HeldError
	_, err := d.Claim("r1")
	if !errors.As(err, &held) || held.ID != "r1" || held.PID != c.cmd.Process.Pid {
		t.Errorf("claim: got %v, want held by %d", err, c.cmd.Process.Pid)
	}
	if err := d.Save(parked("r1", 1), nil, nil); !errors.As(err, &held) {
		t.Errorf("save: got %v, want a HeldError", err)
	}
	wantErr(t, "append", d.Append("r1", nil), ErrLost)
	m, err := d.Find("r1")
	if must(t, err); !m.Held || m.Holder != c.cmd.Process.Pid {
		t.Errorf("got %+v", m)
	}
	saved, err := d.Load("r1")
	if must(t, err); string(saved.Record) != "record" {
		t.Errorf("got record %q", saved.Record)
	}
	// It is past its time, but that is for the holder to see, for as long as there is one.
	must(t, d.Save(parked("mine", 0), nil, nil), d.Save(over("soon", 4500), nil, nil), d.Save(over("late", 9000), nil, nil))
	for _, tt := range []struct{ ago, want time.Duration }{
		{-time.Minute, 0},
		{0, time.Second},
		{time.Hour, time.Hour + time.Second},
		{4500*time.Second - time.Millisecond, 4500 * time.Second}, // soon goes
		{4500 * time.Second, 4501 * time.Second},
		{9999 * time.Second, 10_000 * time.Second}, // nothing else is to come
	} {
		next, err := d.Expire(m.Expires.Add(tt.ago))
		if must(t, err); !next.Equal(m.Expires.Add(tt.want)) {
			t.Errorf("%v past the time of a run that another process has: next is at %v, want %v", tt.ago, next.Sub(m.Expires), tt.want)
		}
	}
	must(t, d.Delete("mine"))
	wantErr(t, "set state", d.SetState("r1", Running), ErrLost)
	if got := c.ask("run r1"); got != "ok" {
		t.Fatal(got)
	}
	if m, err = d.Find("r1"); err != nil || m.State != Running {
		t.Errorf("got state %q, %v", m.State, err)
	}

	c.kill()
	m, err = d.Find("r1")
	if must(t, err); m.Held || m.Holder != 0 || m.State != Waiting {
		t.Errorf("after the kill: got %+v", m)
	}
	saved, err = d.Claim("r1")
	if must(t, err); string(saved.Record) != "record" || !saved.Meta.Held {
		t.Errorf("got %+v", saved)
	}
	must(t, d.Append("r1", []byte("x")))
}

// TestExpiredDoNotCount saves beside runs that expired and that nobody holds.
func TestExpiredDoNotCount(t *testing.T) {
	dir := t.TempDir() + "/state"
	d := openDisk(t, DiskOptions{Dir: dir})
	brief := parked("brief", 0)
	brief.TTL = 0
	must(t, d.Save(parked("r1", 0), make([]byte, 900), nil), d.Save(brief, nil, nil), d.Save(parked("r2", 60), make([]byte, 200-Overhead), nil), d.Close())
	d = openDisk(t, DiskOptions{Dir: dir, Bounds: Bounds{Runs: 2, Bytes: 1000}})
	c := start(t, "commands", dir)
	if got := c.ask("claim r1"); got != "ok" {
		t.Fatal(got)
	}
	at := 15 * 60 // r1 and brief expired, r2 did not
	var full *FullError
	if err := d.Save(parked("r3", at), nil, nil); !errors.As(err, &full) || full.Have != 2 || full.Oldest[0].ID != "r1" {
		t.Errorf("a living process has r1: got %v", err)
	}
	c.kill()
	if err := d.Save(parked("r3", at-1), nil, nil); !errors.As(err, &full) || full.Have != 3 {
		t.Errorf("nothing expired yet: got %v", err)
	}
	must(t, d.Save(parked("r3", at), make([]byte, 800-Overhead), nil))
	err := d.Save(parked("r3", at), make([]byte, 801-Overhead), nil)
	if !errors.As(err, &full) || full.What != "bytes" || full.Have != 200 || len(full.Oldest) != 1 || full.Oldest[0].ID != "r2" {
		t.Errorf("got %v", err)
	}
	if got := ids(t, d); len(got) != 4 {
		t.Errorf("got %q: Save is not Expire", got)
	}
}

func TestFreeAfterClose(t *testing.T) {
	dir := t.TempDir() + "/state"
	c := start(t, "commands", dir)
	d := openDisk(t, DiskOptions{Dir: dir})
	c.ask("park r1")
	if got := c.ask("close"); got != "ok" {
		t.Fatal(got)
	}
	if _, err := d.Claim("r1"); err != nil {
		t.Error(err)
	}
}

func TestLost(t *testing.T) {
	dir := t.TempDir() + "/state"
	c := start(t, "commands", dir)
	d := openDisk(t, DiskOptions{Dir: dir})
	for _, id := range []string{"r1", "r2", "r3", "r4"} {
		if got := c.ask("park " + id); got != "ok" {
			t.Fatal(got)
		}
	}
	if got := c.ask("lost"); got != "" {
		t.Errorf("got lost %q, want none yet", got)
	}
	aborted := over("r1", 1)
	aborted.State = Aborted
	must(t, d.Save(aborted, nil, nil), d.Delete("r2"))
	for ask, want := range map[string]string{
		"append r1":   "lost",
		"append r2":   "lost",
		"append r3":   "ok",
		"park r1":     "lost",
		"park r2":     "lost",
		"complete r1": "lost", // the first end stands
		"complete r4": "ok",
		"append nix":  "unknown",
		"lost":        "r1 r2",
	} {
		if got := c.ask(ask); got != want {
			t.Errorf("%s: got %q, want %q", ask, got, want)
		}
	}
	m, err := d.Find("r1")
	if must(t, err); m.State != Aborted {
		t.Errorf("got state %q, want aborted", m.State)
	}
	c.ask("delete r1")
	if got := c.ask("lost"); got != "r2" {
		t.Errorf("got lost %q, want r2", got)
	}
}

// TestTombstones lets runs expire whose process is gone.
func TestTombstones(t *testing.T) {
	dir := t.TempDir() + "/state"
	d := openDisk(t, DiskOptions{Dir: dir})
	brief := parked("brief", 20)
	brief.TTL = 0
	must(t, d.Save(parked("r1", 0), []byte("record"), []byte("image")), d.Append("r1", []byte("entry")), d.Save(parked("r2", 10), nil, nil), d.Save(brief, nil, nil))
	must(t, d.Close())
	d = openDisk(t, DiskOptions{Dir: dir})
	now := parked("", 5).Expires
	next, err := d.Expire(now)
	if must(t, err); !next.Equal(parked("", 10).Expires) {
		t.Errorf("next is %v", next)
	}
	saved, err := d.Claim("r1")
	must(t, err)
	if m := saved.Meta; m.State != Expired || !m.Expires.Equal(now.Add(m.TTL)) || m.Bytes != 0 || m.Held || m.Owner != parked("", 0).Owner || saved.Record != nil || saved.Log != nil {
		t.Errorf("got %+v", saved)
	}
	if got, _ := filepath.Glob(dir + "/images/*"); len(got) > 0 {
		t.Errorf("the image is still there: %q", got)
	}
	next, err = d.Expire(now.Add(10 * time.Second))
	if got := ids(t, d); err != nil || len(got) != 3 || !next.Equal(parked("", 20).Expires) {
		t.Errorf("got %q, next %v, %v", got, next, err)
	}
	next, err = d.Expire(now.Add(15 * time.Minute))
	if got := ids(t, d); err != nil || len(got) != 1 || got[0] != "r2" || !next.Equal(now.Add(10*time.Second+15*time.Minute)) {
		t.Errorf("got %q, next %v, %v", got, next, err)
	}
	next, err = d.Expire(now.Add(time.Hour))
	if got := ids(t, d); err != nil || len(got) != 0 || !next.IsZero() {
		t.Errorf("got %q, next %v, %v", got, next, err)
	}
}

func TestKeyOfTwoProcesses(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "key")
		a, b := start(t, "key", path), start(t, "key", path)
		a.line()
		b.line()
		fmt.Fprintln(a.in)
		fmt.Fprintln(b.in)
		if a, b := a.line(), b.line(); a != b || len(a) != 64 {
			t.Errorf("got keys of %d and %d digits, equal: %v", len(a), len(b), a == b)
		}
	}
}

// TestKilled kills a process that saves, at random moments, and looks whether everything is
// there that it had said was saved.
func TestKilled(t *testing.T) {
	dir := t.TempDir() + "/state"
	random := rand.New(rand.NewPCG(3, 4))
	for round := range 20 {
		c := start(t, "saves", dir)
		for range 1 + random.IntN(12) {
			c.line()
		}
		// Not a wait for anything: a moment that has nothing to do with the line.
		for begin, d := time.Now(), time.Duration(random.IntN(4000))*time.Microsecond; time.Since(begin) < d; {
		}
		must(t, c.cmd.Process.Kill())
		rest, err := io.ReadAll(c.out)
		must(t, err)
		c.kill()
		// The last line tells all: those before it have come to the runs before.
		last := -1
		logged := false
		for line := range strings.Lines(string(rest)) {
			text, plus := strings.CutSuffix(strings.TrimSpace(line), "+")
			if last, err = strconv.Atoi(text); err != nil || !strings.HasSuffix(line, "\n") {
				t.Fatalf("round %d: got line %q", round, line)
			}
			logged = plus
		}
		d := openDisk(t, DiskOptions{Dir: dir})
		metas, err := d.List()
		must(t, err)
		if len(metas) == 0 {
			t.Fatalf("round %d: nothing is there", round)
		}
		newest := -1
		var entries int
		for _, m := range metas {
			saved, err := d.Claim(m.ID)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			i, err := strconv.Atoi(string(saved.Record))
			image, imageErr := d.Image(m.ID, engineA)
			if must(t, err, imageErr); m.ID != fmt.Sprint("r", i%saveRuns) || string(image) != string(savedImage(i)) || !m.Parked.Equal(parked("", i).Parked) {
				t.Fatalf("round %d: run %s is a mix: record %d, parked %v, image %.20q", round, m.ID, i, m.Parked, image)
			}
			if len(saved.Log) > 1 || len(saved.Log) == 1 && string(saved.Log[0]) != string(saved.Record) {
				t.Fatalf("round %d: run %s has log %q", round, m.ID, saved.Log)
			}
			if i > newest {
				newest, entries = i, len(saved.Log)
			}
			must(t, d.Delete(m.ID))
		}
		if newest < last || newest == last && logged && entries != 1 {
			t.Fatalf("round %d: the newest is save %d with %d log entries; %d was reported, logged %v", round, newest, entries, last, logged)
		}
		must(t, d.Close())
		wantNoGarbage(t, dir, 0)
	}
}

// TestSweepBesideSaves opens the directory again and again while another process saves:
// its new images must not be taken for garbage.
func TestSweepBesideSaves(t *testing.T) {
	dir := t.TempDir() + "/state"
	c := start(t, "saves", dir)
	c.line()
	for range 30 {
		d := openDisk(t, DiskOptions{Dir: dir})
		metas, err := d.List()
		must(t, err)
		for _, m := range metas {
			if image, err := d.Image(m.ID, engineA); err != nil || len(image) < 10_000 {
				t.Fatalf("run %s: image of %d bytes, %v", m.ID, len(image), err)
			}
		}
		must(t, d.Close())
		c.line()
	}
}
