package main

import (
	"os"
	"path/filepath"
	"testing"
)

// SPEC 18.1: who goes on with a trajectory whose last line was cut off loses that line alone.
func TestEndLine(t *testing.T) {
	for before, want := range map[string]string{"": "", "{}\n": "{}\n", "{}\n{\"se": "{}\n{\"se\n"} {
		name := filepath.Join(t.TempDir(), "t.jsonl")
		if err := os.WriteFile(name, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(name, os.O_RDWR|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := endLine(file); err != nil {
			t.Errorf("%q: %v", before, err)
		}
		file.Close()
		if after, err := os.ReadFile(name); err != nil || string(after) != want {
			t.Errorf("%q became %q, %v", before, after, err)
		}
	}
}
