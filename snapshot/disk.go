package snapshot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"
)

// DiskOptions say where a durable store is.
type DiskOptions struct {
	// Dir is the state directory. It is made, with mode 0700, if it is not there; one that
	// is not ours, that others can reach, or that holds other things than a store's is
	// refused, and left as it is. It must be on a local file
	// system: flock(2) and mmap(2) must work between the processes that share it.
	Dir string
	// Key seals everything. nil: LoadKey(Dir/key). With another key than the one that
	// sealed what is there, OpenDisk fails.
	Key *Key
	// Bounds are those of this process. They count the runs of all processes.
	Bounds Bounds
	// Fault is for tests: it is called before every write, fsync, rename, commit and
	// removal, with the name of the file, and its error stands for the system's.
	Fault func(op Op, name string) error
	// Logger takes warnings about what no caller can be told. nil: nobody.
	Logger *slog.Logger
}

// A Disk is a durable [Store]. Any number of processes may have the same directory open.
// Whatever happens to one of them, even SIGKILL or the loss of power, each run is there as
// it was before or as it is after the call that was under way.
type Disk struct {
	dir    string
	key    *Key
	rowKey []byte
	bounds Bounds
	fault  fault
	log    *slog.Logger

	// mu makes calls of one store wait for each other here, which costs nothing, and not
	// at the lock of the database, which bbolt asks for every 50 ms.
	mu       sync.Mutex
	instance *instance           // guarded by mu; nil once closed
	damaged  error               // guarded by mu; why the database is not touched any more
	mine     map[string]struct{} // guarded by mu; runs that this store saved or claimed, and did not end
}

var _ Store = (*Disk)(nil)

// The names in a state directory.
const (
	dbName        = "runs.db"
	keyName       = "key"
	imagesName    = "images"
	instancesName = "instances"
)

// OpenDisk opens the store in a directory, and removes what processes that were killed left
// behind there. The caller closes it.
func OpenDisk(o DiskOptions) (*Disk, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	d := &Disk{dir: dir, key: o.Key, bounds: o.Bounds, fault: o.Fault, log: o.Logger, mine: map[string]struct{}{}}
	if d.log == nil {
		d.log = slog.New(slog.DiscardHandler)
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	unlock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the state directory: %w", err)
	}
	defer unlock()
	if err := d.setUp(); err != nil {
		d.Close()
		return nil, fmt.Errorf("opening the state directory %q: %w", dir, err)
	}
	return d, nil
}

func (d *Disk) path(name string) string { return filepath.Join(d.dir, name) }

// setUp needs the directory's lock.
func (d *Disk) setUp() (err error) {
	for _, name := range []string{imagesName, instancesName} {
		if err := makeSubDir(d.path(name)); err != nil {
			return err
		}
	}
	if d.key == nil {
		if d.key, err = d.ownKey(); err != nil {
			return err
		}
	}
	d.rowKey = d.key.derive(nil, rowInfo, 32)
	if err := d.makeDB(); err != nil {
		return err
	}
	if d.instance, err = newInstance(d.path(instancesName), d.fault); err != nil {
		return err
	}
	if err := d.fault.syncDir(d.dir); err != nil {
		return err
	}
	// Nothing is removed before the database has turned out to be ours.
	if err := d.sweepImages(); err != nil {
		return err
	}
	removePart(d.path(keyName))
	removePart(d.path(dbName))
	sweepInstances(d.path(instancesName))
	return nil
}

// ownKey gives the key in the directory. A new one is not made beside runs that it could
// not open.
func (d *Disk) ownKey() (*Key, error) {
	_, err := os.Lstat(d.path(dbName))
	_, keyErr := os.Lstat(d.path(keyName))
	if err == nil && errors.Is(keyErr, fs.ErrNotExist) {
		return nil, fmt.Errorf("the key %q is gone, and %s cannot be read without it: put the key back, name its file with supervisor.stateKeyFile if it is elsewhere, or move the directory away to begin anew", d.path(keyName), dbName)
	}
	return loadKey(d.path(keyName), d.fault)
}

// sweepImages removes images that no row names, and no file that could be something else.
// Images are only written with the database locked, so that none that is about to be named
// is among them.
func (d *Disk) sweepImages() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.withDB(false, func(db *bbolt.DB) error {
		return db.View(func(btx *bbolt.Tx) error {
			t, err := d.newTx(btx)
			if err != nil {
				return err
			}
			named := map[string]bool{}
			for _, r := range t.rows() {
				named[r.imageFile()] = true
			}
			entries, err := os.ReadDir(d.path(imagesName))
			var stale []string
			for _, e := range entries {
				if !named[e.Name()] && e.Type().IsRegular() && isImageName(strings.TrimSuffix(e.Name(), partSuffix)) {
					stale = append(stale, e.Name())
				}
			}
			d.removeImages(stale)
			return err
		})
	})
}

