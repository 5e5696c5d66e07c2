package snapshot

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// memory is the store that ends with its process.
type memory struct {
	key    *Key
	bounds Bounds

	mu   sync.Mutex
	runs map[string]*kept // guarded by mu; nil once closed
}

type kept struct {
	meta          Meta
	record, image []byte // sealed; nil: none
	log           [][]byte
}

// NewMemory makes a store that keeps runs in memory, the default (SPEC 14.5). What it keeps
// is sealed all the same (SPEC 14.3), with a key that nobody else ever has.
func NewMemory(b Bounds) Store {
	return &memory{key: NewKey(), bounds: b, runs: map[string]*kept{}}
}

func (s *memory) Save(m Meta, record, image []byte) error {
	if err := m.check(record, image); err != nil {
		return err
	}
	m = m.normal()
	m.Held = !m.State.Terminal()
	k := &kept{}
	if len(record) > 0 {
		k.record = s.key.Seal(m.binding(m.recordKind()), record)
	}
	if m.Held {
		m.Holder = os.Getpid()
		if len(image) > 0 {
			k.image = s.key.Seal(m.imageBinding(m.Engine), image)
		}
	}
	m.Bytes = int64(len(k.record) + len(k.image))
	k.meta = m

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		return errClosed
	}
	if m.Held {
		if err := s.bounds.room(&m, m.Bytes, s.list()); err != nil {
			return err
		}
	} else {
		for _, id := range overflow(&m, m.Bytes, s.list()) {
			delete(s.runs, id)
		}
	}
	s.runs[m.ID] = k
	return nil
}

func (s *memory) Append(id string, entry []byte) error {
	if err := checkEntry(id, entry); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.held(id)
	if err != nil {
		return err
	}
	if len(entry) > SmallEntry {
		if err := s.bounds.grow(&k.meta, int64(len(entry)+Overhead), s.list()); err != nil {
			return err
		}
	}
	sealed := s.key.Seal(k.meta.binding(KindLog), entry)
	k.log = append(k.log, sealed)
	k.meta.Bytes += int64(len(sealed))
	return nil
}

func (s *memory) Reserve(id string, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.held(id)
	if err != nil || n <= 0 {
		return err
	}
	if err := s.bounds.grow(&k.meta, n, s.list()); err != nil {
		return err
	}
	k.meta.Bytes += n
	return nil
}

func (s *memory) SetState(id string, state State) error {
	if err := checkSet(id, state); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.held(id)
	if err != nil {
		return err
	}
	k.meta.State = state
	return nil
}

// Release only looks: there is nobody else who could claim it.
func (s *memory) Release(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.held(id)
	return err
}

func (s *memory) Find(id string) (Meta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.get(id)
	if err != nil {
		return Meta{}, err
	}
	return k.meta, nil
}

// Claim is Load: nobody else could have the run.
func (s *memory) Claim(id string) (Saved, error) { return s.Load(id) }

func (s *memory) Load(id string) (Saved, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.get(id)
	if err != nil {
		return Saved{}, err
	}
	return open(s.key, k.meta, k.record, k.log)
}

func (s *memory) Image(id, engine string) ([]byte, error) {
	s.mu.Lock()
	k, err := s.get(id)
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	// A run's image never changes once it is in the map, so it can be opened outside.
	if k.image == nil {
		return nil, fmt.Errorf("the image of run %q: %w", id, ErrUnknown)
	}
	plain, err := s.key.Open(k.meta.imageBinding(engine), k.image)
	if err != nil {
		return nil, fmt.Errorf("the image of run %q: %w", id, err)
	}
	return plain, nil
}

func (s *memory) Delete(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		return errClosed
	}
	delete(s.runs, id)
	return nil
}

func (s *memory) List() ([]Meta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		return nil, errClosed
	}
	return s.list(), nil
}

func (s *memory) Expire(now time.Time) (next time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs == nil {
		return next, errClosed
	}
	for id, k := range s.runs {
		switch fateOf(&k.meta, now) {
		case becomesTombstone:
			s.runs[id] = &kept{meta: tombstone(k.meta, now)}
		case goes:
			delete(s.runs, id)
		}
	}
	return nextExpiry(s.list(), now), nil
}

// Lost is empty: no other process can reach what this one has.
func (s *memory) Lost() ([]string, error) { return nil, nil }

func (s *memory) Durable() bool { return false }

func (s *memory) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs = nil
	return nil
}

// get, held and list need mu.

func (s *memory) get(id string) (*kept, error) {
	if s.runs == nil {
		return nil, errClosed
	}
	k, ok := s.runs[id]
	if !ok {
		return nil, fmt.Errorf("run %q: %w", id, ErrUnknown)
	}
	return k, nil
}

// held is get for a run that is not over.
func (s *memory) held(id string) (*kept, error) {
	k, err := s.get(id)
	if err == nil && !k.meta.Held {
		err = fmt.Errorf("run %q: %w", id, ErrLost)
	}
	return k, err
}

func (s *memory) list() []Meta {
	metas := make([]Meta, 0, len(s.runs))
	for _, k := range s.runs {
		metas = append(metas, k.meta)
	}
	sortMetas(metas)
	return metas
}

// open opens a run's record and log.
func open(key *Key, m Meta, record []byte, log [][]byte) (Saved, error) {
	s := Saved{Meta: m}
	var err error
	if len(record) > 0 {
		if s.Record, err = key.Open(m.binding(m.recordKind()), record); err != nil {
			return Saved{}, fmt.Errorf("the record of run %q: %w", m.ID, err)
		}
	}
	for i, sealed := range log {
		entry, err := key.Open(m.binding(KindLog), sealed)
		if err != nil {
			return Saved{}, fmt.Errorf("entry %d in the log of run %q: %w", i+1, m.ID, err)
		}
		s.Log = append(s.Log, entry)
	}
	return s, nil
}
