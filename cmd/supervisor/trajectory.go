package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory/view"
	"github.com/spf13/cobra"
)

const trajectoryLong = `trajectory draws what "run --trajectory FILE" and "wait --trajectory FILE" recorded:
each exec call with the legs of its run, their tool calls, parks and output.

Contents are shown if they were recorded with --trajectory-content, by their size
otherwise. With contents, "replay" runs the cell again. Lines of the file that are no
events are skipped and counted.`

const trajectoryExample = `  supervisor run --trajectory t.jsonl -e 'text("hi"); await yield_control(); 3'
  supervisor trajectory show t.jsonl
  supervisor trajectory export t.jsonl --html t.html
  supervisor trajectory replay t.jsonl`

func (c *cli) trajectoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "trajectory",
		Short:   "Draw what a run did, or do it again",
		Long:    trajectoryLong,
		Example: trajectoryExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.trajectoryShowCommand(), c.trajectoryExportCommand(), c.trajectoryReplayCommand())
	return cmd
}

func (c *cli) trajectoryShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "show FILE | -",
		Short:   "Draw it as a tree, in the terminal",
		Example: "  supervisor trajectory show t.jsonl\n  supervisor trajectory show --json t.jsonl",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			tree, err := c.readTrajectory(cmd, args)
			if err != nil {
				return err
			}
			if asJSON {
				return c.printJSON(tree)
			}
			return view.Text(c.stdout, tree, colourful(newPrinter(c.stdout).tty, os.Getenv))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the tree as one JSON object")
	return cmd
}

func (c *cli) trajectoryExportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "export FILE | -",
		Short: "Draw it as one HTML page",
		Long: `export draws a trajectory as one HTML page: a waterfall whose rows unfold to what is
known of them. The page needs nothing else, from anywhere, and works from a file.`,
		Example: "  supervisor trajectory export t.jsonl --html t.html\n  supervisor trajectory export t.jsonl >t.html",
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if out == "-" && newPrinter(c.stdout).tty {
				return &usageError{errors.New("a page is nothing for a terminal"), "name its file: --html t.html"}
			}
			tree, err := c.readTrajectory(cmd, args)
			if err != nil {
				return err
			}
			name := filepath.Base(args[0])
			if out == "-" {
				return view.HTML(c.stdout, tree, name)
			}
			if sameFile(args[0], out) {
				return &usageError{fmt.Errorf("--html %q is the trajectory itself", out), "give the page a name of its own"}
			}
			if err := writeFile(out, func(w io.Writer) error { return view.HTML(w, tree, name) }); err != nil {
				return &usageError{fmt.Errorf("writing the page: %w", err), "name a file that can be written"}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "html", "-", "write the page to this file; - is standard output")
	return cmd
}

// colourful tells whether colour is wanted: on a terminal that can, unless NO_COLOR says
// no (no-color.org: set, and not empty).
func colourful(tty bool, env func(string) string) bool {
	return tty && env("NO_COLOR") == "" && env("TERM") != "dumb"
}

// readTrajectory reads the tree of the file that the arguments name.
func (c *cli) readTrajectory(cmd *cobra.Command, args []string) (*trajectory.Tree, error) {
	log, err := c.readLog(cmd, args)
	if err != nil {
		return nil, err
	}
	return log.Tree(), nil
}

// readLog reads the file that the arguments name, and warns of what it lacks. It has an event.
func (c *cli) readLog(cmd *cobra.Command, args []string) (*trajectory.Log, error) {
	hint := fmt.Sprintf("%s FILE, with a file that \"supervisor run --trajectory FILE\" wrote", cmd.CommandPath())
	if len(args) != 1 {
		return nil, &usageError{fmt.Errorf("%s takes one file, got %d", cmd.CommandPath(), len(args)), hint}
	}
	in := c.stdin
	if args[0] != "-" {
		file, err := os.Open(args[0])
		if err != nil {
			return nil, &usageError{fmt.Errorf("opening the trajectory: %w", err), hint}
		}
		defer file.Close()
		in = file
	}
	log, err := trajectory.Read(in)
	if err != nil {
		return nil, &usageError{err, hint}
	}
	for _, w := range warnings(log) {
		fmt.Fprintln(c.stderr, "supervisor: warning:", w)
	}
	if len(log.Events) == 0 {
		return nil, &usageError{fmt.Errorf("%q has no event of a run", args[0]), hint}
	}
	return log, nil
}

// warnings says what of the file is not in the log.
func warnings(log *trajectory.Log) (texts []string) {
	if log.Skipped > 0 {
		texts = append(texts, fmt.Sprintf("skipped lines that are no events: %d", log.Skipped))
	}
	if log.Omitted > 0 {
		texts = append(texts, fmt.Sprintf("left out events after the first %d: %d", trajectory.MaxEvents, log.Omitted))
	}
	if log.Cut {
		texts = append(texts, fmt.Sprintf("read the first %d bytes only", trajectory.MaxFile))
	}
	return texts
}

func sameFile(a, b string) bool {
	first, err1 := os.Stat(a)
	second, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(first, second)
}

// writeFile writes a file as a whole or not at all. It is readable for its owner only: a
// page has all that the trajectory has.
func writeFile(name string, write func(io.Writer) error) (err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // such as /dev/null
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(file), file.Close())
	}
	file, err := os.CreateTemp(filepath.Dir(name), ".trajectory-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(file.Name())
		}
	}()
	if err := errors.Join(write(file), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}
