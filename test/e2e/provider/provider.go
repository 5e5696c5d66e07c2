package provider

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// MaxBody is how long a request may be.
const MaxBody = 16 << 20

// Reply is one message of the model's: text, or calls of tools.
type Reply struct {
	// Text is what it says. {{value}} stands for the value of the last tool result, as JSON,
	// {{output}} for the texts that the cell emitted, a line each.
	Text string `json:"text,omitempty"`
	// Exec calls exec with this code, in Language if it is not empty.
	Exec     string `json:"exec,omitempty"`
	Language string `json:"language,omitempty"`
	// Wait calls wait with the runId of the last tool result.
	Wait bool `json:"wait,omitempty"`
	// Calls call any tools, side by side.
	Calls []Call `json:"calls,omitempty"`
}

// Call is one call of a tool.
type Call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Request is one that came.
type Request struct {
	Path   string
	Key    string // the API key it came with
	Model  string
	Stream bool
	Body   []byte // byte for byte
}

// Tools gives the names of the tools in the request, in order.
func (r Request) Tools() []string {
	var body struct {
		Tools []struct {
			Name     string
			Function struct{ Name string }
		}
	}
	if json.Unmarshal(r.Body, &body) != nil {
		return nil
	}
	names := []string{}
	for _, t := range body.Tools {
		names = append(names, t.Name+t.Function.Name)
	}
	return names
}

// Results gives the texts of the tool results in the request, in order.
func (r Request) Results() []string {
	d := dialect(openAI{})
	if r.Path == "/v1/messages" {
		d = anthropic{}
	}
	texts, err := d.results(r.Body)
	if err != nil {
		return nil // it was refused
	}
	return texts
}

// Server is a running provider. It is safe for concurrent use.
type Server struct {
	// URL is where it listens, without a path: http://127.0.0.1:PORT.
	URL string

	http   *http.Server
	served chan struct{} // closed when the listener's goroutine has ended

	mu       sync.Mutex
	scripts  map[string][]Reply // what is left of them
	requests []Request
	calls    int // ids that were given away
}

// Start starts a provider without scripts. The caller must Close it.
func Start() (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting the scripted provider: %w", err)
	}
	s := &Server{URL: "http://" + l.Addr().String(), served: make(chan struct{}), scripts: map[string][]Reply{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.answer(openAI{}))
	mux.HandleFunc("POST /v1/messages", s.answer(anthropic{}))
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { // Close waits for it
		defer close(s.served)
		_ = s.http.Serve(l)
	}()
	return s, nil
}

// Close stops the server and returns when nothing of it is left.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.served
	return err
}

// Script says how a model answers from now on; what was left of an older script is forgotten.
func (s *Server) Script(model string, replies ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scripts[model] = slices.Clone(replies)
}

// Left counts the replies of a script that nobody has asked for.
func (s *Server) Left(model string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.scripts[model])
}

// Requests gives the requests to a model, in the order in which they came.
func (s *Server) Requests(model string) (found []Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.requests {
		if r.Model == model {
			found = append(found, r)
		}
	}
	return found
}

// dialect is how one API writes requests and answers.
type dialect interface {
	key(http.Header) string
	// results gives the texts of the tool results in a body, in order. It is an error if
	// calls and results do not belong together.
	results(body []byte) ([]string, error)
	// message is the whole answer, events the same as a stream.
	message(model string, m message) any
	events(model string, m message) []event
	failure(text string) any
	idPrefix() string
}

// message is a reply that is made out: text, or calls with ids.
type message struct {
	Text  string
	Calls []madeCall
}

type madeCall struct {
	ID, Name, Arguments string
}

// event is one server-sent event. Data is JSON, or a string as it is.
type event struct {
	Name string
	Data any
}

