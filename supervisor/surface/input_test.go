package surface_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

const both = limits.JavaScript | limits.TypeScript

// isInvalidInput checks that err is one bounded line with the code invalid_input.
func isInvalidInput(t *testing.T, what string, err error, want string) {
	t.Helper()
	e, ok := errors.AsType[*surface.Error](err)
	if !ok || e.Code != surface.InvalidInput {
		t.Errorf("%.80s: %v, want an *Error with invalid_input", what, err)
		return
	}
	if !strings.Contains(e.Text, want) || len(e.Text) > surface.MaxErrorBytes || strings.ContainsAny(e.Text, "\n\x1b") {
		t.Errorf("%.80s: %s\nwant one bounded line with %q", what, e.Text, want)
	}
}

// SPEC 2.5, 3.1–3.3.
func TestParseExec(t *testing.T) {
	for _, tt := range []struct {
		arguments string
		languages limits.Languages
		want      surface.ExecInput
	}{
		{`{"code": "return 1"}`, both, surface.ExecInput{Code: "return 1"}},
		{`{"command": "return 1", "language": "typescript"}`, both, surface.ExecInput{Command: "return 1", Language: "typescript"}},
		{`{"code": " a\r\n\u0000\t\"\\n\\u0041é😀\ud83d\ude00 ", "language": null, "command": null}`, both, surface.ExecInput{Code: " a\r\n\x00\t\"\\n\\u0041é😀😀 "}},
		{`{"code": "1", "language": "python"}`, both, surface.ExecInput{Code: "1", Language: "python"}}, // for Exec to refuse
		{`{"code": "1", "language": ""}`, both, surface.ExecInput{Code: "1"}},
		{`{"code": "1"}`, limits.TypeScript, surface.ExecInput{Code: "1", Language: "typescript"}},
		{`{"code": "1", "language": "javascript"}`, limits.TypeScript, surface.ExecInput{Code: "1", Language: "javascript"}},
		{`{"code": "1"}`, limits.JavaScript, surface.ExecInput{Code: "1"}}, // a fence may still say what it is
		{``, both, surface.ExecInput{}}, {` {} `, both, surface.ExecInput{}}, {`{"code": null}`, both, surface.ExecInput{}},
	} {
		got, err := surface.ParseExec([]byte(tt.arguments), tt.languages)
		if err != nil {
			t.Errorf("%s: %v", tt.arguments, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.arguments, diff)
		}
	}
	for arguments, want := range map[string]string{
		`{"code": "1", "lang": "typescript"}`:     `no argument "lang"`,
		`{"code": "1", "Language": "typescript"}`: `did you mean "language"?`,
		`{"cod": "1"}`:                        `did you mean "code"?`,
		`{"code": "1", "timeoutMs": 60000}`:   "it takes code, command, language",
		`{"code": "1", "title": null}`:        `"title"`,
		`{"code": "1", "code": "2"}`:          "given before",
		`{"code": "1", "\u0063ode": "2"}`:     "given before",
		`{"code": ["return 1"]}`:              "code of exec is of type array",
		`{"code": 1}`:                         "of type number; it must be a string",
		`{"code": "1", "language": {"a": 1}}`: "of type object",
		`"{\"code\": \"1\"}"`:                 "are of type string; send one JSON object",
		`[]`:                                  "of type array",
		`null`:                                "of type null",
		`{"code": "1"`:                        "not JSON",
		`{code: "1"}`:                         "not JSON",
		`{"code": "1"} {}`:                    "not JSON",
		`{"code": "` + "\xff" + `"}`:          "UTF-8",
		`{"code": "\ud800"}`:                  "surrogate",
		`{"` + strings.Repeat(`\u001bx`, 1_000_000) + `": 1}`:                  "no argument",
		`{"x": ` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`: "nested 5001 deep",
		`{"x": [0` + strings.Repeat(",0", 1_000_000) + `]}`:                    "values",
		strings.Repeat(" ", surface.MaxArgumentBytes) + `{}`:                   "bytes",
	} {
		_, err := surface.ParseExec([]byte(arguments), both)
		isInvalidInput(t, arguments, err, want)
	}
}

// SPEC 2.5, 12.4: an id that cannot be ours is told so before anybody looks for it.
func TestParseWait(t *testing.T) {
	if id, err := surface.ParseWait([]byte(`{"runId": "0123456789abcdef"}`)); err != nil || id != "0123456789abcdef" {
		t.Errorf("%q, %v", id, err)
	}
	for arguments, want := range map[string]string{
		``: "wait needs the runId", `{}`: "wait needs the runId", `{"runId": " "}`: "wait needs the runId", `{"runId": null}`: "wait needs the runId",
		`{"run_id": "x"}`: `did you mean "runId"?`, `{"runId": 5}`: "must be a string", `{"runId": "x", "timeoutMs": 1}`: "it takes runId",
		`{"runId": "` + strings.Repeat("x", 1000) + `"}`: "1000 bytes",
	} {
		_, err := surface.ParseWait([]byte(arguments))
		isInvalidInput(t, arguments, err, want)
	}
}

// SPEC 2.7, 3.1: one name is mirrored into the other before the hook.
func TestMirror(t *testing.T) {
	for _, in := range []surface.ExecInput{{Code: " x "}, {Command: " x "}, {Code: " x ", Command: " x "}, {Code: " x ", Command: " \n"}, {Code: "", Command: " x "}} {
		got, err := in.Mirror()
		if err != nil || got != (surface.ExecInput{Code: " x ", Command: " x "}) {
			t.Errorf("%+v: %+v, %v", in, got, err)
		}
	}
	for _, in := range []surface.ExecInput{{}, {Code: " ", Command: "\t"}, {Language: "typescript"}} {
		_, err := in.Mirror()
		isInvalidInput(t, fmt.Sprint(in), err, "empty")
	}
	_, err := surface.ExecInput{Code: "x", Command: "x "}.Mirror()
	isInvalidInput(t, "different", err, "must be equal")
}

// SPEC 2.7: what becomes of a hook's rewrite.
func TestReconcile(t *testing.T) {
	shown := surface.ExecInput{Code: "return 1", Command: "return 1", Language: "javascript"}
	for _, tt := range []struct{ rewrite, code, language, fails string }{
		{`{}`, "return 1", "javascript", ""},
		{`{"code": "return 1", "command": "return 1", "language": "javascript"}`, "return 1", "javascript", ""}, // an echo
		{`{"command": "return 2"}`, "return 2", "javascript", ""},
		{`{"code": "return 2"}`, "return 2", "javascript", ""},
		{`{"code": "return 1", "command": "return 2"}`, "return 2", "javascript", ""},
		{`{"code": "return 2", "command": "return 1"}`, "return 2", "javascript", ""},
		{`{"code": "return 2", "command": "return 2", "language": "typescript"}`, "return 2", "typescript", ""},
		{`{"code": " return 1"}`, " return 1", "javascript", ""},
		{`{"language": null}`, "return 1", "", ""},
		{`{"code": "return 2", "command": "return 3"}`, "", "", "differently"},
		{`{"code": ""}`, "", "", "blanked"},
		{`{"command": " \n"}`, "", "", "blanked"},
		{`{"code": null}`, "", "", "blanked"},
		{`{"code": "return 2", "command": ""}`, "", "", "blanked"},
		{`{"code": "", "command": ""}`, "", "", "blanked"},
		{`{"code": 2}`, "", "", "code is no text"},
		{`{"code": "\ud800"}`, "", "", "code is no text"},
		{`{"script": "x"}`, "", "", `no parameter "script"`},
		{`{"code": "a", "code": "b"}`, "", "", "given before"},
		{`[]`, "", "", "of type array"},
		{``, "", "", "not JSON"},
	} {
		var got surface.ExecInput
		w, err := surface.ParseRewrite([]byte(tt.rewrite))
		if err == nil {
			got, err = shown.Reconcile(w)
		}
		if tt.fails != "" {
			isInvalidInput(t, tt.rewrite, err, tt.fails)
			continue
		}
		if want := (surface.ExecInput{Code: tt.code, Command: tt.code, Language: tt.language}); err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", tt.rewrite, got, err, want)
		}
	}
}

// SPEC 2.7: the event, byte for byte, with the identity; an unknown language has no kind.
func TestEvent(t *testing.T) {
	scope := supervisor.Scope{AgentID: "main", SessionID: "s1", SessionKey: "agent:main", AgentRunID: "r1", Sender: "+1", Channel: "chat"}
	in, err := surface.ExecInput{Code: "return 1 < 2", Language: "typescript"}.Mirror()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"toolName":"exec","toolKind":"code_mode_exec","toolCallId":"call_1","toolInputKind":"typescript",` +
		`"params":{"code":"return 1 < 2","command":"return 1 < 2","language":"typescript"},` +
		`"agentId":"main","sessionId":"s1","sessionKey":"agent:main","agentRunId":"r1","sender":"+1","channel":"chat"}`
	if diff := cmp.Diff(want, string(in.Event("call_1", surface.Identity(scope)).JSON())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for language, kind := range map[string]string{"": "javascript", "javascript": "javascript", "typescript": "typescript", "python": "", "TypeScript": "", " ": ""} {
		event := surface.ExecInput{Code: "1", Command: "1", Language: language}.Event("", surface.Identity{})
		if event.ToolInputKind != kind || event.ToolKind != "code_mode_exec" || strings.Contains(string(event.JSON()), "toolInputKind") != (kind != "") {
			t.Errorf("language %q: %s", language, event.JSON())
		}
	}
}

// What is parsed is what encoding/json reads, and the rest of the way keeps it.
func FuzzArguments(f *testing.F) {
	for _, seed := range []string{`{"code": "return 1", "language": "typescript"}`, `{"command": "a\u0000\ud83d\ude00\\"}`, `{"runId": "x"}`, `{"code": "\ud800"}`, `{"code":1,"code":2}`, `{"code":null}`, ``, `[[]]`, `{"code": "a", "command": "b"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, arguments []byte) {
		fine := func(err error) bool {
			e, ok := errors.AsType[*surface.Error](err)
			return ok && e.Code == surface.InvalidInput && len(e.Text) <= surface.MaxErrorBytes && !strings.ContainsAny(e.Text, "\n\r\x1b\x00")
		}
		if id, err := surface.ParseWait(arguments); err == nil && strings.TrimSpace(id) == "" || err != nil && !fine(err) {
			t.Fatalf("wait: %q, %v", id, err)
		}
		if _, err := surface.ParseRewrite(arguments); err != nil && !fine(err) {
			t.Fatalf("rewrite: %v", err)
		}
		in, err := surface.ParseExec(arguments, both)
		if err != nil {
			if !fine(err) {
				t.Fatalf("exec: %v", err)
			}
			return
		}
		var plain surface.ExecInput
		if len(strings.TrimSpace(string(arguments))) > 0 {
			if err := json.Unmarshal(arguments, &plain); err != nil || plain != in || !utf8.ValidString(in.Code) {
				t.Fatalf("%q gives %+v, encoding/json says %+v, %v", arguments, in, plain, err)
			}
		}
		shown, err := in.Mirror()
		if err != nil {
			if !fine(err) {
				t.Fatalf("mirror: %v", err)
			}
			return
		}
		params, err := json.Marshal(shown)
		if err != nil {
			t.Fatal(err)
		}
		w, err := surface.ParseRewrite(params)
		if err != nil {
			t.Fatalf("the event's parameters are no rewrite: %v", err)
		}
		if again, err := shown.Reconcile(w); err != nil || again != shown {
			t.Fatalf("an echo of %+v gives %+v, %v", shown, again, err)
		}
	})
}
