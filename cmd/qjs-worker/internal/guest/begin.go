package guest

import (
	"fmt"
	"strconv"
)

// Begin gives a guest that was made ahead of its run, with [Restore] from the start
// image, what is known only now: its heap limit in bytes, its tools and namespaces.
func (g *Guest) Begin(memoryLimit int64, opts Options) error {
	if err := g.vm.SetMemoryLimit(memoryLimit); err != nil {
		return err
	}
	g.surface = opts.Surface
	there := `{"tools":` + strconv.FormatBool(len(g.surface.Tools.Data) > len("[]")) + `,"mcp":` + strconv.FormatBool(len(g.surface.MCP.Data) > 0) + `}`
	if err := g.send("setup", []byte(there)); err != nil {
		return fmt.Errorf("setting up the guest: %w", err)
	}
	if len(opts.Scopes) > 0 {
		if err := g.send("namespaces", opts.Scopes); err != nil {
			return fmt.Errorf("setting up the namespaces: %w", err)
		}
	}
	return nil
}
