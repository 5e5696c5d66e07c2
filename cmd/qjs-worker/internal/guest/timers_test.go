package guest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// SPEC 4.6
func TestTimers(t *testing.T) {
	for _, c := range []struct {
		name, code string
		want       []string
	}{
		{"order is by time, then by creation", `setTimeout(text, 2, "c"); setTimeout(text, 1, "a"); setTimeout(text, 1, "b"); setTimeout(text, 0, "first")`, []string{"first", "a", "b", "c"}},
		{"arguments", `setTimeout((...a) => json(a), 1, 1, "b", null)`, []string{`json [1,"b",null]`}},
		{"odd delays", `for (const d of [undefined, null, NaN, -5, "3", 1.9, {}, -Infinity, Infinity]) setTimeout(() => text(d + "@" + performance.now()), d)`,
			[]string{"undefined@0", "null@0", "NaN@0", "-5@0", "[object Object]@0", "-Infinity@0", "Infinity@0", "1.9@1", "3@3"}},
		{"no function", `for (const f of [undefined, "text(1)", {}, null]) try { setTimeout(f) } catch (e) { text(e.name + " " + e.message.slice(0, 10)) }`,
			[]string{"TypeError setTimeout", "TypeError setTimeout", "TypeError setTimeout", "TypeError setTimeout"}},
		{"ids are numbers", `json([typeof setTimeout(() => 1), setInterval(() => 1, 1e6) > 0])`, []string{`json ["number",true]`}},
		{"clear", `const a = setTimeout(text, 1, "a"); setTimeout(text, 1, "b"); clearTimeout(a); clearTimeout(a); clearTimeout(); clearTimeout({}); clearInterval(99)`, []string{"b"}},
		{"clear by a string and across kinds", `clearInterval(String(setTimeout(text, 1, "a"))); clearTimeout(setInterval(text, 1, "b"))`, []string{}},
		{"interval", `let n = 0; const id = setInterval(() => { text("tick " + performance.now()); if (++n === 3) clearInterval(id) }, 10)`, []string{"tick 10", "tick 20", "tick 30"}},
		{"interval of 0 lets time pass", `let n = 0; const id = setInterval(() => { if (++n === 3) { clearInterval(id); text("at " + performance.now()) } }, 0)`, []string{"at 3"}},
		{"jobs between callbacks", `setTimeout(() => { text("a"); Promise.resolve().then(() => text("job")) }, 1); setTimeout(text, 1, "b")`, []string{"a", "job", "b"}},
		{"await", `await new Promise(r => setTimeout(r, 5)); text("after " + performance.now())`, []string{"after 5"}},
		{"this", `setTimeout(function () { "use strict"; text(String(this)) })`, []string{"undefined"}},
		{"nested", `setTimeout(function again(n) { text(n + "@" + performance.now()); if (n < 2) setTimeout(again, 0, n + 1) }, 1, 0)`, []string{"0@1", "1@1", "2@1"}},
		{"queueMicrotask", `queueMicrotask(() => text("b")); text("a")`, []string{"a", "b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRun(t)
			if err := r.body(c.code); err != nil {
				t.Fatal(err)
			}
			r.timers(20)
			if diff := cmp.Diff(c.want, r.host.lines(t)); diff != "" {
				t.Errorf("(-want +got):\n%s\noutcome %s", diff, r.outcome())
			}
		})
	}
}

// FireTimers leaves timers that the fired ones started, so that the host stays in charge.
func TestTimersDoNotHoldTheHost(t *testing.T) {
	r := newRun(t)
	if err := r.body(`let n = 0; (function again() { json(++n); setTimeout(again, 0) })(); await new Promise(() => {})`); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := r.g.FireTimers(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"json 1", "json 2", "json 3", "json 4"}, r.host.lines(t)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if at, ok := r.g.NextTimer(); !ok || at != 0 {
		t.Errorf("NextTimer: got %v, %v", at, ok)
	}
}

func TestManyTimers(t *testing.T) {
	r := newRun(t)
	err := r.body(`
		let fired = 0, last = -1, order = true;
		const ids = [];
		for (let i = 0; i < 1e5; i++) {
			const due = (i * 7919) % 100;
			ids.push(setTimeout(() => { fired++; if (due < last) order = false; last = due }, due));
		}
		for (let i = 0; i < 1e5; i++) if (i % 10 !== 0) clearTimeout(ids[i]);
		await new Promise(r => setTimeout(r, 200));
		return [fired, order]`)
	if err != nil {
		t.Fatal(err)
	}
	r.timers(200)
	if got := r.outcome(); got != "[10000,true]" {
		t.Errorf("got %s", got)
	}
	if _, ok := r.g.NextTimer(); ok {
		t.Error("a timer is left")
	}
}

// Timers that are started and stopped in a loop do not fill the heap.
func TestCancelledTimersAreFreed(t *testing.T) {
	r := newRunWith(t, config, 2<<20)
	if err := r.body(`for (let i = 0; i < 1e5; i++) clearTimeout(setTimeout(() => {}, 1e9)); return 1`); err != nil {
		t.Fatal(err)
	}
	if got := r.outcome(); got != "1" {
		t.Errorf("got %s", got)
	}
}
