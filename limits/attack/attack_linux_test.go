package attack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/limits/attack"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// trial and result are Case and Result of testdata/attacker.
type trial struct {
	Layers []isolation.Layer
	Attack string
}

type result struct {
	Outcome string
	Report  isolation.Report
	Err     string
}

// attacker builds testdata/attacker once, where every user may execute it.
func attacker(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "attack")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(dir, "attacker")
	cmd := exec.Command("go", "build", "-o", bin, "./testdata/attacker")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return bin
}

// try runs trials as the user with that id.
func try(t *testing.T, bin string, uid int, trials []trial) []result {
	t.Helper()
	in, err := json.Marshal(trials)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "spawn")
	cmd.Dir = "/"
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	if uid != os.Getuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var results []result
	if err := json.Unmarshal(out, &results); err != nil || len(results) != len(trials) {
		t.Fatalf("%d results of %d trials, %v", len(results), len(trials), err)
	}
	return results
}

// users are the uids that this test can be.
func users() []int {
	if os.Getuid() == 0 {
		return []int{0, 65534}
	}
	return []int{os.Getuid()}
}

// needed are the layers without which one cannot be had.
var needed = map[isolation.Layer][]isolation.Layer{
	isolation.EmptyRoot:       {isolation.MountNamespace},
	isolation.LandlockFiles:   {isolation.NoNewPrivs},
	isolation.LandlockNetwork: {isolation.NoNewPrivs},
	isolation.LandlockScopes:  {isolation.NoNewPrivs},
	isolation.Seccomp:         {isolation.NoNewPrivs},
}

// Each layer alone gives the answers that the table promises. SPEC 15.3
func TestEachLayerAlone(t *testing.T) {
	bin := attacker(t)
	var trials []trial
	for _, layer := range isolation.Layers() {
		for _, a := range attack.All() {
			if len(a.Refused[layer]) > 0 {
				trials = append(trials, trial{append(needed[layer], layer), a.Name})
			}
		}
	}
	for _, uid := range users() {
		t.Run(fmt.Sprintf("uid=%d", uid), func(t *testing.T) {
			tried, missing := map[isolation.Layer]int{}, map[isolation.Layer]string{}
			for i, r := range try(t, bin, uid, trials) {
				c := trials[i]
				layer := c.Layers[len(c.Layers)-1]
				if r.Err != "" {
					t.Errorf("%s: %q: %s", layer, c.Attack, r.Err)
					continue
				}
				// Bounding sets are not the worker's to empty without a user namespace, but who
				// has no rights at all cannot be told from one who gave them up.
				if s := r.Report.Get(layer); s.State != isolation.On && (layer != isolation.Capabilities || uid == 0) {
					missing[layer] = s.Reason
					continue
				}
				tried[layer]++
				a, _ := attack.Find(c.Attack)
				if !slices.Contains(a.Refused[layer], r.Outcome) && r.Outcome != "ENOSYS" && r.Outcome != "EAFNOSUPPORT" {
					t.Errorf("%s alone: %q gives %s, want %v", layer, c.Attack, r.Outcome, a.Refused[layer])
				}
			}
			t.Logf("tried %v", tried)
			for layer, reason := range missing {
				t.Logf("not tried: %s is unavailable: %s", layer, reason)
			}
		})
	}
}

// unproven are answers that a process may also get without the layer.
var unproven = map[string][]isolation.Layer{
	"open /dev/tty":                          {isolation.ProcessGroup},                          // a test has no terminal that it could lose
	"duplicate descriptors that nobody gave": {isolation.Descriptors},                           // package exec passes none on
	"raise an own limit":                     {isolation.Capabilities, isolation.UserNamespace}, // root of a container lacks CAP_SYS_RESOURCE
}

// Without any layer root gets past the permission: an answer then is none of a layer's, or the
// attack would prove nothing.
func TestReachedWithoutLayers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("requires root: others are refused by the kernel without any layer")
	}
	bin := attacker(t)
	var trials []trial
	for _, a := range attack.All() {
		trials = append(trials, trial{nil, a.Name})
	}
	for i, r := range try(t, bin, 0, trials) {
		if r.Err != "" {
			t.Errorf("%q: %s", trials[i].Attack, r.Err)
			continue
		}
		if testing.Verbose() {
			t.Logf("%-50s %s", trials[i].Attack, r.Outcome)
		}
		a, _ := attack.Find(trials[i].Attack)
		for layer, refused := range a.Refused {
			if slices.Contains(refused, r.Outcome) && !slices.Contains(unproven[a.Name], layer) {
				t.Errorf("%q gives %s without any layer, which is the refusal of %s", trials[i].Attack, r.Outcome, layer)
			}
		}
	}
	if left, err := filepath.Glob("/tmp/codemode-attack-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// With all layers, and with all but seccomp, whatever is covered is refused: layers do not hide
// each other's answers.
func TestLayersTogether(t *testing.T) {
	bin := attacker(t)
	for _, uid := range users() {
		for _, without := range []isolation.Layer{"", isolation.Seccomp} {
			name := fmt.Sprintf("uid=%d", uid)
			if without != "" {
				name += " without " + string(without)
			}
			t.Run(name, func(t *testing.T) {
				layers := slices.DeleteFunc(isolation.Layers(), func(l isolation.Layer) bool { return l == without || l == isolation.ParentDeath })
				var trials []trial
				for _, a := range attack.All() {
					trials = append(trials, trial{layers, a.Name})
				}
				covered := 0
				for i, r := range try(t, bin, uid, trials) {
					if r.Err != "" {
						t.Errorf("%q: %s", trials[i].Attack, r.Err)
						continue
					}
					a, _ := attack.Find(trials[i].Attack)
					v := a.Judge(r.Outcome, r.Report)
					if v.Covered {
						covered++
					}
					if v.Covered && !v.Refused {
						t.Errorf("%q gives %s, want one of %v", a.Name, r.Outcome, v.Expected)
					}
				}
				t.Logf("%d of %d attacks are covered", covered, len(trials))
			})
		}
	}
}
