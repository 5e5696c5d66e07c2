// Package snapshot is the place of parked runs: the container format of their images
// and the stores that keep them. Nothing is here yet; runs cannot be parked. The images
// themselves are taken and restored by the worker's engine package.
package snapshot
