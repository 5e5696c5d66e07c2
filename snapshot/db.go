package snapshot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// The buckets of the database. All but the first have run ids as keys.
var (
	aboutBucket   = []byte("about")   // checkKey
	runsBucket    = []byte("runs")    // rows
	recordsBucket = []byte("records") // sealed records and results
	logsBucket    = []byte("logs")    // a bucket for each run: sequence number, sealed entry
)

// checkKey names a value that can only be made with the key of the database. It also says
// which layout the database has.
var checkKey = []byte("check")

const checkInfo = "codemode snapshot database 1"

// makeDB makes the database, unless it is there: as a whole or not at all. It needs the
// directory's lock.
func (d *Disk) makeDB() error {
	if _, err := os.Lstat(d.path(dbName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	removePart(d.path(dbName))
	part := d.path(dbName + partSuffix)
	db, err := bbolt.Open(part, 0o600, &bbolt.Options{Timeout: lockTimeout})
	if err != nil {
		return err
	}
	err = db.Update(func(btx *bbolt.Tx) error {
		for _, name := range [][]byte{aboutBucket, runsBucket, recordsBucket, logsBucket} {
			if _, err := btx.CreateBucket(name); err != nil {
				return err
			}
		}
		if err := btx.Bucket(aboutBucket).Put(checkKey, d.key.derive(nil, checkInfo, 32)); err != nil {
			return err
		}
		return d.fault.at(OpCommit, part)
	})
	if e := db.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = d.fault.publish(part, d.path(dbName))
	}
	if err != nil {
		os.Remove(part)
	}
	return err
}

// A tx is one transaction on the database, and what it means for the files beside it.
type tx struct {
	d                   *Disk
	runs, records, logs *bbolt.Bucket
	pids                map[string]int // of the living instances that were asked for; -1: gone

	made  []string        // images that are there for this transaction
	stale []string        // images that nothing names once it is committed
	held  map[string]bool // runs that this store has, or has not, once it is committed
}

// view looks at the database.
func (d *Disk) view(fn func(*tx) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.withDB(true, func(db *bbolt.DB) error {
		return db.View(func(btx *bbolt.Tx) error {
			t, err := d.newTx(btx)
			if err != nil {
				return err
			}
			return fn(t)
		})
	})
}

// update changes the database, and all that hangs on it, or nothing.
func (d *Disk) update(fn func(*tx) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var t *tx
	committing := false
	err := d.withDB(false, func(db *bbolt.DB) error {
		return db.Update(func(btx *bbolt.Tx) (err error) {
			if t, err = d.newTx(btx); err != nil {
				return err
			}
			if err = fn(t); err != nil {
				return err
			}
			if err = d.fault.at(OpCommit, dbName); err != nil {
				return err
			}
			committing = true
			return nil
		})
	})
	if err != nil {
		// Once the commit began nobody knows on which side of it the disk is. What it
		// would name stays then, and the next OpenDisk sees what is garbage.
		if t != nil && !committing {
			d.removeImages(t.made)
		}
		return err
	}
	d.removeImages(t.stale)
	for id, held := range t.held {
		if held {
			d.mine[id] = struct{}{}
		} else {
			delete(d.mine, id)
		}
	}
	return nil
}

// withDB opens the database, which locks it against other processes, and closes it again.
// A database that is damaged in a way that bbolt does not expect, or that somebody cut
// while it is mapped into memory, makes it panic; that is an error here, because it must
// not end a process full of other people's runs. It needs mu.
func (d *Disk) withDB(readOnly bool, fn func(*bbolt.DB) error) (err error) {
	switch {
	case d.instance == nil:
		return errClosed
	case d.damaged != nil:
		return d.damaged
	}
	var file *os.File
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			// Not db.Close: it may wait for a lock that the panic left behind. Closing
			// the file alone would leave it locked for as long as it is mapped.
			if file != nil {
				unix.Flock(int(file.Fd()), unix.LOCK_UN)
				file.Close()
			}
			// What is mapped stays mapped, so there is no second try.
			d.damaged = d.damage()
			err = d.damaged
			d.log.Error("the database of the runs cannot be read", slog.String("path", d.path(dbName)), slog.Any("panic", r))
		}
	}()
	db, err := bbolt.Open(d.path(dbName), 0o600, &bbolt.Options{
		Timeout:  lockTimeout,
		ReadOnly: readOnly,
		OpenFile: func(path string, flag int, mode os.FileMode) (f *os.File, err error) {
			// Only makeDB makes one: with its buckets and the check of the key.
			if file, err = os.OpenFile(path, flag&^os.O_CREATE|unix.O_NOFOLLOW, mode); err != nil {
				return nil, err
			}
			// Nor does bbolt make one of a file that somebody emptied.
			if info, err := file.Stat(); err != nil || info.Size() == 0 {
				file.Close()
				return nil, cmp.Or(err, d.damage())
			}
			return file, nil
		},
	})
	if errors.Is(err, bbolterrors.ErrTimeout) {
		return fmt.Errorf("the database %q has been in use by another process for %v: see who has it open, and try again", d.path(dbName), lockTimeout)
	}
	var system *fs.PathError
	var errno unix.Errno
	switch {
	case err == nil:
	case errors.Is(err, ErrDamaged):
		return err
	case errors.As(err, &system), errors.As(err, &errno):
		return fmt.Errorf("opening the database %q: %w", d.path(dbName), err)
	default: // bbolt has read it, and does not like it
		d.log.Error("the database of the runs cannot be read", slog.String("path", d.path(dbName)), slog.Any("error", err))
		return d.damage()
	}
	err = fn(db)
	if e := db.Close(); err == nil {
		err = e
	}
	return err
}

