package supervisor

import (
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// deathbed is how long a worker whose channel has ended may take to end itself: on a busy machine
// the kernel takes a while to close a process's last descriptor and to report it dead.
const deathbed = 500 * time.Millisecond

// died explains a channel that ended before there was a result.
func (r *run) died(err error) *failure {
	var violation *workerproto.Violation
	if errors.As(err, &violation) {
		return r.violated(err)
	}
	// The channel closes a moment before the process is gone; killing it now would hide
	// what it died of. A worker that only closed its channel is killed all the same.
	r.leg.child.AwaitExit(deathbed)
	return &failure{phase: phaseDeath}
}

// violated ends a worker that lied (SPEC 15.5).
func (r *run) violated(err error) *failure {
	r.leg.child.Kill(process.KilledViolation)
	r.s.opts.Logger.Warn("a worker broke the protocol and was killed", "run", r.id, "worker_pid", r.leg.child.Pid(), "error", err)
	return hostf(InternalError, "the worker broke the protocol and was killed: %v", err)
}

// phaseDeath marks a failure whose cause is known only when the worker was reaped.
const phaseDeath Phase = "death"

// explain gives a worker's death its cause (SPEC 11.2, 16.2).
func (r *run) explain(f *failure) *failure {
	if f.phase != phaseDeath {
		return f
	}
	exit := r.usage
	r.s.opts.Logger.Warn("a worker died", "run", r.id, "exit", exit.String())
	switch {
	case exit.Signal == syscall.SIGSYS:
		return hostf(InternalError, "the kernel killed the worker for a system call that its seccomp filter does not allow. "+
			"No cell should be able to cause that: it is a bug of the worker, or somebody broke into it. Keep the cell and report it.")
	case r.leg.stage == "transform":
		return inputf(TypeScriptTransformFailed, "the TypeScript transformer did not survive this source (worker %s). "+
			"Sources that are nested very deeply do that; write a simpler program.", exit)
	case r.leg.stopping:
		return r.cancelled(errDeadline, "")
	case exit.OutOfMemory:
		r.hit("memoryLimitBytes")
		return limitf(MemoryLimitExceeded, "the worker ran out of memory (%s): the cell needs more than memoryLimitBytes (%d) allows", exit, r.p.Limits.MemoryBytes)
	default:
		text := fmt.Sprintf("the worker died before it had a result (%s)", exit)
		if exit.Code == 0 && exit.Signal == 0 && exit.Killed == process.NotKilled {
			text = "the worker ended without a result (exit code 0)"
		}
		return hostf(InternalError, "%s", text)
	}
}

// cancelled explains an end of the context: our own deadline, the caller's context or
// the end of the supervisor.
func (r *run) cancelled(cause error, doing string) *failure {
	if doing != "" {
		doing = " while " + doing
	}
	if errors.Is(cause, errDeadline) {
		r.hit("timeoutMs")
		return limitf(Timeout, "the cell did not end within timeoutMs (%d)%s%s", r.p.Limits.Timeout.Milliseconds(), doing, r.ledger.story())
	}
	return hostf(Aborted, "the run was aborted%s: %v%s", doing, cause, r.ledger.story())
}

// hit notes that a limit was reached.
func (r *run) hit(field string) {
	if !slices.Contains(r.limits, field) {
		r.limits = append(r.limits, field)
	}
}

// record may be called from the loop and from calls.
func (r *run) record(e trajectory.Event) {
	if r.p.Trajectory == nil {
		return
	}
	e.RunID, e.Parent, e.Time = r.id, r.p.ParentCallID, time.Now().UTC()
	if !r.emitter.add(func() { r.p.Trajectory.Record(e) }, e.Kind == trajectory.End) {
		r.p.Trajectory.Drop()
	}
}

// describe gives what the trajectory may have of a text.
func (r *run) describe(part trajectory.Part, toolID, text string) *trajectory.Data {
	if r.p.Trajectory == nil {
		return nil
	}
	return r.p.Trajectory.Describe(part, toolID, quoteJSON(text))
}
