package workerproto

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// samples has messages of every type, the ones that are awkward to encode among them.
// The fuzz tests begin with them.
var samples = []Message{
	&Start{
		Source: []byte("text('hi')\r\n\x00"), Language: "typescript",
		BudgetMillis: 10_000, MemoryBytes: 64 << 20, OutputBytes: 64 << 10, TruncateOutput: true, MaxPending: 1040, Namespaces: true,
	},
	&Surface{Tools: []byte(`[{"id":"client:app:echo"}]`), Functions: []byte("echo \"client:app:echo\"\n"), MCP: []byte("github.createIssue \"mcp:github:create_issue\"\n"), Down: []byte("linear \"exited\"\n")},
	&File{Path: "mcp/github.d.ts", Description: "MCP server \"github\"", Bytes: 33, Text: []byte("declare namespace MCP.github {}\n")},
	&Namespaces{Scopes: []byte(`[{"name":"calendar","value":{"o":[["list",{"t":true}]]}}]`)},
	&Start{Source: []byte("\xff\xfe"), BudgetMillis: 1<<32 - 1, MemoryBytes: 1<<64 - 1},
	&ToolResult{ID: 1, Value: []byte(`{"ok":true}`)},
	&ToolResult{ID: 1<<64 - 1, Failed: true, Error: "no such city: Zürich\u2028", ToolID: "mcp:weather:get", Code: "tool_failed", Started: "unknown"},
	&Interrupt{Reason: "timeout"},
	&Resume{BudgetMillis: 10_000, MemoryBytes: 64 << 20, OutputBytes: 64 << 10, TruncateOutput: true, MaxPending: 1040, ElapsedMillis: 1<<64 - 1},
	&ResumePart{Data: []byte("\x28\xb5\x2f\xfd")},
	&ResumePart{Last: true},
	&Park{MaxBytes: 10 << 20},
	&Ready{Version: "v1.2.3", Engine: strings.Repeat("ab", 32), Isolation: []byte(`[{"layer":"seccomp","state":"on"}]`)},
	&Ready{Fault: "no engine: run make deps"},
	&Stage{Name: "transform"},
	&Prepared{Language: "javascript", Form: "expression", Fenced: true, TransformMicros: 1500},
	&Output{Kind: "text", JSON: []byte(`"hi"`)},
	&Output{Kind: "json", JSON: []byte(`{"a":[1,2,"ü"]}`)},
	&ToolCall{ID: 1, Method: "call", Tool: "get_weather", Input: []byte(`{"city":"Kyiv"}`)},
	&ToolCall{ID: 2, Method: "search", Tool: "", Input: []byte(`{}`)},
	&Idle{Pending: 2},
	&Idle{Pending: 1<<32 - 1, Settled: 1<<64 - 1, Yielded: true, Note: "waiting for Zürich\u2028", Timer: NoTimer, MemoryBytes: 1 << 30},
	&Done{Value: []byte(`null`)},
	&Done{Value: []byte(`[1]`), Omitted: 7, Stats: Stats{GuestMicros: 12, HeapBytes: 1 << 33}},
	&Failed{Code: "timeout", Phase: "limit", Error: "the cell ran out of time", Omitted: 3, Stats: Stats{1, 2}},
	&ParkPart{Data: []byte("\x28\xb5\x2f\xfd\xff")},
	&Parked{Timer: 1500, Omitted: 7, Stats: Stats{GuestMicros: 12, HeapBytes: 1 << 33}},
	&Resumed{RestoreMicros: 1700},
	&Missed{Name: "MCP.github.mergeIssue"},
	&ToolCall{ID: 3, Method: "namespace", Tool: "calendar\x1flist", Input: []byte(`[]`)},
	&Failed{Phase: "guest", Error: strings.Repeat("ü", 300), Shell: true},
}

// pipe is a connection whose bytes are already there, and which keeps what is written.
type pipe struct {
	io.Reader
	bytes.Buffer
}

func (p *pipe) Read(b []byte) (int, error) { return p.Reader.Read(b) }
func (p *pipe) Close() error               { return nil }

func over(stream []byte) *Conn { return NewConn(&pipe{Reader: bytes.NewReader(stream)}) }

// readOne reads as the side that m is meant for does.
func readOne(c *Conn, t Type) (Message, error) {
	if kinds[t].event {
		return c.ReadEvent()
	}
	return c.ReadCommand()
}

