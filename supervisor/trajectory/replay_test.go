package trajectory

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// recordingOf makes a recording of run r, with events that describe makes: contents are kept
// unless a step says otherwise.
func recordingOf(t *testing.T, events ...Event) *Recording {
	t.Helper()
	all := []Event{{Kind: Exec, Status: "typescript", Data: describe([]byte(`"source"`), KeepContent)}}
	for i, e := range append(all, events...) {
		e.RunID, e.Seq = "r", uint64(i+1)
		if i == 0 {
			all[0] = e
			continue
		}
		all = append(all, e)
	}
	r, err := NewRecording(all, "r")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func sent(id int, tool, input string) Event {
	return Event{Kind: ToolCall, CallID: fmt.Sprint(id), ToolID: tool, Data: describe([]byte(input), KeepContent)}
}

func got(id int, tool, value string) Event {
	return Event{Kind: ToolResult, CallID: fmt.Sprint(id), ToolID: tool, Status: "done", Data: describe([]byte(value), KeepContent)}
}

func refused(id int, tool, code, text string) Event {
	return Event{Kind: ToolResult, CallID: fmt.Sprint(id), ToolID: tool, Status: "failed", Code: code, Data: describe([]byte(`"`+text+`"`), KeepContent)}
}

// keeping changes what is kept of an event's content.
func keeping(k Keep, e Event) Event {
	e.Data = describe(e.Data.Content, k)
	return e
}

// Issue 6: which recorded answer a call gets.
func TestPlayer(t *testing.T) {
	rewritten := Event{Kind: Hook, CallID: "1", ToolID: "t", Status: HookRewritten}
	for _, tt := range []struct {
		name   string
		events []Event
		calls  []string // tool and input
		want   []string // value, code and message, or gap, for each call; "-" if there is no answer
		unused int
	}{
		{"equal input, in order", []Event{sent(1, "t", `{"a":1}`), got(1, "t", `"first"`), sent(2, "t", `{"a":1}`), got(2, "t", `"second"`)},
			[]string{`t {"a":1}`, `t {"a":1}`, `t {"a":1}`}, []string{`"first"`, `"second"`, "-"}, 0},
		{"equal as JSON", []Event{sent(1, "t", `{"a":1,"b":[1.5,null]}`), got(1, "t", `1`)}, []string{`t { "b": [15e-1, null], "a": 1.0 }`}, []string{"1"}, 0},
		{"another input", []Event{sent(1, "t", `{"a":1}`), got(1, "t", `1`)}, []string{`t {"a":2}`, `t {"a":"1"}`, `t {}`}, []string{"-", "-", "-"}, 1},
		{"another tool", []Event{sent(1, "t", `{}`), got(1, "t", `1`)}, []string{`t2 {}`}, []string{"-"}, 1},
		{"by input, not by order", []Event{sent(1, "t", `1`), got(1, "t", `"one"`), sent(2, "t", `2`), got(2, "t", `"two"`)}, []string{"t 2", "t 1"}, []string{`"two"`, `"one"`}, 0},
		{"large integers stay apart", []Event{sent(1, "t", `9007199254740993`), got(1, "t", `1`)}, []string{"t 9007199254740992"}, []string{"-"}, 1},
		{"a failure", []Event{sent(1, "t", `{}`), refused(1, "t", "tool_error", "no")}, []string{"t {}"}, []string{"tool_error: no yes"}, 0},
		{"interrupted", []Event{sent(1, "t", `{}`), refused(1, "t", "interrupted", "?")}, []string{"t {}"}, []string{"interrupted: ? unknown"}, 0},
		{"refused before it was sent: whatever the input", []Event{refused(1, "t", "blocked", "no"), sent(2, "t", `{}`), got(2, "t", `2`)},
			[]string{"t {}", `t {"x":1}`, "t {}"}, []string{"2", "blocked: no no", "-"}, 0},
		{"rewritten by a hook: whatever the input", []Event{rewritten, sent(1, "t", `{"safe":true}`), got(1, "t", `1`)}, []string{`t {"x":1}`}, []string{"1"}, 0},
		{"unknown to the supervisor", []Event{refused(1, "t", codeUnknownTool, "no")}, []string{"t {}"}, []string{"-"}, 0},
		{"refused by the supervisor, now as then", []Event{refused(1, "t", codeInvalidInput, "no")}, nil, nil, 0},
		{"sent again after a kill: once", []Event{sent(1, "t", `{}`), sent(1, "t", `{}`), got(1, "t", `1`)}, []string{"t {}", "t {}"}, []string{"1", "-"}, 0},
		{"another way after a kill", []Event{sent(1, "t", `{}`), sent(1, "t2", `{}`), got(1, "t2", `2`)}, []string{"t {}", "t2 {}"}, []string{"-", "2"}, 0},
		{"no end", []Event{sent(1, "t", `{}`)}, []string{"t {}"}, []string{"gap: it has no end in the file"}, 0},
		{"result as a hash", []Event{sent(1, "t", `{}`), keeping(KeepDigest, got(1, "t", `1`))}, []string{"t {}"}, []string{"gap: of its result only size and hash were kept"}, 0},
		{"result not kept", []Event{sent(1, "t", `{}`), keeping(KeepNothing, got(1, "t", `1`))}, []string{"t {}"}, []string{"gap: its result was not kept"}, 0},
		{"error as a hash", []Event{sent(1, "t", `{}`), keeping(KeepDigest, refused(1, "t", "c", "no"))}, []string{"t {}"}, []string{"gap: of its error only size and hash were kept"}, 0},
		{"error that is no text", []Event{sent(1, "t", `{}`), {Kind: ToolResult, CallID: "1", Status: "failed", Data: describe([]byte(`{}`), KeepContent)}}, []string{"t {}"}, []string{"gap: its error is no text"}, 0},
		{"input as a hash", []Event{keeping(KeepDigest, sent(1, "t", `{"a":1}`)), got(1, "t", `1`)}, []string{`t {"a":2}`, `t {"a":1}`}, []string{"-", "1"}, 0},
		{"input not kept: nothing is equal to it", []Event{keeping(KeepNothing, sent(1, "t", `{}`)), got(1, "t", `1`)}, []string{"t {}"}, []string{"-"}, 1},
		{"denied", []Event{{Kind: ToolCall, CallID: "1", ToolID: "client:app:secret", Status: Denied}, refused(1, "secret", codeUnknownTool, "no")}, []string{"client:app:secret {}"}, []string{"-"}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := recordingOf(t, tt.events...).Player()
			var answers []string
			known, unknown := 0, 0
			for _, call := range tt.calls {
				tool, input, _ := strings.Cut(call, " ")
				a := p.Take(tool, []byte(input))
				switch {
				case a == nil:
					answers = append(answers, "-")
				case a.Gap != "":
					answers = append(answers, "gap: "+a.Gap)
				case a.Failed:
					answers = append(answers, a.Code+": "+a.Message+" "+a.Started())
				default:
					answers = append(answers, string(a.Value))
				}
				if a != nil && a.Settled == 0 {
					p.Refused(a)
				}
				if a == nil || a.Gap != "" {
					unknown++
				} else {
					known++
				}
			}
			if diff := cmp.Diff(tt.want, answers); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			s := p.Answers()
			if s.Used != known || s.NotRecorded != unknown || s.Unused != tt.unused || len(s.UnusedCalls) != tt.unused || len(s.NotRecordedCalls) != unknown {
				t.Errorf("got %+v, want %d used, %d not recorded, %d unused", s, known, unknown, tt.unused)
			}
		})
	}
}

