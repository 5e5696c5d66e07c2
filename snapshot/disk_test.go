package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/bbolt"
)

// whole is all that a store has.
type whole map[string]string

// dump opens a directory and gives all that is in it.
func dump(t *testing.T, dir string) whole {
	t.Helper()
	d := openDisk(t, DiskOptions{Dir: dir})
	defer d.Close()
	metas, err := d.List()
	must(t, err)
	all := whole{}
	for _, m := range metas {
		saved, err := d.Load(m.ID)
		must(t, err)
		image, err := d.Image(m.ID, engineA)
		if err != nil && !errors.Is(err, ErrUnknown) {
			t.Fatal(err)
		}
		m.Held, m.Holder = false, 0
		all[m.ID] = fmt.Sprintf("%+v record %q log %q image %q", m, saved.Record, saved.Log, image)
	}
	return all
}

// wantNoGarbage looks for files that nothing needs in a directory that nobody has open.
func wantNoGarbage(t *testing.T, dir string, images int) {
	t.Helper()
	var got []string
	for _, pattern := range []string{"*", "*/*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		for _, p := range paths {
			got = append(got, strings.TrimPrefix(p, dir+"/"))
		}
	}
	want := []string{"images", "instances", "key", "runs.db"}
	if len(got) != len(want)+images || !cmp.Equal(got[:4], want) || strings.Contains(strings.Join(got, " "), partSuffix) {
		t.Errorf("got files %q, want %q and %d images", got, want, images)
	}
	for _, name := range got[4:] {
		if !strings.HasPrefix(name, "images/") {
			t.Errorf("got file %q", name)
		}
	}
}

var errInjected = errors.New("injected")

// failNth fails the nth operation on the disk, and tells which it was.
type failNth struct {
	n    int
	what string
}

func (f *failNth) fault(op Op, name string) error {
	if f.n--; f.n != 0 {
		return nil
	}
	f.what = string(op) + " of " + name
	return errInjected
}

// TestFaults fails every write, fsync, rename, commit and removal of every change. After
// that the directory has what it had before, or what the change makes of it.
func TestFaults(t *testing.T) {
	// Each begins with a directory that has two runs, r1 with everything and r2 without.
	tests := map[string]func(d *Disk) error{
		"save new":       func(d *Disk) error { return d.Save(parked("r3", 9), []byte("record 3"), []byte("image 3")) },
		"save again":     func(d *Disk) error { return d.Save(parked("r1", 9), []byte("record 9"), []byte("image 9")) },
		"save, no image": func(d *Disk) error { return d.Save(parked("r1", 9), []byte("record 9"), nil) },
		"save end":       func(d *Disk) error { return d.Save(over("r1", 9), []byte("result"), nil) },
		"append first":   func(d *Disk) error { return d.Append("r2", []byte("entry")) },
		"append":         func(d *Disk) error { return d.Append("r1", []byte("entry 2")) },
		"set state":      func(d *Disk) error { return d.SetState("r1", Running) },
		"delete":         func(d *Disk) error { return d.Delete("r1") },
		"claim":          func(d *Disk) error { _, err := d.Claim("r1"); return err },
		"expire": func(d *Disk) error {
			_, err := d.Expire(begin.Add(time.Hour))
			return err
		},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				dir := t.TempDir() + "/state"
				d := openDisk(t, DiskOptions{Dir: dir})
				must(t, d.Save(parked("r1", 1), []byte("record 1"), []byte("image 1")), d.Append("r1", []byte("entry")), d.Save(parked("r2", 2), nil, nil))
				must(t, d.Close())
				before := dump(t, dir)

				f := &failNth{}
				d = openDisk(t, DiskOptions{Dir: dir, Fault: f.fault})
				if name != "expire" { // that only takes what nobody holds
					for _, id := range []string{"r1", "r2"} {
						if _, err := d.Claim(id); err != nil {
							t.Fatal(err)
						}
					}
				}
				f.n = n
				err := change(d)
				failed := f.n <= 0
				if err != nil && !errors.Is(err, errInjected) || err == nil && failed && !strings.HasPrefix(f.what, "remove") {
					t.Fatalf("fault %d, %s: got %v", n, f.what, err)
				}
				after := dump(t, dir) // as another process sees it, and sweeps it
				if same := cmp.Equal(before, after); same != (err != nil) && name != "claim" {
					t.Fatalf("fault %d, %s: the change returned %v, and changed: %v\n%s", n, f.what, err, !same, cmp.Diff(before, after))
				}
				// The store goes on as if nothing had been.
				if err != nil {
					must(t, change(d))
				}
				final := dump(t, dir)
				must(t, d.Close())
				want := final
				if name == "set state" {
					want = before // who ran it is gone
				}
				if again := dump(t, dir); !cmp.Equal(want, again) {
					t.Fatalf("fault %d: after another open: %s", n, cmp.Diff(want, again))
				}
				images, _ := filepath.Glob(dir + "/images/*")
				named := 0
				for _, text := range final {
					if !strings.HasSuffix(text, `image ""`) {
						named++
					}
				}
				if len(images) != named {
					t.Fatalf("fault %d, %s: got images %q, want %d", n, f.what, images, named)
				}
				wantNoGarbage(t, dir, named)
				if !failed {
					if n == 1 {
						t.Fatal("nothing was done to the disk")
					}
					return
				}
			}
		})
	}
}

