package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor"
)

// Gateway is a running gateway. It is safe for concurrent use.
type Gateway struct {
	cfg         Config
	log         *slog.Logger
	debug       debug
	supervisor  *supervisor.Supervisor
	http        *http.Client
	mcp         []*mcp.ClientSession
	tools       []Tool // the config's, then those of MCP servers
	unavailable []catalog.Unavailable
	approvals   approvals

	mu       sync.Mutex
	sessions map[string]*Session // guarded by mu; by key, nil once the gateway is closed
}

// New starts a gateway with its MCP servers. ctx bounds the start. The caller must Close it.
func New(ctx context.Context, cfg Config) (*Gateway, error) {
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	if cfg.Getenv == nil {
		cfg.Getenv = func(string) string { return "" }
	}
	g := &Gateway{
		cfg: cfg, log: slog.New(slog.NewTextHandler(cfg.Log, nil)), tools: slices.Clone(cfg.Tools), sessions: map[string]*Session{},
		// A redirect would take the key to another host.
		http: &http.Client{Transport: &http.Transport{}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	g.debug = newDebug(g.log, cfg)
	cfg.Supervisor.Logger = g.log
	var err error
	if g.supervisor, err = supervisor.New(cfg.Supervisor); err != nil {
		return nil, fmt.Errorf("starting the gateway's supervisor: %w", err)
	}
	for _, server := range cfg.MCP {
		if err := g.startMCP(ctx, server); err != nil {
			g.log.Warn("an MCP server did not start", "server", server.Name, "error", err)
			g.unavailable = append(g.unavailable, catalog.Unavailable{Name: server.Name, Reason: err.Error()})
		}
	}
	return g, nil
}

// Close ends the runs, the MCP servers and the connections, and returns when nothing is left.
// Turns that are under way fail.
func (g *Gateway) Close() error {
	g.mu.Lock()
	sessions := g.sessions
	g.sessions = nil
	g.mu.Unlock()
	for _, s := range sessions {
		s.end()
	}
	errs := []error{g.supervisor.Close()}
	for _, server := range g.mcp {
		errs = append(errs, server.Close())
	}
	g.http.CloseIdleConnections()
	return errors.Join(errs...)
}

// Runs lists the runs of all sessions: for operators.
func (g *Gateway) Runs() ([]supervisor.RunInfo, error) { return g.supervisor.Runs() }

// startMCP starts a server and takes its tools.
func (g *Gateway) startMCP(ctx context.Context, server MCPServer) error {
	cmd := exec.Command(server.Command[0], server.Command[1:]...)
	cmd.Env = append([]string{}, server.Env...) // nil would be ours
	client := mcp.NewClient(&mcp.Implementation{Name: "test-gateway", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd, TerminateDuration: 2 * time.Second}, nil)
	if err != nil {
		return err
	}
	g.mcp = append(g.mcp, session)
	var tools []Tool
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		t := Tool{Entry: catalog.Entry{Name: tool.Name, Label: tool.Title, Description: tool.Description, Source: catalog.MCP, SourceName: server.Name}}
		if t.Parameters, err = schema(tool.InputSchema); err != nil {
			return err
		}
		if t.OutputSchema, err = schema(tool.OutputSchema); err != nil {
			return err
		}
		if a := tool.Annotations; a != nil {
			t.Annotations = catalog.Annotations{ReadOnly: a.ReadOnlyHint, Idempotent: a.IdempotentHint}
		}
		t.Call = func(ctx context.Context, c *supervisor.Call) (json.RawMessage, error) {
			res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: c.Tool.Name, Arguments: c.Input})
			if err != nil {
				return nil, err
			}
			return json.Marshal(res)
		}
		tools = append(tools, t)
	}
	g.tools = append(g.tools, tools...)
	return nil
}

func schema(v any) (json.RawMessage, error) {
	if v == nil {
		return nil, nil
	}
	return json.Marshal(v)
}
