package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The import arrows of ARCHITECTURE.md: imports go one way, the border between
// parent and child is a line that no import crosses, and each awkward dependency
// has one home. A path is relative to the module and stands for the folder and
// all below it.
var (
	// leaves import nothing of ours but their own subfolders. Their tests may.
	leaves = []string{"workerproto", "limits", "catalog", "snapshot", "cmd/qjs-worker/internal/engine"}

	// never[a] lists what a does not import.
	never = map[string][]string{
		"supervisor":     {"cmd"},
		"cmd/qjs-worker": {"supervisor", "cmd/supervisor"},
	}

	// homes[dependency] lists the only places that may import it, tests included.
	homes = map[string][]string{
		"github.com/tetratelabs/wazero":  {"cmd/qjs-worker"},
		"github.com/evanw/esbuild":       {"cmd/qjs-worker"},
		"github.com/hashicorp/go-plugin": {"supervisor/internal/process"},
		"github.com/klauspost/compress":  {"cmd/qjs-worker", "catalog"}, // the supervisor packs, and never unpacks what a worker packed
		"go.etcd.io/bbolt":               {"snapshot"},
		"go.opentelemetry.io":            {"supervisor", "cmd/supervisor/internal/export", "test/e2e"},
		"github.com/prometheus":          {"cmd/supervisor/internal/export", "supervisor/internal/telemetry"}, // there, for a test

		"go.opentelemetry.io/otel/exporters/otlp": {"cmd/supervisor/internal/export"},

		"github.com/creachadair/jrpc2":           {"cmd/supervisor/internal/gatewayrpc"},
		"github.com/modelcontextprotocol/go-sdk": {"test/e2e"},

		"github.com/landlock-lsm/go-landlock": {"limits/lockdown"},
		"golang.org/x/net/bpf":                {"limits/lockdown"},
	}

	// A package with such a name has no sentence that says what it is.
	noNames = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared"}
)

const module = "github.com/openclaw/codemode-supervisor"

// listed is what we read of one package in `go list -json`.
type listed struct {
	ImportPath, Name                   string
	Imports, TestImports, XTestImports []string
}

// Validation 15: TypeScript is transformed and evaluated, and not loaded where code mode is off or the cell is JavaScript
func TestArrows(t *testing.T) {
	// What a package imports depends on the system it is built for.
	for _, goos := range []string{"linux", "darwin"} {
		t.Run(goos, func(t *testing.T) {
			pkgs := goList(t, goos)
			if len(pkgs) < 2 {
				t.Fatalf("go list found %d packages: the checker would pass on nothing", len(pkgs))
			}
			for _, violation := range violations(pkgs) {
				t.Error(violation)
			}
		})
	}
}

func TestArrowsCheckerFindsEachViolation(t *testing.T) {
	const wazero = "github.com/tetratelabs/wazero"
	pkgs := []listed{
		// Allowed, each of them close to something that is not.
		{ImportPath: "catalog", Name: "catalog", Imports: []string{module + "/catalog/declare"}, TestImports: []string{module + "/limits"}},
		{ImportPath: "cmd/qjs-worker/internal/engine", Name: "engine", Imports: []string{wazero + "/api"}},
		{ImportPath: "supervisor/internal/process", Name: "process", Imports: []string{"github.com/hashicorp/go-plugin"}},
		{ImportPath: "supervisor", Name: "supervisor", Imports: []string{module + "/limits", module + "/supervisor/internal/process"}},
		// Forbidden.
		{ImportPath: "snapshot", Name: "snapshot", Imports: []string{module + "/limits"}},
		{ImportPath: "limits", Name: "limits", Imports: []string{module + "/limitsextra"}},
		{ImportPath: "supervisor/surface", Name: "surface", Imports: []string{module + "/cmd/supervisor/internal/toolfile"}},
		{ImportPath: "cmd/qjs-worker/internal/serve", Name: "serve", Imports: []string{module + "/supervisor/trajectory"}},
		{ImportPath: "workerproto", Name: "workerproto", XTestImports: []string{wazero}},
		{ImportPath: "supervisor/pool", Name: "pool", Imports: []string{"github.com/hashicorp/go-plugin/runner"}},
		{ImportPath: "supervisor/internal/util", Name: "util"},
		{ImportPath: "cmd/qjs-worker/internal/guestkit", Name: "helpers"},
	}
	for i := range pkgs {
		pkgs[i].ImportPath = module + "/" + pkgs[i].ImportPath
	}
	want := []string{
		"snapshot imports limits: it may import nothing of ours but its own subfolders",
		"limits imports limitsextra: it may import nothing of ours but its own subfolders",
		"supervisor/surface imports cmd/supervisor/internal/toolfile: nothing in supervisor imports cmd",
		"cmd/qjs-worker/internal/serve imports supervisor/trajectory: nothing in cmd/qjs-worker imports supervisor",
		"workerproto imports github.com/tetratelabs/wazero: only cmd/qjs-worker may",
		"supervisor/pool imports github.com/hashicorp/go-plugin/runner: only supervisor/internal/process may",
		"supervisor/internal/util is a package called util: name it after what it does",
		"cmd/qjs-worker/internal/guestkit is a package called helpers: name it after what it does",
	}
	if diff := cmp.Diff(want, violations(pkgs)); diff != "" {
		t.Errorf("violations of the made-up packages (-want +got):\n%s", diff)
	}
}

// violations checks every package against the arrows, in the order given.
func violations(pkgs []listed) (found []string) {
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for _, pkg := range pkgs {
		path := strings.TrimPrefix(pkg.ImportPath, module+"/")
		if slices.Contains(noNames, pkg.Name) {
			report("%s is a package called %s: name it after what it does", path, pkg.Name)
		}
		for _, imported := range pkg.Imports {
			ours, isOurs := strings.CutPrefix(imported, module+"/")
			if !isOurs {
				continue
			}
			for _, leaf := range leaves {
				if within(path, leaf) && !within(ours, leaf) {
					report("%s imports %s: it may import nothing of ours but its own subfolders", path, ours)
				}
			}
			for from, targets := range never {
				for _, target := range targets {
					if within(path, from) && within(ours, target) {
						report("%s imports %s: nothing in %s imports %s", path, ours, from, target)
					}
				}
			}
		}
		for _, imported := range slices.Concat(pkg.Imports, pkg.TestImports, pkg.XTestImports) {
			for dependency, allowed := range homes {
				atHome := func(home string) bool { return within(path, home) }
				if within(imported, dependency) && !slices.ContainsFunc(allowed, atHome) {
					report("%s imports %s: only %s may", path, imported, strings.Join(allowed, ", "))
				}
			}
		}
	}
	return found
}

// within reports whether path is folder or below it.
func within(path, folder string) bool {
	return path == folder || strings.HasPrefix(path, folder+"/")
}

func goList(t *testing.T, goos string) (pkgs []listed) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, stderr.Bytes())
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg listed
		switch err := dec.Decode(&pkg); {
		case errors.Is(err, io.EOF):
			return pkgs
		case err != nil:
			t.Fatalf("output of %v: %v", cmd, err)
		}
		pkgs = append(pkgs, pkg)
	}
}
