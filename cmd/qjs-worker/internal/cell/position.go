package cell

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"unicode/utf8"
)

// Positions maps what the engine says of [Program].Code to what the model wrote. It is
// all that a run keeps of its source for errors, and it survives in a snapshot: where
// a parked run goes on, the source is not there any more.
//
// Two countings meet here. QuickJS counts columns in bytes of UTF-8, from 1, and
// leaves out some line breaks (analyze.js, addBreaks). A [Frame] and an [Error] count
// as a reader does: lines end at LF, CRLF or CR, and a column is a code point, from 1;
// an emoji outside of the basic plane is one column, a tab too.
type Positions struct {
	engine []int32 // where the engine's lines start in Code, in bytes
	lines  []int32 // where the lines of the source start, in bytes
	wide   []wide  // the source's code points of more than one byte
	runs   []run   // ascending; the first one starts at 0
}

// wide is a code point that takes more than one byte.
type wide struct {
	at    int32
	extra int8 // bytes beyond the first
}

// run is a stretch of Code up to the next run.
type run struct {
	gen  int32 // where it starts in Code
	src  int32 // where that is in the source
	kind runKind
}

type runKind uint8

const (
	ours   runKind = iota // wrapper text: it has no place in the source
	copied                // the source, byte for byte
	point                 // made from what stands at src, but with another text
)

// at gives the line and column of an offset of the source.
func (m *Positions) at(offset int) (line, column int) {
	line = sort.Search(len(m.lines), func(i int) bool { return int(m.lines[i]) > offset })
	start := int(m.lines[line-1])
	from, _ := slices.BinarySearchFunc(m.wide, start, compareWide)
	column = offset - start + 1
	for _, w := range m.wide[from:] {
		if int(w.at) >= offset {
			break
		}
		column -= int(w.extra)
	}
	return line, column
}

func compareWide(w wide, at int) int { return int(w.at) - at }

// find maps a position of the engine's. ok is false in text that is not the model's.
func (m *Positions) find(line, column int) (Line, Column int, ok bool) {
	if line < 1 || line > len(m.engine) || column < 1 || column > math.MaxInt32 || len(m.lines) == 0 {
		return 0, 0, false
	}
	offset := int(m.engine[line-1]) + column - 1
	if line < len(m.engine) && offset >= int(m.engine[line]) {
		return 0, 0, false // the guest can write any stack it likes
	}
	i := sort.Search(len(m.runs), func(i int) bool { return int(m.runs[i].gen) > offset }) - 1
	if i < 0 {
		return 0, 0, false
	}
	r := m.runs[i]
	src := int(r.src)
	switch r.kind {
	case ours:
		return 0, 0, false
	case copied:
		src += offset - int(r.gen)
	}
	Line, Column = m.at(src)
	return Line, Column, true
}

// newPositions makes the map of a program. breaks are the line breaks of code that the
// engine does not count, ascending.
func newPositions(code, source string, breaks []int, runs []run) Positions {
	m := Positions{engine: make([]int32, 1, len(code)/32+1), lines: make([]int32, 1, len(source)/32+1), runs: runs}
	for i := 0; i < len(code); i++ {
		n := breakAt(code, i, true)
		if n == 0 {
			continue
		}
		if len(breaks) > 0 && breaks[0] == i {
			breaks = breaks[1:]
			continue
		}
		i += n - 1
		m.engine = append(m.engine, int32(i+1))
	}
	for i := 0; i < len(source); {
		if source[i] < utf8.RuneSelf {
			n := breakAt(source, i, false)
			if i += max(1, n); n > 0 {
				m.lines = append(m.lines, int32(i))
			}
			continue
		}
		_, n := utf8.DecodeRuneInString(source[i:])
		if n > 1 {
			m.wide = append(m.wide, wide{int32(i), int8(n - 1)})
		}
		i += n
	}
	return m
}

