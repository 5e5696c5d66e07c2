package gatewayrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// sessions are seeds: whole connections.
var sessions = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"capabilities":{"hooks":true,"approvals":true,"output":true,"events":"content"}}}
{"jsonrpc":"2.0","id":2,"method":"run/open","params":{"scope":{"sessionId":"s"},"config":true,"tools":[{"name":"t","source":"client"},{"source":"mcp","sourceName":"m","operation":"prompts/get"}],"policy":{"deny":["x*"]},"shapes":["gemini"]}}
{"jsonrpc":"2.0","id":"x","method":"run/exec","params":{"handle":"h1","arguments":{"code":"1"}}}
{"jsonrpc":"2.0","id":4,"method":"run/wait","params":{"handle":"h1","arguments":"{\"runId\":\"r\"}"}}
{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":"x"}}
{"jsonrpc":"2.0","method":"tool/update","params":{"callId":"c","value":1}}
{"jsonrpc":"2.0","id":5,"method":"surface/check","params":{"handle":"h1","payload":{"tools":[]}}}
{"jsonrpc":"2.0","id":6,"method":"run/abort","params":{"handle":"h1"}}
{"jsonrpc":"2.0","id":7,"method":"run/close","params":{"handle":"h1"}}
`,
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
{"jsonrpc":"2.0","id":2,"method":"run/open","params":{"scope":{},"config":{"enabled":true,"timeoutMs":-1},"namespaces":[{"id":"n","pluginId":"p","globalName":"g","description":"d","requiredToolNames":["t"],"scope":{"a":{"$tool":"t","args":["k"]}}}]}}
{"jsonrpc":"2.0","id":1,"result":{"value":1}}
[]
{}
null
`,
	"\n\r\n \xff\n{\"jsonrpc\":\"2.0\",\"id\":1e400,\"method\":\"run/exec\",\"params\":{}}\n{\"half",
	strings.Repeat("[", 100) + "\n" + strings.Repeat(`{"a":`, 100) + "\n",
}

// A connection answers at most once for each line, in lines of JSON, and comes to its end
// whatever it is fed with.
func FuzzConnection(f *testing.F) {
	for _, s := range sessions {
		f.Add([]byte(s))
	}
	srv := serve(f, Options{Supervisor: fakeRunner{}}).srv
	f.Fuzz(func(t *testing.T, data []byte) {
		out := new(lockedBuffer)
		ended := make(chan error, 1)
		go func() { ended <- srv.Serve(t.Context(), Stdio(bytes.NewReader(data), out)) }()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatal("the connection does not end with its input")
		}
		srv.mu.Lock()
		if len(srv.owners) != 0 {
			t.Errorf("runs are left: %v", srv.owners)
		}
		srv.mu.Unlock()
		answers := 0
		for line := range strings.Lines(out.String()) {
			answers++
			var m struct {
				V  string          `json:"jsonrpc"`
				ID json.RawMessage `json:"id"`
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil || m.V != "2.0" || m.ID == nil {
				t.Errorf("answered %q: %v", line, err)
			}
		}
		if lines := bytes.Count(data, []byte("\n")) + 1; answers > lines {
			t.Errorf("%d answers to %d lines", answers, lines)
		}
	})
}

// The reader gives the lines that there are, whatever the pieces in which they come, and
// holds none that is too long.
func FuzzLines(f *testing.F) {
	for _, s := range sessions {
		f.Add([]byte(s), uint16(100))
	}
	f.Add([]byte("12345\n123456\n"), uint16(5))
	f.Fuzz(func(t *testing.T, data []byte, most uint16) {
		var want [][]byte
		var end error = io.EOF
		rest := data
		for len(rest) > 0 {
			line, after, whole := bytes.Cut(rest, []byte("\n"))
			if len(line) > int(most) {
				end = errLineTooLong
				break
			}
			trimmed := bytes.TrimSpace(line)
			if !whole {
				if len(trimmed) > 0 {
					end = errHalfLine
				}
				break
			}
			if len(trimmed) > 0 {
				want = append(want, trimmed)
			}
			rest = after
		}
		for name, r := range map[string]io.Reader{"whole": bytes.NewReader(data), "halves": iotest.HalfReader(bytes.NewReader(data)), "with its end": iotest.DataErrReader(bytes.NewReader(data))} {
			lines := newLineReader(r)
			lines.max = int(most)
			var got [][]byte
			for {
				line, err := lines.next()
				if err != nil {
					if !errors.Is(err, end) {
						t.Errorf("%s: ended with %v, want %v", name, err, end)
					}
					break
				}
				got = append(got, line)
			}
			if !equalLines(got, want) {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	})
}

func equalLines(a, b [][]byte) bool {
	return bytes.Equal(bytes.Join(a, []byte("\n")), bytes.Join(b, []byte("\n"))) && len(a) == len(b)
}