// TestFaultsOfOpen fails every step of making a directory.
func TestFaultsOfOpen(t *testing.T) {
	for n := 1; ; n++ {
		dir := t.TempDir() + "/state"
		f := &failNth{n: n}
		d, err := OpenDisk(DiskOptions{Dir: dir, Fault: f.fault})
		if f.n > 0 {
			must(t, err, d.Close())
			wantNoGarbage(t, dir, 0)
			if n < 8 {
				t.Errorf("only %d steps", n)
			}
			return
		}
		wantErr(t, f.what, err, errInjected)
		d = openDisk(t, DiskOptions{Dir: dir})
		must(t, d.Save(parked("r1", 1), nil, []byte("image")), d.Close())
		wantNoGarbage(t, dir, 1)
	}
}

func TestOpenDiskSweeps(t *testing.T) {
	dir := t.TempDir() + "/state"
	d := openDisk(t, DiskOptions{Dir: dir})
	must(t, d.Save(parked("r1", 1), nil, []byte("image")), d.Close())
	for _, name := range []string{"key.part", "runs.db.part", "images/r1." + randomName() + ".snap", "images/r2." + randomName() + ".snap.part", "instances/" + randomName() + ".lock"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("1\n"), 0o600))
	}
	must(t, openDisk(t, DiskOptions{Dir: dir}).Close())
	wantNoGarbage(t, dir, 1)
}

// names gives the paths of all that is in a directory, and what it is.
func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil {
			names = append(names, info.Mode().String()+" "+strings.TrimPrefix(path, dir))
		}
		return err
	}))
	return names
}

