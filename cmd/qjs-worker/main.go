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
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/channel"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/serve"
	"github.com/openclaw/codemode-supervisor/limits/attack"
	"github.com/openclaw/codemode-supervisor/limits/lockdown"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

func main() { os.Exit(run(os.Args)) }

// run is the worker's life, step by step.
func run(argv []string) int {
	launch, ok := workerproto.ParseLaunch(argv)
	if !ok {
		fmt.Fprintln(os.Stderr, "qjs-worker is started by the supervisor and does nothing by hand.\n"+
			"hint: supervisor run -e '1 + 2'")
		return 2
	}
	plan, err := lockdown.Decode(launch.Plan)
	if err != nil {
		fmt.Fprintln(os.Stderr, "qjs-worker: the plan of its lock-down:", err)
		return 1
	}
	// A thread for each of many processors would be more than its cgroup allows.
	runtime.GOMAXPROCS(min(runtime.NumCPU(), 4))
	lock := lockdown.Begin(plan, workerproto.ChannelFD+1)
	engine := serve.Load(launch.CacheDir, launch.Spare) // in the background, beside the handshake
	// go-plugin's part is this line. Its own server would bring gRPC, protobuf and gob into the
	// process that a model's code runs in, and is told to go before it was of use.
	fmt.Print(launch.Handshake(workerproto.Version))
	socket, err := channel.Open(workerproto.ChannelFD)
	if err != nil {
		fmt.Fprintln(os.Stderr, "qjs-worker: the channel at descriptor 3:", err)
		return 1
	}
	conn := workerproto.NewConn(socket)
	ready := engine.Wait()
	// Stdin ends when the supervisor has said who the root of our user namespace is; not before
	// that can we become it.
	if n, err := io.Copy(io.Discard, os.Stdin); n > 0 || err != nil {
		ready.Fault = fmt.Sprintf("waiting for the end of stdin: %d bytes, %v", n, err)
	}
	// It and the pipe of the handshake line have done their work.
	if err := lockdown.KeepOnly(int(os.Stderr.Fd()), workerproto.ChannelFD); err != nil {
		ready.Fault = fmt.Sprintf("closing what is of no use any more: %v", err)
	}
	if ready.Isolation, err = json.Marshal(lock.Finish()); err != nil {
		ready.Fault = fmt.Sprintf("reporting its isolation: %v", err)
	}
	if err := conn.Write(&ready); err != nil || ready.Fault != "" {
		return 1
	}
	// The first untrusted byte comes after this line.
	if launch.Attack {
		return serveAttack(conn)
	}
	return engine.Serve(conn)
}

// serveAttack makes the one attack that the supervisor names, and says how the kernel answered
// (SPEC 15.3). On most of them the kernel ends the process.
func serveAttack(conn *workerproto.Conn) int {
	command, err := conn.ReadCommand()
	if err != nil {
		return 0
	}
	start, ok := command.(*workerproto.Start)
	if !ok {
		return 1
	}
	var last workerproto.Message
	if outcome, err := attack.Run(string(start.Source)); err != nil {
		last = &workerproto.Failed{Code: "invalid_input", Phase: "input", Error: err.Error()}
	} else {
		last = &workerproto.Done{Value: fmt.Appendf(nil, "%q", outcome)}
	}
	if err := conn.Write(last); err != nil {
		return 1
	}
	_, _ = conn.ReadCommand() // until the supervisor kills us
	return 0
}
