package guest_test
import ("testing";"time")
func TestTimerParts(t *testing.T) {
	r := newRun(t)
	t0 := time.Now()
	r.body(`const a=Date.now(); for (let i = 0; i < 1e5; i++) { const due = (i * 7919) % 100; setTimeout(() => {}, due); }; const b=Date.now(); return [b-a,Date.now()-b]`)
	t.Log(time.Since(t0), r.outcome(), r.g.VM().Allocated())
	for i := 0; i < 100; i++ {
		at, _ := r.g.NextTimer()
		r.host.now = at
		t1 := time.Now()
		r.g.FireTimers()
		if i%10==0 {t.Log(i, time.Since(t1)/1000) }
	}
}
