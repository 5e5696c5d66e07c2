package gatewayrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creachadair/jrpc2"
	"github.com/openclaw/codemode-supervisor/supervisor"
)

// conn is one client. Its goroutines are the reader, the writer, the library's two loops, and
// one for each open request; [conn.serve] waits for all of them.
type conn struct {
	srv *Server
	t   Transport
	log *slog.Logger
	out *outbox

	ctx  context.Context // ends when the connection is over, with the reason as its cause
	stop context.CancelCauseFunc

	requests, answers chan []byte   // from the reader to the halves of the library
	peer              *jrpc2.Client // asks the client
	turn              chan struct{} // held by who is about to push; waiting for it is first come, first served
	asking            atomic.Pointer[question]
	unanswered        atomic.Int64    // requests whose answer is not written
	last              <-chan struct{} // the reader's: see request.entered

	mu         sync.Mutex
	open       map[string]*request         // guarded by mu: by the JSON of the id
	asked      map[string]struct{}         // guarded by mu: ids of questions that have no answer
	lastAsked  int64                       // guarded by mu
	client     *clientInfo                 // guarded by mu: nil before initialize
	handles    map[string]*handle          // guarded by mu
	lastHandle int                         // guarded by mu
	calls      map[string]*supervisor.Call // guarded by mu: nested calls that the client has
}

// request is one that the client waits for.
type request struct {
	id     string
	params json.RawMessage
	ctx    context.Context
	cancel context.CancelCauseFunc
	// A request enters, which is quick, when the one before it has: so they are taken up in the
	// order in which they came, though the library runs each on a goroutine of its own.
	before  <-chan struct{}
	entered chan struct{}
}

// Why a connection or a request is over.
var (
	errGone      = errors.New("the client closed the connection")
	errFlood     = errors.New("the client does not read what it is answered")
	errCancelled = errors.New("the client cancelled the request")
)

func newConn(srv *Server, ctx context.Context, t Transport, log *slog.Logger) *conn {
	c := &conn{
		srv: srv, t: t, log: log, out: newOutbox(), requests: make(chan []byte), answers: make(chan []byte), turn: make(chan struct{}, 1),
		open: map[string]*request{}, asked: map[string]struct{}{}, handles: map[string]*handle{}, calls: map[string]*supervisor.Call{},
	}
	c.ctx, c.stop = context.WithCancelCause(ctx)
	first := make(chan struct{})
	close(first)
	c.last = first
	return c
}

// serve goes on until the client or ctx ends it, and returns when nothing is left of it: no
// run, no handle, no goroutine. The error is nil if the client left.
func (c *conn) serve() error {
	defer c.stop(nil)
	var ends sync.WaitGroup
	server := jrpc2.NewServer(assigner(c.handler), &jrpc2.ServerOptions{Concurrency: c.srv.maxRequests + 1, DisableBuiltin: true})
	server.Start(half{c, c.requests, func(line []byte) error {
		c.out.put(line, answer)
		return nil
	}})
	c.peer = jrpc2.NewClient(half{c, c.answers, c.sendQuestion}, nil)
	ends.Go(func() { c.stop(c.read()) })
	written := make(chan struct{})
	go func() { // waited for below
		defer close(written)
		if err := c.out.write(c.t, c.srv.writeTimeout, func(n int) { c.unanswered.Add(int64(-n)) }); err != nil {
			c.stop(fmt.Errorf("writing to the client: %w", err))
		}
	}()

	<-c.ctx.Done()
	var handles []*handle
	c.mu.Lock()
	for _, h := range c.handles {
		handles = append(handles, h)
	}
	c.mu.Unlock()
	var closing sync.WaitGroup
	for _, h := range handles {
		closing.Go(h.close)
	}
	closing.Wait()
	_ = server.Wait()
	_ = c.peer.Close()
	// Whoever still reads gets the last answers, and why this is the end.
	c.out.close()
	select {
	case <-written:
	case <-time.After(min(time.Second, c.srv.writeTimeout)):
	}
	err := c.t.Close()
	<-written
	ends.Wait()
	if cause := context.Cause(c.ctx); cause != errGone {
		return cause
	}
	if err != nil {
		c.log.Debug("closing a connection", "error", err)
	}
	return nil
}

// half is the connection as one half of the library sees it.
type half struct {
	c    *conn
	in   <-chan []byte
	send func([]byte) error
}

