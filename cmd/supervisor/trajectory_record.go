package main

import (
	"fmt"
	"io"
	"os"

	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/spf13/cobra"
)

// recordFlags say where the events of run and wait go (SPEC 18.1).
type recordFlags struct {
	file string
	full bool
}

func (f *recordFlags) register(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&f.file, "trajectory", "", usage)
	cmd.Flags().BoolVar(&f.full, "trajectory-content", false, "keep sources, inputs, results and output in the trajectory, not only size and hash")
}

// recorder opens the trajectory; mode is os.O_TRUNC for a new run and os.O_APPEND for one
// that goes on. It is nil if none was asked for. The caller calls done when the supervisor
// is closed.
func (f recordFlags) recorder(mode int, stderr io.Writer) (rec *trajectory.Recorder, done func(), err error) {
	if f.file == "" {
		return nil, func() {}, nil
	}
	file, err := os.OpenFile(f.file, os.O_CREATE|os.O_WRONLY|mode, 0o600)
	if err != nil {
		return nil, func() {}, &usageError{fmt.Errorf("opening the trajectory: %w", err), "name a file that can be written"}
	}
	var policy trajectory.Policy
	if f.full {
		policy = trajectory.All(trajectory.KeepContent)
	}
	rec = trajectory.New(trajectory.JSONLines(file), policy)
	return rec, func() {
		switch dropped, err := rec.Err(); {
		case err != nil:
			fmt.Fprintf(stderr, "supervisor: warning: %v (%d events are missing)\n", err, dropped)
		case dropped > 0:
			fmt.Fprintf(stderr, "supervisor: warning: the trajectory lacks %d events that its file was too slow for\n", dropped)
		}
		file.Close()
	}, nil
}
