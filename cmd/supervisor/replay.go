package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/spf13/cobra"
)

const replayLong = `replay runs the cell of a trajectory again, and gives its calls the answers that
were recorded. No tool is started. It needs a trajectory with contents:
"run --trajectory FILE --trajectory-content".

A call gets the first answer that is left of the same tool and for an equal input,
and answers settle in the order in which they did. A call that has no answer rejects
with the code not_recorded. At the end stderr says how many answers were used, and
whether the outcome is the recorded one; if it is not, the exit code is 1.

The catalog has the tools that the recording names. What else a cell can see of
tools, such as schemas and their defaults, comes from --tools.`

const replayExample = `  supervisor run --trajectory t.jsonl --trajectory-content --tools tools.json5 cell.ts
  supervisor trajectory replay t.jsonl
  supervisor trajectory replay t.jsonl --tools tools.json5 --json`

// replayFlags are the options of replay.
type replayFlags struct {
	legFlags
	run string
}

func (c *cli) trajectoryReplayCommand() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:     "replay FILE | -",
		Short:   "Run the cell again, with the answers that its tools gave",
		Long:    replayLong,
		Example: replayExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := c.readLog(cmd, args)
			if err != nil {
				return err
			}
			rec, err := f.recording(log)
			if err != nil {
				return err
			}
			return c.replay(cmd.Context(), f, rec)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.run, "run", "", "id of the run, if the file has several")
	fl.StringVar(&f.config, "config", "", "config file, JSON5: {tools: {codeMode: {…}}, supervisor: {…}}")
	fl.StringArrayVar(&f.set, "set", nil, "set one config field, such as timeoutMs=500; repeatable")
	fl.StringArrayVar(&f.tools, "tools", nil, "tool file, JSON5, for what the cell can see of tools; none is started; repeatable")
	fl.BoolVar(&f.json, "json", false, "print one object, {result, report}")
	return cmd
}

// recording finds the run in the file.
func (f *replayFlags) recording(log *trajectory.Log) (*trajectory.Recording, error) {
	id := f.run
	if runs := log.Tree().Runs; id == "" && len(runs) > 1 {
		const most = 20
		var list []string
		for i, r := range runs {
			if i == most {
				list = append(list, fmt.Sprintf("and %d more", len(runs)-most))
				break
			}
			list = append(list, r.RunID)
		}
		return nil, &usageError{fmt.Errorf("the trajectory has %d runs: %s", len(runs), strings.Join(list, ", ")), "supervisor trajectory replay FILE --run RUN_ID"}
	} else if id == "" {
		id = runs[0].RunID
	}
	rec, err := trajectory.NewRecording(log.Events, id)
	if err != nil {
		return nil, &usageError{err, "supervisor run --trajectory FILE --trajectory-content keeps what a replay needs; supervisor trajectory show FILE says what there is"}
	}
	return rec, nil
}

// replay runs the cell, and says what came of it.
func (c *cli) replay(ctx context.Context, f replayFlags, rec *trajectory.Recording) error {
	log, err := c.logger()
	if err != nil {
		return err
	}
	f.approve = "none" // what was decided is in the recording
	leg, err := c.openLeg(f.legFlags, log)
	if err != nil {
		return err
	}
	defer leg.close()
	cat, err := c.replayCatalog(rec, leg.toolbox.catalog, len(f.tools) > 0)
	if err != nil {
		return c.refuse(f.json, err)
	}
	p := newReplayer(rec)
	leg.parked = p.parked
	result := leg.follow(ctx, leg.s.Exec(ctx, supervisor.Program{
		Code: rec.Source, Language: rec.Language, Catalog: cat, Executor: p, ParentCallID: "exec", Output: leg.output(),
		Trajectory: trajectory.New(trajectory.SinkFunc(p.event), trajectory.All(trajectory.KeepNothing)),
	}))
	result.Output = leg.items
	report := p.report(result)
	if f.json {
		err = c.printJSON(struct {
			Result *supervisor.Result `json:"result"`
			Report replayReport       `json:"report"`
		}{result, report})
		if code := exitOf(result); err == nil && code != exitOK {
			err = exitError(code)
		}
	} else {
		err = c.print(false, leg.printer, result)
		report.print(newPrinter(c.stderr))
	}
	if !report.Outcome.Same {
		return exitError(exitCell)
	}
	return err
}