// breakAt gives the length of the line break at s[i], 0 if there is none. U+2028 and
// U+2029 are line breaks of JavaScript, but of no editor.
func breakAt(s string, i int, js bool) int {
	switch s[i] {
	case '\n':
		return 1
	case '\r':
		if i+1 < len(s) && s[i+1] == '\n' {
			return 2
		}
		return 1
	case 0xe2:
		if js && i+2 < len(s) && s[i+1] == 0x80 && s[i+2]&^1 == 0xa8 {
			return 3
		}
	}
	return 0
}

// positionsVersion begins a stored map.
const positionsVersion = 1

// maxPositions bounds each list of a stored map: no source that the parser's memory
// holds has more lines.
const maxPositions = 1 << 24

// MarshalBinary stores the map: a version byte, then four lists, each as its length
// and its items, all as unsigned varints. Offsets are differences to the item before;
// a run is its offset in the code, the zigzag difference of its offset in the source,
// and its kind.
func (m *Positions) MarshalBinary() ([]byte, error) {
	b := []byte{positionsVersion}
	put := func(n int) { b = binary.AppendUvarint(b, uint64(n)) }
	for _, list := range [][]int32{m.engine, m.lines} {
		put(len(list))
		last := int32(0)
		for _, n := range list {
			put(int(n - last))
			last = n
		}
	}
	put(len(m.wide))
	last := int32(0)
	for _, w := range m.wide {
		put(int(w.at - last))
		put(int(w.extra))
		last = w.at
	}
	put(len(m.runs))
	gen, src := int32(0), int32(0)
	for _, r := range m.runs {
		put(int(r.gen - gen))
		b = binary.AppendVarint(b, int64(r.src-src))
		put(int(r.kind))
		gen, src = r.gen, r.src
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary wrote.
func (m *Positions) UnmarshalBinary(b []byte) error {
	if len(b) == 0 || b[0] != positionsVersion {
		return errors.New("cell: not a position map of this version")
	}
	d := decoder{b: b[1:]}
	*m = Positions{}
	for _, list := range []*[]int32{&m.engine, &m.lines} {
		at := int64(0)
		for n := d.count(); n > 0; n-- {
			*list = append(*list, d.offset(&at, int64(d.uint())))
		}
	}
	at := int64(0)
	for n := d.count(); n > 0; n-- {
		w := wide{at: d.offset(&at, int64(d.uint()))}
		extra := d.uint()
		if extra < 1 || extra > 3 {
			d.fail()
		}
		w.extra = int8(extra)
		m.wide = append(m.wide, w)
	}
	gen, src := int64(0), int64(0)
	for n := d.count(); n > 0; n-- {
		r := run{gen: d.offset(&gen, int64(d.uint())), src: d.offset(&src, d.int())}
		kind := d.uint()
		if kind > uint64(point) {
			d.fail()
		}
		r.kind = runKind(kind)
		m.runs = append(m.runs, r)
	}
	if d.bad || len(d.b) != 0 || len(m.lines) == 0 || m.lines[0] != 0 {
		*m = Positions{}
		return fmt.Errorf("cell: a position map of %d bytes is malformed", len(b))
	}
	return nil
}

// decoder reads varints and remembers that one was wrong; it then gives zeros.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) fail() { d.bad, d.b = true, nil }

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 || n > math.MaxInt32 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.b)
	if size <= 0 || n > math.MaxInt32 || n < -math.MaxInt32 {
		d.fail()
		return 0
	}
	d.b = d.b[size:]
	return n
}

// count reads a length: an item takes a byte at least, so no length exceeds what is left.
func (d *decoder) count() int {
	n := d.uint()
	if n > maxPositions || n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

// offset adds a difference to *at.
func (d *decoder) offset(at *int64, by int64) int32 {
	*at += by
	if *at < 0 || *at > math.MaxInt32 {
		d.fail()
		*at = 0
	}
	return int32(*at)
}
