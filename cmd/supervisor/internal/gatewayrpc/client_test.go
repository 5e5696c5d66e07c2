package gatewayrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/test/shipped"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("GATEWAYRPC_CONNECT"); path != "" {
		connectAs(path)
		return
	}
	code := m.Run()
	shipped.Remove()
	os.Exit(code)
}

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// newSupervisor makes a real one, closed at the end of the test.
func newSupervisor(t testing.TB, change func(*supervisor.Options)) *supervisor.Supervisor {
	t.Helper()
	worker, err := shipped.Worker()
	if err != nil {
		t.Fatal(err)
	}
	opts := supervisor.Options{Worker: worker, CacheDir: filepath.Join(filepath.Dir(worker), "cache")}
	if change != nil {
		change(&opts)
	}
	s, err := supervisor.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// noLeaks fails the test if a goroutine is left at its end, when all that is registered
// after it has been cleaned up.
func noLeaks(t testing.TB) {
	ignore := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, ignore) })
}

// served is a server with one client after the other.
type served struct {
	t   testing.TB
	srv *Server
	doc *document
}

func serve(t testing.TB, opts Options) *served {
	t.Helper()
	opts.Config = limits.DefaultConfig()
	opts.Config.Enabled = true
	return &served{t, New(opts), readDocument(t)}
}

// client is one client. What goes over its connection is held against the document, unless
// it is a lie.
type client struct {
	t    testing.TB
	doc  *document
	conn net.Conn
	end  chan error // what Serve returned

	answerTo map[string]func(params json.RawMessage) (result any, err error) // set before the first request

	mu      sync.Mutex
	write   sync.Mutex
	next    int                      // guarded by mu
	sent    map[string]string        // guarded by mu: method by id
	asked   map[string]string        // guarded by mu: the supervisor's, by id
	waiting map[string]chan response // guarded by mu
	notes   []note                   // guarded by mu
	orphans []response               // guarded by mu: answers under no id of ours
	changed chan struct{}            // guarded by mu: closed at the next note or orphan
	closed  chan struct{}            // the reader is done
}

type response struct {
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

type note struct {
	method string
	params json.RawMessage
}

// connect makes a client that reads. Its connection ends with the test.
func (s *served) connect() *client {
	s.t.Helper()
	c := s.dial()
	go c.read()
	s.t.Cleanup(func() { c.hangUp() })
	return c
}

// dial makes a client that does not read.
func (s *served) dial() *client {
	a, b := net.Pipe()
	c := &client{
		t: s.t, doc: s.doc, conn: a, end: make(chan error, 1), answerTo: map[string]func(json.RawMessage) (any, error){},
		sent: map[string]string{}, asked: map[string]string{}, waiting: map[string]chan response{}, changed: make(chan struct{}), closed: make(chan struct{}),
	}
	go func() { c.end <- s.srv.Serve(context.Background(), b) }()
	return c
}

// hangUp closes the connection and returns when the server is done with it.
func (c *client) hangUp() error {
	c.conn.Close()
	return c.ended()
}

// ended gives why the server ended the connection.
func (c *client) ended() error {
	c.t.Helper()
	select {
	case err := <-c.end:
		c.end <- err
		return err
	case <-time.After(patience):
		c.t.Fatal("the server goes on with a connection that is over")
		return nil
	}
}

func (c *client) read() {
	defer close(c.closed)
	r := bufio.NewReaderSize(c.conn, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		c.took(line)
	}
}

// took is a line of the supervisor's.
func (c *client) took(line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		c.t.Errorf("the supervisor sent no JSON: %.200s", line)
		return
	}
	if m.Method == "" {
		c.answered(line)
		return
	}
	if err := refuses(c.doc.request, line); err != nil {
		c.t.Errorf("%.300s\n%v", line, err)
	}
	doc := c.doc.methods[m.Method]
	switch {
	case doc == nil || doc.direction != fromSupervisor || doc.notification != (m.ID == nil):
		c.t.Errorf("the document has no such message: %.300s", line)
		return
	}
	if err := refuses(doc.params, m.Params); err != nil {
		c.t.Errorf("%.300s\n%v", line, err)
	}
	if m.ID == nil {
		c.mu.Lock()
		c.notes = append(c.notes, note{m.Method, m.Params})
		c.change()
		c.mu.Unlock()
		return
	}
	c.mu.Lock()
	c.asked[string(m.ID)] = m.Method
	c.notes = append(c.notes, note{m.Method, m.Params})
	c.change()
	c.mu.Unlock()
	if f := c.answerTo[m.Method]; f != nil {
		go c.reply(m.ID, m.Method, m.Params, f)
	}
}

// change wakes who waits. mu is held.
func (c *client) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

var errSilent = errors.New("no answer")

func (c *client) reply(id json.RawMessage, method string, params json.RawMessage, f func(json.RawMessage) (any, error)) {
	result, err := f(params)
	switch {
	case err == errSilent:
		return
	case err != nil:
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":%q}}`, id, err.Error()))
		return
	}
	b, _ := json.Marshal(result)
	if err := refuses(c.doc.methods[method].result, b); err != nil {
		c.t.Errorf("the test answers %s with %s: %v", method, b, err)
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, b))
}

