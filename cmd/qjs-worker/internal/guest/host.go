package guest

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"
)

// Host is what a guest reports to. Its methods are called on the VM's goroutine, inside of
// guest code: they must not call the [Guest] or its VM.
type Host interface {
	// Output is one item of text, json or console, in order (SPEC 9.1).
	Output(item Item)
	// Call is a nested call that the guest made. Its result is given to [Guest.Settle],
	// later, under the same id.
	Call(c Call)
	// Yield is a yield_control. What it waits for is [Guest.Resume]. note is what the
	// guest said with it, "" if it said nothing, and of any length.
	Yield(note string)
	// Missed is a member of tools or MCP that the guest read and that does not exist:
	// tools.<name>, MCP.<server>, MCP.<server>.<name>. It may come often.
	Missed(name string)
	// Now is monotonic time in milliseconds since the run began. It goes on over
	// suspensions: timers that were set before one are due after it.
	Now() float64
}

// Item is one piece of output.
type Item struct {
	Kind string // "text" or "json"
	JSON []byte // the text as a JSON string, or the value; always valid UTF-8 JSON
}

// Call is one nested call.
type Call struct {
	ID     uint64 // from 1, unique in the run
	Method string // as in workerproto.ToolCall, and so are Tool and Input
	Tool   string
	Input  []byte // JSON, {} if there was none
}

// CallError is why a nested call failed. In the guest it becomes a plain Error (SPEC 6.8).
type CallError struct {
	Message string `json:"message"`
	ToolID  string `json:"toolId"` // "" for what the guest gave
	Code    string `json:"code"`
	Started any    `json:"started"` // true, false or "unknown"
}

// hostPrefix begins the names under which images know the host functions.
const hostPrefix = "codemode:"

// hostFunctions are what the prelude can call; it keeps them from the guest. They take
// and return strings and numbers only. Renaming one breaks images that are stored.
var hostFunctions = map[string]func(g *Guest, args []engine.Value) (engine.Value, error){
	"output": (*Guest).hostOutput,
	"call":   (*Guest).hostCall,
	"now":    (*Guest).hostNow,
	"random": (*Guest).hostRandom,
	"failed": (*Guest).hostFailed,
	"yield":  (*Guest).hostYield,

	"find":    (*Guest).hostFind,
	"names":   (*Guest).hostNames,
	"list":    (*Guest).hostList,
	"files":   (*Guest).hostFiles,
	"file":    (*Guest).hostFile,
	"missed":  (*Guest).hostMissed,
	"nearest": (*Guest).hostNearest,
}

func (g *Guest) register() {
	for name, f := range hostFunctions {
		g.vm.Register(hostPrefix+name, func(_ *engine.VM, args []engine.Value) (engine.Value, error) {
			return f(g, args)
		})
	}
}

func (g *Guest) hostOutput(args []engine.Value) (engine.Value, error) {
	s, err := g.stringsOf(args, 2)
	if err != nil {
		return 0, err
	}
	g.host.Output(Item{Kind: s[0], JSON: []byte(s[1])})
	return 0, nil
}

func (g *Guest) hostCall(args []engine.Value) (engine.Value, error) {
	if len(args) != 4 {
		return 0, fmt.Errorf("call takes 4 arguments, got %d", len(args))
	}
	s, err := g.stringsOf(args[1:], 3)
	if err != nil {
		return 0, err
	}
	g.host.Call(Call{ID: uint64(g.vm.Float(args[0])), Method: s[0], Tool: s[1], Input: []byte(s[2])})
	return 0, nil
}

func (g *Guest) hostYield(args []engine.Value) (engine.Value, error) {
	s, err := g.stringsOf(args, 1)
	if err != nil {
		return 0, err
	}
	g.host.Yield(s[0])
	return 0, nil
}

func (g *Guest) hostNow([]engine.Value) (engine.Value, error) {
	return g.vm.NewNumber(g.host.Now())
}

// hostFailed hears that the run failed, so that not every drain has to ask.
func (g *Guest) hostFailed([]engine.Value) (engine.Value, error) {
	g.failing = true
	return 0, nil
}

// hostRandom gives n random bytes as the characters U+0000 to U+00FF.
func (g *Guest) hostRandom(args []engine.Value) (engine.Value, error) {
	n := 0.0
	if len(args) == 1 {
		n = g.vm.Float(args[0])
	}
	if !(n >= 0 && n <= 65536) { // what prelude/crypto.js lets through
		return 0, fmt.Errorf("%v random bytes at once", n)
	}
	b := make([]byte, int(n))
	rand.Read(b) // never fails (crypto/rand, Go 1.24)
	var s strings.Builder
	for _, c := range b {
		s.WriteRune(rune(c))
	}
	return g.vm.NewString(s.String())
}

// stringsOf reads n arguments that the prelude passed as strings.
func (g *Guest) stringsOf(args []engine.Value, n int) ([]string, error) {
	if len(args) != n {
		return nil, fmt.Errorf("want %d arguments, got %d", n, len(args))
	}
	out := make([]string, n)
	for i, a := range args {
		var err error
		if out[i], err = g.vm.String(a); err != nil {
			return nil, err
		}
	}
	return out, nil
}
