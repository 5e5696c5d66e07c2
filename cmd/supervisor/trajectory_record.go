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

// endLine ends the last line of a file that was cut off, or the next event would be lost with
// it.
func endLine(file *os.File) error {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, info.Size()-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = file.WriteString("\n")
	return err
}

// recorder opens the trajectory, which must be none of the files inputs; mode is os.O_TRUNC for a new run and os.O_APPEND for one
// that goes on. It is nil if none was asked for. The caller calls done when the supervisor
// is closed.
func (f recordFlags) recorder(mode int, stderr io.Writer, inputs ...string) (rec *trajectory.Recorder, done func(), err error) {
	if f.file == "" {
		return nil, func() {}, nil
	}
	for _, in := range inputs {
		if sameFile(f.file, in) {
			return nil, func() {}, &usageError{fmt.Errorf("--trajectory %q would be written over what is read from it", f.file), "give the trajectory a file of its own"}
		}
	}
	access := os.O_WRONLY
	if mode == os.O_APPEND {
		access = os.O_RDWR // to see how it ends
	}
	file, err := os.OpenFile(f.file, os.O_CREATE|access|mode, 0o600)
	if err == nil {
		err = endLine(file)
	}
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