// TestOpenDiskSparesStrangers has files in the state directory that are like ours, but not
// of our form.
func TestOpenDiskSparesStrangers(t *testing.T) {
	dir := t.TempDir() + "/state"
	d := openDisk(t, DiskOptions{Dir: dir})
	must(t, d.Save(parked("r1", 1), nil, []byte("image")), d.Close())
	salt := randomName()
	for _, name := range []string{"mine", "key.bak", "runs.db.bak", "images/a.jpg", "images/r1.00.snap", "images/r1." + salt + ".snap.bak",
		"images/r1." + strings.Repeat("A", 32) + ".snap", "images/." + salt + ".snap", "images/r 1." + salt + ".snap", "images/" + salt + ".snap",
		"images/r1.x." + salt + ".snap", "images/r1." + salt + ".snap.part.part", "images/r1." + salt + ".part", "images/.part",
		"instances/dpkg.lock", "instances/.lock", "instances/" + strings.Repeat("A", 32) + ".lock", "instances/" + salt, "instances/" + salt + "0.lock"} {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	for _, name := range []string{"key.part", "runs.db.part", "images/r2." + salt + ".snap", "instances/" + salt + ".lock"} {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	for _, name := range []string{"images/r3." + salt + ".snap", "instances/" + randomName() + ".lock"} {
		must(t, os.Symlink("/nowhere", filepath.Join(dir, name)))
	}
	before := names(t, dir)
	must(t, openDisk(t, DiskOptions{Dir: dir}).Close())
	if after := names(t, dir); !cmp.Equal(before, after) {
		t.Errorf("files of strangers: %s", cmp.Diff(before, after))
	}
}

// TestOpenDiskRefusesStrangers opens directories that are no state directories: nothing is
// removed or made there.
func TestOpenDiskRefusesStrangers(t *testing.T) {
	const choose = "choose an empty or new directory"
	write := func(t *testing.T, paths ...string) {
		for _, path := range paths {
			must(t, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600))
		}
	}
	image, lock := "/images/r1."+randomName()+".snap", "/instances/"+randomName()+".lock"
	tests := map[string]struct {
		make func(t *testing.T, dir string)
		want string
	}{
		"a project":       {func(t *testing.T, dir string) { write(t, dir+"/go.mod", dir+image, dir+lock, dir+"/key.part") }, choose},
		"of others, too":  {func(t *testing.T, dir string) { write(t, dir+"/x"); must(t, os.Chmod(dir, 0o755)) }, choose},
		"hidden":          {func(t *testing.T, dir string) { write(t, dir+"/.git", dir+"/runs.db.part") }, choose},
		"database a link": {func(t *testing.T, dir string) { write(t, dir+"/x"); must(t, os.Symlink("x", dir+"/runs.db")) }, choose},
		"images a link": {func(t *testing.T, dir string) {
			write(t, dir+"1"+image)
			must(t, os.Symlink(dir+"1/images", dir+"/images"))
		}, "a directory of your own"},
		"instances a link": {func(t *testing.T, dir string) {
			must(t, openDisk(t, DiskOptions{Dir: dir}).Close(), os.Rename(dir+"/instances", dir+"1"), os.Symlink(dir+"1", dir+"/instances"))
			write(t, dir+lock)
		}, "a directory of your own"},
		"images a file": {func(t *testing.T, dir string) { write(t, dir+"/images") }, "a directory of your own"},
		"images open": {func(t *testing.T, dir string) {
			write(t, dir+image)
			must(t, os.Chmod(dir+"/images", 0o755))
		}, "chmod 700"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			dir := parent + "/state"
			must(t, os.Mkdir(dir, 0o700))
			tt.make(t, dir)
			before := names(t, parent)
			_, err := OpenDisk(DiskOptions{Dir: dir})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, want %q and the directory", err, tt.want)
			}
			if after := names(t, parent); !cmp.Equal(before, after) {
				t.Errorf("it was changed: %s", cmp.Diff(before, after))
			}
		})
	}
}

// TestOpenDiskGoesOn opens what a process left that was killed while it made the directory.
func TestOpenDiskGoesOn(t *testing.T) {
	dir := t.TempDir() + "/state"
	must(t, os.MkdirAll(dir+"/images", 0o700), os.WriteFile(dir+"/key.part", nil, 0o600), os.WriteFile(dir+"/runs.db.part", nil, 0o600))
	must(t, openDisk(t, DiskOptions{Dir: dir}).Close())
	wantNoGarbage(t, dir, 0)
}

