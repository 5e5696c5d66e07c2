package catalog

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Each word of the lists has an effect, and only the one that its line says.
func TestVocabulary(t *testing.T) {
	complain := func(format string, args ...any) { t.Helper(); t.Errorf(format, args...) }

	closed := map[string]string{} // word → the set that it is in
	for name, set := range map[string]map[string]bool{"stopWords": stopWords, "faintWords": faintWords, "brands": brands} {
		for w := range set {
			if other := closed[w]; other != "" {
				complain("%q is in %s and in %s", w, other, name)
			}
			closed[w] = name
		}
	}

	spelled := map[string]string{} // stem of a spelling → its group
	for _, group := range groups(sameAs) {
		if len(group) < 2 {
			complain("sameAs: %v says nothing", group)
		}
		for _, spelling := range group {
			if strings.Count(spelling, "_") > 1 {
				complain("sameAs: %q has more than two words", spelling)
			}
			s := stem(strings.ReplaceAll(spelling, "_", ""))
			if other := spelled[s]; other != "" && other != group[0] {
				complain("sameAs: %q is in the group of %s and in that of %s", spelling, other, group[0])
			}
			spelled[s] = group[0]
			if stopWords[spelling] {
				complain("sameAs: %q is a stop word", spelling)
			}
		}
	}

	acted := map[string]string{}
	for _, list := range groups(actLists) {
		for _, w := range list[1:] {
			key := vocabulary.key(w)
			if other := acted[key]; other != "" {
				complain("actLists: %q is in %s and in %s", w, other, list[0])
			}
			acted[key] = list[0]
		}
	}

	for name, list := range map[string]string{"forms": forms, "related": related} {
		all := groups(list)
		for i, group := range all {
			keys := map[string]bool{}
			for _, w := range group {
				if stopWords[w] {
					complain("%s: %q is a stop word", name, w)
				}
				key, several := vocabulary.whole(w)
				if keys[key] && !several {
					complain("%s: in %v, %q stands there already", name, group, w)
				}
				keys[key] = true
			}
			for j, other := range all {
				if i != j && !slices.ContainsFunc(group, func(w string) bool { return !slices.Contains(other, w) }) {
					complain("%s: %v is part of %v", name, group, other)
				}
			}
		}
	}

	heads := map[string]bool{}
	for _, line := range groups(asked) {
		text := strings.Join(line, " ")
		left, right, ok := strings.Cut(text, ": ")
		if !ok {
			complain("asked: no colon in %q", text)
		}
		for _, w := range strings.Fields(left) {
			if heads[w] {
				complain("asked: %q stands there twice", w)
			}
			heads[w] = true
			key, several := vocabulary.whole(w)
			if !several && (stopWords[w] || faintWords[w]) {
				complain("asked: %q is no word to ask with", w)
			}
			for _, target := range strings.Fields(right) {
				to, more := vocabulary.whole(target)
				if to == key && !several || stopWords[target] {
					complain("asked: %q says nothing for %q", target, w)
				}
				if more && !slices.Contains(openCompounds, target) {
					complain("asked: %q is not one word of any tool", target)
				}
			}
		}
	}
}

// openCompounds are targets of two words that sameAs does not know: tools write
// them as one, or search joins them.
var openCompounds = strings.Fields("on_call time_off travel_time")

// What stands for a word is the same in each run: the lists are read in order.
func TestVocabularyStable(t *testing.T) {
	a, b := newLexicon(), newLexicon()
	for key, list := range a.related {
		if !slices.Equal(list, b.related[key]) {
			t.Errorf("%q: %v and %v", key, list, b.related[key])
		}
	}
	for key, list := range a.phrases {
		if fmt.Sprint(list) != fmt.Sprint(b.phrases[key]) {
			t.Errorf("%q: %v and %v", key, list, b.phrases[key])
		}
	}
}
