package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/cmd/supervisor/internal/toolfile"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"golang.org/x/term"
)

// toolbox is the tools of the --tools files: the catalog and its executor.
type toolbox struct {
	catalog *catalog.Catalog
	tools   map[string]*toolfile.Tool // by id
	denied  map[string]bool           // ids of those that are left out
	approve approver
}

// loadTools reads the tool files. Denied tools are left out, so that nobody can tell
// them from tools that do not exist (SPEC 6.5).
func (c *cli) loadTools(files []string, l limits.Limits, approve string) (*toolbox, error) {
	box := &toolbox{tools: map[string]*toolfile.Tool{}, denied: map[string]bool{}, approve: approver{mode: approve, out: c.stderr}}
	switch approve {
	case "":
		box.approve.mode = "none"
		if file, ok := c.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			box.approve.mode = "ask"
		}
	case "ask", "all", "none":
	default:
		return nil, fmt.Errorf("--approve %q is none of ask, all, none", approve)
	}
	var entries []catalog.Entry
	for _, file := range files {
		tools, err := toolfile.Load(file)
		if err != nil {
			return nil, err
		}
		for _, t := range tools {
			if t.Policy == toolfile.Deny {
				box.denied[t.Entry.ID] = true
				t.Entry.Denied = true // the catalog tells attempts on it from other wrong names
				entries = append(entries, t.Entry)
				continue
			}
			t.Entry.Approval = t.Policy == toolfile.Approve
			entries = append(entries, t.Entry)
			if box.tools[t.Entry.ID] == nil { // the catalog refuses a second one, too
				box.tools[t.Entry.ID] = t
			}
		}
	}
	warn := func(w catalog.Warning) { fmt.Fprintln(c.stderr, "supervisor: warning:", w) }
	cat, warnings, err := catalog.Build(entries, catalog.Options{SearchDefault: l.SearchDefault, SearchMax: l.SearchMax, Warn: warn})
	for _, w := range warnings {
		warn(w)
	}
	box.catalog = cat
	return box, err
}

// missing gives a tool that an open call needs and that no file has, or "".
func (b *toolbox) missing(calls []supervisor.PendingCall) string {
	for _, c := range calls {
		if b.tools[c.ToolID] == nil && !b.denied[c.ToolID] {
			return c.ToolID
		}
	}
	return ""
}

// Call runs a tool.
func (b *toolbox) Call(ctx context.Context, call *supervisor.Call) (json.RawMessage, error) {
	return b.Start(call)(ctx)
}

// Start begins a call: a sequence's step is taken in the order of the calls.
func (b *toolbox) Start(call *supervisor.Call) func(context.Context) (json.RawMessage, error) {
	tool := b.tools[call.Tool.ID]
	if tool == nil { // of a run that was parked when other files were given
		problem := fmt.Sprintf("tool %q is in no tool file", call.Tool.ID)
		if b.denied[call.Tool.ID] {
			problem = fmt.Sprintf("there is no tool %q", call.Tool.ID)
		}
		return func(context.Context) (json.RawMessage, error) {
			return nil, &supervisor.ToolError{Message: problem, Code: "unknown_tool", Started: "no"}
		}
	}
	if tool.Policy == toolfile.Approve && !call.Tool.Approval { // of a run that was parked when the file said something else
		return func(context.Context) (json.RawMessage, error) {
			return nil, &supervisor.ToolError{Message: fmt.Sprintf("tool %q needs approval, and did not when the run began; the tool was not started", call.Tool.ID), Code: "not_approved", Started: "no"}
		}
	}
	begun := tool.Begin()
	return func(ctx context.Context) (json.RawMessage, error) { return finish(begun(ctx, call.Input, call.Park)) }
}

// hooks ask for approvals.
func (b *toolbox) hooks() supervisor.Hooks { return supervisor.Hooks{Approve: b.approve.allow} }

// finish gives a tool's failure the form that the supervisor knows.
func finish(value json.RawMessage, err error) (json.RawMessage, error) {
	var te *toolfile.ToolError
	if errors.As(err, &te) {
		started := "yes"
		if te.Code == toolfile.CodeStart {
			started = "no"
		}
		err = &supervisor.ToolError{Message: te.Message, Code: te.Code, Started: started}
	}
	return value, err
}

// approval is why a call waits for a person.
const approval = "approval"

// approver asks a person whether a tool may be called.
type approver struct {
	mode string // "ask", "all" or "none"
	out  io.Writer
	// later is that nobody is asked here, and that the run waits for somebody who is, in
	// another process: "supervisor wait --approve all".
	later    bool
	progress *progress
	mu       sync.Mutex // one question at a time
}

// allow returns nil if the call may be made. While a person thinks, the run is parked.
func (a *approver) allow(ctx context.Context, call *supervisor.Approval) error {
	switch a.mode {
	case "all":
		return nil
	case "none":
		return errors.New("nobody is asked; run with --approve ask or --approve all")
	}
	if a.later {
		call.Hold(approval)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return errors.New("there is no terminal to ask on; run with --approve all to allow such tools, or with --state-dir to decide later")
	}
	defer tty.Close()
	call.Hold(approval)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.progress.pause()
	defer a.progress.goOn()
	p := &printer{a.out, true}
	fmt.Fprintf(a.out, "Allow %s with %s? [y/N] ", p.clean(call.Event.ToolID), p.clean(shorten(string(call.Event.Params), 500)))
	answer := make(chan string, 1)
	go func() { // ends with an answer, or with the process: a terminal's read cannot be interrupted
		line, _ := bufio.NewReader(tty).ReadString('\n')
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case line := <-answer:
		if line == "y" || line == "yes" {
			return nil
		}
		return errors.New("it was refused")
	case <-ctx.Done():
		fmt.Fprintln(a.out, "(too late)")
		return context.Cause(ctx)
	}
}

// terminal tells whether there is one to ask on.
func terminal() bool {
	tty, err := os.Open("/dev/tty")
	if err == nil {
		tty.Close()
	}
	return err == nil
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
