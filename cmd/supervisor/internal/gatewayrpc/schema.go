package gatewayrpc

import (
	_ "embed"
	"slices"
)

//go:embed openrpc.json
var openrpc []byte

// Schema returns the protocol as an OpenRPC document: each method and notification, in both
// directions, with the JSON Schema (2020-12) of what it takes and gives. The caller owns it.
func Schema() []byte { return slices.Clone(openrpc) }