func (s *Server) answer(d dialect) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		refuse := func(status int, format string, args ...any) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(d.failure(fmt.Sprintf(format, args...)))
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
		if err != nil {
			refuse(http.StatusRequestEntityTooLarge, "the request cannot be read: %v", err)
			return
		}
		in := Request{Path: r.URL.Path, Key: d.key(r.Header), Body: body}
		var head struct {
			Model  string
			Stream bool
		}
		err = json.Unmarshal(body, &head)
		in.Model, in.Stream = head.Model, head.Stream
		s.mu.Lock()
		s.requests = append(s.requests, in)
		s.mu.Unlock()
		if err != nil {
			refuse(http.StatusBadRequest, "the request is not understood: %v", err)
			return
		}
		if in.Key == "" {
			refuse(http.StatusUnauthorized, "the request has no API key")
			return
		}
		results, err := d.results(body)
		if err != nil {
			refuse(http.StatusBadRequest, "%v", err)
			return
		}
		m, err := s.next(head.Model, results, d.idPrefix())
		if err != nil {
			refuse(http.StatusBadRequest, "%v", err)
			return
		}
		if !head.Stream {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(d.message(head.Model, m))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range d.events(head.Model, m) {
			if e.Name != "" {
				fmt.Fprintf(w, "event: %s\n", e.Name)
			}
			if text, ok := e.Data.(string); ok {
				fmt.Fprintf(w, "data: %s\n\n", text)
			} else {
				b, _ := json.Marshal(e.Data) // maps of strings, made here
				fmt.Fprintf(w, "data: %s\n\n", b)
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
}

// next takes the next reply of a script and makes it out.
func (s *Server) next(model string, results []string, prefix string) (message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	script := s.scripts[model]
	if len(script) == 0 {
		return message{}, fmt.Errorf("no reply is scripted for the model %q", model)
	}
	r := script[0]
	last := lastResult(results)
	calls := r.Calls
	switch {
	case r.Exec != "":
		arguments := map[string]string{"code": r.Exec, "language": r.Language}
		if r.Language == "" {
			delete(arguments, "language")
		}
		b, _ := json.Marshal(arguments)
		calls = []Call{{"exec", b}}
	case r.Wait:
		if last.RunID == "" {
			return message{}, fmt.Errorf("the script waits, and the last tool result has no runId")
		}
		b, _ := json.Marshal(map[string]string{"runId": last.RunID})
		calls = []Call{{"wait", b}}
	}
	s.scripts[model] = script[1:]
	m := message{Text: r.Text}
	if len(calls) == 0 {
		var texts []string
		for _, item := range last.Output {
			texts = append(texts, item.Text)
		}
		m.Text = strings.NewReplacer("{{value}}", string(last.Value), "{{output}}", strings.Join(texts, "\n")).Replace(r.Text)
	}
	for _, c := range calls {
		s.calls++
		m.Calls = append(m.Calls, madeCall{fmt.Sprintf("%s%04d", prefix, s.calls), c.Name, string(c.Arguments)})
	}
	return m, nil
}

// result is what a script may refer to of a tool result. One that is no result of code mode has
// none of it.
type result struct {
	RunID  string          `json:"runId"`
	Value  json.RawMessage `json:"value"`
	Output []struct {
		Text string `json:"text"`
	} `json:"output"`
}

func lastResult(results []string) (last result) {
	if len(results) > 0 {
		_ = json.Unmarshal([]byte(results[len(results)-1]), &last)
	}
	return last
}

// halves cuts arguments in two, as streams do at any byte.
func halves(s string) []string { return []string{s[:len(s)/2], s[len(s)/2:]} }

// text gives the text of a message's content, a string or a list of parts.
func text(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts)
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// pairs checks that each call has its result before anything else is said.
type pairs struct {
	open []string
}

func (p *pairs) call(id string) { p.open = append(p.open, id) }

func (p *pairs) result(id string) error {
	i := slices.Index(p.open, id)
	if i < 0 {
		return fmt.Errorf("there is a tool result for %q, which is no call of the message before it", id)
	}
	p.open = slices.Delete(p.open, i, i+1)
	return nil
}

func (p *pairs) closed() error {
	if len(p.open) > 0 {
		return fmt.Errorf("the tool calls %q have no result", p.open)
	}
	return nil
}
