package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor"
)

// leg is what run and wait do with a run: follow it over its suspensions, and print what
// comes of it.
type leg struct {
	*cli
	flags    legFlags
	s        *supervisor.Supervisor
	until    time.Time // the end of an exec or a wait that begins now
	scope    supervisor.Scope
	toolbox  *toolbox
	printer  *printer
	progress *progress
	items    []supervisor.Item // of all legs, for --json
}

// openLeg makes the supervisor and its tools. The caller closes it.
func (c *cli) openLeg(f legFlags, log *slog.Logger) (*leg, error) {
	config, err := c.loadConfig(f.config, f.set)
	if err != nil {
		return nil, c.refuse(f.json, err)
	}
	l := &leg{cli: c, flags: f, until: time.Now().Add(config.Limits.Timeout), printer: newPrinter(c.stdout), progress: newProgress(c.stderr)}
	if l.toolbox, err = c.loadTools(f.tools, config.Limits, f.approve); err != nil {
		return nil, c.refuse(f.json, err)
	}
	l.toolbox.approve.progress = l.progress
	l.toolbox.approve.later = f.stateDir != "" && (f.noWait || !terminal())
	l.s, err = c.open(config, f.stateDir, log)
	return l, err
}

// open makes a supervisor as the config says.
func (c *cli) open(config limits.Config, stateDir string, log *slog.Logger) (*supervisor.Supervisor, error) {
	options := supervisor.Options{
		Worker:         config.Supervisor.Worker,
		WorkerSHA256:   config.Supervisor.WorkerSHA256,
		Limits:         config.Limits,
		MaxWorkers:     config.Supervisor.MaxWorkers,
		MaxParkedRuns:  config.Supervisor.MaxParkedRuns,
		MaxParkedBytes: config.Supervisor.MaxParkedBytes,
		Isolation:      config.Supervisor.Isolation,
		StateDir:       stateDir,
		Logger:         log,
	}
	if file := config.Supervisor.StateKeyFile; file != "" && stateDir != "" {
		key, err := snapshot.LoadKey(file)
		if err != nil {
			return nil, &usageError{err, "supervisor.stateKeyFile names the file with the state directory's key"}
		}
		options.StateKey = key
	}
	s, err := supervisor.New(options)
	if err != nil && stateDir != "" {
		return nil, &usageError{err, "--state-dir takes a directory of your own that nobody else can look into"}
	}
	return s, err
}

func (l *leg) close() {
	l.progress.end()
	if err := l.s.Close(); err != nil {
		fmt.Fprintln(l.stderr, "supervisor: warning:", err)
	}
}

// output prints items as they come, unless the result will have them.
func (l *leg) output() func(supervisor.Item) {
	if l.flags.json {
		return nil
	}
	return func(i supervisor.Item) {
		l.progress.pause()
		l.printer.item(i)
		l.progress.goOn()
	}
}

// follow waits for a parked run until it is over, or as long as it was asked to.
func (l *leg) follow(ctx context.Context, result *supervisor.Result) *supervisor.Result {
	l.items = append(l.items, result.Output...)
	if result.Status != supervisor.Waiting {
		return result
	}
	if l.flags.stateDir == "" && l.flags.noWait {
		fmt.Fprintln(l.stderr, "supervisor: warning: without --state-dir the parked run ends with this program")
	}
	for result.Status == supervisor.Waiting && !l.flags.noWait {
		l.progress.show(result)
		next := l.s.Wait(ctx, supervisor.WaitRequest{RunID: result.RunID, Scope: l.scope, Executor: l.toolbox, Output: l.output()})
		if ctx.Err() != nil && next.Code == supervisor.Aborted {
			if l.flags.stateDir != "" {
				return result // it goes on in another process
			}
			return next
		}
		l.items = append(l.items, next.Output...)
		result = next
	}
	l.progress.end()
	return result
}

// report prints a run's last result and gives its exit code as an error. A program that
// leaves a parked run behind lets the tools that are at work come to an end, while it
// could still have been waiting for them.
func (l *leg) report(ctx context.Context, result *supervisor.Result) error {
	result.Output = l.items
	err := l.print(l.flags.json, l.printer, result)
	if result.Status != supervisor.Waiting || l.flags.stateDir == "" {
		return err
	}
	if !l.flags.json {
		fmt.Fprintf(l.stderr, "hint: supervisor wait %s --state-dir %s\n", result.RunID, l.flags.stateDir)
	}
	ctx, cancel := context.WithDeadline(ctx, l.until)
	defer cancel()
	_ = l.s.Quiesce(ctx) // what is at work after that is cut off, and the guest is told so
	return err
}

// print prints a result and gives its exit code as an error.
func (c *cli) print(asJSON bool, printer *printer, result *supervisor.Result) error {
	switch {
	case asJSON:
		fmt.Fprintf(c.stdout, "%s\n", result.JSON())
	case result.Status == supervisor.Completed:
		printer.value(result.Value)
	case result.Status == supervisor.Waiting:
		fmt.Fprintf(c.stderr, "supervisor: waiting: run %s: %s\n", result.RunID, newPrinter(c.stderr).clean(whatFor(result)))
	default:
		label := "error"
		if result.Code != "" {
			label = string(result.Code)
		}
		fmt.Fprintf(c.stderr, "supervisor: %s: %s\n", label, newPrinter(c.stderr).clean(result.Error))
	}
	if code := exitOf(result); code != exitOK {
		return exitError(code)
	}
	return nil
}
