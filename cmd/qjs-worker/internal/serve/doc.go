// Package serve is the worker's middle: workerproto on one side, cell and guest on the
// other. It runs one cell to its end.
//
// The loop is the only place that talks to the VM, and runs on one goroutine. A second
// one reads commands: results go to the loop, an interrupt sets a flag that the engine
// asks for, and a closed channel ends the process, since nobody is left to report to.
package serve
