package main

import (
	"errors"
	"fmt"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/spf13/cobra"
)

func (c *cli) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, show or describe the config",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var set []string
	var asJSON bool
	check := &cobra.Command{
		Use:     "check FILE",
		Short:   "Say what is wrong with a config file",
		Example: "  supervisor config check codemode.json5",
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return c.checkConfig(args[0], asJSON) },
	}
	check.Flags().BoolVar(&asJSON, "json", false, "print one object: {ok, error?, warnings}")
	show := &cobra.Command{
		Use:     "show [FILE]",
		Short:   "Print the config that would be in force, defaults included, as JSON",
		Example: "  supervisor config show --set timeoutMs=500",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			file := ""
			if len(args) > 0 {
				file = args[0]
			}
			config, err := c.loadConfig(file, set)
			if err != nil {
				return &usageError{err, `"supervisor config schema" prints what a config may hold`}
			}
			_, err = fmt.Fprintf(c.stdout, "%s\n", config.Marshal())
			return err
		},
	}
	show.Flags().StringArrayVar(&set, "set", nil, "set one field, such as timeoutMs=500; repeatable")
	alwaysJSON(show)
	schema := &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of config files",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(c.stdout, "%s\n", limits.Schema())
			return err
		},
	}
	alwaysJSON(schema)
	cmd.AddCommand(check, show, schema)
	return cmd
}

// alwaysJSON lets a command whose output is JSON in any case be called as the others are.
func alwaysJSON(cmd *cobra.Command) {
	cmd.Flags().Bool("json", true, "accepted for scripts: the output is JSON in any case")
}

// checkConfig says whether a config file can be used, and what was clamped.
func (c *cli) checkConfig(file string, asJSON bool) error {
	data, err := readBounded(file, limits.MaxConfigBytes)
	if err != nil {
		return &usageError{fmt.Errorf("reading the config: %w", err), ""}
	}
	_, warnings, err := limits.Parse(data)
	texts := []string{}
	for _, w := range warnings {
		texts = append(texts, w.String())
	}
	if asJSON {
		report := struct {
			OK       bool     `json:"ok"`
			Error    string   `json:"error,omitempty"`
			Warnings []string `json:"warnings"`
		}{err == nil, "", texts}
		if err != nil {
			report.Error = err.Error()
		}
		if err := c.printJSON(report); err != nil {
			return err
		}
		if err != nil {
			return exitError(exitUsage)
		}
		return nil
	}
	for _, t := range texts {
		fmt.Fprintln(c.stderr, "supervisor: warning:", t)
	}
	if err != nil {
		var ce *limits.ConfigError
		if !errors.As(err, &ce) {
			return &usageError{err, ""}
		}
		return &usageError{fmt.Errorf("config %q: %w", file, err), `"supervisor config schema" prints what a config may hold`}
	}
	fmt.Fprintf(c.stdout, "%s: ok\n", file)
	return nil
}
