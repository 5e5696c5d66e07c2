package provider

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func post(t *testing.T, s *Server, path, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer k")
	r.Header.Set("X-Api-Key", "k")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func start(t *testing.T) *Server {
	t.Helper()
	s, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		goleak.VerifyNone(t)
	})
	return s
}

// Both APIs, in one piece and as a stream, say the same, and what is asked for is kept as it came.
func TestAnswers(t *testing.T) {
	s := start(t)
	for path, result := range map[string]string{
		"/v1/chat/completions": `{"role":"assistant","tool_calls":[{"id":"ID","type":"function","function":{"name":"exec","arguments":"{}"}}]},{"role":"tool","tool_call_id":"ID","content":"{\"runId\":\"r1\",\"value\":[1],\"output\":[{\"type\":\"text\",\"text\":\"out\"}]}"}`,
		"/v1/messages":         `{"role":"assistant","content":[{"type":"tool_use","id":"ID","name":"exec","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"ID","content":"{\"runId\":\"r1\",\"value\":[1],\"output\":[{\"type\":\"text\",\"text\":\"out\"}]}"}]}`,
	} {
		for _, stream := range []string{"false", "true"} {
			s.Script("m", Reply{Exec: "return 1", Language: "typescript"}, Reply{Wait: true}, Reply{Text: "{{value}} {{output}}"})
			_, first := post(t, s, path, `{"model":"m","stream":`+stream+`,"messages":[{"role":"user","content":"hi"}]}`)
			ask := `{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"hi"},` + result + `]}`
			_, second := post(t, s, path, ask)
			_, third := post(t, s, path, ask)
			for _, pair := range [][2]string{{first, "exec"}, {first, "typescript"}, {second, "wait"}, {second, "r1"}, {third, "[1] out"}} {
				if !strings.Contains(pair[0], pair[1]) {
					t.Errorf("%s, stream %s: %q is not in\n%s", path, stream, pair[1], pair[0])
				}
			}
			if got := strings.Contains(third, "data: "); got != (stream == "true") {
				t.Errorf("%s, stream %s:\n%s", path, stream, third)
			}
			requests := s.Requests("m")
			if last := requests[len(requests)-1]; string(last.Body) != ask || last.Key != "k" || last.Path != path {
				t.Errorf("kept: %+v", last)
			}
			if n := s.Left("m"); n != 0 {
				t.Errorf("%d replies are left", n)
			}
		}
	}
}

// What a real provider refuses.
func TestRefusals(t *testing.T) {
	s := start(t)
	s.Script("m", Reply{Text: "never"})
	for body, want := range map[string]string{
		`{"model":"other","messages":[]}`:                                                                            "no reply is scripted",
		`{"model":"m","messages":[{"role":"tool","tool_call_id":"x","content":""}]}`:                                 "no call of the message before",
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"x"}]},{"role":"user","content":"and?"}]}`: "have no result",
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"x"}]}]}`:                                  "have no result",
		`nonsense`: "not understood",
	} {
		if status, got := post(t, s, "/v1/chat/completions", body); status != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s, want %q", body, status, got, want)
		}
	}
	for body, want := range map[string]string{
		`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]}`:                           "no call of the message before",
		`{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"x"}]},{"role":"user","content":"and?"}]}`: "have no result",
	} {
		if status, got := post(t, s, "/v1/messages", body); status != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s, want %q", body, status, got, want)
		}
	}
	res, err := http.Post(s.URL+"/v1/messages", "application/json", bytes.NewReader([]byte(`{"model":"m"}`)))
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a key: %s", res.Status)
	}
	if n := s.Left("m"); n != 1 {
		t.Errorf("%d replies are left, want 1", n)
	}
}

// The plan is what it says it is.
func TestLoad(t *testing.T) {
	p, err := Load(os.DirFS("../testdata/plan"))
	if err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, s := range p.Steps {
		numbers = append(numbers, s.Name[:2])
		if len(s.Replies) == 0 || s.About == "" || s.User == "" || len(s.Visible) == 0 {
			t.Errorf("%s has no replies, or does not say what it is about or what must be seen", s.Name)
		}
		if last := s.Replies[len(s.Replies)-1]; last.Text == "" {
			t.Errorf("%s does not end with an answer", s.Name)
		}
		calls := 0
		for _, r := range s.Replies {
			calls += len(r.Calls)
			if r.Exec != "" || r.Wait {
				calls++
			}
			if strings.HasSuffix(r.Exec, ".js") || strings.HasSuffix(r.Exec, ".ts") {
				t.Errorf("%s: %s was not read", s.Name, r.Exec)
			}
		}
		if calls != len(s.Results) {
			t.Errorf("%s has %d calls and %d results", s.Name, calls, len(s.Results))
		}
		for _, r := range s.Results {
			if !json.Valid(r) {
				t.Errorf("%s: %s", s.Name, r)
			}
		}
	}
	if n := len(slices.Compact(numbers)); n != 16 {
		t.Errorf("the plan has %d steps, want 16", n)
	}
}
