package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// Issue 6, SPEC 10.1, 18.1: the trajectory of a run that was parked twice and killed once reads
// as one tree with the original exec as its root. Four processes wrote it, one of which ended by
// SIGKILL while its worker was in the middle of a call.
func TestTrajectoryOfParkedAndKilledRunIsOneTree(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real workers")
	}
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("cell.js", `
		text("a");
		await tools.echo({ k: 1 });
		await yield_control("one");
		await tools.slow({ k: 2 }).catch(e => text(e.code));
		await yield_control("two");
		await tools.echo({ k: 3 });
		return 9;
	`)
	// The slow tool says that it began, and does not end by itself for a minute.
	write("tools.json5", `{ tools: [
		{ name: "echo", echo: true },
		{ name: "slow", command: ["sh", "-c", "echo $$ >began; exec sleep 60"] },
	] }`)
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), filepath.Join(binaries(t), "supervisor"), append(args, "--json", "--no-wait", "--tools", "tools.json5", "--state-dir", "state", "--trajectory", "t.jsonl")...)
		cmd.Dir, cmd.WaitDelay = dir, 10*time.Second
		cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+cacheHome(t))
		return cmd
	}
	var result struct {
		Status, RunID, Reason string
		Value                 int
	}
	run := func(exit int, args ...string) {
		t.Helper()
		cmd := command(args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		var ee *exec.ExitError
		if err != nil && !errors.As(err, &ee) || cmd.ProcessState.ExitCode() != exit {
			t.Fatalf("%q: %v, want exit code %d\n%s%s", args, err, exit, out, stderr.Bytes())
		}
		if err := json.Unmarshal(out, &result); err != nil {
			t.Fatalf("%q: %v in %s", args, err, out)
		}
	}
	run(6, "run", "cell.js")
	id := result.RunID
	if result.Status != "waiting" || result.Reason != "yield" {
		t.Fatalf("got %+v", result)
	}

	killed := command("wait", id)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	tool := 0 // the slow tool's process
	await(t, 30*time.Second, "the slow call, and its event,", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "began"))
		events, _ := os.ReadFile(filepath.Join(dir, "t.jsonl"))
		return err == nil && json.Unmarshal(b, &tool) == nil && bytes.Contains(events, []byte(`"client:app:slow"`))
	})
	if err := killed.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	syscall.Kill(tool, syscall.SIGKILL) // it has no supervisor any more
	noWorkers(t, time.Second)

	run(6, "wait", id)
	run(0, "wait", id)
	if result.Status != "completed" || result.Value != 9 {
		t.Fatalf("got %+v", result)
	}

	file, err := os.Open(filepath.Join(dir, "t.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log, err := trajectory.Read(file)
	if err != nil || log.Skipped+log.Omitted > 0 || log.Cut {
		t.Fatalf("%d lines were skipped, %v", log.Skipped, err)
	}
	for _, e := range log.Events {
		if e.RunID != id || e.Parent != "exec" {
			t.Errorf("event %+v is of another run or exec", e)
		}
	}
	tree := log.Tree()
	if len(tree.Runs) != 1 {
		t.Fatalf("%d roots", len(tree.Runs))
	}
	root := tree.Runs[0]
	if root.RunID != id || root.ExecID != "exec" || root.Partial || root.Source == nil || root.State != trajectory.Completed {
		t.Errorf("the root is %+v", root)
	}
	if want := (trajectory.Counts{Calls: 3, Failed: 1, Outputs: 2, Parks: 2, Kills: 1}); root.Counts != want {
		t.Errorf("got %+v, want %+v", root.Counts, want)
	}
	var got []string
	for _, leg := range root.Legs {
		line := string(leg.End)
		for _, item := range leg.Items {
			line += " " + string(item.Kind)
			if c := item.Call; c != nil {
				line += "(" + strings.TrimPrefix(c.ToolID, "client:app:") + " " + string(c.State) + " " + c.Code + ")"
				if c.Sends != 1 || !strings.HasPrefix(c.ID, id+":") {
					t.Errorf("call %+v", c)
				}
			}
		}
		got = append(got, line)
	}
	want := []string{
		"parked output tool_call(echo done ) yield",
		"killed tool_call(slow failed interrupted)",
		"parked output yield",
		"ended tool_call(echo done )",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("legs (-want +got):\n%s", diff)
	}
}
