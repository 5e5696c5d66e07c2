// Package process owns worker processes: it starts one, waits until it is ready, and
// sees to it that nothing is left of it.
//
//	spawner, err := process.NewSpawner(process.Config{Path: "/usr/libexec/qjs-worker"})
//	child, err := spawner.Start(ctx)
//	… child.Conn …
//	child.Kill(process.KilledDone)
//	exit := child.Wait()
//
// HashiCorp go-plugin starts the worker, reads its handshake and owns its life. Its RPC is
// never used, because gob and yamux are not made for a hostile peer; only [Child.Conn] is
// read.
//
// What surrounds a worker is in walls.go: how it is forked, what it says that it did to
// itself, and how that is compared with the policy before it gets its first untrusted byte.
//
// Who owns what: the Spawner owns the thread that forks and the directory that
// go-plugin's socket lives in. A Child owns its process group, its socket, its stderr
// and the one goroutine that waits for it; [Child.Wait] returns when all of them are
// gone. The environment, standard input and descriptors of the supervisor do not reach
// the worker.
package process
