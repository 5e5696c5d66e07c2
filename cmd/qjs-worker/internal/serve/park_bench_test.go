package serve

import (
	"slices"
	"testing"
	"time"

	"github.com/openclaw/codemode-supervisor/workerproto"
)

// smallCell is what most parked runs are: a few values, a call that waits.
const smallCell = `
	const users = (await tools.echo([{id: 1, name: "a"}, {id: 2, name: "b"}])).map(u => u.name);
	for (const user of users) { text(user); await yield_control("waiting for " + user) }
	users.length`

// parkedCell gives a worker at rest in the middle of smallCell.
func parkedCell(t testing.TB) *peer {
	t.Helper()
	p := begin(t, workerproto.Start{Source: []byte(smallCell)})
	p.rest()
	p.send(&workerproto.ToolResult{ID: 1, Value: []byte(`[{"id":1,"name":"a"},{"id":2,"name":"b"}]`)})
	p.rest()
	return p
}

// BenchmarkRestore is from the resume written to the resumed read, in a worker that is
// ready. See also SPEC 12.3.
func BenchmarkRestore(b *testing.B) {
	snapshot, _ := parkedCell(b).park()
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		p := worker(b)
		b.StartTimer()
		began := time.Now()
		p.resume(snapshot, workerproto.Resume{})
		p.next()
		took = append(took, time.Since(began))
	}
	median(b, took)
	b.ReportMetric(float64(len(snapshot)), "snapshot-bytes")
}

// BenchmarkPark is from the park written to the parked read.
func BenchmarkPark(b *testing.B) {
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		p := parkedCell(b)
		b.StartTimer()
		began := time.Now()
		p.park()
		took = append(took, time.Since(began))
	}
	median(b, took)
}

func median(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1e3, "median-ms")
}