// TestDamaged opens databases that are cut or overwritten: people read what to do, and not
// what the runtime says.
func TestDamaged(t *testing.T) {
	dir := t.TempDir() + "/state"
	d := openDisk(t, DiskOptions{Dir: dir})
	must(t, d.Save(parked("r1", 1), make([]byte, 20_000), nil), d.Append("r1", nil), d.Close())
	whole, err := os.ReadFile(dir + "/runs.db")
	must(t, err)
	try := func(what string, text []byte) (damaged bool) {
		t.Helper()
		must(t, os.WriteFile(dir+"/runs.db", text, 0o600))
		d, err := OpenDisk(DiskOptions{Dir: dir})
		if err == nil {
			_, err = d.Load("r1")
			must(t, d.Close())
		}
		if err == nil {
			return false
		}
		for _, word := range []string{"runtime", "nil pointer", "fault", "panic", "page ", "assertion", "index out"} {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error has %q: %v", what, word, err)
			}
		}
		if !errors.Is(err, ErrDamaged) {
			return false
		}
		if now, err := os.ReadFile(dir + "/runs.db"); err != nil || !bytes.Equal(now, text) {
			t.Errorf("%s: the database was changed, %v", what, err)
		}
		for _, word := range []string{"damaged", "restore", "from a backup", "move the directory away", dir} {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error lacks %q: %v", what, word, err)
			}
		}
		return true
	}
	for _, size := range []int{0, 1, 100, 4095, 4096, 2 * 4096, 3 * 4096} {
		if !try(fmt.Sprint("cut to ", size), whole[:size]) {
			t.Errorf("cut to %d bytes: no ErrDamaged", size)
		}
	}
	damaged := 0
	for page := 0; page < len(whole); page += 4096 {
		for _, fill := range []byte{0, 0xff} {
			text := bytes.Clone(whole)
			copy(text[page:], bytes.Repeat([]byte{fill}, 4096))
			if try(fmt.Sprintf("page at %d of %#x", page, fill), text) {
				damaged++
			}
		}
	}
	if damaged == 0 {
		t.Error("no page did any harm")
	}
	if try("whole", whole) {
		t.Error("the whole database is damaged")
	}
}

func TestOpenDiskRefuses(t *testing.T) {
	tests := map[string]struct {
		make func(t *testing.T, dir string)
		key  *Key
		want string
	}{
		"open to others": {func(t *testing.T, dir string) { must(t, os.Chmod(dir, 0o750)) }, nil, "chmod 700"},
		"link": {func(t *testing.T, dir string) {
			must(t, os.Rename(dir, dir+"1"), os.Symlink(dir+"1", dir))
		}, nil, "choose another"},
		"file": {func(t *testing.T, dir string) {
			must(t, os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600))
		}, nil, "not a directory"},
		"another key": {func(t *testing.T, dir string) {}, NewKey(), "another key"},
		"key is gone": {func(t *testing.T, dir string) { must(t, os.Remove(dir+"/key")) }, nil, "put the key back, name its file with supervisor.stateKeyFile"},
		"key is open": {func(t *testing.T, dir string) { must(t, os.Chmod(dir+"/key", 0o644)) }, nil, "chmod 600"},
		"no database": {func(t *testing.T, dir string) {
			must(t, os.WriteFile(dir+"/runs.db", []byte(strings.Repeat("x", 1<<15)), 0o600))
		}, nil, "runs.db"},
		"cut database": {func(t *testing.T, dir string) { must(t, os.Truncate(dir+"/runs.db", 2*4096)) }, nil, "runs.db"},
		"empty buckets": {func(t *testing.T, dir string) {
			db, err := bbolt.Open(dir+"/runs.db", 0o600, nil)
			must(t, err, db.Update(func(tx *bbolt.Tx) error { return tx.DeleteBucket(logsBucket) }), db.Close())
		}, nil, "damaged"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/state"
			d := openDisk(t, DiskOptions{Dir: dir})
			must(t, d.Save(parked("r1", 1), []byte("record"), nil), d.Close())
			tt.make(t, dir)
			d, err := OpenDisk(DiskOptions{Dir: dir, Key: tt.key})
			if err == nil || d != nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, %v, want %q and the directory", d, err, tt.want)
			}
		})
	}
}

