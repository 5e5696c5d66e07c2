//go:build !cgo

package lockdown

const cgo = false
