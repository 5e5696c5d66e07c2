package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// maxAnswer is how long a provider's answer may be.
const maxAnswer = 16 << 20

// reply is what the model says: text, calls, or both.
type reply struct {
	Text  string
	Calls []toolCall
}

type toolCall struct {
	ID, Name  string
	Arguments json.RawMessage // as the model wrote them: perhaps no JSON at all
}

// messages are the calls, for the transcript.
func (r reply) messages() (all []trajectory.Message) {
	for _, c := range r.Calls {
		m := trajectory.Message{Role: trajectory.RoleAssistant, CallID: c.ID, Name: c.Name, Arguments: c.Arguments, Time: time.Now()}
		if object := map[string]json.RawMessage(nil); len(c.Arguments) > 0 && json.Unmarshal(c.Arguments, &object) != nil {
			// The transcript holds objects, and providers take no others. The tool gets what the model wrote.
			m.Arguments, _ = json.Marshal(map[string]string{"malformed": string(c.Arguments)})
		}
		all = append(all, m)
	}
	return all
}

// api is how one kind of provider is talked to.
type api interface {
	path() string
	shape() surface.Shape
	authorize(h http.Header, key string)
	// messages gives the conversation in the provider's form. It has no nested calls in it.
	messages(history []trajectory.Message) any
	// tool is one tool in the provider's form, for a run without code mode.
	tool(name, description string, parameters json.RawMessage) any
	// parse reads an answer in one piece; join adds an event of a stream to it.
	parse(body []byte) (reply, error)
	join(r *reply, data []byte) error
}

var apis = map[API]api{OpenAI: openAI{}, Anthropic: anthropic{}}

// ask sends one request and reads the answer.
func (g *Gateway) ask(ctx context.Context, m Model, run *agentRun, history []trajectory.Message) (reply, error) {
	a, ok := apis[m.API]
	if !ok {
		return reply{}, fmt.Errorf("model %q has the unknown API %q", m.Name, m.API)
	}
	body, err := run.body(a, m, history)
	if err != nil {
		return reply{}, err
	}
	if g.cfg.PatchRequest != nil {
		body = g.cfg.PatchRequest(body)
	}
	// On the bytes that are sent, and after everybody who could have changed them.
	if err := run.decision.CheckPayload(body, a.shape()); err != nil {
		return reply{}, fmt.Errorf("the request to the model was not sent: %w", err)
	}
	g.debug.payload(body)
	u, err := url.JoinPath(m.URL, a.path())
	if err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	a.authorize(req.Header, m.Key)
	began := time.Now()
	res, err := g.http.Do(req)
	if err != nil {
		return reply{}, fmt.Errorf("asking model %q: %w", m.Name, err)
	}
	defer res.Body.Close()
	in := &counted{r: io.LimitReader(res.Body, maxAnswer)}
	defer func() { g.debug.request(req, res.StatusCode, time.Since(began), len(body), in.n) }()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(in, 4<<10))
		return reply{}, fmt.Errorf("model %q answered %s: %s", m.Name, res.Status, g.debug.redact(string(b)))
	}
	if m.Stream {
		return g.readStream(a, in)
	}
	b, err := io.ReadAll(in)
	if err != nil {
		return reply{}, fmt.Errorf("reading the answer of model %q: %w", m.Name, err)
	}
	return a.parse(b)
}

// body makes a request's body. The tools go in as they were rendered, byte for byte.
func (r *agentRun) body(a api, m Model, history []trajectory.Message) ([]byte, error) {
	var visible []trajectory.Message
	for _, message := range history {
		if !message.Nested() { // the model made exec and wait, and no others
			visible = append(visible, message)
		}
	}
	body := map[string]any{"model": m.Name, "messages": a.messages(visible), "stream": m.Stream}
	if m.API == Anthropic {
		body["max_tokens"] = 4096
	}
	switch r.decision.State {
	case surface.Engaged:
		body["tools"] = r.decision.Definitions.Render(a.shape(), true)
	case surface.Off:
		var tools []any
		for _, d := range r.direct {
			parameters := d.tool.Parameters
			if len(parameters) == 0 {
				parameters = json.RawMessage(`{"type":"object"}`)
			}
			tools = append(tools, a.tool(d.name, d.tool.Description, parameters))
		}
		if len(tools) > 0 {
			body["tools"] = tools
		}
	}
	return json.Marshal(body)
}

// counted counts what was read.
type counted struct {
	r io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}
