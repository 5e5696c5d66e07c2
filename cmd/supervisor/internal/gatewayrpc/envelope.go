package gatewayrpc

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/creachadair/jrpc2"
	"github.com/openclaw/codemode-supervisor/limits/json5"
)

// envelope is a line that is a message of JSON-RPC.
type envelope struct {
	id     json.RawMessage // nil of a notification
	method string          // "" of a response
	params json.RawMessage // an object; nil if there are none
}

// maxID is how long the id of a request may be, in bytes of its JSON.
const maxID = 256

// readEnvelope judges a line. The error is to be answered under the id, which is nil if the line has
// none that can be read.
func readEnvelope(line []byte) (e envelope, _ *jrpc2.Error) {
	invalid := func(format string, args ...any) *jrpc2.Error {
		return fault(codeInvalidRequest, "a message is one JSON object a line, as JSON-RPC 2.0 has it, without batches", format, args...)
	}
	switch {
	case !utf8.Valid(line):
		return e, fault(codeParse, "send UTF-8", "the line is not UTF-8")
	case !json.Valid(line): // which bounds nesting, and does not recurse
		return e, fault(codeParse, "send one message a line; no line break may stand in it", "the line is not JSON")
	case line[0] == '[':
		return e, invalid("the line is an array; batches are not supported")
	case line[0] != '{':
		return e, invalid("the line is no JSON object")
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil {
		return e, invalid("the line cannot be read: %v", err)
	}
	_, isRequest := members["method"]
	_, result := members["result"]
	_, failed := members["error"]
	var bad *jrpc2.Error // under the id, if that is good
	note := func(err *jrpc2.Error) {
		if bad == nil {
			bad = err
		}
	}
	for key, value := range members {
		switch key {
		case "jsonrpc":
			if string(value) != `"2.0"` {
				note(invalid(`jsonrpc is %s; it must be "2.0"`, quote(value)))
			}
		case "id":
			switch {
			case len(value) > maxID:
				note(invalid("the id has %d bytes, at most %d are possible", len(value), maxID))
			case isID(value):
				e.id = value
			default:
				note(invalid("the id is %s; it must be a string or a number", quote(value)))
			}
		case "method":
			if json.Unmarshal(value, &e.method) != nil || value[0] != '"' || e.method == "" {
				note(invalid("the method is %s; it must be a name", quote(value)))
			}
		case "params":
			if e.params = value; value[0] != '{' {
				note(fault(codeInvalidParams, "", "params is %s; it must be an object with named parameters", quote(value)))
			}
		case "result", "error":
		default:
			note(invalid("a message has no member %q%s", clip(key, 60), meant(key, []string{"jsonrpc", "id", "method", "params", "result", "error"})))
		}
	}
	switch {
	case members["jsonrpc"] == nil:
		note(invalid(`jsonrpc is missing; it must be "2.0"`))
	case isRequest && (result || failed):
		note(invalid("the message has a method and a result or an error; it cannot be both, request and response"))
	case !isRequest && result == failed:
		note(invalid("the message has no method, and not one of result and error: it is no request, and no response"))
	case !isRequest && e.id == nil && bad == nil:
		note(invalid("the response has no id"))
	}
	if bad != nil && !isRequest {
		e.id = nil // of a response it is ours; under it an error would look like an answer
	}
	if bad != nil && isRequest && e.method == "" {
		e.method = "?"
	}
	return e, bad
}

// isID tells whether a JSON value can be the id of a request.
func isID(value json.RawMessage) bool {
	return value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9'
}

// quote shows a JSON value that somebody else chose, cut.
func quote(value json.RawMessage) string {
	var b bytes.Buffer
	_ = json.Compact(&b, value[:min(len(value), 60)])
	if b.Len() == 0 {
		return clip(string(value), 60)
	}
	return clip(b.String(), 60)
}

// clip cuts a text.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// meant says which of the known names was probably meant.
func meant(name string, known []string) string {
	if nearest := json5.Nearest(name, known); nearest != "" {
		return "; did you mean " + nearest + "?"
	}
	return "; known are " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}
