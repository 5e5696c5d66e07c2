package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/supervisor"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const doctorLong = `doctor starts a worker and shows every layer that keeps it apart: whether the kernel
enforces it here, why not, and what to do about that.

With --attack it also tries the layers out; --attack=REGEXP picks system calls by name. For each attack a worker, locked down as
all are, makes one system call that a worker never needs: it opens files, connects,
executes, forks, traces, mounts, maps executable memory, and so on. Calls that get
through do no harm. Then two cells try to get out of the guest by its own language,
and what a guest can reach is compared with a list.

It exits with 0 if all that supervisor.isolation requires is there, and with --attack
if nothing got through a layer that is on; with 5 if something required is missing, or
no worker starts; with 4 if an attack got through.`

// everything is the pattern of --attack alone.
const everything = ".*"

type doctorFlags struct {
	config string
	set    []string
	attack string
	json   bool
}

func (c *cli) doctorCommand() *cobra.Command {
	var f doctorFlags
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show what keeps workers apart on this host, and attack it",
		Long:  doctorLong,
		Example: `  supervisor doctor
  supervisor doctor --set supervisor.isolation.preset=strict
  supervisor doctor --attack --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.doctor(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.config, "config", "", "config file, JSON5")
	fl.StringArrayVar(&f.set, "set", nil, "set one field of the config, such as supervisor.isolation.preset=strict; repeatable")
	fl.StringVar(&f.attack, "attack", "", "attack the layers from inside a worker, and the guest from inside a cell; --attack=REGEXP makes the system calls whose names match, and no more")
	fl.Lookup("attack").NoOptDefVal = everything
	fl.BoolVar(&f.json, "json", false, "print one object, one line")
	return cmd
}

// diagnosis is what doctor finds; its JSON is what --json prints.
type diagnosis struct {
	OK       bool                     `json:"ok"`
	Error    string                   `json:"error,omitempty"`
	Preset   string                   `json:"preset"`
	Required []string                 `json:"required"` // layers that the policy requires
	Missing  []string                 `json:"missing"`  // those of them that are not on
	Layers   isolation.Report         `json:"layers"`
	Attacks  []attackRow              `json:"attacks,omitempty"`
	Escapes  *supervisor.EscapeResult `json:"escapes,omitempty"`
	code     int
}

type attackRow struct {
	Name     string            `json:"name"`
	About    string            `json:"about"`
	Outcome  string            `json:"outcome"`
	Expected []string          `json:"expected"` // of the layers that are on
	By       []isolation.Layer `json:"by"`       // layers whose refusal it is
	Verdict  string            `json:"verdict"`  // "refused", "NOT REFUSED", or "not covered": no layer that is on refuses it
}

func (c *cli) doctor(ctx context.Context, f doctorFlags) error {
	log, err := c.logger()
	if err != nil {
		return err
	}
	only, err := regexp.Compile(f.attack)
	if err != nil {
		return &usageError{fmt.Errorf("--attack=%q: %w", f.attack, err), "it takes a regular expression over the names that --attack shows"}
	}
	config, err := c.loadConfig(f.config, f.set)
	if err != nil {
		return &usageError{err, `"supervisor config schema" prints what a config may hold`}
	}
	s, err := c.open(config, "", log, nil)
	if err != nil {
		return &usageError{err, `docs/isolation.md has the fields of supervisor.isolation`}
	}
	defer s.Close()
	d := &diagnosis{Preset: config.Supervisor.Isolation.Preset, Required: []string{}, Missing: []string{}}
	c.examine(ctx, s, d)
	if f.attack != "" && d.Error == "" {
		c.attack(ctx, s, config.Supervisor.Isolation, only, d)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	d.OK = d.code == exitOK
	if f.json {
		if err := c.printJSON(d); err != nil {
			return err
		}
	} else if err := c.printDiagnosis(d); err != nil {
		return err
	}
	if d.code != exitOK {
		return exitError(d.code)
	}
	return nil
}

// examine fills in the layers.
func (c *cli) examine(ctx context.Context, s *supervisor.Supervisor, d *diagnosis) {
	policy := s.Policy()
	report, err := s.Examine(ctx)
	d.Layers = report
	for _, layer := range isolation.Layers() {
		if policy.Requires(layer) {
			d.Required = append(d.Required, string(layer))
		}
	}
	if err != nil {
		d.Error, d.code = err.Error(), exitUnavailable
		return
	}
	var missing *isolation.MissingError
	if errors.As(policy.Check(report), &missing) {
		d.code = exitUnavailable
		for _, s := range missing.Layers {
			d.Missing = append(d.Missing, string(s.Layer))
		}
	}
}

// attack fills in what attacks and escapes came to.
func (c *cli) attack(ctx context.Context, s *supervisor.Supervisor, config limits.IsolationConfig, only *regexp.Regexp, d *diagnosis) {
	through := func() {
		if d.code == exitOK {
			d.code = exitHost
		}
	}
	show := c.counter()
	err := s.Attack(ctx, only, func(r supervisor.AttackResult) {
		row := attackRow{Name: r.Name, About: r.About, Outcome: r.Outcome, Expected: r.Expected, By: r.By, Verdict: "refused"}
		switch {
		case !r.Covered:
			row.Verdict = "not covered"
		case !r.Refused:
			row.Verdict = "NOT REFUSED"
			through()
		}
		d.Attacks = append(d.Attacks, row)
		show(fmt.Sprintf("attack %d: %s", len(d.Attacks), r.Name))
	})
	show("")
	if err != nil {
		d.Error, d.code = err.Error(), exitHost
		return
	}
	if only.String() != everything {
		return
	}
	// The guest's walls do not depend on the layers; a policy that cannot be met must not hide them.
	if err := s.SetIsolation(limits.IsolationConfig{CgroupParent: config.CgroupParent, UID: config.UID, GID: config.GID}); err != nil {
		d.Error, d.code = err.Error(), exitHost
		return
	}
	escapes, err := s.Escapes(ctx)
	if err != nil {
		d.Error, d.code = err.Error(), exitHost
		return
	}
	d.Escapes = &escapes
	if len(escapes.Added) > 0 || escapes.Escaped() > 0 {
		through()
	}
}

// counter gives a function that shows how far something is, on a terminal.
func (c *cli) counter() func(string) {
	file, ok := c.stderr.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func(string) {}
	}
	return func(text string) { fmt.Fprintf(file, "\r\033[K%.78s", text) }
}

