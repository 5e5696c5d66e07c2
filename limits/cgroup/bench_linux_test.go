package cgroup

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

func BenchmarkOpen(b *testing.B) {
	var opened, closed []time.Duration
	for b.Loop() {
		t := time.Now()
		h, err := Open("")
		if err != nil {
			b.Fatal(err)
		}
		opened = append(opened, time.Since(t))
		t = time.Now()
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
		closed = append(closed, time.Since(t))
	}
	report(b, "open", opened)
	report(b, "close", closed)
}

// BenchmarkGroup is what a group adds to a worker's life: New, Join and Remove, without the worker itself.
func BenchmarkGroup(b *testing.B) {
	h, err := Open("")
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	var made, joined, removed, all []time.Duration
	for b.Loop() {
		t := time.Now()
		g, err := h.New(Limits{MemoryBytes: 256 << 20, Pids: 64, CPUs: 1})
		if err != nil {
			b.Fatal(err)
		}
		made = append(made, time.Since(t))
		c := exec.Command("/proc/self/exe")
		c.Env = append(os.Environ(), childVariable+"=where")
		in, err := c.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		born := g.FD() >= 0
		c.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: born, CgroupFD: g.FD()}
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		t = time.Now()
		if err := g.Join(c.Process.Pid, born); err != nil {
			b.Fatal(err)
		}
		joined = append(joined, time.Since(t))
		in.Close()
		_ = c.Wait()
		t = time.Now()
		if err := g.Remove(); err != nil {
			b.Fatal(err)
		}
		removed = append(removed, time.Since(t))
		all = append(all, made[len(made)-1]+joined[len(joined)-1]+removed[len(removed)-1])
	}
	report(b, "new", made)
	report(b, "join", joined)
	report(b, "remove", removed)
	report(b, "all", all)
}

func report(b *testing.B, name string, d []time.Duration) {
	slices.Sort(d)
	b.ReportMetric(float64(d[len(d)/2].Microseconds())/1000, name+"-p50-ms")
	b.ReportMetric(float64(d[len(d)*99/100].Microseconds())/1000, name+"-p99-ms")
}
