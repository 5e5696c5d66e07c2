package declare

import (
	"encoding/json"
	"slices"
	"testing"
)

func BenchmarkFile(b *testing.B) {
	list := servers(corpus(b))
	tools, bytes := 0, 0
	for _, s := range list {
		for _, m := range s.Methods {
			if len(m.Input) > 0 {
				tools++
			}
			bytes += len(m.Input) + len(m.Output)
		}
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		for _, s := range list {
			s.File(1 << 30)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(tools), "ns/schema")
}

func BenchmarkInline(b *testing.B) {
	tools := slices.DeleteFunc(corpus(b), func(t corpusTool) bool { return len(t.Input) == 0 })
	bytes := 0
	for _, tool := range tools {
		bytes += len(tool.Input)
	}
	b.SetBytes(int64(bytes))
	b.ReportAllocs()
	for b.Loop() {
		for _, tool := range tools {
			Inline(tool.Input, 300)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(tools)), "ns/schema")
}

// A schema of 1 KB, as most tools have.
func BenchmarkTypical(b *testing.B) {
	schema := json.RawMessage(`{"type":"object","properties":{"owner":{"type":"string","description":"Owner of the repository"},` +
		`"repo":{"type":"string","description":"Name of the repository"},"title":{"type":"string","description":"Title of the issue"},` +
		`"body":{"type":"string","description":"Text of the issue"},"labels":{"type":"array","items":{"type":"string"},"description":"Labels"},` +
		`"assignees":{"type":"array","items":{"type":"string"},"description":"Who works on it"},"milestone":{"type":"integer","minimum":1},` +
		`"state":{"type":"string","enum":["open","closed","all"],"default":"open"},"sort":{"anyOf":[{"type":"string"},{"type":"null"}]},` +
		`"filter":{"type":"object","properties":{"since":{"type":"string","format":"date-time"},"until":{"type":"string","format":"date-time"},` +
		`"author":{"type":"string"},"perPage":{"type":"integer","minimum":1,"maximum":100,"default":30}},"required":["since"],"additionalProperties":false}},` +
		`"required":["owner","repo","title"],"additionalProperties":false}`)
	s := Server{Identifier: "github", Name: "GitHub", Methods: []Method{{Path: []string{"listIssues"}, Name: "list_issues", Description: "List issues", Input: schema}}}
	b.SetBytes(int64(len(schema)))
	b.ReportAllocs()
	for b.Loop() {
		s.File(1 << 20)
	}
}
