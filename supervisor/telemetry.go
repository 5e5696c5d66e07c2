package supervisor

import "time"

// Telemetry is what a result says about the run (SPEC 11.3). It holds no source, tool
// input, tool results, environment values or secrets.
type Telemetry struct {
	VisibleTools []string     `json:"visibleTools"`
	Catalog      CatalogInfo  `json:"catalog"`
	Counts       Counts       `json:"counts"`
	Calls        []CallInfo   `json:"calls"`
	CallsOmitted int          `json:"callsOmitted,omitempty"`
	Limits       []string     `json:"limits"` // config fields whose limit was hit
	Snapshot     SnapshotInfo `json:"snapshot"`
	Timings      Timings      `json:"timings"`
	Worker       WorkerInfo   `json:"worker"`
	Cell         *CellInfo    `json:"cell,omitempty"` // nil if the source was not understood
	// OmittedBytes is what the output limit left out, of output, value and error.
	OmittedBytes uint64 `json:"omittedBytes,omitempty"`
}

// CatalogInfo counts the catalog's entries.
type CatalogInfo struct {
	Size     int            `json:"size"`
	BySource map[string]int `json:"bySource"`
}

// Counts counts what the cell asked for.
type Counts struct {
	Exec     int `json:"exec"`
	Wait     int `json:"wait"`
	Search   int `json:"search"`
	Describe int `json:"describe"`
	Call     int `json:"call"`
}

// CallState is what became of a nested call.
type CallState string

// The states.
const (
	NotStarted CallState = "not_started" // refused, or queued and never sent
	InFlight   CallState = "in_flight"   // started, and its end is not known
	Done       CallState = "done"
	CallFailed CallState = "failed"
)

// CallInfo is one nested call in the ledger (SPEC 10.7).
type CallInfo struct {
	ID     string    `json:"id"`
	ToolID string    `json:"toolId"`
	State  CallState `json:"state"`
	Millis float64   `json:"ms"`
}

// maxCallInfos is how many calls a result lists.
const maxCallInfos = 256

// SnapshotInfo is about parking, over the whole run.
type SnapshotInfo struct {
	Bytes     int64 `json:"bytes"` // of the last snapshot, sealed
	Created   int   `json:"created"`
	Restored  int   `json:"restored"`
	Discarded int   `json:"discarded"` // dropped at the run's end without having been restored
}

// Timings are in milliseconds, of the exec or wait that the result answers.
type Timings struct {
	Queue     float64 `json:"queue"`     // for a free worker place
	Start     float64 `json:"start"`     // of the worker, until it was ready
	Transform float64 `json:"transform"` // source to program, TypeScript included
	Guest     float64 `json:"guest"`     // guest code, as the worker says
	Tools     float64 `json:"tools"`     // while at least one nested call was running
	Snapshot  float64 `json:"snapshot"`  // to take and to store it
	Restore   float64 `json:"restore"`   // in the worker, until guest code could go on
	Total     float64 `json:"total"`
}

// WorkerInfo is what the worker process of this exec or wait used.
type WorkerInfo struct {
	PeakMemoryBytes int64       `json:"peakMemoryBytes"` // resident set
	CPUMillis       float64     `json:"cpuMs"`
	Isolation       []LayerInfo `json:"isolation"`
}

// LayerInfo is what became of one isolation layer (SPEC 15.1).
type LayerInfo struct {
	Layer  string `json:"layer"`
	State  string `json:"state"`            // "on", "off" or "unavailable"
	Reason string `json:"reason,omitempty"` // why it is not on
}

// CellInfo says what the source was found to be (SPEC 4.1).
type CellInfo struct {
	Language string `json:"language"`
	Form     string `json:"form"`
	Fenced   bool   `json:"fenced"`
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
