package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/openclaw/codemode-supervisor/limits/attack"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/workerproto"
)

// Examine starts a worker, whatever the policy requires, and says what became of every
// isolation layer (SPEC 15.3). No untrusted byte reaches that worker. If none can be started,
// the report has what is known without one, nothing if it did not come that far, and the error
// says why.
func (s *Supervisor) Examine(ctx context.Context) (isolation.Report, error) {
	spawner, err := s.examiner(false)
	if err != nil {
		return nil, err
	}
	defer s.close(spawner)
	child, err := spawner.Start(ctx, process.Order{})
	if err != nil {
		return spawner.Report(), err
	}
	child.Kill(process.KilledDone)
	s.reaped(child)
	return child.Report, nil
}

// Policy is what must be around a worker: Options.Isolation, or what [Supervisor.SetIsolation]
// was given last.
func (s *Supervisor) Policy() isolation.Policy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.policy
}

// examiner makes a spawner that starts workers even if they lack what the policy requires.
func (s *Supervisor) examiner(attacks bool) (*process.Spawner, error) {
	path, err := s.worker.find()
	if err != nil {
		return nil, err
	}
	return s.newSpawner(path, s.Policy().Lenient(), attacks)
}

// AttackResult is how the kernel answered one attack from inside a worker.
type AttackResult struct {
	Name    string
	About   string // what an attacker would gain
	Outcome string // "OK", an errno's name, or the signal that ended the worker: "SIGSYS"
	// Covered is that a layer which is on refuses this, Refused that one did.
	Covered, Refused bool
	By               []isolation.Layer // layers whose answer this is
	Expected         []string          // answers of layers that are on
}

// Attack makes the attacks of package attack whose names match only, nil for all, from inside
// a worker of its own each, locked down as all are. It hands each result to each, in order
// (SPEC 15.3). The error is that of a worker that could not be started or attacked.
func (s *Supervisor) Attack(ctx context.Context, only *regexp.Regexp, each func(AttackResult)) error {
	spawner, err := s.examiner(true)
	if err != nil {
		return err
	}
	defer s.close(spawner)
	type report struct {
		result AttackResult
		err    error
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	attacks := slices.DeleteFunc(attack.All(), func(a attack.Attack) bool { return only != nil && !only.MatchString(a.Name) })
	reports := make([]chan report, len(attacks))
	for i := range reports {
		reports[i] = make(chan report, 1)
	}
	var next atomic.Int64
	for range runtime.NumCPU() {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(attacks) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				result, err := s.attack(ctx, spawner, attacks[i])
				reports[i] <- report{result, err}
			}
		})
	}
	for i, a := range attacks {
		select {
		case r := <-reports[i]:
			if r.err != nil {
				return fmt.Errorf("attack %q: %w", a.Name, r.err)
			}
			each(r.result)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (s *Supervisor) attack(ctx context.Context, spawner *process.Spawner, a attack.Attack) (AttackResult, error) {
	child, err := spawner.Start(ctx, process.Order{})
	if err != nil {
		return AttackResult{}, err
	}
	stop := context.AfterFunc(ctx, func() { child.Kill(process.KilledAbort) })
	defer stop()
	outcome, err := answer(child, a.Name)
	if err != nil {
		child.AwaitExit(grace)
	}
	child.Kill(process.KilledDone)
	exit := s.reaped(child)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return AttackResult{}, context.Cause(ctx)
	case exit.Signal == syscall.SIGSYS:
		outcome = "SIGSYS"
	default:
		return AttackResult{}, fmt.Errorf("the worker did not say how it went: %w (worker %s)", err, exit)
	}
	v := a.Judge(outcome, child.Report)
	return AttackResult{Name: a.Name, About: a.About, Outcome: outcome, Covered: v.Covered, Refused: v.Refused, By: v.By, Expected: v.Expected}, nil
}

// answer has a worker make an attack.
func answer(child *process.Child, name string) (string, error) {
	if err := child.Conn.Write(&workerproto.Start{Source: []byte(name)}); err != nil {
		return "", err
	}
	event, err := child.Conn.ReadEvent()
	if err != nil {
		return "", err
	}
	switch m := event.(type) {
	case *workerproto.Done:
		var outcome string
		return outcome, json.Unmarshal(m.Value, &outcome)
	case *workerproto.Failed:
		return "", errors.New(m.Error)
	}
	return "", &workerproto.Violation{Type: event.Type(), Reason: "an attack ends with done or failed"}
}
