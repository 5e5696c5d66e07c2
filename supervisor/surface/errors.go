package surface

import (
	"fmt"
	"strings"
	"unicode"
)

// The codes of an [Error], as results spell them (SPEC 11.2).
const (
	InvalidConfig      = "invalid_config"
	InvalidInput       = "invalid_input"
	RuntimeUnavailable = "runtime_unavailable"
)

// Error is why a run or a call of exec or wait must fail. No error of this package is a
// reason to show the hidden tools instead (SPEC 1.3).
type Error struct {
	// Code is one of the constants above.
	Code string
	// Text says what happened, to what, and what to do next: one line of at most
	// [MaxErrorBytes], without control characters, whatever the input was.
	Text string
	// Err is the cause, if there is one to look into: a [*limits.ConfigError].
	Err error
}

// MaxErrorBytes is how long the text of an [Error] may be.
const MaxErrorBytes = 2048

// Error returns the text.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Text: oneLine(fmt.Sprintf(format, args...), MaxErrorBytes)}
}

func invalidInput(format string, args ...any) *Error { return errorf(InvalidInput, format, args...) }

// oneLine makes text that may hold anything fit for a log: no line breaks, no terminal
// escapes, at most n bytes.
func oneLine(s string, n int) string {
	const ellipsis = "…"
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n-len(ellipsis)], "") + ellipsis
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	if len(s) > n { // bytes that are not UTF-8 became U+FFFD, which is longer
		s = strings.ToValidUTF8(s[:n], "")
	}
	return s
}

// quote quotes a name that somebody else chose, within bounds.
func quote(s string) string { return fmt.Sprintf("%q", clip(cutBytes(s, 400), 60)) }

// cutBytes bounds the work that is done on s; the cut may fall within a character.
func cutBytes(s string, n int) string { return s[:min(len(s), n)] }