func frameOf(t testing.TB, m Message) []byte {
	t.Helper()
	frame, err := Append(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

func wantViolation(t testing.TB, err error, reason string) {
	t.Helper()
	var v *Violation
	if !errors.As(err, &v) || !strings.Contains(v.Error(), reason) {
		t.Errorf("got error %v, want a violation that says %q", err, reason)
	}
}

func TestMessagesCrossUnchanged(t *testing.T) { // SPEC 17.1
	seen := map[Type]bool{}
	for _, m := range samples {
		seen[m.Type()] = true
		got, err := readOne(over(frameOf(t, m)), m.Type())
		if err != nil {
			t.Errorf("%s %+v: %v", m.Type(), m, err)
		} else if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%s (-sent +read):\n%s", m.Type(), diff)
		}
	}
	for typ := range kinds {
		if !seen[typ] {
			t.Errorf("no sample of %s", typ)
		}
	}
}

// The bytes are the contract: a test that only reads what it wrote would not notice
// that both sides moved.
func TestFramesHaveTheseBytes(t *testing.T) {
	for _, c := range []struct {
		m    Message
		want string
	}{
		{&Resumed{RestoreMicros: 2}, "636d018a" + "00000018" + "81" + "ad726573746f72654d6963726f73" + "cf0000000000000002"},
		{&ResumePart{Data: []byte("z"), Last: true}, "636d0105" + "0000000f" + "82" + "a464617461" + "c4017a" + "a46c617374" + "c3"},
		{&ToolResult{ID: 7, Value: []byte("42")}, "636d0102" + "0000003d" + "87" +
			"a26964" + "cf0000000000000007" +
			"a576616c7565" + "c4023432" +
			"a66661696c6564" + "c2" +
			"a56572726f72" + "a0" +
			"a6746f6f6c4964" + "a0" +
			"a4636f6465" + "a0" +
			"a773746172746564" + "a0"},
	} {
		if got := hex.EncodeToString(frameOf(t, c.m)); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.m.Type(), got, c.want)
		}
	}
}

func TestEmptyAndNilBytesAreTheSame(t *testing.T) {
	for _, value := range [][]byte{nil, {}} {
		got, err := over(frameOf(t, &ToolResult{ID: 1, Value: value})).ReadCommand()
		if err != nil {
			t.Fatal(err)
		}
		if got := got.(*ToolResult).Value; got != nil {
			t.Errorf("value %#v arrived as %#v, want nil", value, got)
		}
	}
}

// A message inside the bounds of its fields must not fail on the bound of its body:
// whoever keeps the former knows nothing of the latter.
func TestEveryBodyHoldsItsLargestMessage(t *testing.T) {
	for _, m := range []Message{
		&Start{Source: make([]byte, MaxSource), Language: "typescript"},
		&Surface{Tools: make([]byte, MaxTools), Functions: make([]byte, MaxTools), MCP: make([]byte, MaxTools), Down: make([]byte, MaxTools)},
		&File{Path: long(MaxName), Description: long(MaxName), Text: make([]byte, MaxFile)},
		&Namespaces{Scopes: make([]byte, MaxScopes)},
		&Missed{Name: long(MaxName)},
		&ToolResult{Value: make([]byte, MaxToolResult), Error: long(maxText), ToolID: long(MaxName), Code: long(64), Started: "unknown"},
		&Interrupt{Reason: long(256)},
		&Ready{Version: long(256), Engine: long(64), Fault: long(4096), Isolation: []byte(long(MaxIsolation))},
		&Stage{Name: "transform"},
		&Prepared{Language: "typescript", Form: "statements"},
		&Output{Kind: "text", JSON: make([]byte, MaxItem)},
		&ToolCall{Method: "describe", Tool: long(MaxName), Input: make([]byte, MaxToolInput)},
		&Idle{},
		&Done{Value: make([]byte, MaxItem)},
		&Failed{Code: long(64), Phase: "input", Error: long(MaxError)},
	} {
		got, err := readOne(over(frameOf(t, m)), m.Type())
		if err != nil {
			t.Errorf("%s: %v", m.Type(), err)
		} else if !reflect.DeepEqual(m, got) { // cmp would take seconds
			t.Errorf("the largest %s came out different", m.Type())
		}
	}
}

func long(n int) string { return strings.Repeat("x", n) }

func TestAppendRefusesAndAppendsNothing(t *testing.T) {
	before := []byte("before")
	after, err := Append(before, &Stage{Name: "coffee"})
	if err == nil || !strings.Contains(err.Error(), `name is "coffee"`) {
		t.Errorf("got error %v, want one that names the field and its value", err)
	}
	if !bytes.Equal(after, before) {
		t.Errorf("Append left %q behind, want %q", after, before)
	}
}

func TestHostileTextInViolationsIsShort(t *testing.T) {
	body := append([]byte{0x81, 0xdb, 0, 0x0f, 0, 0}, bytes.Repeat([]byte{0}, 0x0f0000)...)
	_, err := decode(TypeDone, append(body, 0xc0))
	wantViolation(t, err, "unknown field")
	if n := len(err.Error()); n > 300 {
		t.Errorf("an error of %d bytes, want a short one", n)
	}
}

func TestTypesNameThemselves(t *testing.T) {
	if got := TypeToolCall.String(); got != "tool call" {
		t.Errorf("got %q", got)
	}
	if got := Type(200).String(); got != "type 200" {
		t.Errorf("got %q", got)
	}
}
