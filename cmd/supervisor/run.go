package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/openclaw/codemode-supervisor/workerproto"
	"github.com/spf13/cobra"
)

const runLong = `run runs one cell and prints what it emits, then its value.

The cell is a file, "-" for standard input, or -e CODE. It is JavaScript unless the
file's ending, --language or a Markdown fence says TypeScript. It may be
statements with "return", end in an expression, be a single expression, or be a
lone function. "await" works everywhere.

Tools come from --tools files (JSON5): see the README for the format.

A cell that calls yield_control, or waits for tools for longer than timeoutMs, is
parked: its worker ends, its tools go on. run then waits by itself until the cell has
a result, unless --no-wait is given. With --state-dir a parked run survives the end of
this program: "supervisor wait RUN_ID" goes on with it.`

const runExample = `  supervisor run -e '1 + 2'
  supervisor run --json --set timeoutMs=500 -e 'for(;;);'
  supervisor run --tools tools.json5 -e 'await tools.echo({v: 1})'
  supervisor run --state-dir state --no-wait -e 'text("a"); await yield_control(); 3'`

// runFlags are the options of run.
type runFlags struct {
	legFlags
	record   recordFlags
	code     string
	language string
}

// legFlags are the options that run and wait share.
type legFlags struct {
	config   string
	set      []string
	tools    []string
	approve  string
	stateDir string
	noWait   bool
	json     bool
	otlp     string
}

func (f *legFlags) register(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "config file, JSON5: {tools: {codeMode: {…}}, supervisor: {…}}")
	fl.StringArrayVar(&f.set, "set", nil, "set one config field, such as timeoutMs=500; repeatable")
	fl.StringArrayVar(&f.tools, "tools", nil, "tool file, JSON5; repeatable")
	fl.StringVar(&f.approve, "approve", "", "tools that need approval: ask, all or none (default ask on a terminal, else none)")
	fl.StringVar(&f.stateDir, "state-dir", "", "directory that keeps parked runs; it is made if it is not there")
	fl.BoolVar(&f.noWait, "no-wait", false, "end with exit code 6 when the run is parked, instead of waiting for it")
	fl.BoolVar(&f.json, "json", false, "print the result object, one line")
	fl.StringVar(&f.otlp, "otlp", "", otlpUsage)
}

// otlpUsage is said of --otlp by all commands that have it.
const otlpUsage = "send metrics and spans to the OTLP collector at this URL (default: OTEL_EXPORTER_OTLP_ENDPOINT)"

func (c *cli) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:     "run [FILE | - | -e CODE]",
		Short:   "Run one cell",
		Long:    runLong,
		Example: runExample,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.runCell(cmd.Context(), f, args, cmd.Flags().Changed("eval"))
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&f.code, "eval", "e", "", "the cell's source")
	fl.StringVar(&f.language, "language", "", "javascript or typescript (default by the file's ending, else javascript)")
	f.record.register(cmd, "write the run's events to this file, as JSON lines")
	f.register(cmd)
	return cmd
}

// runCell is the command: source, config, tools, supervisor, result.
func (c *cli) runCell(ctx context.Context, f runFlags, args []string, eval bool) error {
	log, err := c.logger()
	if err != nil {
		return err
	}
	program, err := c.program(f, args, eval)
	if err != nil {
		return err
	}
	leg, err := c.openLeg(f.legFlags, log)
	if err != nil {
		return err
	}
	recorded := func() {}
	defer func() { recorded() }() // the leg's end has events, too
	defer leg.close()
	program.Catalog, program.Executor, program.Hooks = leg.toolbox.catalog, leg.toolbox, leg.toolbox.hooks()
	program.ParentCallID = "exec"
	if program.Trajectory, recorded, err = f.record.recorder(os.O_TRUNC, c.stderr, slices.Concat(args, f.tools, []string{f.config})...); err != nil {
		return err
	}
	program.Output = leg.output()
	return leg.report(ctx, leg.follow(ctx, leg.s.Exec(ctx, *program)))
}