// What a recording has beside answers, and the order in which they settled.
func TestRecording(t *testing.T) {
	r := recordingOf(t,
		sent(1, "b", `1`), sent(2, "a", `2`), got(2, "a", `2`), got(1, "b", `1`), sent(3, "a", `3`),
		Event{Kind: ToolCall, CallID: "4", ToolID: "secret", Status: Denied}, refused(4, "name", codeUnknownTool, "no"), refused(5, "c", codeInvalidInput, "no"),
		Event{Kind: ToolCall, ToolID: "secret", Status: Denied},
		Event{Kind: Output, Status: "text", Data: describe([]byte(`"x"`), KeepContent)},
		Event{Kind: End, Status: "failed", Code: "aborted"}, Event{Kind: Resume}, Event{Kind: End, Status: "completed", Data: describe([]byte(`7`), KeepContent)},
	)
	if r.Source != "source" || r.Language != "typescript" || !cmp.Equal(r.Tools, []string{"b", "a", "c"}) || !cmp.Equal(r.Denied, []string{"secret"}) {
		t.Errorf("got %+v", r)
	}
	var order []string
	for _, a := range r.Answers {
		order = append(order, fmt.Sprint(a.CallID, " ", a.Settled, a.InOrder()))
	}
	if want := []string{"1 2 true", "2 1 true", "3 0 false", "5 4 false"}; !cmp.Equal(order, want) {
		t.Errorf("got %q, want %q", order, want)
	}
	if o := r.Outcome; !o.Ended || o.Status != "completed" || o.Code != "" || string(o.Data.Content) != "7" || len(o.Output) != 1 || !o.Again {
		t.Errorf("got %+v", o)
	}
}

