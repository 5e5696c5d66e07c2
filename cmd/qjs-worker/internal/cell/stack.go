package cell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of what an error shows. A stack is text that the guest can write itself:
// error.stack = "…" of any length and content.
const (
	maxFrames   = 10
	maxStack    = 64 << 10 // bytes of a stack that are looked at
	maxFunction = 80       // bytes of a function's name
	maxName     = 200      // bytes of an error's name
	maxMessage  = 8 << 10  // bytes of an error's message
)

// Frame is one call in what the model wrote.
type Frame struct {
	Function     string // "" for top-level code and functions without a name
	Line, Column int    // from 1, as [Positions] counts
}

// String gives "name (line:column)", or "line:column" without a name.
func (f Frame) String() string {
	if f.Function == "" {
		return fmt.Sprintf("%d:%d", f.Line, f.Column)
	}
	return fmt.Sprintf("%s (%d:%d)", f.Function, f.Line, f.Column)
}

// Frames reads the frames of the cell out of a stack of QuickJS's, such as
//
//	at f (cell.js:2:9)
//	at map (native)
//	at <anonymous> (cell.js:4:5)
//	at cell.js:1:1
//
// and gives them in terms of what the model wrote: at most ten, the wrapper's and
// those of other files left out. A stack that the guest made up gives frames that do
// not mean anything, but no others than the cell's.
func (m *Positions) Frames(stack string) []Frame {
	var frames []Frame
	stack = stack[:min(len(stack), maxStack)]
	for line, rest, more := "", stack, true; more && len(frames) < maxFrames; {
		line, rest, more = strings.Cut(rest, "\n")
		line, ok := strings.CutPrefix(line, "    at ")
		if !ok {
			continue
		}
		name := ""
		if inside, ok := strings.CutSuffix(line, ")"); ok {
			i := strings.LastIndex(inside, " (")
			if i < 0 {
				continue
			}
			name, line = inside[:i], inside[i+2:]
		}
		at, ok := strings.CutPrefix(line, File+":")
		if !ok {
			continue
		}
		l, c, _ := strings.Cut(at, ":")
		n, err1 := strconv.Atoi(l)
		col, err2 := strconv.Atoi(c)
		if err1 != nil || err2 != nil {
			continue
		}
		if n, col, ok = m.find(n, col); ok {
			frames = append(frames, Frame{functionName(name), n, col})
		}
	}
	return frames
}

// functionName is what a frame shows of a name, which the guest may have chosen.
func functionName(name string) string {
	if name == "<anonymous>" || name == "<eval>" {
		return ""
	}
	return clip(printable(name), maxFunction)
}

// printable replaces what could forge lines or drive a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}

// FormatError gives the text of a guest error: name and message, then a line a frame,
// all bounded.
//
//	TypeError: cannot read property 'b' of null
//	    at f (2:9)
//	    at 3:1
func FormatError(name, message string, frames []Frame) string {
	var b strings.Builder
	b.WriteString(clip(printable(clip(name, maxName)), 2*maxName))
	if name != "" && message != "" {
		b.WriteString(": ")
	}
	b.WriteString(clip(message, maxMessage))
	for i, f := range frames {
		if i == maxFrames {
			break
		}
		b.WriteString("\n    at ")
		b.WriteString(f.String())
	}
	return b.String()
}
