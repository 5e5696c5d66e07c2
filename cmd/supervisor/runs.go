package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/spf13/cobra"
)

const runsLong = `runs shows and ends the runs of a state directory: those that are parked, and for a
while those that are over. It works beside a program that uses the directory.`

// runsFlags are the options of runs and its subcommands.
type runsFlags struct {
	stateDir string
	config   string
	json     bool
}

func (c *cli) runsCommand() *cobra.Command {
	var f runsFlags
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List, show and end parked runs",
		Long:  runsLong,
		Example: `  supervisor runs list --state-dir state
  supervisor runs show 6f0c… --state-dir state
  supervisor runs kill 6f0c… --state-dir state`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	fl := cmd.PersistentFlags()
	fl.StringVar(&f.stateDir, "state-dir", "", "directory that keeps parked runs")
	fl.StringVar(&f.config, "config", "", "config file, JSON5; of it supervisor.stateKeyFile counts")
	fl.BoolVar(&f.json, "json", false, "print JSON, one line")
	open := func(do func(ctx context.Context, s *supervisor.Supervisor, id string) error, ids int) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			if len(args) != ids {
				return &usageError{fmt.Errorf("%s takes %d run ids, got %d", cmd.CommandPath(), ids, len(args)), `"supervisor runs list --state-dir DIR" shows the runs that there are`}
			}
			if err := needStateDir(f.stateDir); err != nil {
				return err
			}
			log, err := c.logger()
			if err != nil {
				return err
			}
			config, err := c.loadConfig(f.config, nil)
			if err != nil {
				return c.refuse(false, err)
			}
			s, err := c.open(config, f.stateDir, log, nil)
			if err != nil {
				return err
			}
			defer s.Close()
			return do(cmd.Context(), s, append(args, "")[0])
		}
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the runs, the oldest first", Args: cobra.ArbitraryArgs,
			RunE: open(func(_ context.Context, s *supervisor.Supervisor, _ string) error { return c.listRuns(s, f.json) }, 0),
		},
		&cobra.Command{
			Use: "show RUN_ID", Short: "Show what is known of a run", Args: cobra.ArbitraryArgs,
			RunE: open(func(_ context.Context, s *supervisor.Supervisor, id string) error { return c.showRun(s, id, f.json) }, 1),
		},
		&cobra.Command{
			Use: "kill RUN_ID", Short: "End a parked run and drop its snapshot", Args: cobra.ArbitraryArgs,
			RunE: open(func(ctx context.Context, s *supervisor.Supervisor, id string) error {
				return c.killRun(ctx, s, id, f.json)
			}, 1),
		},
	)
	return cmd
}

func (c *cli) listRuns(s *supervisor.Supervisor, asJSON bool) error {
	runs, err := s.Runs()
	if err != nil {
		return err
	}
	if asJSON {
		return c.printJSON(map[string]any{"runs": runs})
	}
	if len(runs) == 0 {
		fmt.Fprintln(c.stderr, "no runs")
		return nil
	}
	clean := newPrinter(c.stdout).clean
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tSTATE\tAGE\tENDS IN\tBYTES\tAGENT\tSESSION\tPROCESS")
	for _, r := range runs {
		state, holder := string(r.State), "-"
		if r.Broken {
			state = "broken"
		}
		if r.Holder != 0 {
			holder = strconv.Itoa(r.Holder)
		}
		ends := "-"
		if !r.Expires.IsZero() {
			ends = span(time.Until(r.Expires))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", r.ID, state, span(time.Since(r.Created)), ends, r.Bytes,
			clean(orDash(r.Scope.AgentID)), clean(orDash(r.Scope.SessionID)), holder)
	}
	return w.Flush()
}

func (c *cli) showRun(s *supervisor.Supervisor, id string, asJSON bool) error {
	d, err := s.Inspect(id)
	if err != nil {
		return noSuchRun(id, err)
	}
	if asJSON {
		return c.printJSON(d)
	}
	clean := newPrinter(c.stdout).clean
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(w, "%s\t%s\n", name, clean(value)) }
	row("run", d.ID)
	row("state", string(d.State))
	row("agent", orDash(d.Scope.AgentID))
	row("session", orDash(d.Scope.SessionID))
	row("created", d.Created.Local().Format(time.DateTime))
	row("parked", d.Parked.Local().Format(time.DateTime))
	row("ends", d.Expires.Local().Format(time.DateTime))
	row("bytes", strconv.FormatInt(d.Bytes, 10))
	if d.Holder != 0 {
		row("process", strconv.Itoa(d.Holder))
	}
	if d.Reason != "" {
		row("waits for", whatFor(&supervisor.Result{Reason: d.Reason, Note: d.Note, PendingToolCalls: d.PendingToolCalls}))
	}
	for _, call := range d.PendingToolCalls {
		row("call "+call.ID, fmt.Sprintf("%s %s", call.ToolID, call.State))
	}
	if d.Result != nil {
		row("result", string(d.Result.JSON()))
	}
	return w.Flush()
}

func (c *cli) killRun(ctx context.Context, s *supervisor.Supervisor, id string, asJSON bool) error {
	d, err := s.Inspect(id)
	if err == nil {
		err = s.Abort(ctx, id, scopeOf(d))
	}
	if err != nil {
		return noSuchRun(id, err)
	}
	if asJSON {
		return c.printJSON(map[string]any{"runId": id, "killed": true})
	}
	fmt.Fprintf(c.stdout, "%s is ended\n", id)
	return nil
}

func noSuchRun(id string, err error) error {
	if errors.Is(err, supervisor.ErrNoRun) {
		return &usageError{fmt.Errorf("no run %.100q is kept there", id), `"supervisor runs list --state-dir DIR" shows the runs that there are`}
	}
	return err
}

func scopeOf(r *supervisor.RunDetail) supervisor.Scope {
	return supervisor.Scope{AgentID: r.Scope.AgentID, SessionID: r.Scope.SessionID, SessionKey: r.Scope.SessionKey, AgentRunID: r.Scope.AgentRunID}
}

func span(d time.Duration) string { return d.Round(time.Second).String() }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
