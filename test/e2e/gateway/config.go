package gateway

import (
	"context"
	"encoding/json"
	"io"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// Config is what a gateway is made of.
type Config struct {
	// CodeMode is the value of tools.codeMode, JSON5: true, false, an object. Empty is none.
	CodeMode json.RawMessage
	// Agents are the agents, by id.
	Agents map[string]Agent
	// Tools are those of the gateway itself and of its plugins.
	Tools []Tool
	// MCP are the servers that New starts. One that fails to is told to cells as unavailable.
	MCP []MCPServer
	// Namespaces are the plugins' (SPEC 8). Nil means none.
	Namespaces *namespace.Registry
	// BeforeTool is the before-tool hook, for every call: the model's exec and wait, calls
	// that cells make, and calls that the model makes directly. Nil lets everything through.
	BeforeTool func(context.Context, surface.HookEvent) (surface.Verdict, error)
	// PatchRequest may change a request's body before it is checked and sent: a plugin
	// that knows a provider's newest field. Nil changes nothing.
	PatchRequest func([]byte) []byte
	// Updates, if not nil, gets what tools tell of their progress, with the session's id.
	Updates func(sessionID string, u supervisor.Update)
	// Supervisor are the options of the supervisor. Its logger is the gateway's.
	Supervisor supervisor.Options
	// TranscriptDir holds the transcripts, one file a session. It must exist.
	TranscriptDir string
	// Trajectory, if not nil, gets the events of all runs, as TrajectoryPolicy lets them through.
	Trajectory       trajectory.Sink
	TrajectoryPolicy trajectory.Policy
	// Log gets the log, a line a record. Nil drops it.
	Log io.Writer
	// Getenv gives the debug variables (debug.go). Nil means that none is set.
	Getenv func(string) string
}

// Agent is one agent: a model, and what it may do.
type Agent struct {
	Model Model
	// CodeMode is the agent's own tools.codeMode, laid over the gateway's.
	CodeMode json.RawMessage
	// Policy says which tools the agent has. NoTools says that it has none on purpose, as
	// disableTools and an empty allow list do.
	Policy  catalog.Policy
	NoTools bool
}

// Model says where an agent's model is.
type Model struct {
	API    API
	URL    string // of the provider, without the API's path
	Key    string
	Name   string
	Stream bool
}

// API is how a provider wants to be talked to.
type API string

// The APIs.
const (
	OpenAI    API = "openai"    // POST /v1/chat/completions
	Anthropic API = "anthropic" // POST /v1/messages
)

// Tool is a tool and the function that runs it. Call gets a call that policy, hook and approval
// have let through. A client's tool has none: the client answers.
type Tool struct {
	catalog.Entry
	Call func(context.Context, *supervisor.Call) (json.RawMessage, error)
}

// MCPServer is how an MCP server is started, over stdio.
type MCPServer struct {
	Name    string
	Command []string
	Env     []string // the whole environment
}
