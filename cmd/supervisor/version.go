package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/openclaw/codemode-supervisor/workerproto"
	"github.com/spf13/cobra"
)

// build is what version prints.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Protocol int    `json:"protocol"` // of the worker
}

func buildInfo() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocol: workerproto.Version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

func (c *cli) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := buildInfo()
			if asJSON {
				return c.printJSON(b)
			}
			revision := b.Revision
			if b.Modified {
				revision += " (modified)"
			}
			_, err := fmt.Fprintf(c.stdout, "%s\n%s %s, worker protocol %d\n", strings.TrimSpace("supervisor "+b.Version+" "+revision), b.Go, b.Platform, b.Protocol)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object")
	return cmd
}
