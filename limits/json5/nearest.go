package json5

import (
	"slices"
	"strings"
)

// Unknown returns the first member of v whose key is not among known, and the
// known key that was probably meant ("" if none is near). It returns nil when all
// keys are known.
func (v *Value) Unknown(known []string) (m *Member, nearest string) {
	for i := range v.Members {
		if !slices.Contains(known, v.Members[i].Key) {
			return &v.Members[i], Nearest(v.Members[i].Key, known)
		}
	}
	return nil, ""
}

// Nearest returns the one of known that word is probably a misspelling of: equal
// but for case and punctuation, or at most a third of its letters away. It
// returns "" when none is; the first of several that are equally near wins.
func Nearest(word string, known []string) string {
	folded := fold(word)
	if len(folded) > 64 { // no field name is near to that, and the cost is quadratic
		return ""
	}
	best, distance := "", 0
	for _, k := range known {
		f := fold(k)
		d := editDistance(folded, f)
		if d > max(len(f), len(folded))/3 || best != "" && d >= distance {
			continue
		}
		best, distance = k, d
	}
	return best
}

func fold(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "", " ", "").Replace(s))
}

// editDistance counts the bytes to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
