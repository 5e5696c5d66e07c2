package supervisor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
)

// checkIsolation refuses what an operator asks for and does not get: a wall that is not
// there must never be taken for one that is (SPEC 1.3, 15.2).
func checkIsolation(c limits.IsolationConfig) error {
	have := process.Layers()
	for _, layer := range c.Require {
		if !slices.Contains(have, layer) {
			return fmt.Errorf("supervisor.isolation.require names %q, which this version does not have; it has %s. Take it out of the list, or do not run code mode", layer, strings.Join(have, ", "))
		}
	}
	switch {
	case c.Preset == "strict":
		return fmt.Errorf("supervisor.isolation.preset is \"strict\", and this version has no namespaces, Landlock, seccomp and cgroups yet; use \"best-effort\", or do not run code mode")
	case c.CgroupParent != "":
		return fmt.Errorf("supervisor.isolation.cgroupParent is %q, and this version does not use cgroups yet; leave it empty", c.CgroupParent)
	case c.UID != 0 || c.GID != 0:
		return fmt.Errorf("supervisor.isolation.uid and gid ask for another identity, and this version runs workers as its own user; leave them out")
	}
	return nil
}
