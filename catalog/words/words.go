// Package words reads names as people do, and tells which of many names one that does not
// exist may have meant:
//
//	words.Split("createHTTPServer_v2")                // create http server v 2
//	words.Nearest("get_usr", 3, []words.Candidate{…}) // what to suggest
//
// Both sides of the process border use it: the catalog for ids, the worker for globals and
// functions.
package words

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Split cuts an identifier or a sentence into lower-case words: at everything
// that is neither letter nor digit, and inside a chunk where the case or the kind
// of character changes (createIssue, HTTPServer, r2).
func Split(text string) []string {
	var words []string
	for _, chunk := range Chunks(text) {
		words = append(words, Parts(chunk)...)
	}
	return words
}

// Chunks cuts text at everything that is neither letter, mark nor digit, and
// between scripts with and without spaces.
func Chunks(text string) []string {
	var found []string
	start, spaced := -1, false
	for i, r := range text {
		inside := Letter(r)
		if start >= 0 && (!inside || Unspaced(r) == spaced) {
			found = append(found, text[start:i])
			start = -1
		}
		if inside && start < 0 {
			start, spaced = i, !Unspaced(r)
		}
	}
	if start >= 0 {
		found = append(found, text[start:])
	}
	return found
}

// Letter tells whether a character is part of a word: a letter, mark or digit.
func Letter(r rune) bool {
	if r < 0x80 { // the tables are slow, and most text is ASCII
		return 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd)
}

// Unspaced tells whether a character is of a script that has no spaces between words.
func Unspaced(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// Parts cuts a chunk between letters and digits, before an upper-case letter that
// follows a lower-case one, and before the last of several upper-case letters if
// a lower-case one comes next (HTTP|Server, IDs stays whole).
func Parts(chunk string) []string {
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

// Candidate is a name that exists.
type Candidate struct {
	Name  string  // what is compared
	Show  string  // what is suggested
	Bonus float64 // what speaks for it beside its name; 1 is what equal names have
}

// maxName bounds what is compared, in bytes.
const maxName = 512

// Nearest returns what to suggest, at most limit, for a name that does not exist: the
// candidates whose names are most like it, best first. Letters count (a slip of the pen),
// and so do words in another order (get_user, user_get). Equals are in the order of what
// is shown.
func Nearest(asked string, limit int, candidates []Candidate) []string {
	if asked == "" || len(asked) > maxName {
		return nil
	}
	words := Split(asked)
	folded := strings.Join(words, "")
	type scored struct {
		show  string
		score float64
	}
	var found []scored
	for _, c := range candidates {
		if score := similarity(folded, words, c.Name); score+c.Bonus >= 0.5 {
			found = append(found, scored{c.Show, score + c.Bonus})
		}
	}
	slices.SortFunc(found, func(a, b scored) int {
		return cmp.Or(cmp.Compare(b.score, a.score), strings.Compare(a.show, b.show))
	})
	var best []string
	for _, s := range found[:min(limit, len(found))] {
		if s.score >= 0.7*found[0].score { // next to a good guess a poor one is noise
			best = append(best, s.show)
		}
	}
	return best
}

// similarity compares a name with the words of another: 1 for the same letters, 0
// for nothing in common.
func similarity(folded string, words []string, name string) float64 {
	theirs := Split(name[:min(len(name), maxName)])
	joined := strings.Join(theirs, "")
	longest := max(len(folded), len(joined))
	if longest == 0 {
		return 0
	}
	letters := 0.0
	if shortest := min(len(folded), len(joined)); shortest*2 >= longest && longest <= 128 {
		letters = 1 - float64(editDistance(folded, joined))/float64(longest)
	}
	shared := 0
	for _, w := range words {
		if slices.Contains(theirs, w) {
			shared++
		}
	}
	return max(letters, 0.95*2*float64(shared)/float64(max(1, len(words)+len(theirs))))
}

// editDistance counts the bytes to insert, delete, replace or swap with the next
// one (optimal string alignment).
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
