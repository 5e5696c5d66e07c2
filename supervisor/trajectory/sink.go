package trajectory

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
)

// Sink takes events. A [Recorder] calls it under its lock, one event at a time, on the
// run's goroutine for listeners: one that blocks holds up the run's answers, and not its
// limits.
type Sink interface {
	// Write takes one event. After an error the sink gets no more of them, except after
	// [ErrDropped].
	Write(Event) error
}

// ErrDropped is the error of a sink that had no place for this event. It is counted, and
// the sink goes on.
var ErrDropped = errors.New("the event was dropped")

// SinkFunc makes a function a [Sink]: the callback of a program that embeds the
// supervisor.
type SinkFunc func(Event) error

// Write calls f.
func (f SinkFunc) Write(e Event) error { return f(e) }

// JSONLines writes one event a line. Content stands in it byte for byte, but for blanks
// between its tokens.
func JSONLines(w io.Writer) Sink { return &jsonLines{w: w} }

type jsonLines struct {
	w   io.Writer
	buf bytes.Buffer
}

func (s *jsonLines) Write(e Event) error {
	s.buf.Reset()
	enc := json.NewEncoder(&s.buf)
	enc.SetEscapeHTML(false) // six bytes for one would make lines that Read refuses
	if err := enc.Encode(e); err != nil {
		return err
	}
	_, err := s.w.Write(s.buf.Bytes()) // a line at once: two programs that append do not mix theirs
	return err
}

// Memory is a sink that keeps events. It may be used from anywhere at any time.
type Memory struct {
	maxEvents, maxBytes int

	mu      sync.Mutex
	events  []Event // guarded by mu
	bytes   int     // guarded by mu: of the contents
	dropped uint64  // guarded by mu
}

// NewMemory makes a sink that keeps up to maxEvents events with maxBytes bytes of content
// in all; 0 means 10,000 and 16 MiB. Over the bytes, an event loses its content; over the
// number, it is dropped. What came first is kept, for a tree needs its root, and the end
// of a run always has a place, in that of the event before it.
func NewMemory(maxEvents, maxBytes int) *Memory {
	if maxEvents <= 0 {
		maxEvents = 10_000
	}
	if maxBytes <= 0 {
		maxBytes = 16 << 20
	}
	return &Memory{maxEvents: maxEvents, maxBytes: maxBytes}
}

// Write keeps e, or gives [ErrDropped].
func (m *Memory) Write(e Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Data != nil && len(e.Data.Content) > m.maxBytes-m.bytes {
		e.Data = &Data{Bytes: e.Data.Bytes, SHA256: e.Data.SHA256}
	}
	if e.Data != nil {
		m.bytes += len(e.Data.Content)
	}
	if len(m.events) < m.maxEvents {
		m.events = append(m.events, e)
		return nil
	}
	m.dropped++
	if last := &m.events[len(m.events)-1]; e.Kind == End && last.Kind != End {
		*last = e
	}
	return ErrDropped
}

// Events gives a copy of what is kept, in order.
func (m *Memory) Events() []Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.events)
}

// Dropped counts the events for which there was no place.
func (m *Memory) Dropped() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dropped
}
