// Command supervisor runs programs that a language model wrote, each in a worker
// process of its own, with the tools that they may call.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes (SPEC 19.3).
const (
	exitOK          = 0
	exitCell        = 1   // the cell failed by its own error or a tool's
	exitUsage       = 2   // usage, or input that is refused before anything runs
	exitLimit       = 3   // a limit, expiry or abort
	exitHost        = 4   // worker, restore or internal failure
	exitUnavailable = 5   // runtime_unavailable
	exitWaiting     = 6   // the run is parked (--no-wait)
	exitHangup      = 129 // SIGHUP
	exitInterrupt   = 130 // SIGINT
	exitTerminated  = 143 // SIGTERM
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run is the program. Signals end its context, with the signal as the cause.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	go func() { // ends with the process or its first signal
		select {
		case sig := <-signals:
			cancel(signalError{sig})
		case <-ctx.Done():
		}
	}()
	out := &output{w: stdout}
	c := &cli{stdin: stdin, stdout: out, stderr: stderr}
	root := c.rootCommand()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	code := c.exitCode(ctx, err)
	if out.err != nil && code == exitOK {
		// Who started us would take a result that was lost for one that is empty.
		fmt.Fprintln(stderr, "supervisor: error: writing the result:", out.err)
		return exitHost
	}
	return code
}

// output remembers the first failure of standard output.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// cli is what all subcommands share.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	logFormat      string
	logLevel       string
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ os.Signal }

func (e signalError) Error() string { return "signal " + e.Signal.String() }

// exitError is an end with a code whose story was told already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is a mistake on the command line, with what to type instead.
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// exitCode tells an error that nobody has told yet and gives the code.
func (c *cli) exitCode(ctx context.Context, err error) int {
	var sig signalError
	var exit exitError
	switch {
	case errors.As(context.Cause(ctx), &sig) && err != nil:
		switch sig.Signal {
		case syscall.SIGTERM:
			return exitTerminated
		case syscall.SIGHUP:
			return exitHangup
		}
		return exitInterrupt
	case err == nil:
		return exitOK
	case errors.As(err, &exit):
		return int(exit)
	}
	fmt.Fprintln(c.stderr, "supervisor: error:", newPrinter(c.stderr).clean(err.Error()))
	hint := `"supervisor --help" lists the commands`
	var usage *usageError
	if errors.As(err, &usage) && usage.hint != "" {
		hint = usage.hint
	}
	for line := range strings.Lines(hint) {
		fmt.Fprintln(c.stderr, "hint:", strings.TrimSpace(line))
	}
	return exitUsage
}

const rootLong = `supervisor runs JavaScript and TypeScript that a language model wrote.

Each program ("cell") runs in a worker process of its own that dies with it. It
calls the tools of its catalog; what it prints and its value are the result.`

const rootExample = `  supervisor run -e 'const xs = [1, 2, 3]; xs.map(x => x * x)'
  supervisor run --tools tools.json5 cell.ts
  echo 'text("hi")' | supervisor run -
  supervisor runs list --state-dir state`

const exitCodes = `
Exit codes:
  0    completed
  1    the cell failed by its own error or a tool's
  2    usage, or refused input: config, source, language, module, transform
  3    a limit was hit, or the run expired or was aborted
  4    worker, restore or internal failure
  5    code mode cannot run here (runtime_unavailable)
  6    the run is parked, and --no-wait says not to wait
  129, 130, 143   ended by SIGHUP, SIGINT, SIGTERM
`

func (c *cli) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "supervisor",
		Short:         "Run model-written programs, each in a worker process of its own",
		Long:          rootLong,
		Example:       rootExample,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetUsageTemplate(root.UsageTemplate() + exitCodes)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &usageError{err, fmt.Sprintf("%q lists the options", cmd.CommandPath()+" --help")}
	})
	root.PersistentFlags().StringVar(&c.logFormat, "log-format", "text", "format of the log on stderr: text or json")
	root.PersistentFlags().StringVar(&c.logLevel, "log-level", "", "log to stderr from this level on: debug, info, warn or error (default: no log)")
	root.AddCommand(c.runCommand(), c.waitCommand(), c.runsCommand(), c.serveCommand(), c.doctorCommand(), c.configCommand(), c.trajectoryCommand(), c.versionCommand())
	return root
}

// logger writes to stderr. It never gets source, input, results or output.
func (c *cli) logger() (*slog.Logger, error) {
	if c.logLevel == "" {
		return slog.New(slog.DiscardHandler), nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.logLevel)); err != nil {
		return nil, &usageError{fmt.Errorf("--log-level %q is no level", c.logLevel), "use debug, info, warn or error"}
	}
	options := &slog.HandlerOptions{Level: level}
	switch c.logFormat {
	case "text":
		return slog.New(slog.NewTextHandler(c.stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(c.stderr, options)), nil
	}
	return nil, &usageError{fmt.Errorf("--log-format %q is no format", c.logFormat), "use text or json"}
}