// Save is [Store]'s.
func (d *Disk) Save(m Meta, record, image []byte) error {
	if err := m.check(record, image); err != nil {
		return err
	}
	r := row{Meta: m.normal()}
	if r.State.Terminal() {
		image = nil
	}
	// Sealing is the work of our processor alone, and is done before others are locked out.
	var sealedRecord, sealedImage []byte
	if len(record) > 0 {
		sealedRecord = d.key.Seal(r.binding(r.recordKind()), record)
		r.Sum = link(nil, sealedRecord)
	}
	if len(image) > 0 {
		sealedImage = d.key.Seal(r.imageBinding(r.Engine), image)
		r.Image = imageName(r.ID, sealedImage)
	}
	r.Bytes = int64(len(sealedRecord) + len(sealedImage))

	return d.update(func(t *tx) error {
		if err := t.maySave(&r); err != nil {
			return err
		}
		if err := t.makeRoom(&r); err != nil {
			return err
		}
		if err := t.drop(r.ID); err != nil {
			return err
		}
		if sealedImage != nil {
			t.made = append(t.made, r.Image)
			if err := d.fault.writeFile(filepath.Join(d.path(imagesName), r.Image), sealedImage); err != nil {
				return fmt.Errorf("saving the image of run %q: %w", r.ID, err)
			}
		}
		if sealedRecord != nil {
			if err := t.records.Put([]byte(r.ID), sealedRecord); err != nil {
				return err
			}
		}
		if !r.State.Terminal() {
			r.Instance = d.instance.name
		}
		t.held[r.ID] = r.Instance != ""
		return t.put(r)
	})
}

// maySave tells whether a run may be saved as r says, by who has it.
func (t *tx) maySave(r *row) error {
	old, err := t.get(r.ID)
	_, had := t.d.mine[r.ID]
	switch {
	case errors.Is(err, ErrBroken):
		return nil // this mends it
	case had && (err != nil || old.Instance != t.d.instance.name):
		return fmt.Errorf("run %q: %w", r.ID, ErrLost)
	case err == nil && old.Held && old.Instance != t.d.instance.name && !r.State.Terminal():
		return &HeldError{old.ID, old.Holder}
	}
	return nil
}

// makeRoom sees to the bounds.
func (t *tx) makeRoom(r *row) error {
	if !r.State.Terminal() {
		return t.d.bounds.room(&r.Meta, r.Bytes, t.list())
	}
	for _, id := range overflow(&r.Meta, r.Bytes, t.list()) {
		if err := t.drop(id); err != nil {
			return err
		}
	}
	return nil
}

// Append is [Store]'s.
func (d *Disk) Append(id string, entry []byte) error {
	if err := checkEntry(id, entry); err != nil {
		return err
	}
	return d.update(func(t *tx) error {
		r, err := t.own(id)
		if err != nil {
			return err
		}
		if len(entry) > SmallEntry {
			if err := d.bounds.grow(&r.Meta, int64(len(entry)+Overhead), t.list()); err != nil {
				return err
			}
		}
		sealed := d.key.Seal(r.binding(KindLog), entry)
		r.Sum = link(r.Sum, sealed)
		r.Bytes += int64(len(sealed))
		if err := t.appendLog(&r, sealed); err != nil {
			return err
		}
		return t.put(r)
	})
}

// own gives the row of a run that this store holds.
func (t *tx) own(id string) (row, error) {
	r, err := t.get(id)
	if _, had := t.d.mine[id]; errors.Is(err, ErrUnknown) && had || err == nil && r.Instance != t.d.instance.name {
		return row{}, fmt.Errorf("run %q: %w", id, ErrLost)
	}
	return r, err
}

// Reserve is [Store]'s. It has nothing to do: Append counts.
func (d *Disk) Reserve(string, int64) error { return nil }

// SetState is [Store]'s.
func (d *Disk) SetState(id string, state State) error {
	if err := checkSet(id, state); err != nil {
		return err
	}
	return d.update(func(t *tx) error {
		r, err := t.own(id)
		if err != nil {
			return err
		}
		r.State = state
		return t.put(r)
	})
}

// Release is [Store]'s.
func (d *Disk) Release(id string) error {
	return d.update(func(t *tx) error {
		r, err := t.own(id)
		if err != nil {
			return err
		}
		r.Instance = ""
		t.held[id] = false
		return t.put(r)
	})
}

// Find is [Store]'s.
func (d *Disk) Find(id string) (m Meta, err error) {
	err = d.view(func(t *tx) error {
		r, err := t.get(id)
		if err == nil {
			m = r.Meta
		}
		return err
	})
	return m, err
}

