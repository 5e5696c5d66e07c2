//go:build !race

package gatewayrpc

// manyRuns is how many runs are at work at once in TestManyRuns.
const manyRuns = 200
