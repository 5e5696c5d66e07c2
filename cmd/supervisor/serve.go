package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/openclaw/codemode-supervisor/cmd/supervisor/internal/export"
	"github.com/openclaw/codemode-supervisor/cmd/supervisor/internal/gatewayrpc"
	"github.com/openclaw/codemode-supervisor/supervisor/surface"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const serveLong = `serve runs cells for a gateway in any language, over JSON-RPC 2.0: one message a
line, both ways. docs/serve.md has the protocol, method by method, and --schema
prints it as an OpenRPC document with the JSON Schema of every message.

With --stdio there is one client: it starts this program, writes to its standard
input and reads its standard output. It ends with its input. With --listen there
are many, on a Unix socket that only your user can open.

A session; the client's lines are marked with >, the supervisor's with <:

  > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}
  < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,…}}
  > {"jsonrpc":"2.0","id":2,"method":"run/open","params":{"scope":{"sessionId":"s1"},
      "config":true,"tools":[{"name":"add","source":"client"}]}}
  < {"jsonrpc":"2.0","id":2,"result":{"handle":"h1","engaged":true,…}}
  > {"jsonrpc":"2.0","id":3,"method":"run/exec","params":{"handle":"h1",
      "arguments":{"code":"await tools.add({a: 1, b: 2})"}}}
  < {"jsonrpc":"2.0","id":1,"method":"tool/call","params":{"input":{"a":1,"b":2},…}}
  > {"jsonrpc":"2.0","id":1,"result":{"value":3}}
  < {"jsonrpc":"2.0","id":3,"result":{"status":"completed","value":3,…}}

The end of a connection ends its runs. With --state-dir those that are parked stay,
and whoever opens a handle with the same scope can wait for them.`

const serveExample = `  supervisor serve --stdio
  supervisor serve --listen unix:/run/user/1000/codemode/gateway.sock --state-dir state
  supervisor serve --schema > openrpc.json`

// serveFlags are the options of serve.
type serveFlags struct {
	config   string
	set      []string
	stateDir string
	otlp     string
	metrics  string
	stdio    bool
	listen   string
	schema   bool
}

func (c *cli) serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:     "serve --stdio | --listen unix:PATH",
		Short:   "Run cells for a gateway, over JSON-RPC",
		Long:    serveLong,
		Example: serveExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.serve(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.stdio, "stdio", false, "serve one client, on standard input and output")
	fl.StringVar(&f.listen, "listen", "", "serve many clients, on a socket: unix:PATH")
	fl.BoolVar(&f.schema, "schema", false, "print the protocol as an OpenRPC document, and end")
	fl.StringVar(&f.config, "config", "", "config file, JSON5: {tools: {codeMode: {…}}, supervisor: {…}}")
	fl.StringArrayVar(&f.set, "set", nil, "set one config field, such as timeoutMs=500; repeatable")
	fl.StringVar(&f.stateDir, "state-dir", "", "directory that keeps parked runs; it is made if it is not there")
	fl.StringVar(&f.otlp, "otlp", "", otlpUsage)
	fl.StringVar(&f.metrics, "metrics", "", "have a page for Prometheus at this address: 127.0.0.1:9464, :9464 (loopback too) or unix:PATH")
	return cmd
}

// serve is the command: config, supervisor, clients.
func (c *cli) serve(ctx context.Context, f serveFlags) error {
	if f.schema {
		_, err := c.stdout.Write(gatewayrpc.Schema())
		return err
	}
	path, err := f.socket()
	if err != nil {
		return err
	}
	if os.Getenv(surface.DebugVar) == "1" && c.logLevel == "" {
		c.logLevel = "info" // or nobody would see what was asked for (SPEC 18.2)
	}
	log, err := c.logger()
	if err != nil {
		return err
	}
	config, err := c.loadConfig(f.config, f.set)
	if err != nil {
		return c.refuse(false, err)
	}
	options, err := c.options(config, f.stateDir, log)
	if err != nil {
		return c.refuse(false, err)
	}
	if options.Pool = config.Supervisor.Pool; options.Pool == 0 {
		options.Pool = -1 // none; 0 would be the default
	}
	to, err := c.export(export.Options{OTLP: f.otlp, Metrics: f.metrics}, log)
	if err != nil {
		return err
	}
	if at := to.Address(); at != "" {
		fmt.Fprintln(c.stderr, "supervisor: metrics are at", newPrinter(c.stderr).clean(at))
	}
	options.MeterProvider, options.TracerProvider = to.Meter(), to.Tracer()
	s, err := newSupervisor(options)
	if err != nil {
		return errors.Join(c.refuse(false, err), to.Close())
	}
	defer func() {
		if err := errors.Join(s.Close(), to.Close()); err != nil {
			fmt.Fprintln(c.stderr, "supervisor: warning:", newPrinter(c.stderr).clean(err.Error()))
		}
	}()
	srv := gatewayrpc.New(gatewayrpc.Options{
		Supervisor: s, Config: config, Durable: f.stateDir != "", Version: buildInfo().Version,
		Logger: log, Decisions: os.Getenv(surface.DebugVar) == "1",
	})
	if path != "" {
		return c.serveSocket(ctx, srv, path)
	}
	return c.serveStdio(ctx, srv)
}

// socket gives the path of the socket, or "" for --stdio.
func (f *serveFlags) socket() (string, error) {
	const hint = "a gateway starts \"supervisor serve --stdio\" and talks JSON-RPC to it\n" +
		"\"supervisor serve --listen unix:PATH\" serves many clients on a socket; \"supervisor serve --help\" has a session"
	path, isUnix := strings.CutPrefix(f.listen, "unix:")
	switch {
	case f.stdio && f.listen != "":
		return "", &usageError{errors.New("--stdio and --listen are two ways to be reached; give one"), hint}
	case !f.stdio && f.listen == "":
		return "", &usageError{errors.New("serve needs to know how its clients reach it, and neither --stdio nor --listen is given"), hint}
	case f.listen != "" && (!isUnix || path == ""):
		return "", &usageError{fmt.Errorf("--listen %q is no address; only Unix sockets are served", f.listen), "supervisor serve --listen unix:/path/of/the.sock"}
	}
	return path, nil
}

// serveStdio serves one client. The end of its input is the end of the program.
func (c *cli) serveStdio(ctx context.Context, srv *gatewayrpc.Server) error {
	if file, ok := c.stdin.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintln(c.stderr, "supervisor: reading JSON-RPC from the terminal, one message a line; end it with Ctrl-D (supervisor serve --help has a session)")
	}
	err := srv.Serve(ctx, gatewayrpc.Stdio(c.stdin, c.stdout))
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintln(c.stderr, "supervisor: error:", newPrinter(c.stderr).clean(err.Error()))
	return exitError(exitHost)
}

func (c *cli) serveSocket(ctx context.Context, srv *gatewayrpc.Server, path string) error {
	l, err := gatewayrpc.ListenUnix(path)
	if err != nil {
		return &usageError{err, "name a path in a directory of your own: supervisor serve --listen unix:/path/of/the.sock"}
	}
	fmt.Fprintln(c.stderr, "supervisor: serving on", newPrinter(c.stderr).clean(path))
	err = srv.Listen(ctx, l)
	if err == nil || ctx.Err() != nil {
		return err
	}
	fmt.Fprintln(c.stderr, "supervisor: error:", err)
	return exitError(exitHost)
}
