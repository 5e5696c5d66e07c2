package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor"
	"golang.org/x/term"
)

// progress is one line on a terminal that says what a parked run waits for, and since
// when. Elsewhere it is nothing.
type progress struct {
	w    io.Writer // nil: no terminal
	file *os.File

	mu     sync.Mutex
	text   string // guarded by mu: what is waited for, "" if nothing is
	since  time.Time
	hidden int // guarded by mu: how many need the terminal for themselves
	drawn  bool
	stop   chan struct{}
	done   chan struct{}
}

func newProgress(w io.Writer) *progress {
	p := &progress{}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		p.w, p.file = w, file
	}
	return p
}

// whatFor says in words what a parked run waits for.
func whatFor(r *supervisor.Result) string {
	if r.Reason == supervisor.ReasonYield {
		if r.Note != "" {
			return "it yielded: " + r.Note
		}
		return "it yielded"
	}
	const most = 3
	var calls []string
	for i, c := range r.PendingToolCalls {
		if i == most {
			calls = append(calls, fmt.Sprintf("and %d more", len(r.PendingToolCalls)-most))
			break
		}
		text := c.ToolID
		if c.Reason != "" {
			text += " (" + c.Reason + ")"
		}
		calls = append(calls, text)
	}
	if len(calls) == 0 {
		return "a timer"
	}
	return strings.Join(calls, ", ")
}

// show begins to show what r waits for.
func (p *progress) show(r *supervisor.Result) {
	if p.w == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = (&printer{p.w, true}).clean(strings.ReplaceAll(whatFor(r), "\n", " "))
	if p.stop == nil {
		p.since, p.stop, p.done = time.Now(), make(chan struct{}), make(chan struct{})
		go p.tick(p.stop) // end waits for it
	}
	p.draw()
}

// pause takes the line away until goOn.
func (p *progress) pause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hidden++
	p.wipe()
}

func (p *progress) goOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hidden--
	p.draw()
}

// end takes it away for good. It may be called twice.
func (p *progress) end() {
	p.mu.Lock()
	p.wipe()
	p.text = ""
	stop := p.stop
	p.stop = nil
	p.mu.Unlock()
	if stop != nil {
		close(stop)
		<-p.done
	}
}

func (p *progress) tick(stop <-chan struct{}) {
	defer close(p.done)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		case <-stop:
			return
		}
	}
}

func (p *progress) draw() {
	if p.w == nil || p.hidden > 0 || p.text == "" {
		return
	}
	line := fmt.Sprintf("waiting %s for %s", time.Since(p.since).Round(time.Second), p.text)
	if width, _, err := term.GetSize(int(p.file.Fd())); err == nil && width > 1 {
		if runes := []rune(line); len(runes) >= width {
			line = string(runes[:width-2]) + "…"
		}
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	p.drawn = true
}

func (p *progress) wipe() {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
}
