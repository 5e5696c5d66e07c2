package limits

import "slices"

// Config is a config file after defaults and clamping (SPEC 13, 19.1).
type Config struct {
	// Enabled is tools.codeMode.enabled, or tools.codeMode itself when that is a
	// boolean: the only switch (SPEC 2.1). Default false.
	Enabled bool

	// Limits are the other fields of tools.codeMode.
	Limits Limits

	// Supervisor is what the operator of the process decides.
	Supervisor SupervisorConfig
}

// SupervisorConfig is the part of the config that belongs to the process and not
// to a run (SPEC 13.4, 13.5).
type SupervisorConfig struct {
	// Worker is the path of the worker program. Empty, the default, means: look
	// beside the running program, then in PATH (SPEC 15.4).
	Worker string

	// WorkerSHA256 pins the worker program: 64 hexadecimal digits, in lower case
	// after parsing. Empty, the default, means any.
	WorkerSHA256 string

	// Pool is how many spare workers are started ahead. A spare takes about 6 MB
	// and saves a cell about 20 ms. Default 1, 0 to 64.
	Pool int

	// MaxWorkers is how many workers may live at once, spares included. Default
	// 2 × CPUs, 1 to 1,024.
	MaxWorkers int

	// MaxParkedRuns is how many runs may be parked at once. Default 64, 1 to 65,536.
	MaxParkedRuns int

	// MaxParkedBytes is how much their snapshots may take together. Default
	// 512 MiB, 1 MiB to 1 TiB.
	MaxParkedBytes int64

	// StateKeyFile is the file whose key seals a state directory: 64 hexadecimal digits,
	// readable by nobody else. Empty, the default, means the file "key" in the state
	// directory, which is made at the first use.
	StateKeyFile string

	// Isolation says which walls a worker needs.
	Isolation IsolationConfig
}

// IsolationConfig is supervisor.isolation (SPEC 15.2).
type IsolationConfig struct {
	// Preset is "best-effort" (the default: all that the host offers) or "strict".
	Preset string

	// Require names the layers without which no worker starts, beyond those of the
	// preset. Whether a layer of that name exists is for the policy to say.
	Require []string

	// CgroupParent is the cgroup under which workers get theirs. Empty, the
	// default, means the supervisor's own.
	CgroupParent string

	// UID and GID are the identity of workers when the supervisor runs as root. 0, the
	// default, means one that is picked for each run.
	UID, GID uint32
}

// DefaultConfig returns the config of an empty file.
func DefaultConfig() Config {
	var c Config
	for i := range table {
		table[i].reset(&c)
	}
	return c
}

// clone returns a copy that shares no memory with c.
func (c Config) clone() Config {
	c.Supervisor.Isolation.Require = slices.Clone(c.Supervisor.Isolation.Require)
	return c
}
