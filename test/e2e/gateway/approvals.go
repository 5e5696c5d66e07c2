package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/openclaw/codemode-supervisor/supervisor/surface"
)

// Pending is a call that waits for a person.
type Pending struct {
	ID     int
	Event  surface.HookEvent
	Reason string
}

// approvals are the calls that wait for a person.
type approvals struct {
	mu     sync.Mutex
	last   int
	list   []Pending
	answer map[int]chan error
}

// ask waits for a person's answer: nil is yes.
func (a *approvals) ask(ctx context.Context, e surface.HookEvent, reason string) error {
	answer := make(chan error, 1)
	a.mu.Lock()
	a.last++
	id := a.last
	a.list = append(a.list, Pending{id, e, reason})
	if a.answer == nil {
		a.answer = map[int]chan error{}
	}
	a.answer[id] = answer
	a.mu.Unlock()
	defer a.forget(id)
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (a *approvals) forget(id int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.answer, id)
	a.list = slices.DeleteFunc(a.list, func(p Pending) bool { return p.ID == id })
}

func (a *approvals) decide(id int, err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer, ok := a.answer[id]
	if !ok {
		return fmt.Errorf("no call waits for approval under %d", id)
	}
	answer <- err
	delete(a.answer, id)
	return nil
}

// Pending lists the calls that wait for a person, the oldest first.
func (g *Gateway) Pending() []Pending {
	g.approvals.mu.Lock()
	defer g.approvals.mu.Unlock()
	return slices.Clone(g.approvals.list)
}

// Approve lets a pending call go on.
func (g *Gateway) Approve(id int) error { return g.approvals.decide(id, nil) }

// Refuse ends a pending call; the cell is told why.
func (g *Gateway) Refuse(id int, why string) error {
	return g.approvals.decide(id, errors.New("a person refused it: "+why))
}
