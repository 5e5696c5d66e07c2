package supervisor

import (
	"time"

	"github.com/openclaw/codemode-supervisor/limits/isolation"
)

// result puts the run's result together; fail is nil if the cell completed.
func (r *run) result(fail *failure) *Result {
	if len(r.ledger.running) > 0 {
		r.ledger.tools += time.Since(r.ledger.busy)
		r.ledger.busy = time.Now()
	}
	r.timings.Tools = millis(r.ledger.tools)
	if r.ask != nil {
		r.timings.Total = millis(time.Since(r.ask.clock.start))
	}
	counts := r.ledger.counts
	counts.Exec, counts.Wait = 1, r.waits
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
			Calls:        r.ledger.shown(),
			CallsOmitted: r.ledger.omitted,
			Limits:       limits,
			Snapshot:     r.snap,
			Timings:      r.timings,
			Worker: WorkerInfo{
				PeakMemoryBytes: r.usage.PeakBytes,
				CPUMillis:       millis(r.usage.CPU),
				Isolation:       layers(r.around),
			},
			Cell:         r.cell,
			OmittedBytes: r.omitted,
		},
	}
	if fail != nil {
		res.Status, res.Code, res.Phase, res.Error = Failed, fail.code, fail.phase, fail.text
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

// layers lists what was around the worker. How to get what was not is the doctor's to say.
func layers(r isolation.Report) []LayerInfo {
	infos := []LayerInfo{}
	for _, s := range r {
		infos = append(infos, LayerInfo{Layer: string(s.Layer), State: string(s.State), Reason: s.Reason})
	}
	return infos
}