func TestNoRecording(t *testing.T) {
	exec := func(k Keep) Event { return Event{RunID: "r", Kind: Exec, Data: describe([]byte(`"x"`), k)} }
	for want, events := range map[string][]Event{
		`no run "r"`:              {{RunID: "other", Kind: Exec}},
		"exec event is not":       {{RunID: "r", Kind: Resume}},
		"only its size and hash":  {exec(KeepDigest)},
		"only its size and hash.": {exec(KeepNothing)},
		"is no text":              {{RunID: "r", Kind: Exec, Data: describe([]byte(`{}`), KeepContent)}},
	} {
		if r, err := NewRecording(events, "r"); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(want, ".")) {
			t.Errorf("%s: got %+v, %v", want, r, err)
		}
	}
}

// What of two outcomes differs.
func TestCompare(t *testing.T) {
	end := func(status, code string, k Keep, content string) Event {
		return Event{Kind: End, Status: status, Code: code, Data: describe([]byte(content), k)}
	}
	out := func(kind string, k Keep, content string) Event {
		return Event{Kind: Output, Status: kind, Data: describe([]byte(content), k)}
	}
	replayed := func(status, code, content string, texts ...string) Outcome {
		o := NewOutcome(status, code, []byte(content))
		for _, s := range texts {
			o.Emitted("text", []byte(s))
		}
		return o
	}
	// A leg that emitted b and c and was killed, and one that went on and emitted d.
	killed := []Event{
		out("text", KeepContent, `"a"`), {Kind: Park}, {Kind: Resume}, out("text", KeepContent, `"b"`), out("text", KeepContent, `"c"`),
		{Kind: Resume}, out("text", KeepContent, `"d"`),
	}
	killed = killed[:len(killed):len(killed)] // appending copies
	for _, tt := range []struct {
		name     string
		recorded []Event
		replayed Outcome
		want     string // items that are not the same
		same     bool
		equal    int
	}{
		{"the same", []Event{out("text", KeepContent, `"a"`), end("completed", "", KeepContent, `{"a":1,"b":2}`)}, replayed("completed", "", `{"b":2.0,"a":1}`, `"a"`), "", true, 4},
		{"by hash", []Event{out("text", KeepDigest, `"a"`), end("completed", "", KeepDigest, `7`)}, replayed("completed", "", `7`, `"a"`), "", true, 4},
		{"another hash", []Event{out("text", KeepDigest, `"a"`), end("completed", "", KeepDigest, `7`)}, replayed("completed", "", `8`, `"b"`), "value differs, output 1 differs", false, 2},
		{"another value", []Event{end("completed", "", KeepContent, `7`)}, replayed("completed", "", `"7"`), "value differs", false, 2},
		{"nothing kept", []Event{out("text", KeepNothing, `"a"`), end("completed", "", KeepNothing, `7`)}, replayed("completed", "", `8`, `"b"`), "value unknown, output 1 unknown", true, 2},
		{"another status", []Event{end("completed", "", KeepContent, `7`)}, replayed("failed", "timeout", `"x"`), "status differs, code differs", false, 1},
		{"another code", []Event{end("failed", "timeout", KeepContent, `"x"`)}, replayed("failed", "", `"x"`), "code differs", false, 3},
		{"another error", []Event{end("failed", "timeout", KeepContent, `"x"`)}, replayed("failed", "timeout", `"y"`), "error differs", false, 3},
		{"more output", []Event{out("text", KeepContent, `"a"`), end("completed", "", KeepContent, `7`)}, replayed("completed", "", `7`, `"a"`, `"b"`), "outputs differs", false, 3},
		{"output of another type", []Event{out("json", KeepContent, `"a"`), end("completed", "", KeepContent, `7`)}, replayed("completed", "", `7`, `"a"`), "output 1 differs", false, 3},
		{"no end", []Event{out("text", KeepContent, `"a"`)}, replayed("completed", "", `7`, `"a"`, `"b"`), "status unknown, value unknown", true, 1},
		{"no end, and less output", []Event{out("text", KeepContent, `"a"`), out("text", KeepContent, `"b"`)}, replayed("completed", "", `7`, `"a"`), "status unknown, value unknown, outputs differs", false, 1},
		{"killed after an output", append(killed, end("completed", "", KeepContent, `7`)), replayed("completed", "", `7`, `"a"`, `"b"`, `"d"`), "outputs unknown", true, 4},
		{"killed and stored before", append(killed, end("completed", "", KeepContent, `7`)), replayed("completed", "", `7`, `"a"`, `"b"`, `"c"`, `"d"`), "outputs unknown", true, 4},
		{"killed, another output before", append(killed, end("completed", "", KeepContent, `7`)), replayed("completed", "", `7`, `"x"`, `"b"`, `"d"`), "outputs unknown, output 1 differs", false, 3},
		{"killed, another output after", append(killed, end("completed", "", KeepContent, `7`)), replayed("completed", "", `7`, `"a"`, `"b"`, `"x"`), "outputs unknown, output 3 differs", false, 3},
		{"killed, too little output", append(killed, end("completed", "", KeepContent, `7`)), replayed("completed", "", `7`, `"a"`), "outputs differs", false, 3},
		{"killed, too much output", append(killed, end("completed", "", KeepContent, `7`)), replayed("completed", "", `7`, `"a"`, `"b"`, `"c"`, `"b"`, `"b"`, `"d"`), "outputs differs", false, 4},
		{"killed, no end", killed, replayed("completed", "", `7`, `"a"`, `"x"`), "status unknown, value unknown, outputs unknown", true, 1},
		{"killed, no end, more output", killed, replayed("completed", "", `7`, `"a"`, `"b"`, `"d"`, `"e"`, `"f"`), "status unknown, value unknown, outputs unknown", true, 1},
		{"killed before any output", []Event{out("text", KeepContent, `"a"`), {Kind: Park}, {Kind: Resume}, sent(1, "t", `1`), {Kind: Resume}, out("text", KeepContent, `"b"`), end("completed", "", KeepContent, `7`)},
			replayed("completed", "", `7`, `"a"`, `"b"`), "", true, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := recordingOf(t, tt.recorded...).Outcome.Compare(tt.replayed)
			var items []string
			for _, c := range s.Checks {
				items = append(items, c.Item+" "+string(c.Verdict))
			}
			if got := strings.Join(items, ", "); got != tt.want || s.Same != tt.same || s.Equal != tt.equal || s.Differs+s.Unknown != len(items) {
				t.Errorf("got %q, %+v; want %q, same %v, %d equal", got, s, tt.want, tt.same, tt.equal)
			}
		})
	}
	var many Outcome
	for range 2 * maxListed {
		many.Emitted("text", []byte(`1`))
	}
	other := many
	other.Output = nil
	for range 2 * maxListed {
		other.Emitted("text", []byte(`2`))
	}
	if s := many.Compare(other); len(s.Checks) != maxListed || s.Differs != 2*maxListed {
		t.Errorf("%d listed, %d differ", len(s.Checks), s.Differs)
	}
}

