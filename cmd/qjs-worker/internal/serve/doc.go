// Package serve is the worker's middle: workerproto on one side, cell and guest on the
// other. It runs one leg of a cell: from its start or from a snapshot, to its end or to the next
// snapshot.
//
// One goroutine does it all: it runs guest code, and when the guest has nothing to do it
// waits on the channel, until the next timer is due at most. While guest code runs,
// nothing is read: the engine asks for the deadline, which the worker has from its
// start, and who wants it to stop earlier kills it. A channel that ends, ends the
// process: nobody is left to report to.
package serve
