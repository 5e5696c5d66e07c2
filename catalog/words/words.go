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
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Split cuts an identifier or a sentence into lower-case words: at everything
// that is neither letter nor digit, and inside a chunk where the case or the kind
// of character changes (createIssue, HTTPServer, r2).
func Split(text string) []string {
	var words []string
	for chunk := range Chunks(text) {
		words = append(words, Parts(chunk)...)
	}
	return words
}

// Chunks cuts text at everything that is neither letter, mark nor digit, and
// between scripts with and without spaces.
func Chunks(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, spaced := -1, false
		for i, r := range text {
			inside := Letter(r)
			if start >= 0 && (!inside || Unspaced(r) == spaced) {
				if !yield(text[start:i]) {
					return
				}
				start = -1
			}
			if inside && start < 0 {
				start, spaced = i, !Unspaced(r)
			}
		}
		if start >= 0 {
			yield(text[start:])
		}
	}
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
	a := newAsked(asked)
	type scored struct {
		show  string
		score float64
	}
	var found []scored
	for _, c := range candidates {
		if score := a.similarity(c.Name); score+c.Bonus >= leastScore {
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

const (
	leastScore = 0.5 // of what is suggested
	leastAlike = 0.3 // of names, below which a bonus does not help them any more
)

// asked is the name that does not exist, and room to compare it with thousands.
type asked struct {
	words  []string
	folded string
	counts [256]int16 // of its bytes

	name              []byte // of the candidate, folded
	before, last, row []int
}

func newAsked(name string) *asked {
	a := &asked{words: Split(name)}
	a.folded = strings.Join(a.words, "")
	for i := range len(a.folded) {
		a.counts[a.folded[i]]++
	}
	for _, row := range []*[]int{&a.before, &a.last, &a.row} {
		*row = make([]int, maxName+1)
	}
	return a
}

// similarity compares it with a name that exists: 1 for the same letters, 0 for nothing in
// common.
func (a *asked) similarity(name string) float64 {
	a.fold(name[:min(len(name), maxName)])
	longest := max(len(a.folded), len(a.name))
	if longest == 0 {
		return 0
	}
	letters := 0.0
	// Each byte that only one of them has takes half an edit at least: most names end here.
	if shortest := min(len(a.folded), len(a.name)); shortest*2 >= longest && longest <= 128 && 1-float64(a.differences())/float64(2*longest) >= leastAlike {
		letters = 1 - float64(a.distance())/float64(longest)
	}
	if !a.shares() {
		return letters
	}
	theirs := Split(name[:min(len(name), maxName)])
	shared := 0
	for _, w := range a.words {
		if slices.Contains(theirs, w) {
			shared++
		}
	}
	return max(letters, 0.95*2*float64(shared)/float64(max(1, len(a.words)+len(theirs))))
}

// fold puts the name's letters and digits, in lower case, into a.name.
func (a *asked) fold(name string) {
	a.name = a.name[:0]
	for _, r := range name {
		if Letter(r) {
			a.name = utf8.AppendRune(a.name, unicode.ToLower(r))
		}
	}
}

// shares tells whether the name may have a word of the asked one.
func (a *asked) shares() bool {
	return slices.ContainsFunc(a.words, func(w string) bool { return strings.Contains(string(a.name), w) })
}

// differences counts the bytes that only one of the names has.
func (a *asked) differences() int {
	counts, n := a.counts, 0
	for _, b := range a.name {
		counts[b]--
	}
	for _, b := range a.name {
		if c := counts[b]; c < 0 {
			n -= int(c)
			counts[b] = 0
		}
	}
	for i := range len(a.folded) {
		if c := counts[a.folded[i]]; c > 0 {
			n += int(c)
			counts[a.folded[i]] = 0
		}
	}
	return n
}

// distance counts the bytes to insert, delete, replace or swap with the next one (optimal
// string alignment).
func (a *asked) distance() int {
	before, last, row := a.before, a.last, a.row
	for j := range len(a.name) + 1 {
		row[j] = j
	}
	for i := range len(a.folded) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(a.name) {
			cost := 1
			if a.folded[i] == a.name[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, row[j]+1, last[j+1]+1)
			if i > 0 && j > 0 && a.folded[i] == a.name[j-1] && a.folded[i-1] == a.name[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(a.name)]
}
