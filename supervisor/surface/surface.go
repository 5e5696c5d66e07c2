// Package surface is what a model sees of code mode, and what stands between its call and the
// cell (SPEC 2):
//
//	d, err := surface.Decide(surface.Run{Global: codeMode, Entries: tools}) // off, no tools, engaged
//	tools := d.Definitions.Render(surface.Anthropic, true)                  // exec and wait
//	err = d.CheckPayload(payload, surface.Anthropic)                        // before each request
//
//	in, err := surface.ParseExec(arguments, d.Limits.Languages)             // of the model's call
//	in, err = in.Mirror()
//	hook(in.Event(callID, surface.Identity(scope)))
//	in, err = in.Reconcile(rewrite)
//
// All of it is pure: values in, values out, no I/O, nothing shared, so everything may be
// called from any goroutine. Equal values give equal bytes, so that prompt caches hold.
// Errors are of type *[Error] and always mean that the run or the call fails: nothing here
// falls back to showing the hidden tools (SPEC 1.3).
//
// It runs nothing, calls no hook and reads no environment; the gateway does.
package surface

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
	"github.com/openclaw/codemode-supervisor/limits"
)

const (
	// MaxGuide is how long the text of exec is before its lists, in characters.
	MaxGuide = 2000

	// MaxIndex is how long the quick index of tools is, in characters.
	MaxIndex = 8000
)

// View is what the texts tell of.
type View struct {
	// Catalog is the run's. Nil is one without tools.
	Catalog *catalog.Catalog
	// Namespaces are those that are visible to the run ([namespace.Registry.Visible]).
	Namespaces []namespace.Visible
	// Limits are the run's.
	Limits limits.Limits
}

// Exec returns the description of the tool exec: what a cell is and has, in fewer than
// [MaxGuide] characters; the plugins' prompts; and the quick index of the catalog
// ([catalog.Catalog.QuickIndex]), in at most [MaxIndex].
func Exec(v View) string {
	var b strings.Builder
	b.WriteString(guide(v))
	for _, n := range v.Namespaces {
		fmt.Fprintf(&b, "\n%s (also namespaces.%s): %s\n", n.GlobalName, n.GlobalName, strings.TrimSpace(n.Description))
		if prompt := strings.TrimSpace(n.Prompt); prompt != "" {
			b.WriteString(prompt + "\n")
		}
	}
	if v.Catalog == nil {
		return b.String()
	}
	for _, u := range unavailable(v.Catalog) {
		b.WriteString(u)
	}
	if index := v.Catalog.QuickIndex(MaxIndex); index != "" {
		b.WriteString("\nTools (name input -> output; under MCP the output is structuredContent):\n" + index)
	}
	return b.String()
}

// Wait returns the description of the tool wait.
func Wait() string {
	return "Go on with a program that exec started and whose result has status \"waiting\": pass its runId, once for each such result. " +
		"It answers as exec does: completed, failed, or waiting again. Do not call it with an id that exec or wait did not give you."
}

// guide is the part of the text that depends on the limits, and on what kinds of tools
// there are.
func guide(v View) string {
	paragraphs := []string{
		"Run a program in a sandbox and get its value. One program can call many tools, with loops, conditions and Promise.all, and return only what matters.",
		"code: " + strings.Join(titles(v.Limits.Languages), " or ") + ", one of: statements with return; statements that end with an expression, whose value is the result; " +
			"one expression; one function, which is called; in a Markdown fence or not. await works anywhere. Each exec starts afresh: nothing is kept.",
		tools(v.Catalog),
		"Output: the value (JSON), and before it what text(value), json(value) and console.log(…) emit, in order.",
		"There are timers, URL, URLSearchParams, TextEncoder, TextDecoder, structuredClone, atob, btoa, crypto.randomUUID and performance.now. " +
			"There is no import, no require, no module, no process, no fetch, no file and no network.",
		budgets(v.Limits),
		"A result with status \"waiting\" goes on with wait(runId). await yield_control(note) gives the turn back before the end.",
	}
	return strings.Join(slices.DeleteFunc(paragraphs, func(p string) bool { return p == "" }), "\n") + "\n"
}

func tools(c *catalog.Catalog) string {
	if c == nil {
		return "No tools can be called in this run."
	}
	var text []string
	if len(c.All()) > 0 {
		text = append(text, `Tools: await tools.<name>(input), one input object. await tools.search("what you need") finds tools, each with callable, the expression that calls it, and its types; `+
			`await tools.describe(id) has the JSON schema; tools.call(id, input) calls by id; ALL_TOOLS lists all; await API.read("tools/<name>.d.ts") has the types of one.`)
	}
	if len(c.MCP()) > 0 {
		text = append(text, `Tools of MCP servers are under MCP only: await MCP.<server>.<tool>({…}) resolves to {content, structuredContent?, isError?}. `+
			`await API.read("mcp/index.d.ts") lists the servers, and await API.read("mcp/<server>.d.ts") has the types: read before you call.`)
	}
	if len(text) == 0 {
		return "No tools can be called in this run."
	}
	return strings.Join(append(text, "A call is a promise: await it. A call that fails throws an Error with message, toolId, code and started."), "\n")
}

func budgets(l limits.Limits) string {
	text := fmt.Sprintf("Budgets: %s for each exec or wait, %s of memory, %s of output with the value, %d tool calls at once (more are queued)",
		seconds(l.Timeout), size(l.MemoryBytes), size(l.OutputBytes), l.PendingToolCalls)
	if l.ToolCalls > 0 {
		text += fmt.Sprintf(", %d in all", l.ToolCalls)
	}
	return text + "."
}

func seconds(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), "0"), ".") + " s"
}

func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// The servers that failed to start are named in the prompt too, within bounds: a model that
// knows does not try them.
const (
	maxUnavailable = 8
	maxReason      = 120
)

func unavailable(c *catalog.Catalog) []string {
	all := c.Unavailable()
	if len(all) == 0 {
		return nil
	}
	lines := []string{"\nMCP servers that are not available now:\n"}
	for _, u := range all[:min(len(all), maxUnavailable)] {
		lines = append(lines, fmt.Sprintf("%q: %s\n", clip(u.Name, 60), clip(u.Reason, maxReason)))
	}
	if more := len(all) - maxUnavailable; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more\n", more))
	}
	return lines
}

// clip shortens text to n characters.
func clip(s string, n int) string {
	runes := []rune(strings.ToValidUTF8(s, "\ufffd"))
	if len(runes) <= n {
		return string(runes)
	}
	return string(runes[:n]) + "…"
}
