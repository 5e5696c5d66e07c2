package catalog

import (
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxPatternBytes bounds a pattern of a schema; longer ones are not checked.
	maxPatternBytes = 4 << 10

	// patternTime bounds one match of a backtracking pattern, and allPatternsTime
	// all of them in one check. A nested repetition takes time that is exponential
	// in the length of the text, and the text comes from the guest.
	patternTime     = 100 * time.Millisecond
	allPatternsTime = 300 * time.Millisecond
)

// pattern is a regular expression of a schema. JSON Schema's are ECMAScript's,
// with look-around and back-references, which Go's regexp lacks.
type pattern struct {
	source string
	linear *regexp.Regexp  // set where Go's engine means the same
	size   int             // of the linear program
	full   *regexp2.Regexp // else
	work   *work
}

// compilePattern is the engine for the schema compiler. Patterns that mean the
// same to Go's engine use it: it takes linear time.
func (w *work) compilePattern(source string) (jsonschema.Regexp, error) {
	if len(source) > maxPatternBytes {
		return nil, fmt.Errorf("a pattern of %d bytes, at most %d are possible", len(source), maxPatternBytes)
	}
	p := &pattern{source: source, work: w}
	if portable(source) {
		if re, err := regexp.Compile(source); err == nil {
			p.linear, p.size = re, programSize(source)
			return p, nil
		}
	}
	// JSON Schema asks for the u flag; without it \p{L} would be letters p, {, L, }.
	// Patterns that only work without it exist, so that comes second.
	re, err := regexp2.Compile(source, regexp2.ECMAScript|regexp2.Unicode)
	if err != nil {
		if re, err = regexp2.Compile(source, regexp2.ECMAScript); err != nil {
			return nil, err
		}
	}
	re.MatchTimeout = patternTime
	p.full = re
	return p, nil
}

// portable reports whether a pattern uses only what ECMAScript and RE2 agree on:
// no dot (line terminators), no group but (?:, no escape of a letter but \d and
// \w, no class with [ or ^] in it.
func portable(source string) bool {
	inClass := false
	for i := 0; i < len(source); i++ {
		c := source[i]
		switch {
		case c >= 0x80 || c < ' ':
			return false
		case c == '\\':
			i++
			if i == len(source) || strings.IndexByte(`dw.-/\^$*+?()[]{}|`, source[i]) < 0 {
				return false
			}
		case inClass:
			if c == '[' || c == '&' || c == '~' {
				return false
			}
			inClass = c != ']'
		case c == '[':
			inClass = true
			if rest := strings.TrimPrefix(source[i+1:], "^"); strings.HasPrefix(rest, "]") {
				return false
			}
		case c == '.', c == '{' && !quantifier(source[i:]):
			return false
		case c == '(' && strings.HasPrefix(source[i:], "(?") && !strings.HasPrefix(source[i:], "(?:"):
			return false
		}
	}
	return true
}

// quantifier reports whether s begins with {n}, {n,} or {n,m}. Any other brace is
// a literal to one engine and an error to the other.
func quantifier(s string) bool {
	end := strings.IndexByte(s, '}')
	return end > 1 && strings.Trim(s[1:end], "0123456789,") == "" && s[1] != ','
}

// String returns the pattern as it was written.
func (p *pattern) String() string { return p.source }

// MatchString reports whether s matches anywhere. A match that takes too long
// ends the whole check, by a panic that work.run turns into an error: neither
// answer would be true.
func (p *pattern) MatchString(s string) bool {
	p.work.step(1 + len(s)/64)
	if p.linear != nil && len(s) <= quickMatch/p.size {
		return p.linear.MatchString(s)
	}
	if p.work.patterns > allPatternsTime {
		panic(tooMuch{fmt.Sprintf("the pattern %s takes too long", cut(p.source, 80))})
	}
	start := time.Now()
	defer func() { p.work.patterns += time.Since(start) }()
	if p.linear != nil {
		end := start.Add(allPatternsTime - p.work.patterns)
		return p.linear.MatchReader(&timedReader{text: s, every: 1 + runesBetween/p.size, end: end, over: p.overtime(s)})
	}
	ok, err := p.full.MatchString(s)
	if err != nil {
		panic(p.overtime(s))
	}
	return ok
}

func (p *pattern) overtime(s string) tooMuch {
	return tooMuch{fmt.Sprintf("the pattern %s takes too long on a text of %d bytes", cut(p.source, 80), len(s))}
}

const (
	// quickMatch is up to which product of text and program no clock is needed: some 30 ms.
	quickMatch = 1 << 20

	// runesBetween, by the size of the program, are read between two looks at the clock.
	runesBetween = 1 << 16
)

// programSize is how many instructions a pattern has. Linear time is the product of them
// and the length of the text: [a-z]{1000} has a thousand.
func programSize(source string) int {
	re, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return quickMatch // it did compile
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return quickMatch
	}
	return max(1, len(prog.Inst))
}

// timedReader gives Go's engine, which cannot be stopped otherwise, a text until the time is
// over. Then it panics.
type timedReader struct {
	text  string
	every int // runes between two looks at the clock
	since int
	end   time.Time
	over  tooMuch
}

// ReadRune reads the next character.
func (r *timedReader) ReadRune() (rune, int, error) {
	if r.since++; r.since >= r.every {
		r.since = 0
		if time.Now().After(r.end) {
			panic(r.over)
		}
	}
	if r.text == "" {
		return 0, 0, io.EOF
	}
	c, size := utf8.DecodeRuneInString(r.text)
	r.text = r.text[size:]
	return c, size, nil
}