// TestDatabaseCut cuts the database under a store that is open: an error, not the end of
// the process, and no lock that stays.
func TestDatabaseCut(t *testing.T) {
	dir := t.TempDir() + "/state"
	d := openDisk(t, DiskOptions{Dir: dir})
	must(t, d.Save(parked("r1", 1), make([]byte, 100_000), nil))
	must(t, os.Truncate(dir+"/runs.db", 3*4096))
	for range 2 {
		if err := d.Save(parked("r2", 1), nil, nil); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("saved in a database that is cut: got %v", err)
		}
	}
	if _, err := OpenDisk(DiskOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("opened a database that is cut, or found it locked: got %v", err)
	}
	must(t, os.Remove(dir+"/runs.db"))
	if err := d.Save(parked("r2", 1), nil, nil); err == nil {
		t.Error("saved in a database that is gone")
	}
	must(t, d.Close(), openDisk(t, DiskOptions{Dir: dir}).Save(parked("r2", 1), nil, nil))
}

// edit changes a value in the database behind the store's back.
func edit(t *testing.T, dir string, bucket []byte, key string, change func([]byte) []byte) {
	t.Helper()
	db, err := bbolt.Open(dir+"/runs.db", 0o600, &bbolt.Options{Timeout: time.Second})
	must(t, err)
	must(t, db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(bucket)
		if inner := b.Bucket([]byte(key)); inner != nil {
			b, key = inner, "\x00\x00\x00\x00\x00\x00\x00\x01"
		}
		if value := change(bytes.Clone(b.Get([]byte(key)))); value != nil {
			return b.Put([]byte(key), value)
		}
		return b.Delete([]byte(key))
	}), db.Close())
}

// replace is a change of a part of the text. It must be there.
func replace(t *testing.T, old, text string) func([]byte) []byte {
	return func(value []byte) []byte {
		if !bytes.Contains(value, []byte(old)) {
			t.Fatalf("there is no %q in %s", old, value)
		}
		return bytes.ReplaceAll(value, []byte(old), []byte(text))
	}
}

func flip(value []byte) []byte { value[len(value)/2] ^= 4; return value }
func remove([]byte) []byte     { return nil }