func (h half) Send(line []byte) error { return h.send(line) }
func (h half) Close() error           { return nil } // conn.serve closes

func (h half) Recv() ([]byte, error) {
	select {
	case line := <-h.in:
		return line, nil
	case <-h.c.ctx.Done():
		return nil, io.EOF
	}
}

// read takes the lines, and gives the reason why there are no more.
func (c *conn) read() error {
	lines := newLineReader(c.t)
	for {
		line, err := lines.next()
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			return errGone
		case err == errHalfLine, err == errLineTooLong:
			_ = c.refuse(nil, fault(codeParse, fmt.Sprintf("end each message with a line break, at the latest after %d bytes", MaxLine), "%v; the connection is closed", err))
			return err
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		default:
			return fmt.Errorf("reading from the client: %w", err)
		}
		e, bad := readEnvelope(line)
		switch {
		case bad != nil:
			err = c.refuse(e.id, bad)
		case e.method == "":
			err = c.takeAnswer(e, line)
		case e.id == nil:
			c.notified(e)
		default:
			err = c.takeRequest(e, line)
		}
		if err != nil {
			return err
		}
	}
}

// refuse answers what no handler does. Too many of these, unread, end the connection.
func (c *conn) refuse(id json.RawMessage, err *jrpc2.Error) error {
	c.log.Debug("refused a message", "code", int(err.Code))
	if c.out.put(refuse(id, err), refusal) > 4*c.srv.maxRequests {
		return errFlood
	}
	return nil
}

// takeAnswer passes a response on to who waits for it. One that nobody waits for any more is
// late, and dropped.
func (c *conn) takeAnswer(e envelope, line []byte) error {
	id := string(e.id)
	c.mu.Lock()
	_, waited := c.asked[id]
	delete(c.asked, id)
	last := c.lastAsked
	c.mu.Unlock()
	if waited {
		return c.pass(c.answers, line)
	}
	if n, err := strconv.ParseInt(id, 10, 64); err != nil || n < 1 || n > last {
		return c.refuse(nil, fault(codeInvalidRequest, "the id of a response is that of the request, as it was", "a response has the id %s, and no request had that", quote(e.id)))
	}
	c.log.Debug("dropped a response that nobody waits for")
	return nil
}

