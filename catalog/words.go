package catalog

import (
	"slices"
	"strings"
	"unicode"

	"github.com/openclaw/codemode-supervisor/catalog/words"
)

// fold returns a name without case and punctuation.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if !words.Letter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// characterPairs returns the pairs of characters of a chunk of a script without spaces.
func characterPairs(chunk string) []string {
	runes := []rune(chunk)
	var pairs []string
	for i := range max(1, len(runes)-1) {
		pairs = append(pairs, string(runes[i:min(i+2, len(runes))]))
	}
	return pairs
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

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// act is a kind of thing that tools do, in the order of actLists.
type act uint8

const (
	actNone act = iota
	actCreate
	actDelete
	actUpdate
	actRead
	actSend
)

// lexicon is the lists above by key: what a word is indexed by.
type lexicon struct {
	canonical map[string]string   // stem of a spelling → the key of its group
	pairWords map[string]int32    // stem of a word that is part of a pair → a number
	pairs     map[[2]int32]string // two of them → the key of their group
	acts      map[string]act
	related   map[string][]standIn
	phrases   map[string][]phrase // by the key of their first word
}

// standIn is a word that may stand for another.
type standIn struct {
	key    string
	weight float32
}

// phrase is some words that stand for something together.
type phrase struct {
	first   string   // as it is written above
	rest    []string // keys of the words after the first
	split   bool     // the last may stand apart: turn the light off
	idiom   bool     // its words mean nothing on their own
	targets []string // keys
}

// particles are what English puts behind a verb, or behind its object.
var particles = wordSet("away back down in into off on out over through up")

var vocabulary = newLexicon()

func newLexicon() *lexicon {
	l := &lexicon{
		canonical: map[string]string{}, pairWords: map[string]int32{}, pairs: map[[2]int32]string{},
		acts: map[string]act{}, related: map[string][]standIn{}, phrases: map[string][]phrase{},
	}
	for _, group := range groups(sameAs) {
		key := stem(strings.ReplaceAll(group[0], "_", ""))
		for _, spelling := range group {
			if a, b, two := strings.Cut(spelling, "_"); two {
				l.pairs[[2]int32{l.newPairWord(a), l.newPairWord(b)}] = key
				spelling = a + b
			}
			l.canonical[stem(spelling)] = key
		}
	}
	for i, list := range groups(actLists) {
		for _, w := range list[1:] {
			l.acts[l.key(w)] = act(i + 1)
		}
	}
	for _, group := range groups(forms) {
		l.relate(group, group, formWeight)
	}
	for _, group := range groups(related) {
		l.relate(group, group, relatedWeight)
	}
	for _, line := range groups(asked) {
		colon := slices.IndexFunc(line, func(w string) bool { return strings.HasSuffix(w, ":") })
		line[colon] = strings.TrimSuffix(line[colon], ":")
		l.relate(line[:colon+1], line[colon+1:], relatedWeight)
	}
	return l
}

// groups returns the words of each line of a list.
func groups(list string) (all [][]string) {
	for line := range strings.Lines(list) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			all = append(all, words)
		}
	}
	return all
}

// relate lets each of some words stand for each of others.
func (l *lexicon) relate(others, words []string, weight float32) {
	for _, a := range others {
		for _, b := range words {
			if a == b {
				continue
			}
			from, several := l.whole(a)
			to, _ := l.whole(b)
			switch {
			case several:
				l.addPhrase(strings.Split(a, "_"), to)
			case from != to && !slices.ContainsFunc(l.related[from], func(s standIn) bool { return s.key == to }):
				l.related[from] = append(l.related[from], standIn{to, weight})
			}
		}
	}
}

// whole returns the key of a word of the lists, or of several written as one, and
// whether they are several that sameAs does not know as one.
func (l *lexicon) whole(w string) (key string, several bool) {
	words := strings.Split(w, "_")
	if len(words) == 2 {
		if key, ok := l.pair(words[0], words[1]); ok {
			return key, false
		}
	}
	return l.key(strings.Join(words, "")), len(words) > 1
}

func (l *lexicon) addPhrase(words []string, target string) {
	p := phrase{
		first: words[0],
		split: particles[words[len(words)-1]],
		idiom: slices.ContainsFunc(words, func(w string) bool { return stopWords[w] || faintWords[w] || particles[w] }),
	}
	for _, w := range words[1:] {
		p.rest = append(p.rest, l.key(w))
	}
	first := l.key(words[0])
	list := l.phrases[first]
	i := slices.IndexFunc(list, func(q phrase) bool { return slices.Equal(p.rest, q.rest) })
	if i < 0 {
		i = len(list)
		list = append(list, p)
	}
	list[i].targets = append(list[i].targets, target)
	l.phrases[first] = list
}

// phrase returns the longest phrase that begins with the first of words, and the
// places of its words; nil if there is none.
func (l *lexicon) phrase(words []word) (p phrase, places []int) {
	for _, candidate := range l.phrases[words[0].key] {
		if strings.HasSuffix(words[0].text, "s") && !strings.HasSuffix(candidate.first, "s") {
			continue // "the logs in a pod" is not about logging in
		}
		if found := candidate.match(words); len(found) > len(places) {
			p, places = candidate, found
		}
	}
	return p, places
}

// match returns the places of a phrase's words, the first of which is known to be
// the first of words, or nil. Words that say nothing may stand between.
func (p *phrase) match(words []word) []int {
	places := []int{0}
	i := 1
	for n, key := range p.rest {
		between := 0
		for i < len(words) && words[i].key != key {
			apart := p.split && n == len(p.rest)-1 && between < 3
			if !apart && !(stopWords[words[i].text] && between < 2) {
				return nil
			}
			i++
			between++
		}
		if i == len(words) {
			return nil
		}
		places = append(places, i)
		i++
	}
	return places
}

// pair returns the key of two words that are one thing.
func (l *lexicon) pair(a, b string) (key string, ok bool) {
	key, ok = l.pairs[[2]int32{l.pairWord(a), l.pairWord(b)}]
	return key, ok
}

func (l *lexicon) newPairWord(w string) int32 {
	s := stem(w)
	n, ok := l.pairWords[s]
	if !ok {
		n = int32(len(l.pairWords))
		l.pairWords[s] = n
	}
	return n
}

// pairWord returns the number of a word that may be part of a pair, or -1.
func (l *lexicon) pairWord(w string) int32 {
	if n, ok := l.pairWords[stem(w)]; ok {
		return n
	}
	return -1
}

// key returns what a word is indexed by: its stem, or that of the spelling that
// counts first.
func (l *lexicon) key(w string) string {
	s := stem(w)
	if key, ok := l.canonical[s]; ok {
		return key
	}
	if len(w) == 3 && w[2] == 's' { // PRs, VMs: too short for stem
		if key, ok := l.canonical[w[:2]]; ok {
			return key
		}
	}
	return s
}

// has reports whether a key stands in the lists.
func (l *lexicon) has(key string) bool { return l.related[key] != nil || l.acts[key] != actNone }
