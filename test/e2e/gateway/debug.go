package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

const (
	maxLogged  = 16 << 10 // bytes of a payload or an event in the log
	peekEvents = 5
)

// debug is what the debug variables ask for. Nothing of it ever has a key, a token or a header.
type debug struct {
	log       *slog.Logger
	keys      []string // of all models
	codeMode  bool     // OPENCLAW_DEBUG_CODE_MODE=1: the decision, with names only
	transport bool     // OPENCLAW_DEBUG_MODEL_TRANSPORT=1: requests without their contents
	body      string   // OPENCLAW_DEBUG_MODEL_PAYLOAD: tools (names), full-redacted
	sse       string   // OPENCLAW_DEBUG_SSE: events (types and numbers), peek (the first five)
}

func newDebug(log *slog.Logger, cfg Config) debug {
	d := debug{
		log: log, codeMode: cfg.Getenv(surface.DebugVar) == "1", transport: cfg.Getenv("OPENCLAW_DEBUG_MODEL_TRANSPORT") == "1",
		body: cfg.Getenv("OPENCLAW_DEBUG_MODEL_PAYLOAD"), sse: cfg.Getenv("OPENCLAW_DEBUG_SSE"),
	}
	for _, a := range cfg.Agents {
		if a.Model.Key != "" {
			d.keys = append(d.keys, a.Model.Key)
		}
	}
	return d
}

func (d debug) request(r *http.Request, status int, took time.Duration, sent, received int) {
	if d.transport {
		d.log.Info("model transport", "method", r.Method, "url", r.URL.Scheme+"://"+r.URL.Host+r.URL.Path, "status", status, "ms", took.Milliseconds(), "sent", sent, "received", received)
	}
}

func (d debug) payload(body []byte) {
	switch d.body {
	case "tools":
		var in struct {
			Tools []struct {
				Name     string
				Function struct{ Name string }
			}
		}
		_ = json.Unmarshal(body, &in) // our own
		names := []string{}
		for _, t := range in.Tools {
			names = append(names, t.Name+t.Function.Name)
		}
		d.log.Info("model payload", "tools", names)
	case "full-redacted":
		d.log.Info("model payload", "body", clip(d.redactJSON(body)))
	}
}

var (
	secretKey = regexp.MustCompile(`(?i)^(proxy-)?authorization$|(^|[-_a-z])(api[-_]?key|token|secret|password|passwd|cookie|credential)s?$`)
	// Values that look like secrets wherever they stand: keys of well-known form, and what
	// somebody assigns to a name of secretKey in a text.
	secretValue = regexp.MustCompile(`(?i)\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|xox[abpr])[-_][A-Za-z0-9_-]{8,}|\bAKIA[A-Z0-9]{12,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*|\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}`)
	assigned    = regexp.MustCompile(`(?i)((?:api[-_]?key|token|secret|password|passwd|cookie|credential|authorization)s?\\?["'\x60]?\s*[:=]\s*\\?["'\x60]?)[^\s"'\x60,;}\\]+`)
)

const redacted = "[redacted]"

func (d debug) redact(s string) string {
	for _, key := range d.keys {
		s = strings.ReplaceAll(s, key, redacted)
	}
	return assigned.ReplaceAllString(secretValue.ReplaceAllString(s, redacted), "${1}"+redacted)
}

// redactJSON gives JSON without what must not be logged, and of what is no JSON nothing.
func (d debug) redactJSON(b []byte) string {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Sprintf("[%d bytes that are no JSON]", len(b))
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(d.walk(v)) // it was JSON
	return strings.TrimSuffix(out.String(), "\n")
}

func (d debug) walk(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if _, number := inner.(float64); secretKey.MatchString(key) && !number { // max_tokens
				v[key] = redacted
			} else {
				v[key] = d.walk(inner)
			}
		}
	case []any:
		for i := range v {
			v[i] = d.walk(v[i])
		}
	case string: // arguments are JSON in a string
		if trimmed := strings.TrimSpace(v); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
			var inner any
			if json.Unmarshal([]byte(trimmed), &inner) == nil {
				return d.redactJSON([]byte(trimmed))
			}
		}
		return d.redact(v)
	}
	return v
}

// fragments are the fields in which streams bring texts piece by piece. A piece of a
// secret does not look like one.
var fragments = map[string]bool{"content": true, "text": true, "arguments": true, "partial_json": true}

func hideFragments(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			if s, ok := inner.(string); ok && fragments[key] {
				v[key] = fmt.Sprintf("[%d bytes]", len(s))
			} else {
				v[key] = hideFragments(inner)
			}
		}
	case []any:
		for i := range v {
			v[i] = hideFragments(v[i])
		}
	}
	return v
}

func (d debug) peek(data []byte) string {
	var v any
	if json.Unmarshal(data, &v) != nil {
		return fmt.Sprintf("[%d bytes that are no JSON]", len(data))
	}
	b, _ := json.Marshal(hideFragments(v))
	return clip(d.redactJSON(b))
}

func clip(s string) string {
	if len(s) <= maxLogged {
		return s
	}
	return strings.ToValidUTF8(s[:maxLogged], "") + fmt.Sprintf(" … and %d bytes more", len(s)-maxLogged)
}

// errDone is the end of a stream.
var errDone = errors.New("the stream is over")

// readStream reads server-sent events to the end of the answer.
func (g *Gateway) readStream(a api, in io.Reader) (r reply, err error) {
	counts := map[string]int{}
	defer func() {
		if g.debug.sse == "events" {
			var list []string
			for _, name := range slices.Sorted(maps.Keys(counts)) {
				list = append(list, fmt.Sprintf("%s:%d", name, counts[name]))
			}
			g.debug.log.Info("model stream", "events", list)
		}
	}()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxAnswer)
	name, seen := "", 0
	for lines.Scan() {
		line := lines.Text()
		if event, ok := strings.CutPrefix(line, "event: "); ok {
			name = event
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if name == "" {
			name = "message" // the default of server-sent events
		}
		counts[name]++
		if seen++; g.debug.sse == "peek" && seen <= peekEvents {
			g.debug.log.Info("model stream", "event", name, "data", g.debug.peek([]byte(data)))
		}
		name = ""
		if err := a.join(&r, []byte(data)); errors.Is(err, errDone) {
			_, err := io.Copy(io.Discard, in) // so that the connection can be used again
			return r, err
		} else if err != nil {
			return r, err
		}
	}
	if err := lines.Err(); err != nil {
		return r, fmt.Errorf("reading the model's stream: %w", err)
	}
	return r, errors.New("the model's stream broke off")
}
