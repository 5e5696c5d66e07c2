package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/limits/isolation"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/supervisor/internal/telemetry"
)

// origin is what a worker is started from. A spare of another origin is thrown away.
type origin struct {
	path   string
	size   int64
	time   time.Time // of the last change to the file
	inode  uint64
	policy isolation.Policy
}

func newOrigin(path string, policy isolation.Policy) (origin, error) {
	info, err := os.Stat(path)
	if err != nil {
		return origin{}, fmt.Errorf("%w: build it with \"make build\", or name it with supervisor.worker", err)
	}
	if !info.Mode().IsRegular() {
		return origin{}, fmt.Errorf("the worker %q is not a file (%s): name the program with supervisor.worker", path, info.Mode().Type())
	}
	return origin{path, info.Size(), info.ModTime(), inode(info), policy}, nil
}

// SetIsolation changes what must be around the workers that are started from now on. Spare
// workers of the old policy are thrown away; runs that have a worker keep it. It fails, and
// changes nothing, for a preset or layer that does not exist.
func (s *Supervisor) SetIsolation(c limits.IsolationConfig) error {
	policy, err := isolation.NewPolicy(c)
	if err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	s.mu.Lock()
	s.policy = policy
	s.mu.Unlock()
	s.pool.nudge()
	return nil
}

// start starts a worker.
func (s *Supervisor) start(ctx context.Context, order process.Order) (*process.Child, *process.Spawner, error) {
	for {
		spawner, err := s.spawn()
		if err != nil {
			s.opts.Logger.Error("no worker can be started", "error", err)
			s.startFailed(telemetry.StartUnavailable, err)
			return nil, nil, err
		}
		if err := s.breaker.enter(); err != nil {
			s.startFailed(telemetry.StartHeldBack, err)
			return nil, nil, err
		}
		child, err := spawner.Start(ctx, order)
		var missing *isolation.MissingError
		switch {
		case errors.Is(err, process.ErrClosed): // another one took its place
			s.breaker.abandon()
			continue
		case err != nil && ctx.Err() != nil, errors.As(err, &missing): // no fault of the worker
			s.breaker.abandon()
		case s.breaker.leave(err):
			s.opts.Logger.Error("workers do not start; starts are held back for longer and longer until one succeeds", "failures", breakerFree, "error", err)
		case err != nil:
			s.opts.Logger.Error("a worker did not start", "error", err)
		}
		if err != nil {
			why := telemetry.StartFailed
			switch {
			case ctx.Err() != nil:
				why = telemetry.StartGivenUp
			case missing != nil:
				why = telemetry.StartIsolation
			}
			s.startFailed(why, err)
			return nil, nil, err
		}
		s.alive.Add(1)
		s.warn(child.Report)
		return child, spawner, nil
	}
}

// warn says once which layers this host lacks (SPEC 15.2).
func (s *Supervisor) warn(r isolation.Report) {
	s.warned.Do(func() {
		for _, missing := range r.Missing() {
			s.opts.Logger.Warn("workers run without an isolation layer", "layer", missing.Layer, "state", missing.State, "reason", missing.Reason, "remedy", missing.Remedy)
		}
	})
}

// reaped waits until nothing of a killed or dead worker is left, and says if something is.
func (s *Supervisor) reaped(child *process.Child) process.Exit {
	exit := child.Wait()
	if exit.Left != nil {
		s.opts.Logger.Error("something of a worker is left behind", "worker_pid", child.Pid(), "error", exit.Left)
	}
	return exit
}

// spawn gives the spawner for the worker and the policy that are in force now.
func (s *Supervisor) spawn() (*process.Spawner, error) {
	path, err := s.worker.find()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := newOrigin(path, s.policy)
	if err != nil {
		return nil, err
	}
	if s.spawner != nil && s.origin == now {
		return s.spawner, nil
	}
	if s.closed {
		return nil, errClosed
	}
	spawner, err := s.newSpawner(path, s.policy, false)
	if err != nil {
		return nil, err
	}
	if old := s.spawner; old != nil {
		s.wg.Go(func() { s.close(old) }) // when its children are gone
		s.breaker.reset()
	}
	s.spawner, s.origin = spawner, now
	return spawner, nil
}

func (s *Supervisor) newSpawner(path string, policy isolation.Policy, attack bool) (*process.Spawner, error) {
	cache, err := cacheDir(s.opts.CacheDir)
	if err != nil {
		return nil, err
	}
	return process.NewSpawner(process.Config{Path: path, CacheDir: cache, Policy: policy, Without: s.without, Attack: attack})
}

func (s *Supervisor) close(spawner *process.Spawner) {
	if err := spawner.Close(); err != nil {
		s.opts.Logger.Error("something of a worker's surroundings is left behind", "error", err)
	}
}