// FuzzReplay: whatever a file has, each of its answers is given once at most, and to a call of
// its tool, and a recording is equal to itself.
func FuzzReplay(f *testing.F) {
	const short = `{"runId":"r","kind":"exec","data":{"content":"x"}}` + "\n"
	for _, calls := range []string{ // the fixtures would take the fuzzer minutes to make smaller
		`{"runId":"r","kind":"tool_call","callId":"1","toolId":"t","data":{"content":{"n":3}}}` + "\n" + `{"runId":"r","kind":"tool_result","callId":"1","toolId":"t","status":"done","data":{"content":1}}`,
		`{"runId":"r","kind":"tool_result","callId":"1","toolId":"t","status":"failed","code":"blocked","data":{"content":"no"}}`,
		`{"runId":"r","kind":"output","status":"text","data":{"content":"a"}}` + "\n" + `{"runId":"r","kind":"end","status":"completed","data":{"content":1}}`,
	} {
		f.Add([]byte(short+calls), []byte(`{"n":3.0}`))
	}
	f.Fuzz(func(t *testing.T, b, input []byte) {
		log, err := Read(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range log.Tree().Runs {
			r, err := NewRecording(log.Events, run.RunID)
			if err != nil {
				continue
			}
			p, seen := r.Player(), map[*Answer]bool{}
			take := func(tool string, input []byte) {
				a := p.Take(tool, input)
				if a != nil && (seen[a] || a.ToolID != tool || a.Gap == "" && !a.Failed && len(a.Value) == 0) {
					t.Fatalf("%q got %+v", tool, a)
				}
				seen[a] = true
			}
			for _, a := range r.Answers {
				take(a.ToolID, input)
				if a.Input != nil {
					take(a.ToolID, a.Input.Content)
				}
			}
			if s := p.Answers(); s.Used+s.Unused > s.Recorded || s.Recorded > len(r.Answers) || s.Used > len(log.Events) {
				t.Fatalf("%+v of %d answers", s, len(r.Answers))
			}
			if o := r.Outcome; o.Ended && !o.Compare(o).Same {
				t.Fatalf("%+v is not what it is", o)
			}
		}
		if c := canonical(input); canonical([]byte(c)) != c {
			t.Fatalf("%q becomes %q, then %q", input, c, canonical([]byte(c)))
		}
	})
}
