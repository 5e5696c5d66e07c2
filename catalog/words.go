package catalog

import (
	"strings"
	"unicode"
)

// split cuts an identifier or a sentence into lower-case words: at everything
// that is neither letter nor digit, and inside a chunk where the case or the kind
// of character changes (createIssue, HTTPServer, r2).
func split(text string) []string {
	var words []string
	for _, chunk := range chunks(text) {
		words = append(words, parts(chunk)...)
	}
	return words
}

// terms returns the words that a text is indexed and searched by. A chunk that
// has parts gives both them and itself: GitHub must meet github, and r2 is more
// than an r. Parts of one letter are noise. Scripts without spaces between words
// give pairs of characters.
func terms(text string) []string {
	var words []string
	for _, chunk := range chunks(text) {
		if runes := []rune(chunk); unspaced(runes[0]) {
			for i := range max(1, len(runes)-1) {
				words = append(words, string(runes[i:min(i+2, len(runes))]))
			}
			continue
		}
		words = append(words, strings.ToLower(chunk))
		if pieces := parts(chunk); len(pieces) > 1 {
			for _, piece := range pieces {
				if len(piece) > 1 {
					words = append(words, piece)
				}
			}
		}
	}
	return words
}

// chunks cuts text at everything that is neither letter, mark nor digit, and
// between scripts with and without spaces.
func chunks(text string) []string {
	var found []string
	start, spaced := -1, false
	for i, r := range text {
		inside := wordRune(r)
		if start >= 0 && (!inside || unspaced(r) == spaced) {
			found = append(found, text[start:i])
			start = -1
		}
		if inside && start < 0 {
			start, spaced = i, !unspaced(r)
		}
	}
	if start >= 0 {
		found = append(found, text[start:])
	}
	return found
}

func wordRune(r rune) bool {
	if r < 0x80 { // the tables are slow, and most text is ASCII
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd)
}

func unspaced(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// parts cuts a chunk between letters and digits, before an upper-case letter that
// follows a lower-case one, and before the last of several upper-case letters if
// a lower-case one comes next (HTTP|Server, IDs stays whole).
func parts(chunk string) []string {
	runes := []rune(chunk)
	var found []string
	start := 0
	for i := 1; i < len(runes); i++ {
		a, b := runes[i-1], runes[i]
		border := unicode.IsDigit(a) != unicode.IsDigit(b) && !unicode.IsMark(b) ||
			unicode.IsUpper(b) && unicode.IsLower(a) ||
			unicode.IsUpper(a) && unicode.IsUpper(b) && i+2 < len(runes) && unicode.IsLower(runes[i+1]) && unicode.IsLower(runes[i+2])
		if border {
			found = append(found, strings.ToLower(string(runes[start:i])))
			start = i
		}
	}
	return append(found, strings.ToLower(string(runes[start:])))
}

// stem cuts the endings that English words take for number, time and kind, so
// that create, creates, creating, created and creation meet. The result is a key
// and need be no word; words that only look alike may meet, which costs less than
// forms that do not.
func stem(w string) string {
	if len(w) < 4 || !ascii(w) {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies"):
		w = w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	for _, ending := range []string{"ing", "ed", "ion", "ment", "ly"} {
		root, ok := strings.CutSuffix(w, ending)
		if !ok || len(root) < 3 || len(root) < 5 && ending == "ment" || !strings.ContainsAny(root, "aeiouy") {
			continue
		}
		w = root
		if n := len(w); w[n-1] == w[n-2] && !strings.ContainsRune("lsz", rune(w[n-1])) { // running, but not calling
			w = w[:n-1]
		}
		break
	}
	if len(w) > 3 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

func ascii(w string) bool {
	for i := range len(w) {
		if w[i] >= 0x80 {
			return false
		}
	}
	return true
}