func (c *conn) pass(to chan<- []byte, line []byte) error {
	select {
	case to <- line:
		return nil
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
}

// takeRequest passes a request on, if there is a place for it.
func (c *conn) takeRequest(e envelope, line []byte) error {
	id := string(e.id)
	if _, ok := methods[e.method]; !ok {
		return c.refuse(e.id, fault(codeNoMethod, "docs/serve.md has all methods", "there is no method %q%s", clip(e.method, 60), meant(e.method, methodNames())))
	}
	if c.unanswered.Load() >= int64(c.srv.maxRequests) {
		return c.refuse(e.id, fault(codeBusy, hintReadTheAnswers, "%d requests are open, and that is the most", c.srv.maxRequests))
	}
	r := &request{id: id, params: e.params, before: c.last, entered: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancelCause(c.ctx)
	c.mu.Lock()
	_, taken := c.open[id]
	if !taken {
		c.open[id] = r
	}
	c.mu.Unlock()
	if taken {
		r.cancel(nil)
		return c.refuse(nil, fault(codeInvalidRequest, "count ids up", "the id %s is that of an open request", quote(e.id)))
	}
	c.last = r.entered
	c.unanswered.Add(1)
	return c.pass(c.requests, line)
}

// assigner gives the library the one handler for all methods: the reader let only those through
// that there are.
type assigner jrpc2.Handler

func (a assigner) Assign(context.Context, string) jrpc2.Handler { return jrpc2.Handler(a) }

// handler runs one request, on a goroutine of the library.
func (c *conn) handler(_ context.Context, q *jrpc2.Request) (result any, err error) {
	c.mu.Lock()
	r := c.open[q.ID()]
	c.mu.Unlock()
	defer func() {
		if caught := recover(); caught != nil {
			c.log.Error("a request panicked", "method", q.Method(), "panic", fmt.Sprint(caught), "stack", string(debug.Stack()))
			result, err = nil, fault(codeInternal, "this is a bug of the supervisor; its log has more", "%s failed inside the supervisor", q.Method())
		}
		c.mu.Lock()
		delete(c.open, r.id)
		c.mu.Unlock()
		r.cancel(nil)
	}()
	body, err := c.enter(r, q.Method())
	if err != nil {
		return nil, err
	}
	return body(r.ctx)
}

// enter does what a request does in its turn, and gives the rest.
func (c *conn) enter(r *request, method string) (func(context.Context) (any, error), error) {
	defer close(r.entered)
	select {
	case <-r.before:
	case <-c.ctx.Done():
		return nil, fault(codeInternal, "", "the connection is over")
	}
	switch ready := c.info() != nil; {
	case !ready && method != initialize:
		return nil, fault(codeInitialize, hintInitialize, "%s came before initialize", method)
	case ready && method == initialize:
		return nil, fault(codeInitialize, hintInitialize, "initialize came twice")
	}
	p := readObject("", r.params)
	body, err := methods[method](c, r, p)
	if err != nil {
		return nil, err
	}
	return body, nil
}

func (c *conn) info() *clientInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.client
}

// notified does what a notification says, at once: what the client says next comes after it.
// Nothing is answered; one that makes no sense is dropped.
func (c *conn) notified(e envelope) {
	note, ok := notifications[e.method]
	if !ok || c.info() == nil {
		c.log.Debug("dropped a notification", "known", ok)
		return
	}
	if err := note(c, readObject("", e.params)); err != nil {
		c.log.Debug("dropped a notification", "method", e.method, "error", err)
	}
}

// question is a request to the client that is on its way.
type question struct {
	id   string
	once sync.Once
}

// sent gives the turn to the next.
func (q *question) sent(c *conn) { q.once.Do(func() { <-c.turn }) }

// sendQuestion takes a request to the client from the library. It finds the id that the
// library gave it: only with it can the reader tell answers from lies.
func (c *conn) sendQuestion(line []byte) error {
	q := c.asking.Load()
	rest, ok := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","id":`))
	id, _, found := bytes.Cut(rest, []byte(","))
	n, err := strconv.ParseInt(string(id), 10, 64)
	if !ok || !found || err != nil {
		return errors.New("a request to the client has no id where one is expected")
	}
	q.id = string(id)
	c.mu.Lock()
	c.asked[q.id], c.lastAsked = struct{}{}, n
	c.mu.Unlock()
	c.out.put(line, pushed)
	q.sent(c)
	return nil
}

// takeTurn waits until something can be sent to the client, first come, first served. Who got
// the turn gives it back.
func (c *conn) takeTurn(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.ctx.Done():
		return context.Cause(c.ctx)
	}
	ctx, cancel := join(ctx, c.ctx)
	defer cancel()
	if err := c.out.room(ctx); err != nil {
		<-c.turn
		return err
	}
	return nil
}

// join makes a context that ends with either.
func join(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(a)
	stop := context.AfterFunc(b, func() { cancel(context.Cause(b)) })
	return ctx, func() { stop(); cancel(nil) }
}

// ask asks the client and waits for the answer, or for the end of ctx or the connection.
func (c *conn) ask(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if err := c.takeTurn(ctx); err != nil {
		return nil, err
	}
	q := new(question)
	c.asking.Store(q)
	defer func() {
		q.sent(c) // unless it was
		c.mu.Lock()
		delete(c.asked, q.id)
		c.mu.Unlock()
	}()
	ctx, cancel := join(ctx, c.ctx)
	defer cancel()
	res, err := c.peer.Call(ctx, method, params)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	var value json.RawMessage
	if err := res.UnmarshalResult(&value); err != nil {
		return nil, err
	}
	return value, nil
}

// tell sends a notification, when there is room.
func (c *conn) tell(ctx context.Context, method string, params any) error {
	line, err := notification(method, params)
	if err != nil {
		return err
	}
	if err := c.takeTurn(ctx); err != nil {
		return err
	}
	defer func() { <-c.turn }()
	c.out.put(line, pushed)
	return nil
}

// tellNow sends a notification without waiting for room: that of a question which was sent
// is not wanted any more. There is at most one for each question.
func (c *conn) tellNow(method string, params any) {
	if line, err := notification(method, params); err == nil {
		c.out.put(line, pushed)
	}
}

func notification(method string, params any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		V      string `json:"jsonrpc"`
		Method string `json:"method"`
		Params any    `json:"params"`
	}{jrpc2.Version, method, params})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
