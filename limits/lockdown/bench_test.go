//go:build linux

package lockdown

import (
	"fmt"
	"testing"
)

// BenchmarkLayer says what each layer costs, as a fresh process measures it: the identity, which
// goes with the namespaces, is in all of them ("none").
func BenchmarkLayer(b *testing.B) {
	for _, m := range modes {
		for _, layer := range self {
			b.Run(m.name+"/"+string(layer), func(b *testing.B) { measure(b, m, m.only(layer)) })
		}
		b.Run(m.name+"/none", func(b *testing.B) { measure(b, m, m.only()) })
		b.Run(m.name+"/all", func(b *testing.B) { measure(b, m, m.plan()) })
	}
}

func measure(b *testing.B, m mode, p Plan) {
	var begin, finish float64
	for b.Loop() {
		r := m.start(b, "time", p)
		var nsBegin, nsFinish float64
		if _, err := fmt.Sscan(r.line(), &nsBegin, &nsFinish); err != nil {
			b.Fatal(err)
		}
		r.wait()
		begin, finish = begin+nsBegin, finish+nsFinish
	}
	b.ReportMetric(begin/1e3/float64(b.N), "begin-µs/op")
	b.ReportMetric(finish/1e3/float64(b.N), "finish-µs/op")
}
