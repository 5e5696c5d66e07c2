package workerproto

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the conformance files expect")

// TestConformance holds both readers to testdata/conformance/*.txtar. Prose comes first;
// then each section is what one side sends, "event" to the supervisor or "command" to
// the worker, and behind => what the other side reads. A paragraph is a frame:
//
//	"cm"       text
//	01 ff      bytes in hex
//	"x"*4097   a token, repeated
//	len        the length of the rest of the paragraph, in four bytes
func TestConformance(t *testing.T) {
	for _, c := range conformanceCases(t) {
		t.Run(c.file+"/"+c.name, func(t *testing.T) {
			if got := strings.Join(c.read(), "\n"); got != c.want && !*update {
				t.Errorf("sent\n%s\n got %s\nwant %s", c.sent, got, c.want)
			}
		})
	}
	if *update {
		updateConformance(t)
	}
}

type conformanceCase struct {
	file, name string
	event      bool
	sent       string // as it is written
	stream     []byte
	want       string
}

// read gives what the receiving side makes of the stream.
func (c conformanceCase) read() (lines []string) {
	conn := over(c.stream)
	read := conn.ReadCommand
	if c.event {
		read = conn.ReadEvent
	}
	for {
		m, err := read()
		if err != nil {
			return append(lines, err.Error())
		}
		lines = append(lines, show(m))
	}
}

// show prints a message in one line.
func show(m Message) string {
	line := m.Type().String()
	v := reflect.ValueOf(m).Elem()
	for i := range v.NumField() {
		verb := " %s=%v"
		if k := v.Field(i).Kind(); k == reflect.String || k == reflect.Slice {
			verb = " %s=%.40q"
		}
		line += fmt.Sprintf(verb, fieldName(v.Type(), i), v.Field(i))
	}
	return line
}

const arrow = "=> "

var section = regexp.MustCompile(`(?m)^-- (event|command) (.+) --\n`)

func conformanceFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/conformance/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conformance files found (%v)", err)
	}
	return files
}

func conformanceCases(t testing.TB) (cases []conformanceCase) {
	t.Helper()
	for _, file := range conformanceFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		heads := section.FindAllStringSubmatchIndex(string(text), -1)
		if len(heads) == 0 {
			t.Errorf("%s has no cases", file)
		}
		for i, h := range heads {
			end := len(text)
			if i+1 < len(heads) {
				end = heads[i+1][0]
			}
			c := conformanceCase{
				file:  strings.TrimSuffix(filepath.Base(file), ".txtar"),
				event: string(text[h[2]:h[3]]) == "event", name: string(text[h[4]:h[5]]),
			}
			var want []string
			for line := range strings.Lines(string(text[h[1]:end])) {
				if line, ok := strings.CutPrefix(line, arrow); ok {
					want = append(want, strings.TrimSuffix(line, "\n"))
				} else {
					c.sent += line
				}
			}
			c.want = strings.Join(want, "\n")
			if c.stream, err = assemble(c.sent); err != nil {
				t.Fatalf("%s, %s: %v", file, c.name, err)
			}
			cases = append(cases, c)
		}
	}
	return cases
}

func updateConformance(t *testing.T) {
	cases := conformanceCases(t)
	for _, file := range conformanceFiles(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out := string(text[:section.FindIndex(text)[0]])
		for _, c := range cases {
			if c.file+".txtar" != filepath.Base(file) {
				continue
			}
			side := "command"
			if c.event {
				side = "event"
			}
			out += fmt.Sprintf("-- %s %s --\n%s\n", side, c.name, strings.TrimRight(c.sent, "\n"))
			for _, line := range c.read() {
				out += arrow + line + "\n"
			}
			out += "\n"
		}
		if err := os.WriteFile(file, []byte(strings.TrimSuffix(out, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

var token = regexp.MustCompile(`^(?:("(?:[^"\\]|\\.)*")|([0-9a-f]{2})|(len))(?:\*(\d+))?(?:\s+|$)`)

// assemble makes bytes of what a section says.
func assemble(text string) (stream []byte, err error) {
	for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		var frame []byte
		lengthAt := -1
		for rest := strings.TrimSpace(paragraph); rest != ""; {
			m := token.FindStringSubmatch(rest)
			if m == nil {
				return nil, fmt.Errorf("no token at %.40q", rest)
			}
			rest = rest[len(m[0]):]
			var b []byte
			switch {
			case m[1] != "":
				s, err := strconv.Unquote(m[1])
				if err != nil {
					return nil, fmt.Errorf("%s: %w", m[1], err)
				}
				b = []byte(s)
			case m[2] != "":
				b, _ = hex.DecodeString(m[2])
			default:
				lengthAt = len(frame)
				b = make([]byte, 4)
			}
			times := 1
			if m[4] != "" {
				times, _ = strconv.Atoi(m[4])
			}
			for range times {
				frame = append(frame, b...)
			}
		}
		if lengthAt >= 0 {
			binary.BigEndian.PutUint32(frame[lengthAt:], uint32(len(frame)-lengthAt-4))
		}
		stream = append(stream, frame...)
	}
	return stream, nil
}
