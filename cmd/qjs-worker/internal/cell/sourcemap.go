package cell

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"
)

// mapRuns reads the mappings of a source map (version 3, one source) as runs from gen
// to src. Between two mappings the texts are compared: where they are equal a position
// keeps its distance, elsewhere it is that of the mapping.
//
// The map's lines end as JavaScript's do, and its columns are UTF-16 units.
// Source: https://tc39.es/ecma426/, "mappings".
func mapRuns(mappings, gen, src string) ([]run, error) {
	genLines, srcLines := newCursor(gen), newCursor(src)
	runs := []run{{0, 0, ours}}
	var points []run
	srcLine, srcColumn := 0, 0
	for line, text := range strings.Split(mappings, ";") {
		column := 0
		for segment := range strings.SplitSeq(text, ",") {
			if segment == "" {
				continue
			}
			fields, ok := vlq(segment)
			if !ok || len(fields) == 0 {
				return nil, errors.New("the source map of the TypeScript transform is malformed")
			}
			column += fields[0]
			at := genLines.offset(line, column)
			if n := len(points); n > 0 && at < int(points[n-1].gen) {
				return nil, errors.New("the source map of the TypeScript transform is out of order")
			}
			if len(fields) < 4 {
				points = append(points, run{int32(at), 0, ours})
				continue
			}
			srcLine += fields[2]
			srcColumn += fields[3]
			points = append(points, run{int32(at), int32(srcLines.offset(srcLine, srcColumn)), copied})
		}
	}
	for i, p := range points {
		end := len(gen)
		if i+1 < len(points) {
			end = int(points[i+1].gen)
		}
		if last := runs[len(runs)-1]; p.kind == copied && last.kind == copied && p.src-last.src == p.gen-last.gen {
			// The run before goes on: its text was equal up to here.
		} else {
			runs = appendRun(runs, p)
		}
		if p.kind != copied {
			continue
		}
		n := commonPrefix(gen[p.gen:end], src[p.src:])
		// A line break and the new indentation hold no positions that anybody asks for.
		if rest := gen[int(p.gen)+n : end]; strings.TrimLeft(rest, " \n") != "" {
			runs = appendRun(runs, run{p.gen + int32(n), p.src, point})
		}
	}
	return slices.Clip(runs), nil
}

func appendRun(runs []run, r run) []run {
	if n := len(runs); runs[n-1].gen == r.gen {
		runs[n-1] = r
		return runs
	}
	return append(runs, r)
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// vlq decodes one segment: base64 digits of five bits each, lowest first, with a
// continuation bit; the lowest bit of a number is its sign.
func vlq(s string) (fields []int, ok bool) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	n, shift := 0, 0
	for i := range len(s) {
		d := strings.IndexByte(digits, s[i])
		if d < 0 || shift > 30 {
			return nil, false
		}
		n |= d & 31 << shift
		if shift += 5; d&32 != 0 {
			continue
		}
		if n&1 != 0 {
			n = -(n >> 1)
		} else {
			n >>= 1
		}
		fields = append(fields, n)
		n, shift = 0, 0
	}
	return fields, shift == 0
}

// lineStarts are the offsets at which JavaScript's lines start.
func lineStarts(s string) []int {
	starts := []int{0}
	for i := 0; i < len(s); i++ {
		if n := breakAt(s, i, true); n > 0 {
			i += n - 1
			starts = append(starts, i+1)
		}
	}
	return starts
}

// cursor turns lines and columns into offsets. It remembers the last one: columns of a
// line usually ascend.
type cursor struct {
	s      string
	starts []int
	line   int
	units  *units
	base   int // where the line starts
}

func newCursor(s string) *cursor { return &cursor{s: s, starts: lineStarts(s), line: -1} }

// offset gives the offset of a line and a UTF-16 column, both from 0. What is outside
// of the text is at its edge.
func (c *cursor) offset(line, column int) int {
	line = max(0, min(line, len(c.starts)-1))
	if line != c.line || column < c.units.unit {
		c.line, c.base = line, c.starts[line]
		end := len(c.s)
		if line+1 < len(c.starts) {
			end = c.starts[line+1]
		}
		c.units = newUnits(c.s[c.base:end])
	}
	at := c.base + c.units.offset(column)
	for at < len(c.s) && !utf8.RuneStart(c.s[at]) {
		at++
	}
	return at
}
