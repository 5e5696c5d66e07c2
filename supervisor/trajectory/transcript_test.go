package trajectory

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// SPEC 18.1: exec and wait are the control calls that they were, nested calls are tool
// calls with their parent and catalog id.
// Validation 22: a transcript keeps the control calls of code mode when it is stored and read back
// Validation 23: transcript and telemetry show nested calls clearly
func TestProject(t *testing.T) {
	for _, name := range []string{"parked-killed", "mixed"} {
		log, err := Read(bytes.NewReader(fixtures(t)[name]))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := WriteMessages(&out, Project(log.Events)); err != nil {
			t.Fatal(err)
		}
		golden(t, name+".transcript", out.Bytes())
		calls, results := map[string]string{}, map[string]int{}
		for _, m := range Project(log.Events) {
			switch {
			case m.Role == RoleAssistant:
				if _, ok := calls[m.CallID]; ok {
					t.Errorf("%s: two calls with id %s", name, m.CallID)
				}
				calls[m.CallID] = m.Name
			case calls[m.CallID] == "":
				t.Errorf("%s: a result of %s, which was not called", name, m.CallID)
			default:
				results[m.CallID]++
			}
			if m.Nested() == (m.Name == "exec" || m.Name == "wait") || m.Nested() && !strings.HasPrefix(m.Mark.ParentCallID, "call_") {
				t.Errorf("%s: %+v, marked with %+v", name, m, m.Mark)
			}
		}
		for id, n := range results {
			if n > 1 {
				t.Errorf("%s: %d results of %s", name, n, id)
			}
		}
	}
}

// A stored transcript that is read back keeps both, and all that is not ours.
// Validation 22: a transcript keeps the control calls of code mode when it is stored and read back
func TestTranscriptRoundTrip(t *testing.T) {
	const stored = `{"role":"user","content":"list the issues <b>"}
{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"toolCall","id":"call_7","name":"exec","arguments":{"code":"await MCP.github.listIssues()"},"signature":"s&s"}],"usage":{"input":12},"timestamp":1796077200000}
{"role":"toolResult","toolCallId":"call_7","toolName":"exec","content":[{"type":"text","text":"{\"status\":\"waiting\",\"runId\":\"r\"}"}],"isError":false,"timestamp":1796077200001}
{"role":"assistant","content":[{"type":"toolCall","id":"call_8","name":"wait","arguments":{"runId":"r"}}]}
{"role":"toolResult","toolCallId":"call_8","toolName":"wait","content":[{"type":"text","text":"{\"status\":\"completed\"}"}],"isError":false}
{"role":"compaction","content":{"not":"blocks"},"toolCallId":7}
`
	gateway, skipped, err := ReadMessages(strings.NewReader(stored + "{half\n\n"))
	if err != nil || skipped != 1 || len(gateway) != 6 {
		t.Fatalf("%d messages, %d skipped, %v", len(gateway), skipped, err)
	}
	// The gateway writes its own messages, and a sink the nested ones between them.
	var p Projector
	var all []Message
	follow := SinkFunc(func(e Event) error { all = append(all, p.Nested(e)...); return nil })
	r := New(follow, All(KeepContent))
	nested := func(kind Kind, status, content string) {
		e := Event{RunID: "r", Parent: "call_7", Kind: kind, CallID: "r:1", ToolID: "mcp:github:list-issues", Status: status}
		e.Data = r.Describe(e.Part(), e.ToolID, []byte(content))
		r.Record(e)
	}
	all = append(all, gateway[:2]...)
	nested(ToolCall, "", `{"state":"<open>"}`)
	all = append(all, gateway[2:4]...)
	nested(ToolResult, "done", `{"issues":[1]}`)
	r.Record(Event{RunID: "r", Parent: "call_7", Kind: End, Status: "completed"})
	all = append(all, gateway[4:]...)

	var out bytes.Buffer
	if err := WriteMessages(&out, all); err != nil {
		t.Fatal(err)
	}
	back, skipped, err := ReadMessages(bytes.NewReader(out.Bytes()))
	if err != nil || skipped != 0 {
		t.Fatalf("%d skipped, %v", skipped, err)
	}
	ignore := cmp.Options{cmpopts.IgnoreUnexported(Message{}), cmpopts.EquateApproxTime(1e6)}
	if diff := cmp.Diff(all, back, ignore); diff != "" {
		t.Errorf("(-written +read)\n%s", diff)
	}
	var again bytes.Buffer
	if err := WriteMessages(&again, back); err != nil || again.String() != out.String() {
		t.Errorf("written again, %v:\n%s\nwas:\n%s", err, again.String(), out.String())
	}
	var model strings.Builder
	for _, m := range back {
		if !m.Nested() {
			b, _ := m.MarshalJSON()
			model.Write(append(b, '\n'))
		}
	}
	if model.String() != stored {
		t.Errorf("without the nested calls:\n%s\nwant:\n%s", model.String(), stored)
	}
	for _, i := range []int{2, 5} {
		if m := back[i]; !m.Nested() || m.Mark.ParentCallID != "call_7" || m.Mark.CatalogID != "mcp:github:list-issues" || m.CallID != "r:1" {
			t.Errorf("message %d: %+v, %+v", i, m, m.Mark)
		}
	}
}

func TestMessageErrors(t *testing.T) {
	if _, err := json.Marshal(Message{Role: "user"}); err == nil || !strings.Contains(err.Error(), `"user"`) {
		t.Errorf("got %v", err)
	}
	var m Message
	if err := json.Unmarshal([]byte(`[1]`), &m); err == nil {
		t.Error("a list is no message")
	}
}