// replayCatalog makes the catalog of a replay: of the definitions of tool files, or of the ids
// that the recording has. What policy denied then stays denied, and nobody is asked for approval.
func (c *cli) replayCatalog(rec *trajectory.Recording, defined *catalog.Catalog, files bool) (*catalog.Catalog, error) {
	warn := func(w catalog.Warning) {
		fmt.Fprintln(c.stderr, "supervisor: warning:", newPrinter(c.stderr).clean(w.String()))
	}
	denied := map[string]bool{}
	for _, id := range rec.Denied {
		denied[id] = true
	}
	var entries []catalog.Entry
	known := map[string]bool{}
	for _, e := range defined.Entries() {
		e.Approval, e.Denied = false, e.Denied || denied[e.ID]
		known[e.ID] = true
		entries = append(entries, e)
	}
	for _, id := range rec.Denied {
		if e, ok := entryOf(id); ok && !known[id] {
			e.Denied, known[id] = true, true
			entries = append(entries, e)
		}
	}
	for _, id := range rec.Tools {
		e, ok := entryOf(id)
		switch {
		case known[id]:
		case files:
			warn(catalog.Warning{Tool: id, Text: "the recording has calls of it, and no --tools file defines it"})
		case !ok:
			warn(catalog.Warning{Tool: id, Text: "left out: the recording has calls of it, and it is no id of a tool"})
		default:
			known[id] = true
			entries = append(entries, e)
		}
	}
	byDefault, most := defined.SearchLimits()
	cat, warnings, err := catalog.Build(entries, catalog.Options{SearchDefault: byDefault, SearchMax: most, Warn: warn})
	for _, w := range warnings {
		warn(w)
	}
	return cat, err
}

// entryOf makes the entry of a tool of which only the id is known.
func entryOf(id string) (catalog.Entry, bool) {
	source, rest, _ := strings.Cut(id, ":")
	owner, name, ok := strings.Cut(rest, ":")
	if !ok || name == "" {
		return catalog.Entry{}, false
	}
	e := catalog.Entry{ID: id, Name: name, Source: catalog.Source(source), SourceName: ownerPlain.Replace(owner)}
	switch op := catalog.Operation(name); op {
	case catalog.ResourcesList, catalog.ResourcesRead, catalog.PromptsList, catalog.PromptsGet:
		if e.Source == catalog.MCP {
			e.Name, e.Operation = "", op
		}
	}
	return e, true
}

// ownerPlain undoes what [catalog.ID] does to an owner's name.
var ownerPlain = strings.NewReplacer("%3A", ":", "%25", "%")

// replayReport says how a replay went.
type replayReport struct {
	RunID   string             `json:"runId"` // of the recorded run
	Answers trajectory.Answers `json:"answers"`
	// Ordered: the answers settled in the order in which they were recorded.
	Ordered bool              `json:"ordered"`
	Outcome trajectory.Checks `json:"outcome"`
}

// report compares the result with the recording.
func (p *replayer) report(result *supervisor.Result) replayReport {
	p.mu.Lock()
	defer p.mu.Unlock()
	content := []byte(result.Value)
	if result.Status != supervisor.Completed {
		content = textJSON(result.Error)
	}
	got := trajectory.NewOutcome(string(result.Status), string(result.Code), content)
	for _, item := range result.Output {
		got.Emitted(item.Type, item.JSON)
	}
	return replayReport{p.recording.RunID, p.player.Answers(), !p.strayed, p.recording.Outcome.Compare(got)}
}

// textJSON is a text as a trajectory has it.
func textJSON(s string) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return nil // a string always encodes
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// print says it in a few lines.
func (r *replayReport) print(p *printer) {
	const most = 10
	line := func(format string, args ...any) {
		fmt.Fprintln(p.w, "supervisor:", p.clean(fmt.Sprintf(format, args...)))
	}
	list := func(what string, notes []trajectory.AnswerNote, all int) {
		for i, n := range notes {
			if i == most {
				line("%s: and %d more", what, all-most)
				return
			}
			line("%s: %s", what, strings.Join(nonEmpty(n.ToolID, n.CallID, n.Reason), ", "))
		}
	}
	a, o := r.Answers, r.Outcome
	line("replay of run %s: %d answers recorded, %d used, %d unused, %d calls not recorded", r.RunID, a.Recorded, a.Used, a.Unused, a.NotRecorded)
	list("not recorded", a.NotRecordedCalls, a.NotRecorded)
	list("unused", a.UnusedCalls, a.Unused)
	if !r.Ordered {
		line("the calls came in another order than they were recorded, so answers settled as the calls came")
	}
	for i, c := range o.Checks {
		if i == most {
			line("and %d more", o.Differs+o.Unknown-most)
			break
		}
		switch c.Verdict {
		case trajectory.Differs:
			line("%s differs: recorded %s, replayed %s", c.Item, orDash(c.Recorded), orDash(c.Replayed))
		default:
			line("%s cannot be compared: the recording does not have it", c.Item)
		}
	}
	switch {
	case !o.Same:
		line("the outcome is another one than was recorded")
	case o.Unknown > 0:
		line("the outcome is the recorded one, as far as that was kept")
	default:
		line("the outcome is the recorded one")
	}
}

func nonEmpty(texts ...string) (some []string) {
	for _, s := range texts {
		if s != "" {
			some = append(some, s)
		}
	}
	return some
}

// errNotRecorded rejects a call that has no answer.
func errNotRecorded(toolID, why string) error {
	return &supervisor.ToolError{Message: fmt.Sprintf("the call of tool %q cannot be replayed: %s; the tool was not started", toolID, why), Code: "not_recorded", Started: "no"}
}
