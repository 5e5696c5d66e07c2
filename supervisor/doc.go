// Package supervisor runs cells, programs that a language model wrote, each in a
// worker process of its own.
//
//	s, err := supervisor.New(supervisor.Options{})
//	if err != nil { … }
//	defer s.Close()
//	res := s.Exec(ctx, supervisor.Program{
//		Code:     `const r = await tools.echo({v: 1}); r.v + 1`,
//		Catalog:  cat,      // what the cell may call
//		Executor: executor, // who calls it
//	})
//	if res.Status == supervisor.Completed { use(res.Value) }
//
// A run that waits for tools for longer than its time, or yields, is parked, and
// [Supervisor.Wait] goes on with it:
//
//	for res.Status == supervisor.Waiting {
//		res = s.Wait(ctx, supervisor.WaitRequest{RunID: res.RunID, Scope: scope})
//	}
//
// A result tells everything, failures included: [Result.Code] is what the gateway
// branches on, [Result.Error] what the model reads.
//
// Each run has one goroutine that owns its state. Workers are started through go-plugin,
// report over a private channel, and are killed when the run ends, whatever the
// reason. Everything a worker says after its first untrusted byte is bounded and
// checked; the first lie ends it.
//
// Close kills what runs, and returns when no process and no goroutine is left. Parked runs
// in a state directory stay, and the next supervisor finds them.
//
// What it does not protect against: the executor runs in this process with its
// rights, and what it returns reaches the guest as it is.
package supervisor
