package trajectory

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What Read takes at most. A file that was written with bounds of ours fits; any other is
// somebody's attempt to be expensive.
const (
	MaxLine   = 16 << 20  // bytes of one line; what is longer is skipped
	MaxFile   = 512 << 20 // bytes of the file; what follows is not read
	MaxEvents = 200_000   // events; what follows is counted
)

// maxText bounds ids, states and codes.
const maxText = 256

// Log is a trajectory that was read back.
type Log struct {
	Events  []Event // in the order of the lines
	Skipped int     // lines that are no events: broken, half or too long
	Omitted int     // events over MaxEvents
	Cut     bool    // the file has more than MaxFile bytes
}

// Read reads JSON lines. Lines that are no events are skipped and counted; an error is the
// reader's, and comes with what was read before it.
//
// The file is not trusted (SPEC 18.1 names no seal for it): texts in the events are cut and
// made printable, numbers that cannot be are dropped, and content is JSON.
func Read(r io.Reader) (*Log, error) {
	log := new(Log)
	limited := &io.LimitedReader{R: r, N: MaxFile + 1}
	in := bufio.NewReaderSize(limited, 64<<10)
	for {
		line, tooLong, err := readLine(in)
		if limited.N <= 0 {
			log.Cut = true
			return log, nil // the last line is a half one, of our making
		}
		log.add(line, tooLong)
		switch {
		case errors.Is(err, io.EOF):
			return log, nil
		case err != nil:
			return log, fmt.Errorf("reading the trajectory: %w", err)
		}
	}
}

// readLine gives the next line, or the fact that it is too long to be kept.
func readLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if !tooLong {
			if tooLong = len(line)+len(part) > MaxLine; tooLong {
				line = nil
			} else {
				line = append(line, part...)
			}
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

func (l *Log) add(line []byte, tooLong bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 && !tooLong {
		return
	}
	var e Event
	switch {
	case tooLong || json.Unmarshal(line, &e) != nil || !e.clean():
		l.Skipped++
	case len(l.Events) == MaxEvents:
		l.Omitted++
	default:
		l.Events = append(l.Events, e)
	}
}

// clean makes what a stranger wrote fit to be shown. It tells whether it is an event.
func (e *Event) clean() bool {
	for _, s := range []*string{&e.RunID, (*string)(&e.Kind), &e.Parent, &e.CallID, &e.ToolID, &e.Status, &e.Code} {
		*s = printable(*s)
	}
	if e.Millis != nil && (*e.Millis < 0 || *e.Millis > math.MaxInt32*1000.) {
		e.Millis = nil
	}
	if d := e.Data; d != nil {
		d.Bytes = max(0, d.Bytes)
		if _, err := hex.DecodeString(d.SHA256); err != nil || len(d.SHA256) != 64 {
			d.SHA256 = ""
		}
	}
	return e.RunID != "" && e.Kind != ""
}

// printable cuts a text and takes out what drives a terminal, turns lines around or forges
// one.
func printable(s string) string {
	if len(s) > maxText {
		n := maxText
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		s = s[:n]
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}
