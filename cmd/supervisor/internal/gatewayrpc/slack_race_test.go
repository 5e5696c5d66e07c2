//go:build race

package gatewayrpc

// The race detector makes everything ten times slower, and a run's time counts while it waits
// for a worker.
const manyRuns = 50
