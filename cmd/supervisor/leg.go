package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/openclaw/codemode-supervisor/cmd/supervisor/internal/export"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/snapshot"
	"github.com/openclaw/codemode-supervisor/supervisor"
)

// leg is what run and wait do with a run: follow it over its suspensions, and print what
// comes of it.
type leg struct {
	*cli
	flags     legFlags
	s         *supervisor.Supervisor
	exporters *export.Exporters
	timeout   time.Duration // of an exec or a wait
	scope     supervisor.Scope
	toolbox   *toolbox
	printer   *printer
	progress  *progress
	items     []supervisor.Item        // of all legs, for --json
	parked    func(*supervisor.Result) // is told of a run that is to be waited for; nil: nobody is
}

// openLeg makes the supervisor and its tools. The caller closes it.
func (c *cli) openLeg(f legFlags, log *slog.Logger) (*leg, error) {
	config, err := c.loadConfig(f.config, f.set)
	if err != nil {
		return nil, c.refuse(f.json, err)
	}
	l := &leg{cli: c, flags: f, timeout: config.Limits.Timeout, printer: newPrinter(c.stdout), progress: newProgress(c.stderr)}
	if l.toolbox, err = c.loadTools(f.tools, config.Limits, f.approve); err != nil {
		return nil, c.refuse(f.json, err)
	}
	l.toolbox.approve.progress = l.progress
	l.toolbox.approve.later = f.stateDir != "" && (f.noWait || !terminal())
	if l.exporters, err = c.export(export.Options{OTLP: f.otlp}, log); err != nil {
		return nil, c.refuse(f.json, err)
	}
	if l.s, err = c.open(config, f.stateDir, log, l.exporters); err != nil {
		return nil, errors.Join(c.refuse(f.json, err), l.exporters.Close())
	}
	return l, nil
}

// export opens the ways out for telemetry.
func (c *cli) export(o export.Options, log *slog.Logger) (*export.Exporters, error) {
	o.Version, o.Getenv, o.Logger = buildInfo().Version, os.Getenv, log
	e, err := export.Open(context.Background(), o)
	if err != nil {
		return nil, &usageError{err, "docs/telemetry.md has an example"}
	}
	return e, nil
}

// open makes a supervisor for one cell, as the config says. What exporters it has are closed
// after it.
func (c *cli) open(config limits.Config, stateDir string, log *slog.Logger, to *export.Exporters) (*supervisor.Supervisor, error) {
	options, err := c.options(config, stateDir, log)
	if err != nil {
		return nil, err
	}
	options.MeterProvider, options.TracerProvider = to.Meter(), to.Tracer()
	return newSupervisor(options)
}

// options are those of a supervisor as the config says, for one cell.
func (c *cli) options(config limits.Config, stateDir string, log *slog.Logger) (supervisor.Options, error) {
	options := supervisor.Options{
		Worker:         config.Supervisor.Worker,
		WorkerSHA256:   config.Supervisor.WorkerSHA256,
		Limits:         config.Limits,
		MaxWorkers:     config.Supervisor.MaxWorkers,
		Pool:           -1, // one cell: a spare would only be started to be ended
		MaxParkedRuns:  config.Supervisor.MaxParkedRuns,
		MaxParkedBytes: config.Supervisor.MaxParkedBytes,
		Isolation:      config.Supervisor.Isolation,
		StateDir:       stateDir,
		Logger:         log,
	}
	if file := config.Supervisor.StateKeyFile; file != "" && stateDir != "" {
		load := snapshot.LoadKey
		if _, err := os.Stat(filepath.Join(stateDir, "runs.db")); err == nil {
			load = snapshot.ReadKey // a new one could not open what is there
		}
		key, err := load(file)
		if err != nil {
			return options, &usageError{fmt.Errorf("supervisor.stateKeyFile: %w", err), "it names the file with the state directory's key"}
		}
		options.StateKey = key
	}
	return options, nil
}

func newSupervisor(options supervisor.Options) (*supervisor.Supervisor, error) {
	s, err := supervisor.New(options)
	if err != nil && options.StateDir != "" {
		return nil, &usageError{err, "--state-dir takes an empty or new directory, or one that was given to it before"}
	}
	return s, err
}

func (l *leg) close() {
	l.progress.end()
	if err := errors.Join(l.s.Close(), l.exporters.Close()); err != nil {
		fmt.Fprintln(l.stderr, "supervisor: warning:", newPrinter(l.stderr).clean(err.Error()))
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
	for result.Status == supervisor.Waiting && !l.flags.noWait && !l.undecided(result) {
		l.progress.show(result)
		if l.parked != nil {
			l.parked(result)
		}
		next := l.s.Wait(ctx, supervisor.WaitRequest{RunID: result.RunID, Scope: l.scope, Executor: l.toolbox, Hooks: l.toolbox.hooks(), Output: l.output()})
		if ctx.Err() != nil && next.Code == supervisor.Aborted {
			if l.flags.stateDir != "" {
				return result // it goes on in another process
			}
			next.Error = fmt.Sprintf("the run was ended while it waited: %v", context.Cause(ctx))
			return next
		}
		l.items = append(l.items, next.Output...)
		result = next
	}
	l.progress.end()
	return result
}

// undecided tells that the run waits for decisions alone, and that nobody here makes any.
func (l *leg) undecided(result *supervisor.Result) bool {
	if !l.toolbox.approve.later || l.toolbox.approve.mode != "ask" || len(result.PendingToolCalls) == 0 {
		return false
	}
	return !slices.ContainsFunc(result.PendingToolCalls, func(c supervisor.PendingCall) bool { return c.Reason != approval })
}

// report prints a run's last result and gives its exit code as an error. A program that
// leaves a parked run behind lets the tools that are at work come to an end, as long as a
// wait would have waited for them.
func (l *leg) report(ctx context.Context, result *supervisor.Result) error {
	result.Output = l.items
	err := l.print(l.flags.json, l.printer, result)
	if result.Status != supervisor.Waiting || l.flags.stateDir == "" {
		return err
	}
	if !l.flags.json {
		fmt.Fprintf(l.stderr, "hint: %s\n", l.flags.waitFor(result))
	}
	ctx, cancel := context.WithTimeout(ctx, max(l.timeout, 2*time.Second))
	defer cancel()
	_ = l.s.Quiesce(ctx) // what is at work after that is cut off, and the guest is told so
	return err
}

// waitFor is the command that goes on with a run.
func (f *legFlags) waitFor(result *supervisor.Result) string {
	words := []string{"supervisor", "wait", result.RunID, "--state-dir", f.stateDir}
	for _, file := range f.tools {
		words = append(words, "--tools", file)
	}
	if f.config != "" {
		words = append(words, "--config", f.config)
	}
	for _, set := range f.set {
		if strings.HasPrefix(set, "supervisor.") {
			words = append(words, "--set", set)
		}
	}
	if slices.ContainsFunc(result.PendingToolCalls, func(c supervisor.PendingCall) bool { return c.Reason == approval }) {
		words = append(words, "--approve", "all")
	}
	for i, w := range words {
		if w == "" || strings.ContainsFunc(w, func(r rune) bool { return !strings.ContainsRune(plain, r) }) {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}

// plain are the characters that a shell takes as they are.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%"

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
