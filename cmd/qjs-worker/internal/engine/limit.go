//go:build !nomemorylimit

package engine

// unlimited leaves the guest without its memory limits, so that a test can see the
// process's at work (SPEC 13.3).
const unlimited = false