// refuse reports a config or tool file that cannot be used as a failed run.
func (c *cli) refuse(asJSON bool, err error) error {
	var usage *usageError
	switch {
	case asJSON:
	case errors.As(err, &usage):
		return err
	default:
		return &usageError{err, `"supervisor run --help" has the flags, "supervisor config schema" what a config may hold, docs/tool-files.md how tool files are written`}
	}
	return c.print(true, nil, supervisor.Refuse(supervisor.InvalidConfig, err.Error()))
}

// exitOf gives the exit code of a result (SPEC 19.3).
func exitOf(r *supervisor.Result) int {
	switch r.Status {
	case supervisor.Completed:
		return exitOK
	case supervisor.Waiting:
		return exitWaiting
	}
	switch r.Code {
	case "", supervisor.NestedToolFailed:
		return exitCell
	case supervisor.InvalidConfig, supervisor.InvalidInput, supervisor.UnsupportedLanguage,
		supervisor.TypeScriptTransformFailed, supervisor.ModuleAccessDenied:
		return exitUsage
	case supervisor.Timeout, supervisor.MemoryLimitExceeded, supervisor.OutputLimitExceeded,
		supervisor.TooManyPendingToolCalls, supervisor.SnapshotLimitExceeded, supervisor.SnapshotExpired, supervisor.Aborted:
		return exitLimit
	case supervisor.RuntimeUnavailable:
		return exitUnavailable
	}
	return exitHost
}

// program reads the source.
func (c *cli) program(f runFlags, args []string, eval bool) (*supervisor.Program, error) {
	usage := func(format string, a ...any) error {
		return &usageError{fmt.Errorf(format, a...), "supervisor run FILE, or: supervisor run -e '1 + 2'"}
	}
	switch {
	case eval && len(args) > 0:
		return nil, usage("-e and a file are two cells; give one")
	case !eval && len(args) == 0:
		return nil, usage("no cell was given")
	case len(args) > 1:
		return nil, usage("%d files were given; a run has one cell", len(args))
	case eval:
		return &supervisor.Program{Code: f.code, Language: f.language}, nil
	}
	source, err := c.readSource(args[0])
	if err != nil {
		return nil, usage("reading the cell: %w", err)
	}
	language := f.language
	if language == "" {
		switch strings.ToLower(filepath.Ext(args[0])) {
		case ".ts", ".mts", ".cts":
			language = "typescript"
		case ".js", ".mjs", ".cjs":
			language = "javascript"
		}
	}
	return &supervisor.Program{Code: source, Language: language}, nil
}

// readSource reads a file or standard input, a byte more than a source may have at most.
func (c *cli) readSource(name string) (string, error) {
	var r io.Reader = c.stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer file.Close()
		r = file
	}
	b, err := io.ReadAll(io.LimitReader(r, workerproto.MaxSource+1))
	return string(b), err
}

// loadConfig reads the config file and the --set options over it.
func (c *cli) loadConfig(file string, set []string) (limits.Config, error) {
	config := limits.DefaultConfig()
	var warnings []limits.Warning
	if file != "" {
		data, err := readBounded(file, limits.MaxConfigBytes)
		if err != nil {
			return config, fmt.Errorf("reading the config: %w", err)
		}
		if config, warnings, err = limits.Parse(data); err != nil {
			return config, fmt.Errorf("config %q: %w", file, err)
		}
	}
	for _, s := range set {
		path, value, ok := strings.Cut(s, "=")
		if !ok {
			return config, fmt.Errorf("--set %q has no value; write --set timeoutMs=500", s)
		}
		more, err := config.Set(path, value)
		if err != nil {
			return config, fmt.Errorf("--set %q: %w", s, err)
		}
		warnings = append(warnings, more...)
	}
	for _, w := range warnings {
		fmt.Fprintln(c.stderr, "supervisor: warning:", w)
	}
	return config, nil
}

// readBounded reads a file of at most limit bytes.
func readBounded(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%q has more than %d bytes", name, limit)
	}
	return b, err
}
