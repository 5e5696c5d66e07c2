//go:build linux

package lockdown

import (
	"fmt"
	"slices"
	"testing"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// BenchmarkLayer says what each layer costs, as a fresh process measures it: the median, in
// microseconds, of Begin and of Finish. The identity, which goes with the namespaces, and the
// making of the report are in all of them ("none").
//
//	go test -run - -bench Layer -benchtime 100x ./limits/lockdown
func BenchmarkLayer(b *testing.B) {
	for _, m := range modes {
		b.Run(m.name+"/none", func(b *testing.B) { measure(b, m, m.only()) })
		for _, layer := range self {
			b.Run(m.name+"/"+string(layer), func(b *testing.B) { measure(b, m, m.only(layer)) })
		}
		b.Run(m.name+"/all", func(b *testing.B) { measure(b, m, m.plan()) })
	}
}

// BenchmarkBoundingSet says why Begin empties the set and not Finish: the price grows with the
// threads, of which a process that has loaded an engine has more.
func BenchmarkBoundingSet(b *testing.B) {
	for _, threads := range []int{0, 8, 32} {
		b.Run(fmt.Sprintf("threads=+%d", threads), func(b *testing.B) {
			measure(b, namespaced, namespaced.only(isolation.Capabilities), fmt.Sprint(threads))
		})
	}
}

func measure(b *testing.B, m mode, p Plan, args ...string) {
	var begin, finish []float64
	for b.Loop() {
		r := m.start(b, "time", p, args...)
		var nsBegin, nsFinish float64
		if _, err := fmt.Sscan(r.line(), &nsBegin, &nsFinish); err != nil {
			b.Fatal(err)
		}
		r.wait()
		begin, finish = append(begin, nsBegin/1e3), append(finish, nsFinish/1e3)
	}
	slices.Sort(begin)
	slices.Sort(finish)
	b.ReportMetric(begin[len(begin)/2], "begin-µs")
	b.ReportMetric(finish[len(finish)/2], "finish-µs")
}
