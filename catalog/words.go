package catalog

import (
	"iter"
	"strings"
	"unicode"

	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// fold returns a name without case and punctuation.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if !wordRune(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

func wordRune(r rune) bool { return words.Letter(r) }

// characterPairs returns the pairs of characters of a chunk of a script without spaces.
func characterPairs(chunk string) []string {
	runes := []rune(chunk)
	var pairs []string
	for i := range max(1, len(runes)-1) {
		pairs = append(pairs, string(runes[i:min(i+2, len(runes))]))
	}
	return pairs
}

// chunks is [words.Chunks] without the slice: an index reads megabytes.
func chunks(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		start, spaced := -1, false
		for i, r := range text {
			inside := wordRune(r)
			if start >= 0 && (!inside || words.Unspaced(r) == spaced) {
				if !yield(text[start:i]) {
					return
				}
				start = -1
			}
			if inside && start < 0 {
				start, spaced = i, !words.Unspaced(r)
			}
		}
		if start >= 0 {
			yield(text[start:])
		}
	}
}

// parts is [words.Parts], but quick about words that have none.
func parts(chunk string) []string {
	if strings.IndexFunc(chunk, func(r rune) bool { return r < 'a' || r > 'z' }) < 0 { // most are
		return []string{chunk}
	}
	return words.Parts(chunk)
}

// stem cuts the endings that English words take for number, time and kind, so
// that create, creates, creating, created and creation meet. The result is a key
// and need be no word; words that only look alike may meet, which costs less than
// forms that do not.
func stem(w string) string {
	if len(w) < 4 || !ascii(w) {
		return w
	}
	if root, ok := strings.CutSuffix(w, "ability"); ok && len(root) > 2 {
		w = root + "able"
	}
	if root, ok := strings.CutSuffix(w, "ically"); ok && len(root) > 2 {
		w = root + "ic"
	}
	switch {
	case strings.HasSuffix(w, "ies"), strings.HasSuffix(w, "ied"):
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
