//go:build nomemorylimit

package engine

const unlimited = true
