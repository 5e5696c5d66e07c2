// Package attack is what a worker would try that was taken over: single system calls, each with
// the answers that count as a refusal and the layer that gives them (SPEC 15.3).
//
//	for _, a := range attack.All() {
//		outcome, err := attack.Run(a.Name) // in a locked worker, a fresh one for each
//		v := a.Judge(outcome, report)      // in the supervisor
//	}
//
// [Run] must be called in the process that is under test, and last: an attack that succeeds may
// leave it in another namespace, without its stack of signal handlers, or forked. One that seccomp
// refuses does not return: the kernel kills the process, and who waits for it says "SIGSYS".
//
// An attack that nothing refuses must do no harm to the machine of the operator who asks.
// Signals are signal 0, names are of files that are made first, ids are of nothing, and what
// changes the machine as a whole is called with one argument that is checked after the
// permission. So an answer such as EINVAL or EBADF mostly means that the call was reached; it is a
// refusal only where [Attack.Refused] says so.
//
// The package knows what the layers promise, not what they do about attacks that are no system
// call: memory that is mapped and executable already, and the channel to the supervisor.
package attack