// Claim is [Store]'s.
func (d *Disk) Claim(id string) (saved Saved, err error) {
	err = d.update(func(t *tx) error {
		r, err := t.get(id)
		if err != nil {
			return err
		}
		if r.Held && r.Instance != d.instance.name {
			return &HeldError{id, r.Holder}
		}
		if saved, err = t.open(&r); err != nil || r.State.Terminal() {
			return err
		}
		r.Instance = d.instance.name
		t.held[id] = true
		saved.Meta.Held, saved.Meta.Holder = true, os.Getpid()
		return t.put(r)
	})
	if err != nil {
		return Saved{}, err
	}
	return saved, nil
}

// Load is [Store]'s.
func (d *Disk) Load(id string) (saved Saved, err error) {
	err = d.view(func(t *tx) error {
		r, err := t.get(id)
		if err != nil {
			return err
		}
		saved, err = t.open(&r)
		return err
	})
	return saved, err
}

// Image is [Store]'s.
func (d *Disk) Image(id, engine string) ([]byte, error) {
	var r row
	var f *os.File
	err := d.view(func(t *tx) (err error) {
		if r, err = t.get(id); err != nil {
			return err
		}
		if r.Image == "" {
			return ErrUnknown
		}
		if r.Engine != engine {
			return ErrEngine
		}
		// Open it while nobody can replace it; reading can wait until others may go on.
		f, err = os.OpenFile(filepath.Join(d.path(imagesName), r.Image), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ELOOP) {
			return ErrBroken
		}
		return err
	})
	if err == nil {
		var sealed, plain []byte
		if sealed, err = readImage(f, r.ID, r.Image); err == nil {
			if plain, err = d.key.Open(r.imageBinding(engine), sealed); err == nil {
				return plain, nil
			}
		}
	}
	return nil, fmt.Errorf("the image of run %q: %w", id, err)
}

// readImage reads and closes an image's file.
func readImage(f *os.File, id, name string) ([]byte, error) {
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if size := info.Size(); !info.Mode().IsRegular() || size < Overhead || size > MaxImage+Overhead {
		return nil, ErrBroken
	}
	sealed := make([]byte, info.Size())
	if _, err := io.ReadFull(f, sealed); err != nil {
		return nil, err
	}
	if imageName(id, sealed) != name {
		return nil, ErrBroken
	}
	return sealed, nil
}

// Delete is [Store]'s.
func (d *Disk) Delete(id string) error {
	return d.update(func(t *tx) error {
		t.held[id] = false
		return t.drop(id)
	})
}

// List is [Store]'s.
func (d *Disk) List() (metas []Meta, err error) {
	err = d.view(func(t *tx) error {
		metas = t.list()
		return nil
	})
	return metas, err
}

// Expire is [Store]'s.
func (d *Disk) Expire(now time.Time) (next time.Time, err error) {
	due := false
	err = d.view(func(t *tx) error {
		due = slices.ContainsFunc(t.rows(), func(r row) bool { return fateOf(&r.Meta, now) != stays })
		next = t.nextExpiry(now)
		return nil
	})
	if err != nil || !due {
		return next, err
	}
	err = d.update(func(t *tx) error {
		for _, m := range t.list() {
			what := fateOf(&m, now)
			if what == stays {
				continue
			}
			if m.Broken {
				d.log.Warn("a run that cannot be read is dropped", slog.String("run", m.ID))
			}
			if err := t.drop(m.ID); err != nil {
				return err
			}
			if what == becomesTombstone {
				if err := t.put(row{Meta: tombstone(m, now)}); err != nil {
					return err
				}
			}
		}
		next = t.nextExpiry(now)
		return nil
	})
	return next, err
}

// heldPause is when to look again at a run that another process holds past its time. If
// that process ends, nobody is told.
const heldPause = time.Second

// nextExpiry is when the next Expire has something to do, or may have.
func (t *tx) nextExpiry(now time.Time) time.Time {
	next := nextExpiry(t.list(), now)
	again := now.Add(heldPause)
	if !next.IsZero() && !next.After(again) {
		return next
	}
	for _, r := range t.rows() {
		overdue := !r.Expires.IsZero() && !r.Expires.After(now)
		if overdue && r.Held && r.Instance != t.d.instance.name && !r.terminal() {
			return again
		}
	}
	return next
}

// Lost is [Store]'s.
func (d *Disk) Lost() (ids []string, err error) {
	d.mu.Lock()
	closed, none := d.instance == nil, len(d.mine) == 0
	d.mu.Unlock()
	if none && !closed {
		return nil, nil // without a look at the disk: this is asked often
	}
	err = d.view(func(t *tx) error {
		for id := range d.mine {
			if r, err := t.get(id); errors.Is(err, ErrUnknown) || err == nil && r.Instance != d.instance.name {
				ids = append(ids, id)
			}
		}
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

// Durable is true.
func (d *Disk) Durable() bool { return true }

// Close is [Store]'s. It does not wait for other processes.
func (d *Disk) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.instance == nil {
		return nil
	}
	err := d.instance.end()
	d.instance = nil
	return err
}
