package supervisor

import (
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/internal/process"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// result puts the run's result together; fail is nil if the cell completed.
func (r *run) result(fail *failure) *Result {
	if len(r.ledger.running) > 0 {
		r.ledger.tools += time.Since(r.ledger.busy)
	}
	r.timings.Tools = millis(r.ledger.tools)
	r.timings.Total = millis(time.Since(r.clock.start))
	counts := r.ledger.counts
	counts.Exec = 1
	limits := r.limits
	if limits == nil {
		limits = []string{}
	}
	res := &Result{
		RunID:  r.id,
		Status: Completed,
		Output: r.output,
		Telemetry: Telemetry{
			VisibleTools: []string{"exec", "wait"},
			Catalog:      catalogInfo(r.p),
			Counts:       counts,
			Calls:        r.ledger.list(),
			CallsOmitted: r.ledger.omitted,
			Limits:       limits,
			Timings:      r.timings,
			Worker: WorkerInfo{
				PeakMemoryBytes: r.usage.PeakBytes,
				CPUMillis:       millis(r.usage.CPU),
				Isolation:       layers(r.child != nil),
			},
			Cell:         r.cell,
			OmittedBytes: r.omitted,
		},
	}
	end := trajectory.Event{Kind: trajectory.End, Status: string(res.Status), Millis: &r.timings.Total}
	if fail != nil {
		res.Status, res.Code, res.Phase, res.Error = Failed, fail.code, fail.phase, fail.text
		end.Status, end.Code = string(Failed), string(fail.code)
	}
	r.record(end)
	if r.emitter != nil {
		r.emitter.close()
	}
	return res
}

func catalogInfo(p Program) CatalogInfo {
	info := CatalogInfo{BySource: map[string]int{}}
	if p.Catalog != nil {
		info.Size = p.Catalog.Len()
		for source, n := range p.Catalog.BySource() {
			info.BySource[string(source)] = n
		}
	}
	return info
}

// layers lists what is around a worker today.
func layers(started bool) []LayerInfo {
	if !started {
		return []LayerInfo{}
	}
	infos := []LayerInfo{}
	for _, name := range process.Layers() {
		infos = append(infos, LayerInfo{name, "on"})
	}
	return infos
}
