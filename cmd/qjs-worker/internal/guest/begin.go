package guest

import "fmt"

// Begin gives a guest that was made ahead of its run, with [Restore] from the start
// image, what is known only now: its heap limit in bytes and its tools.
func (g *Guest) Begin(memoryLimit int64, opts Options) error {
	if err := g.vm.SetMemoryLimit(memoryLimit); err != nil {
		return err
	}
	tools := opts.Tools
	if len(tools) == 0 {
		tools = []byte("[]")
	}
	if err := g.send("setup", tools); err != nil {
		return fmt.Errorf("setting up the guest: %w", err)
	}
	return nil
}