func (c *client) answered(line []byte) {
	if err := refuses(c.doc.answer, line); err != nil {
		c.t.Errorf("%.300s\n%v", line, err)
	}
	var r response
	if err := json.Unmarshal(line, &r); err != nil {
		c.t.Errorf("%.300s: %v", line, err)
	}
	if r.Error != nil {
		if err := refuses(c.doc.errors, r.Error.Data); err != nil {
			c.t.Errorf("the data of an error: %.300s\n%v", line, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := string(r.ID)
	wait := c.waiting[id]
	delete(c.waiting, id)
	if wait == nil {
		c.orphans = append(c.orphans, r)
		c.change()
		return
	}
	if doc := c.doc.methods[c.sent[id]]; r.Error == nil && doc != nil {
		if err := refuses(doc.result, r.Result); err != nil {
			c.t.Errorf("the result of %s: %.600s\n%v", c.sent[id], r.Result, err)
		}
	}
	wait <- r
}

// send writes a line. It may fail: the connection may be over.
func (c *client) send(line string) error {
	c.write.Lock()
	defer c.write.Unlock()
	_, err := c.conn.Write([]byte(line + "\n"))
	return err
}

// lie sends a request that the document refuses, or does not have.
func (c *client) lie(method, params string) <-chan response { return c.ask(method, params) }

// start sends a request that is right.
func (c *client) start(method string, params any) <-chan response {
	c.t.Helper()
	b, err := json.Marshal(params)
	if err != nil {
		c.t.Fatal(err)
	}
	if err := refuses(c.doc.methods[method].params, b); err != nil {
		c.t.Errorf("the test sends %s with %s: %v", method, b, err)
	}
	return c.ask(method, string(b))
}

func (c *client) ask(method, params string) <-chan response {
	wait := make(chan response, 1)
	c.mu.Lock()
	c.next++
	id := fmt.Sprint(c.next)
	c.sent[id], c.waiting[id] = method, wait
	c.mu.Unlock()
	_ = c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return wait
}

// tell sends a notification.
func (c *client) tell(method string, params any) {
	c.t.Helper()
	b, _ := json.Marshal(params)
	if err := refuses(c.doc.methods[method].params, b); err != nil {
		c.t.Errorf("the test sends %s with %s: %v", method, b, err)
	}
	_ = c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, b))
}

// got waits for an answer.
func (c *client) got(wait <-chan response) response {
	c.t.Helper()
	select {
	case r := <-wait:
		return r
	case <-c.closed:
		select {
		case r := <-wait:
			return r
		default:
		}
		c.t.Fatal("the connection ended before the answer came")
	case <-time.After(patience):
		c.t.Fatal("no answer came")
	}
	return response{}
}

// call sends a request and decodes its result.
func (c *client) call(method string, params, result any) {
	c.t.Helper()
	r := c.got(c.start(method, params))
	if r.Error != nil {
		c.t.Fatalf("%s: %d %s", method, r.Error.Code, r.Error.Message)
	}
	if result != nil {
		if err := json.Unmarshal(r.Result, result); err != nil {
			c.t.Fatal(err)
		}
	}
}

// await waits until f is true of what came, and gives f's value.
func await[T any](c *client, what string, f func() (T, bool)) T {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		c.mu.Lock()
		v, ok := f()
		changed := c.changed
		c.mu.Unlock()
		if ok {
			return v
		}
		select {
		case <-changed:
		case <-deadline:
			c.t.Fatalf("%s did not come", what)
		}
	}
}

// heard waits for the nth message of a method, and gives its params.
func (c *client) heard(method string, n int) json.RawMessage {
	c.t.Helper()
	return await(c, method, func() (json.RawMessage, bool) {
		left := n
		for _, m := range c.notes {
			if m.method == method {
				if left--; left == 0 {
					return m.params, true
				}
			}
		}
		return nil, false
	})
}

type obj = map[string]any

// initialize introduces the client.
func (c *client) initialize(capabilities obj) {
	c.t.Helper()
	params := obj{"protocolVersion": 1}
	if capabilities != nil {
		params["capabilities"] = capabilities
	}
	c.call("initialize", params, nil)
}

// open opens a handle with tools of these names, each of a client, and changes.
func (c *client) open(scope obj, change obj, tools ...string) string {
	c.t.Helper()
	list := []obj{}
	for _, name := range tools {
		name, policy, _ := strings.Cut(name, "!")
		tool := obj{"name": name, "source": "client"}
		if policy != "" {
			tool["policy"] = policy
		}
		list = append(list, tool)
	}
	params := obj{"scope": scope, "tools": list}
	for k, v := range change {
		params[k] = v
	}
	var res struct{ Handle, State, Reason string }
	c.call("run/open", params, &res)
	return res.Handle
}

// result is a result of exec or wait.
type result struct {
	Status, RunID, Reason, Error, Code, Phase string
	Value                                     json.RawMessage
	Output                                    []supervisor.Item
	PendingToolCalls                          []supervisor.PendingCall
}

func (c *client) exec(handle, code string) result {
	c.t.Helper()
	var res result
	c.call("run/exec", obj{"handle": handle, "callId": "call", "arguments": obj{"code": code}}, &res)
	return res
}

func (c *client) wait(handle, runID string) result {
	c.t.Helper()
	var res result
	c.call("run/wait", obj{"handle": handle, "arguments": obj{"runId": runID}}, &res)
	return res
}

func (c *client) result(wait <-chan response) (res result) {
	c.t.Helper()
	r := c.got(wait)
	if r.Error != nil {
		c.t.Fatalf("%d %s", r.Error.Code, r.Error.Message)
	}
	if err := json.Unmarshal(r.Result, &res); err != nil {
		c.t.Fatal(err)
	}
	return res
}

// echo answers tool/call with the input.
func echo(params json.RawMessage) (any, error) {
	var p struct{ Input json.RawMessage }
	_ = json.Unmarshal(params, &p)
	return obj{"value": p.Input}, nil
}

func silent(json.RawMessage) (any, error) { return nil, errSilent }
