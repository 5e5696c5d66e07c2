package catalog

// relatedWeight is what a word counts that is only related to the one that was
// asked for.
const relatedWeight = 0.35

// keys returns the index keys of a text: stems, with one key for all spellings of
// a thing. Stop words are left out.
func keys(text string) []string {
	words := terms(text)
	found := make([]string, 0, len(words))
	last := ""
	for _, w := range words {
		s := stem(w)
		if key, ok := vocabulary.pairs[last+" "+s]; ok {
			found = append(found, key)
		}
		last = s
		if !stopWords[w] {
			found = append(found, vocabulary.key(w))
		}
	}
	return found
}

// queryTerms returns the words of a query, each with those that may stand for it.
func queryTerms(query string) [][]term {
	var found [][]term
	seen := map[string]bool{}
	for _, key := range keys(query) {
		if seen[key] {
			continue
		}
		seen[key] = true
		alternatives := []term{{key, 1}}
		for _, other := range vocabulary.related[key] {
			alternatives = append(alternatives, term{other, relatedWeight})
		}
		found = append(found, alternatives)
	}
	return found
}
