package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/spf13/cobra"
)

const waitLong = `wait goes on with a parked run, in this process, and prints what it emits from
here on, then its value.

The run keeps the limits and the tools' names that it started with. Calls that waited
for approval when the other program ended are asked again, those of tools that are
read-only or idempotent are made again, and all others that were at work reject in the
cell: nobody knows whether they took effect.`

const waitExample = `  supervisor wait 6f0c… --state-dir state --tools tools.json5
  supervisor wait 6f0c… --state-dir state --tools tools.json5 --approve all --json`

func (c *cli) waitCommand() *cobra.Command {
	var f legFlags
	var record recordFlags
	cmd := &cobra.Command{
		Use:     "wait RUN_ID --state-dir DIR",
		Short:   "Go on with a parked run",
		Long:    waitLong,
		Example: waitExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return &usageError{fmt.Errorf("wait takes one run id, got %d arguments", len(args)), `"supervisor runs list --state-dir DIR" shows the runs that are parked`}
			}
			return c.waitRun(cmd.Context(), f, record, args[0])
		},
	}
	f.register(cmd)
	record.register(cmd, "append the events from here on to this file, which may be that of the run")
	cmd.Flags().Lookup("state-dir").Usage = "directory that keeps the parked run"
	return cmd
}

func (c *cli) waitRun(ctx context.Context, f legFlags, record recordFlags, id string) error {
	log, err := c.logger()
	if err != nil {
		return err
	}
	if err := needStateDir(f.stateDir); err != nil {
		return c.refuse(f.json, err)
	}
	leg, err := c.openLeg(f, log)
	if err != nil {
		return err
	}
	recorded := func() {}
	defer func() { recorded() }()
	defer leg.close()
	// Who can open the state directory is the operator, and may wait for everybody's runs.
	d, err := leg.s.Inspect(id)
	switch {
	case errors.Is(err, supervisor.ErrNoRun): // Wait says so
	case err != nil:
		return err
	default:
		leg.scope = scopeOf(d)
		// To go on without a tool that the cell waits for would only fail it.
		if tool := leg.toolbox.missing(d.PendingToolCalls); tool != "" {
			return c.refuse(f.json, &usageError{fmt.Errorf("the run waits for tool %q, which is in no --tools file; it was not touched", tool), "give the --tools files that the run was started with"})
		}
	}
	request := supervisor.WaitRequest{RunID: id, Scope: leg.scope, Executor: leg.toolbox, Hooks: leg.toolbox.hooks(), Output: leg.output()}
	if request.Trajectory, recorded, err = record.recorder(os.O_APPEND, c.stderr, append(slices.Clone(f.tools), f.config)...); err != nil {
		return err
	}
	result := leg.s.Wait(ctx, request)
	if ctx.Err() != nil && result.Code == supervisor.Aborted {
		// A signal ends this program and not the run.
		if d, err := leg.s.Inspect(id); err == nil && !d.State.Terminal() {
			result = &supervisor.Result{
				Status: supervisor.Waiting, RunID: id, Reason: d.Reason, Note: d.Note, PendingToolCalls: d.PendingToolCalls, Telemetry: result.Telemetry,
			}
		}
	}
	return leg.report(ctx, leg.follow(ctx, result))
}

// needStateDir refuses a missing directory, which would be made otherwise.
func needStateDir(dir string) error {
	const hint = "name the directory that \"supervisor run --state-dir\" was given"
	if dir == "" {
		return &usageError{errors.New("--state-dir is missing"), hint}
	}
	if info, err := os.Stat(dir); err != nil {
		return &usageError{fmt.Errorf("the state directory: %w", err), hint}
	} else if !info.IsDir() {
		return &usageError{fmt.Errorf("the state directory %q is no directory", dir), hint}
	}
	return nil
}
