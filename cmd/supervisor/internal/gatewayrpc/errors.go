package gatewayrpc

import (
	"encoding/json"
	"fmt"

	"github.com/creachadair/jrpc2"
)

// The codes of errors (docs/serve.md). The first five are JSON-RPC's own.
const (
	codeParse          = jrpc2.ParseError     // -32700
	codeInvalidRequest = jrpc2.InvalidRequest // -32600
	codeNoMethod       = jrpc2.MethodNotFound // -32601
	codeInvalidParams  = jrpc2.InvalidParams  // -32602
	codeInternal       = jrpc2.InternalError  // -32603

	codeBusy           = jrpc2.Code(-32000)
	codeInitialize     = jrpc2.Code(-32001)
	codeNoHandle       = jrpc2.Code(-32002)
	codeNotEngaged     = jrpc2.Code(-32003)
	codeInvalidConfig  = jrpc2.Code(-32004)
	codeUnavailable    = jrpc2.Code(-32005)
	maxErrorText       = 2048
	dataInvalidConfig  = "invalid_config"
	dataNotAvailable   = "runtime_unavailable"
	hintInitialize     = `send {"method": "initialize", "params": {"protocolVersion": 1}} first, once`
	hintOpenAHandle    = "run/open gives a handle; it lives on its connection, until run/close"
	hintReadTheAnswers = "wait for answers before you send more; maxRequests of the answer to initialize is how many may be open"
)

// errorData is what the data of every error may have.
type errorData struct {
	Code string `json:"code,omitempty"`
	Hint string `json:"hint,omitempty"`
}

// fault makes an error of the protocol. Its text may quote what the client sent, cut.
func fault(code jrpc2.Code, hint, format string, args ...any) *jrpc2.Error {
	return faultOf(code, errorData{Hint: hint}, fmt.Sprintf(format, args...))
}

func faultOf(code jrpc2.Code, data errorData, text string) *jrpc2.Error {
	d, _ := json.Marshal(data)
	return &jrpc2.Error{Code: code, Message: clip(text, maxErrorText), Data: d}
}

// refuse encodes an error that no handler gives.
func refuse(id json.RawMessage, err *jrpc2.Error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	line, _ := json.Marshal(struct {
		V  string          `json:"jsonrpc"`
		ID json.RawMessage `json:"id"`
		E  *jrpc2.Error    `json:"error"`
	}{jrpc2.Version, id, err})
	return line
}