// TestTampered changes what is kept of r1. It costs that run and no other.
func TestTampered(t *testing.T) {
	var older, olderRow, olderLog []byte // of an earlier time of r1
	take := func(to *[]byte) func([]byte) []byte {
		return func(value []byte) []byte { *to = bytes.Clone(value); return value }
	}
	put := func(from *[]byte) func([]byte) []byte { return func([]byte) []byte { return *from } }
	image := func(t *testing.T, dir, id string) string {
		paths, err := filepath.Glob(dir + "/images/" + id + ".*")
		if must(t, err); len(paths) != 1 {
			t.Fatalf("got images %q", paths)
		}
		return paths[0]
	}
	rewrite := func(t *testing.T, path string, change func([]byte) []byte) {
		text, err := os.ReadFile(path)
		must(t, err, os.WriteFile(path, change(text), 0o600))
	}
	all, onlyImage := []string{"find", "claim", "load", "image", "append"}, []string{"image"}
	records := []string{"claim", "load"}
	tests := map[string]struct {
		change func(t *testing.T, dir string)
		broken []string
	}{
		"owner":    {func(t *testing.T, dir string) { edit(t, dir, runsBucket, "r1", replace(t, `"main"`, `"evil"`)) }, all},
		"no owner": {func(t *testing.T, dir string) { edit(t, dir, runsBucket, "r1", replace(t, `"agentId":"main",`, ``)) }, all},
		"state":    {func(t *testing.T, dir string) { edit(t, dir, runsBucket, "r1", replace(t, `"waiting"`, `"running"`)) }, all},
		"expires":  {func(t *testing.T, dir string) { edit(t, dir, runsBucket, "r1", replace(t, `"2026-`, `"2036-`)) }, all},
		"id":       {func(t *testing.T, dir string) { edit(t, dir, runsBucket, "r1", replace(t, `"r1"`, `"r2"`)) }, all},
		"mac": {func(t *testing.T, dir string) {
			edit(t, dir, runsBucket, "r1", func(v []byte) []byte { v[0] ^= 1; return v })
		}, all},
		"not JSON": {func(t *testing.T, dir string) { edit(t, dir, runsBucket, "r1", replace(t, `{`, `[`)) }, all},
		"huge": {func(t *testing.T, dir string) {
			edit(t, dir, runsBucket, "r1", replace(t, `{`, strings.Repeat(" ", maxMeta)+"{"))
		}, all},
		"row of r2": {func(t *testing.T, dir string) {
			edit(t, dir, runsBucket, "r2", take(&olderRow))
			edit(t, dir, runsBucket, "r1", put(&olderRow))
		}, all},
		"record":    {func(t *testing.T, dir string) { edit(t, dir, recordsBucket, "r1", flip) }, records},
		"no record": {func(t *testing.T, dir string) { edit(t, dir, recordsBucket, "r1", remove) }, records},
		"short record": {func(t *testing.T, dir string) {
			edit(t, dir, recordsBucket, "r1", func(v []byte) []byte { return v[:20] })
		}, records},
		"older record": {func(t *testing.T, dir string) { edit(t, dir, recordsBucket, "r1", put(&older)) }, records},
		"log":          {func(t *testing.T, dir string) { edit(t, dir, logsBucket, "r1", flip) }, records},
		"no log":       {func(t *testing.T, dir string) { edit(t, dir, logsBucket, "r1", remove) }, records},
		"older log":    {func(t *testing.T, dir string) { edit(t, dir, logsBucket, "r1", put(&olderLog)) }, records},
		"image":        {func(t *testing.T, dir string) { rewrite(t, image(t, dir, "r1"), flip) }, onlyImage},
		"short image": {func(t *testing.T, dir string) {
			rewrite(t, image(t, dir, "r1"), func(v []byte) []byte { return v[:50] })
		}, onlyImage},
		"no image":    {func(t *testing.T, dir string) { must(t, os.Remove(image(t, dir, "r1"))) }, onlyImage},
		"huge image":  {func(t *testing.T, dir string) { must(t, os.Truncate(image(t, dir, "r1"), MaxImage+Overhead+1)) }, onlyImage},
		"image of r2": {func(t *testing.T, dir string) { must(t, os.Rename(image(t, dir, "r2"), image(t, dir, "r1"))) }, onlyImage},
		"image a link": {func(t *testing.T, dir string) {
			path := image(t, dir, "r1")
			must(t, os.Rename(path, dir+"/x"), os.Symlink(dir+"/x", path))
		}, onlyImage},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/state"
			d := openDisk(t, DiskOptions{Dir: dir})
			must(t, d.Save(parked("r1", 1), []byte("older"), []byte("older")), d.Append("r1", []byte("older")), d.Save(parked("r2", 1), []byte("record 2"), []byte("image 2")))
			edit(t, dir, recordsBucket, "r1", take(&older))
			edit(t, dir, logsBucket, "r1", take(&olderLog))
			must(t, d.Save(parked("r1", 2), []byte("record"), []byte("image")), d.Append("r1", []byte("entry")), d.Append("r1", []byte("entry")))
			tt.change(t, dir)

			ops := map[string]func(string) error{
				"find":   func(id string) error { _, err := d.Find(id); return err },
				"claim":  func(id string) error { _, err := d.Claim(id); return err },
				"load":   func(id string) error { _, err := d.Load(id); return err },
				"image":  func(id string) error { _, err := d.Image(id, engineA); return err },
				"append": func(id string) error { return d.Append(id, nil) },
			}
			for op, do := range ops {
				if op == "append" && len(tt.broken) != len(all) {
					continue // it does not look at what was there
				}
				err := do("r1")
				if want := strings.Contains(strings.Join(tt.broken, " "), op); errors.Is(err, ErrBroken) != want || !want && err != nil {
					t.Errorf("%s r1: got %v, want ErrBroken: %v", op, err, want)
				}
				if name != "image of r2" {
					must(t, do("r2"))
				}
			}
			metas, err := d.List()
			if must(t, err); len(metas) != 2 {
				t.Errorf("got list %+v", metas)
			}
			for _, m := range metas {
				if want := m.ID == "r1" && len(tt.broken) == len(all); m.Broken != want {
					t.Errorf("run %s: broken is %v, want %v", m.ID, m.Broken, want)
				}
			}
			// The directory opens, and the run can be saved anew.
			must(t, openDisk(t, DiskOptions{Dir: dir}).Close())
			must(t, d.Save(parked("r1", 3), []byte("record"), []byte("image")))
			saved, err := d.Claim("r1")
			if must(t, err); string(saved.Record) != "record" {
				t.Errorf("got %q", saved.Record)
			}
		})
	}
}

