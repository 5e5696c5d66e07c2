package gatewayrpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// Transport carries the lines of one client: a net.Conn, or what [Stdio] makes. Close ends
// a Read and a Write that are under way.
type Transport interface {
	io.ReadWriteCloser
	SetWriteDeadline(time.Time) error
}

// MaxLine is how long a line may be, its end not counted, in bytes.
const MaxLine = 64 << 20

// The faults of a line after which nothing can be read any more.
var (
	errLineTooLong = fmt.Errorf("a line has more than %d bytes", MaxLine)
	errHalfLine    = errors.New("the last line has no end")
)

// lineReader cuts a stream into lines. It holds no more than one of them.
type lineReader struct {
	r   *bufio.Reader
	max int
}

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{bufio.NewReaderSize(r, 64<<10), MaxLine}
}

// next gives the next line that is not blank, without its end. It belongs to the caller. The
// error is io.EOF at the end of the stream, [errHalfLine] if it ends within a line,
// [errLineTooLong], or the stream's own.
func (l *lineReader) next() ([]byte, error) {
	for {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (l *lineReader) line() (line []byte, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line)+len(bytes.TrimSuffix(part, []byte("\n"))) > l.max {
			return nil, errLineTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) > 0:
			return nil, errHalfLine
		default:
			return nil, err
		}
	}
}
