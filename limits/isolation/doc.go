// Package isolation says what keeps a worker apart: the layers, the operator's policy
// about them, and the report of what the kernel really enforces (SPEC 15.1, 15.2).
//
//	policy, err := isolation.NewPolicy(config.Supervisor.Isolation)
//	…
//	if err := policy.Check(report); err != nil { … no untrusted byte is sent … }
//
// Everything here is plain data and pure functions. The host half of the layers is
// applied by supervisor/internal/process and [cgroup], the self half by [lockdown].
//
// [cgroup]: https://pkg.go.dev/github.com/openclaw/codemode-supervisor/limits/cgroup
// [lockdown]: https://pkg.go.dev/github.com/openclaw/codemode-supervisor/limits/lockdown
package isolation
