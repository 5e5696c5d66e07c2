package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// MaxRequests is how often a turn may ask the model.
const MaxRequests = 32

var (
	errEnded = errors.New("the gateway is closed")
	errAbort = errors.New("the session was aborted")
	goodID   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`) // it is part of a file's name
)

// SessionOptions are what a session's client brings.
type SessionOptions struct {
	// Tools are the client's: it answers their calls, which come from Session.Calls.
	Tools []catalog.Entry
	// Sender and Channel say who talks to the agent, and where.
	Sender, Channel string
}

// Session is a conversation with an agent.
type Session struct {
	g          *Gateway
	agent      Agent
	scope      supervisor.Scope
	tools      []Tool // with those of the client
	calls      chan *ClientCall
	transcript transcript
	recorder   *trajectory.Recorder

	ctx  context.Context // ends with the gateway
	end  context.CancelFunc
	turn chan context.CancelCauseFunc // holds that of the turn that is under way
}

// ClientCall is a call of a client's tool.
type ClientCall struct {
	Tool   string
	Input  json.RawMessage
	call   *supervisor.Call
	answer chan clientAnswer
}

// Park says that the answer will take long, for a client may be a person: the run need not
// hold the model up.
func (c *ClientCall) Park(reason string) { c.call.Park(reason) }

type clientAnswer struct {
	value json.RawMessage
	err   error
}

// Answer ends the call. Later answers are dropped.
func (c *ClientCall) Answer(value json.RawMessage, err error) {
	select {
	case c.answer <- clientAnswer{value, err}:
	default:
	}
}

// Session gives a session of an agent, which it makes at the first call; options of later calls
// are not looked at. Its transcript may be there already.
func (g *Gateway) Session(agentID, sessionID string, o SessionOptions) (*Session, error) {
	agent, ok := g.cfg.Agents[agentID]
	if !ok {
		return nil, fmt.Errorf("there is no agent %q", agentID)
	}
	if !goodID.MatchString(agentID) || !goodID.MatchString(sessionID) {
		return nil, fmt.Errorf("agent %q and session %q must have ids of letters, digits, _ and -", agentID, sessionID)
	}
	key := "agent:" + agentID + ":" + sessionID
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.sessions == nil {
		return nil, errEnded
	}
	if s := g.sessions[key]; s != nil {
		return s, nil
	}
	s := &Session{
		g: g, agent: agent, tools: slices.Clone(g.tools), calls: make(chan *ClientCall, 16), turn: make(chan context.CancelCauseFunc, 1),
		// Without AgentRunID: a later turn may wait for a run of this one.
		scope:      supervisor.Scope{AgentID: agentID, SessionID: sessionID, SessionKey: key, Sender: o.Sender, Channel: o.Channel},
		transcript: transcript{file: filepath.Join(g.cfg.TranscriptDir, agentID+"."+sessionID+".jsonl")},
	}
	for _, e := range o.Tools {
		e.Source = catalog.Client
		s.tools = append(s.tools, Tool{Entry: e, Call: s.askClient})
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	// The transcript has the contents, for it is the conversation; the export has what its policy lets through.
	var export []trajectory.Sink
	if g.cfg.Trajectory != nil {
		export = append(export, trajectory.Redact(g.cfg.Trajectory, g.cfg.TrajectoryPolicy))
	}
	s.recorder = trajectory.New(trajectory.SinkFunc(s.transcript.nested), trajectory.All(trajectory.KeepContent), export...)
	g.sessions[key] = s
	return s, nil
}

// Calls are the calls of the client's tools, which the client must answer.
func (s *Session) Calls() <-chan *ClientCall { return s.calls }

func (s *Session) askClient(ctx context.Context, c *supervisor.Call) (json.RawMessage, error) {
	call := &ClientCall{Tool: c.Tool.Name, Input: c.Input, call: c, answer: make(chan clientAnswer, 1)}
	select {
	case s.calls <- call:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case a := <-call.answer:
		return a.value, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Turn hands the agent what the user says, and gives its answer.
func (s *Session) Turn(ctx context.Context, says string) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(errEnded) })()
	select {
	case s.turn <- cancel: // the turns of a session wait for each other
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	defer func() { <-s.turn }()

	run, err := s.decide()
	if err != nil {
		return "", err
	}
	if err := s.transcript.add(said("user", says)); err != nil {
		return "", err
	}
	for range MaxRequests {
		history, err := s.transcript.read()
		if err != nil {
			return "", err
		}
		reply, err := s.g.ask(ctx, s.agent.Model, run, history)
		if err != nil {
			return "", err
		}
		if reply.Text != "" || len(reply.Calls) == 0 {
			if err := s.transcript.add(said(trajectory.RoleAssistant, reply.Text)); err != nil {
				return "", err
			}
		}
		if len(reply.Calls) == 0 {
			return reply.Text, nil
		}
		if err := s.transcript.add(reply.messages()...); err != nil {
			return "", err
		}
		for _, call := range reply.Calls {
			// Each call has a result in the transcript, whatever happens: providers refuse one without.
			text, failed := run.call(ctx, call)
			if err := s.transcript.add(answered(call, text, failed)); err != nil {
				return "", err
			}
		}
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
	}
	return "", fmt.Errorf("the model has not come to an answer in %d requests", MaxRequests)
}

// Abort ends the turn that is under way and all runs of the session, and returns when the runs
// are over.
func (s *Session) Abort(ctx context.Context) error {
	select {
	case cancel := <-s.turn:
		cancel(errAbort)
		s.turn <- cancel
	default:
	}
	return s.AbortRuns(ctx)
}

// AbortRuns ends the session's runs, at work or parked, and leaves the turn alone.
func (s *Session) AbortRuns(ctx context.Context) error {
	_, err := s.g.supervisor.AbortScope(ctx, s.scope)
	return err
}

// Transcript reads the session's transcript, nested calls included.
func (s *Session) Transcript() ([]trajectory.Message, error) { return s.transcript.read() }