// TestBrokenRowsGo has rows that cannot be believed: the plain time, if there is one, is
// when they go.
func TestBrokenRowsGo(t *testing.T) {
	dir := t.TempDir() + "/state"
	d := openDisk(t, DiskOptions{Dir: dir})
	must(t, d.Save(parked("r1", 1), nil, []byte("image")), d.Save(parked("r2", 1), nil, nil), d.Save(parked("r3", 1), nil, nil), d.Save(parked("r4", 1), nil, nil))
	edit(t, dir, runsBucket, "r1", replace(t, `"waiting"`, `"running"`))
	edit(t, dir, runsBucket, "r2", replace(t, `{`, `x`))
	edit(t, dir, runsBucket, "r4", flip)
	must(t, d.Delete("r4"))
	if _, err := d.Expire(begin); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, d); !cmp.Equal(got, []string{"r1", "r3"}) {
		t.Errorf("got %q, want r1 until it expires", got)
	}
	if _, err := d.Expire(parked("", 1).Expires); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, d); !cmp.Equal(got, []string{"r3"}) {
		t.Errorf("got %q, want what is held", got)
	}
	must(t, d.Delete("r3"), d.Close())
	wantNoGarbage(t, dir, 0)
}

// TestRowIsPlain reads a row without the package: what the format promises to others.
func TestRowIsPlain(t *testing.T) {
	dir := t.TempDir() + "/state"
	d := openDisk(t, DiskOptions{Dir: dir})
	must(t, d.Save(parked("r1", 1), []byte("s3cr3t"), []byte("s3cr3t")))
	edit(t, dir, runsBucket, "r1", func(value []byte) []byte {
		var run struct{ ID, State, Parked string }
		if err := json.Unmarshal(value[32:], &run); err != nil || run.ID != "r1" || run.State != "waiting" || run.Parked != "2026-03-01T12:00:01Z" {
			t.Errorf("got %+v, %v", run, err)
		}
		return value
	})
	must(t, filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("s3cr3t")) {
			t.Errorf("%s has it in the open", path)
		}
		return err
	}))
}

func BenchmarkSave(b *testing.B) {
	for _, size := range []int{0, 256 << 10, 4 << 20} {
		b.Run(fmt.Sprintf("image=%dKiB", size>>10), func(b *testing.B) {
			d := openDisk(b, DiskOptions{Dir: b.TempDir() + "/state"})
			record, image := make([]byte, 2000), make([]byte, size)
			for b.Loop() {
				must(b, d.Save(parked("r1", 1), record, image))
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	d := openDisk(b, DiskOptions{Dir: b.TempDir() + "/state"})
	must(b, d.Save(parked("r1", 1), nil, nil))
	entry := make([]byte, 1000)
	for b.Loop() {
		must(b, d.Append("r1", entry))
	}
}

// BenchmarkFind is what every look costs: opening the database, a transaction, closing it.
func BenchmarkFind(b *testing.B) {
	d := openDisk(b, DiskOptions{Dir: b.TempDir() + "/state"})
	for i := range 64 {
		must(b, d.Save(parked(fmt.Sprint("r", i), 1), make([]byte, 2000), nil))
	}
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			_, err := d.Find("r1")
			must(b, err)
		}
	})
	b.Run("list of 64", func(b *testing.B) {
		for b.Loop() {
			_, err := d.List()
			must(b, err)
		}
	})
}
