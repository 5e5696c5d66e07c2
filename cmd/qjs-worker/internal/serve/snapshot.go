package serve

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/cell"
)

// A snapshot is one zstd frame (RFC 8878) with a window of at most 256 KiB and a checksum,
// of these parts, one behind the other (SPEC 14.3):
//
//	"codemode snapshot 1\n"  the number is the format
//	64 bytes and "\n"        what it fits: Ready.Engine of the worker that made it
//	4 bytes, then as many    the position map (cell.Positions), which a stack of a later leg needs
//	4 bytes, then as many    the worker's own state, JSON (state)
//	the rest                 the guest, as engine.VM.WriteImage writes it
//
// Lengths are unsigned, little-endian. The supervisor reads nothing of this: it seals the
// stream and gives it back.
const snapshotMagic = "codemode snapshot 1\n"

// Bounds of what a snapshot may hold beside the guest. What the pages of the guest may
// hold, its memory limit says, so that no part of a snapshot is without a bound.
const (
	maxWindow    = 256 << 10
	maxPositions = 64 << 20
	maxState     = 32 << 20
)

// errOtherEngine says that a snapshot is another build's.
var errOtherEngine = errors.New("another build of the worker made it")

// state is what the worker itself must know of the legs before.
type state struct {
	Elapsed float64    `json:"elapsed"` // the guest's clock, in milliseconds
	Used    uint64     `json:"used"`    // of the output budget
	Omitted uint64     `json:"omitted"`
	Full    bool       `json:"full"`
	Sent    uint64     `json:"sent"` // calls sent: the last id on the wire
	Calls   []openCall `json:"calls"`
}

// openCall is a call that was sent and not settled.
type openCall struct {
	Wire  uint64 `json:"wire"`  // its id on the wire
	Guest uint64 `json:"guest"` // and in the guest
	Bytes int    `json:"bytes"` // of its input
}

// check refuses what no worker writes.
func (s *state) check() error {
	if !(s.Elapsed >= 0 && s.Elapsed <= math.MaxInt64/1e6) {
		return fmt.Errorf("a clock of %v ms", s.Elapsed)
	}
	wire, known := map[uint64]bool{}, map[uint64]bool{}
	for _, c := range s.Calls {
		if c.Wire < 1 || c.Wire > s.Sent || c.Bytes < 0 || wire[c.Wire] || known[c.Guest] {
			return fmt.Errorf("an open call %+v of %d", c, s.Sent)
		}
		wire[c.Wire], known[c.Guest] = true, true
	}
	return nil
}

// writeSnapshot writes the run, which is at rest.
func (l *loop) writeSnapshot(w io.Writer) error {
	// One goroutine, this one: nothing to start and nothing to wait for.
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(maxWindow), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return err
	}
	positions, err := l.program.Positions.MarshalBinary()
	if err != nil {
		return err
	}
	own, err := json.Marshal(l.host.save())
	if err != nil {
		return err
	}
	if len(positions) > maxPositions || len(own) > maxState {
		return errSnapshotLimit
	}
	head := append([]byte(snapshotMagic), l.sum...)
	head = append(head, '\n')
	for _, part := range [][]byte{positions, own} {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(part)))
		head = append(head, part...)
	}
	if _, err := z.Write(head); err != nil {
		return err
	}
	if err := l.guest.Park(z, l.image); err != nil {
		return err
	}
	return z.Close()
}

// readSnapshot puts the run in place that writeSnapshot wrote, and reads r to its end.
func (l *loop) readSnapshot(r io.Reader, memoryLimit uint64) (*state, error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	head := make([]byte, len(snapshotMagic)+64+1)
	if _, err := io.ReadFull(z, head); err != nil {
		return nil, fmt.Errorf("reading its head: %w", err)
	}
	if !bytes.HasPrefix(head, []byte(snapshotMagic)) {
		return nil, errors.New("it is not of this format")
	}
	if made := string(head[len(snapshotMagic) : len(head)-1]); made != l.sum {
		return nil, fmt.Errorf("%w: %.12q, and this is %.12q", errOtherEngine, made, l.sum)
	}
	positions, err := readPart(z, maxPositions)
	if err != nil {
		return nil, fmt.Errorf("reading its positions: %w", err)
	}
	program := new(cell.Program)
	if err := program.Positions.UnmarshalBinary(positions); err != nil {
		return nil, err
	}
	own, err := readPart(z, maxState)
	if err != nil {
		return nil, fmt.Errorf("reading its state: %w", err)
	}
	s := new(state)
	if err := json.Unmarshal(own, s); err != nil {
		return nil, fmt.Errorf("reading its state: %w", err)
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("reading its state: %w", err)
	}
	if err := l.guest.Unpark(z, l.image, int64(memoryLimit), l.seen()); err != nil {
		return nil, err
	}
	// The checksum is behind the last byte: only who reads to the end has compared it.
	switch n, err := io.ReadFull(z, head[:1]); {
	case n != 0:
		return nil, errors.New("it goes on after its end")
	case err != io.EOF:
		return nil, err
	}
	if calls := l.guest.Pending() - l.guest.Yields(); calls != len(s.Calls) {
		return nil, fmt.Errorf("its guest waits for %d calls, and the worker for %d", calls, len(s.Calls))
	}
	l.program = program
	return s, nil
}

// readPart reads what a length announces. Memory grows with what comes.
func readPart(r io.Reader, limit uint32) ([]byte, error) {
	var word [4]byte
	if _, err := io.ReadFull(r, word[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint32(word[:])
	if n > limit {
		return nil, fmt.Errorf("%d bytes, at most %d are allowed", n, limit)
	}
	b, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err == nil && len(b) < int(n) {
		err = io.ErrUnexpectedEOF
	}
	return b, err
}