// damage is the error of a database that is damaged, for people: what bbolt or the runtime
// say about it tells them nothing, and goes to the log.
func (d *Disk) damage() error {
	return fmt.Errorf("%w: restore %q from a backup, or move the directory away to begin anew, and start again", ErrDamaged, d.path(dbName))
}

func (d *Disk) newTx(btx *bbolt.Tx) (*tx, error) {
	t := &tx{d: d, pids: map[string]int{}, held: map[string]bool{},
		runs: btx.Bucket(runsBucket), records: btx.Bucket(recordsBucket), logs: btx.Bucket(logsBucket)}
	about := btx.Bucket(aboutBucket)
	if about == nil || t.runs == nil || t.records == nil || t.logs == nil {
		return nil, d.damage()
	}
	if !bytes.Equal(about.Get(checkKey), d.key.derive(nil, checkInfo, 32)) {
		return nil, fmt.Errorf("the runs in %q were sealed with another key, or by another version of this program: put the right key back, or move the directory away to begin anew", d.dir)
	}
	return t, nil
}

// get gives a run's row, also if the error is ErrBroken.
func (t *tx) get(id string) (row, error) {
	text := t.runs.Get([]byte(id))
	if text == nil {
		return row{}, fmt.Errorf("run %q: %w", id, ErrUnknown)
	}
	r, err := decodeRow(t.d.rowKey, id, text)
	if err == nil {
		r.Holder, r.Held = t.holder(r.Instance)
		if r.State == Running && !r.Held {
			r.State = Waiting // who ran it is gone
		}
	}
	return r, err
}

// put writes a row.
func (t *tx) put(r row) error {
	r.Held, r.Holder = false, 0
	text, err := encodeRow(t.d.rowKey, &r)
	if err != nil {
		return err
	}
	return t.runs.Put([]byte(r.ID), text)
}

// drop takes away all that is kept of a run.
func (t *tx) drop(id string) error {
	r, err := t.get(id)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if name := r.imageFile(); name != "" {
		t.stale = append(t.stale, name)
	}
	key := []byte(id)
	if t.logs.Bucket(key) != nil {
		if err := t.logs.DeleteBucket(key); err != nil {
			return err
		}
	}
	return errors.Join(t.runs.Delete(key), t.records.Delete(key))
}

// rows gives all rows, those that are broken, too.
func (t *tx) rows() (rows []row) {
	c := t.runs.Cursor()
	for key, _ := c.First(); key != nil; key, _ = c.Next() {
		r, _ := t.get(string(key))
		rows = append(rows, r)
	}
	return rows
}

// list gives what is known about all runs, the oldest first.
func (t *tx) list() []Meta {
	rows := t.rows()
	metas := make([]Meta, len(rows))
	for i, r := range rows {
		metas[i] = r.Meta
	}
	sortMetas(metas)
	return metas
}

// open opens a run's record and log. Nothing of them is copied before the row has said
// that they are the right ones.
func (t *tx) open(r *row) (Saved, error) {
	record := t.records.Get([]byte(r.ID))
	var log [][]byte
	var sum []byte
	if record != nil {
		sum = link(sum, record)
	}
	if entries := t.logs.Bucket([]byte(r.ID)); entries != nil {
		c := entries.Cursor()
		for key, sealed := c.First(); key != nil; key, sealed = c.Next() {
			log, sum = append(log, sealed), link(sum, sealed)
		}
	}
	if !bytes.Equal(sum, r.Sum) {
		return Saved{}, fmt.Errorf("run %q: %w", r.ID, ErrBroken)
	}
	return open(t.d.key, r.Meta, record, log)
}

// appendLog adds a sealed entry to the log of a run.
func (t *tx) appendLog(r *row, sealed []byte) error {
	entries, err := t.logs.CreateBucketIfNotExists([]byte(r.ID))
	if err != nil {
		return err
	}
	seq, err := entries.NextSequence()
	if err != nil {
		return err
	}
	return entries.Put(binary.BigEndian.AppendUint64(nil, seq), sealed)
}

// holder tells whether an instance is alive, and which process it is.
func (t *tx) holder(instance string) (pid int, alive bool) {
	switch {
	case instance == "" || !validName(instance):
		return 0, false
	case instance == t.d.instance.name:
		return os.Getpid(), true
	}
	pid, asked := t.pids[instance]
	if !asked {
		pid = -1
		if p, alive := aliveInstance(t.d.path(instancesName), instance); alive {
			pid = p
		}
		t.pids[instance] = pid
	}
	return max(pid, 0), pid >= 0
}

// removeImages removes files that nothing names. One that stays costs room until the next
// OpenDisk, so it is no error.
func (d *Disk) removeImages(names []string) {
	for _, name := range names {
		path := filepath.Join(d.path(imagesName), name)
		err := d.fault.at(OpRemove, path)
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			d.log.Warn("an image that is not needed any more stays until the state directory is opened again", slog.Any("error", err))
		}
	}
}
