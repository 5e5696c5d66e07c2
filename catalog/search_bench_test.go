package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// realisticTools returns tools of the size that real ones have: about 250 bytes of
// description and a schema of about one kilobyte, with words of their own.
func realisticTools(b *testing.B, n int) []Entry {
	c, _ := searchData(b)
	texts := c.All()
	entries := make([]Entry, n)
	for i := range entries {
		t, other := texts[i%len(texts)], texts[(i*7+i/len(texts))%len(texts)]
		var schema strings.Builder
		fmt.Fprintf(&schema, `{"type":"object","properties":{`)
		for j := range 5 {
			p := texts[(i+j*13)%len(texts)]
			fmt.Fprintf(&schema, `"%s%d":{"type":"string","minLength":1,"description":%q,"enum":["one","two"]},`, ConvenienceName(p.Name), j, p.Description)
		}
		fmt.Fprintf(&schema, `"id%d":{"type":"integer"}},"required":["id%d"],"additionalProperties":false}`, i, i)
		entries[i] = Entry{
			Name: fmt.Sprintf("%s_%s_%d", t.Name, other.Name, i/len(texts)), Label: t.Label, Source: Plugin, SourceName: fmt.Sprintf("owner%d", i/40),
			Description: fmt.Sprintf("%s %s Needs item%d of the account.\nReturns the result as JSON; use %s for more than %d of them.", t.Description, other.Description, i, other.Name, i),
			Parameters:  json.RawMessage(schema.String()),
		}
	}
	return entries
}

func realisticCatalog(b *testing.B, n int) *Catalog {
	c, warnings, err := Build(realisticTools(b, n), Options{})
	if err != nil || len(warnings) > 0 {
		b.Fatal(warnings, err)
	}
	return c
}

// BenchmarkIndex is what the first search does before it searches.
func BenchmarkIndex(b *testing.B) {
	c := realisticCatalog(b, 10_000)
	for b.Loop() {
		newIndex(b.Context(), c.native)
	}
}

func BenchmarkSearch(b *testing.B) {
	c := realisticCatalog(b, 10_000)
	for _, bench := range []struct{ name, query string }{
		{"short", "create issue"},
		{"question", "how do I find out which of the pull requests that were merged last week broke the build of our repository, and who should review the fix before we deploy it to the cluster again?"},
		{"4KiB", strings.Repeat("send the latest email about an invoice to every customer, file it, list and create records; ", 50)[:MaxQueryBytes]},
	} {
		b.Run(bench.name, func(b *testing.B) {
			c.Search("x", nil)
			var took []time.Duration
			for b.Loop() {
				start := time.Now()
				if hits, err := c.Search(bench.query, nil); err != nil || len(hits) == 0 {
					b.Fatal(hits, err)
				}
				took = append(took, time.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
		})
	}
}