// paint colours words on a terminal that wants it (no-color.org).
func (c *cli) paint() func(word string) string {
	p := newPrinter(c.stdout)
	if !p.tty || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return func(word string) string { return word }
	}
	return func(word string) string {
		switch word {
		case "on", "refused":
			return "\033[32m" + word + "\033[0m"
		case "unavailable", "NOT REFUSED", "ESCAPED":
			return "\033[31m" + word + "\033[0m"
		}
		return "\033[33m" + word + "\033[0m"
	}
}

func (c *cli) printDiagnosis(d *diagnosis) error {
	paint := c.paint()
	required := map[string]bool{}
	for _, name := range d.Required {
		required[name] = true
	}
	clean := func(text string) string { return newPrinter(c.stdout).clean(strings.Join(strings.Fields(text), " ")) }
	on := 0
	var rows [][]string
	for _, s := range d.Layers {
		if s.State == isolation.On {
			on++
		}
		mark := ""
		if required[string(s.Layer)] {
			mark = "required"
		}
		rows = append(rows, []string{string(s.Layer), paint(clean(string(s.State))), mark, clean(s.Reason)})
		if s.Remedy != "" && s.State != isolation.On {
			rows = append(rows, []string{"", paint(""), "", "→ " + clean(s.Remedy)})
		}
	}
	if len(d.Layers) == 0 { // it did not come so far as to look
		fmt.Fprintln(c.stderr, "supervisor: error:", newPrinter(c.stderr).clean(d.Error))
		return nil
	}
	if err := table(c.stdout, []string{"LAYER", paint("STATE"), "POLICY", "WHY NOT"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "\n%d of %d layers are on; the policy (%s) requires %d.\n", on, len(d.Layers), d.Preset, len(d.Required))
	if len(d.Missing) > 0 {
		fmt.Fprintf(c.stdout, "Missing: %s. No cell runs here under this policy.\n", strings.Join(d.Missing, ", "))
	}
	if len(d.Attacks) > 0 {
		rows = nil
		count := map[string]int{}
		for _, a := range d.Attacks {
			count[a.Verdict]++
			by := "-"
			if len(a.By) > 0 {
				by = fmt.Sprint(a.By[0])
			}
			rows = append(rows, []string{a.Name, a.Outcome, paint(a.Verdict), by})
		}
		fmt.Fprintln(c.stdout)
		if err := table(c.stdout, []string{"ATTACK", "ANSWER", paint("VERDICT"), "BY"}, rows); err != nil {
			return err
		}
		fmt.Fprintf(c.stdout, "\n%d attacks: %d refused, %d not refused, %d that no layer which is on refuses.\n",
			len(d.Attacks), count["refused"], count["NOT REFUSED"], count["not covered"])
	}
	if e := d.Escapes; e != nil {
		for _, a := range e.Attempts {
			if a.Escaped {
				fmt.Fprintf(c.stdout, "%s: %s (%s)\n", paint("ESCAPED"), a.Name, newPrinter(c.stdout).clean(a.Detail))
			}
		}
		fmt.Fprintf(c.stdout, "%d attempts to leave the guest: %d escaped.\n", len(e.Attempts), e.Escaped())
		fmt.Fprintf(c.stdout, "%d things are in a guest's reach; %d are not on the list, %d of the list are gone.\n", e.Reachable, len(e.Added), len(e.Missing))
		for _, line := range e.Added {
			fmt.Fprintln(c.stdout, "  not on the list:", newPrinter(c.stdout).clean(line))
		}
	}
	if d.Error != "" {
		fmt.Fprintln(c.stderr, "supervisor: error:", newPrinter(c.stderr).clean(d.Error))
	}
	return nil
}

// table prints rows in columns, without the spaces behind the last one that has something.
func table(out io.Writer, head []string, rows [][]string) error {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
