// Package snapshot keeps runs that wait: the sealed container of what is kept of them,
// and the stores in memory and on disk (SPEC 14).
//
//	store, err := snapshot.OpenDisk(snapshot.DiskOptions{Dir: "/var/lib/supervisor"})
//	defer store.Close()
//	err = store.Save(meta, record, image)      // the run is parked
//	err = store.Append(id, entry)              // a call of it settled
//	saved, err := store.Claim(id)              // maybe in another process, after a crash
//	image, err := store.Image(id, engine)
//
// What a record, a log entry and an image say is the caller's and the worker's: here they
// are bytes. Everything is sealed with a [Key] for its run, its owner and, if it is an
// image, its engine; [FORMAT.md] has the container to the byte. Ids, owners and times are
// in the open, and signed.
//
// Several processes may share a state directory: a gateway, and an operator who lists and
// aborts runs. A run that is not over is held by at most one living process, and a lock of
// the kernel's says which are alive.
//
// Whoever has the key can do anything. Whoever can write to the directory but has not the
// key can delete runs, and can put back the whole of what was kept of a run earlier, but
// cannot change one, mix two, or give one to another owner. The sizes and times of runs
// are not hidden.
//
// [FORMAT.md]: https://github.com/openclaw/codemode-supervisor/blob/main/snapshot/FORMAT.md
package snapshot
