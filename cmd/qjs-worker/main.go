// The Go runtime must not make system calls of its own accord once the worker is
// locked up: no rereading of CPU limits, no names for mappings.
//
//go:debug updatemaxprocs=0
//go:debug containermaxprocs=0
//go:debug decoratemappings=0

// Command qjs-worker is the supervisor's child: it runs one cell in QuickJS and dies.
//
// It has no options for people. The supervisor starts it through go-plugin, with a
// socket pair at descriptor 3 and nothing else of its own (SPEC 16.1, 17).
package main

import (
	"fmt"
	"io"
	"log"
	"os"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/channel"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/sandbox"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/serve"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

func main() { os.Exit(run(os.Args[1:])) }

// run is the worker's life, step by step.
func run(args []string) int {
	if os.Getenv(workerproto.CookieKey) != workerproto.CookieValue {
		fmt.Fprintln(os.Stderr, "qjs-worker is started by the supervisor and does nothing by hand.\n"+
			"hint: supervisor run -e '1 + 2'")
		return 2
	}
	if err := sandbox.CloseInherited(workerproto.ChannelFD + 1); err != nil {
		fmt.Fprintln(os.Stderr, "qjs-worker:", err)
		return 1
	}
	engine := serve.Load(cacheDir(args)) // in the background, beside the handshake
	handshake()
	socket, err := channel.Open(workerproto.ChannelFD)
	if err != nil {
		fmt.Fprintln(os.Stderr, "qjs-worker: the channel at descriptor 3:", err)
		return 1
	}
	conn := workerproto.NewConn(socket)
	os.Clearenv()
	ready := engine.Wait()
	if err := sandbox.Lock(); err != nil {
		ready.Fault = fmt.Sprintf("locking the worker up: %v", err)
	}
	if err := conn.Write(&ready); err != nil || ready.Fault != "" {
		return 1
	}
	// The first untrusted byte comes after this line.
	return engine.Serve(conn)
}

func cacheDir(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return ""
}

// handshake lets go-plugin tell the supervisor that we are who it started, and returns
// when the supervisor has closed the connection. Nothing is served on it.
func handshake() {
	// It replaces both with pipes that nobody reads once it has returned, and logs its
	// own end.
	defer func(out, err *os.File) { os.Stdout, os.Stderr = out, err }(os.Stdout, os.Stderr)
	log.SetOutput(io.Discard)
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: plugin.HandshakeConfig{
			ProtocolVersion:  workerproto.Version,
			MagicCookieKey:   workerproto.CookieKey,
			MagicCookieValue: workerproto.CookieValue,
		},
		Plugins: plugin.PluginSet{},
		Logger:  hclog.NewNullLogger(),
	})
}
