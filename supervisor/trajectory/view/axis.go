package view

import (
	"sort"
	"strconv"
	"time"

	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// axis maps the time of a run to 0…1000. A pause (parked, killed) is drawn at most a
// quarter as long as all the work together: hours of waiting for a person would leave
// nothing of the milliseconds of the legs.
type axis struct {
	pieces []piece
	total  float64 // length of all
	short  bool    // a pause was shortened
}

// piece is a span of time that is drawn at one scale.
type piece struct {
	from, to time.Time
	at       float64 // where it begins
	length   float64
}

func newAxis(r *trajectory.Run) *axis {
	a := new(axis)
	var work time.Duration
	for _, l := range r.Legs {
		work += l.Duration()
	}
	most := max(work/4, time.Millisecond)
	for n, l := range r.Legs {
		a.add(l.Began, l.Ended, 0)
		if from, to, what := gap(r, n); what != "" {
			a.add(from, to, most)
		}
	}
	a.add(r.Legs[len(r.Legs)-1].Ended, r.Ended, most) // what came after the end
	return a
}

// add appends a span, drawn no longer than most unless that is 0. A clock that went back
// adds nothing.
func (a *axis) add(from, to time.Time, most time.Duration) {
	if n := len(a.pieces); n > 0 && from.Before(a.pieces[n-1].to) {
		from = a.pieces[n-1].to
	}
	d := to.Sub(from)
	if d <= 0 {
		return
	}
	if most > 0 && d > most {
		d, a.short = most, true
	}
	a.pieces = append(a.pieces, piece{from, to, a.total, float64(d)})
	a.total += float64(d)
}

// place gives where a time is, from 0 to 1000.
func (a *axis) place(t time.Time) float64 {
	n := sort.Search(len(a.pieces), func(i int) bool { return t.Before(a.pieces[i].from) })
	if n == 0 {
		return 0
	}
	p := a.pieces[n-1]
	part := min(1, float64(t.Sub(p.from))/float64(p.to.Sub(p.from)))
	return 1000 * (p.at + part*p.length) / a.total
}

// bar makes a bar that can be seen, inside of the axis.
func (a *axis) bar(class string, from, to time.Time) bar {
	const least = 2
	x, end := a.place(from), a.place(to)
	w := max(least, end-x)
	x = min(x, 1000-w)
	return bar{Class: class, X: number(x), W: number(w), Y: "0", H: "10"}
}

// ticks are where the legs and pauses begin, as far as their texts have room.
func (a *axis) ticks(r *trajectory.Run) (ticks []tick) {
	const room = 90 // of 1000
	last := -float64(room)
	put := func(t time.Time) {
		if x := a.place(t); x-last >= room && x <= 1000-room {
			ticks = append(ticks, tick{number(x), offset(r, t)})
			last = x
		}
	}
	for _, p := range a.pieces {
		const parts = 5
		step := p.to.Sub(p.from) / parts
		for i := range parts {
			put(p.from.Add(time.Duration(i) * step))
		}
	}
	return ticks
}

// outline draws the whole run in one picture: legs and pauses above, and below them the
// calls in lanes, so that those that ran side by side stand one below the other.
func outline(r *trajectory.Run, a *axis) (bars []bar, lanes int) {
	const most, height = 12, 10
	put := func(b bar, lane int, title string) {
		if len(bars) < maxOutline {
			b.Y, b.H, b.Title = strconv.Itoa(lane*height), strconv.Itoa(height-2), title
			bars = append(bars, b)
		}
	}
	for n, l := range r.Legs {
		put(a.bar("leg", l.Began, l.Ended), 0, "leg "+strconv.Itoa(n+1)+", "+ending(l))
		if from, to, what := gap(r, n); what != "" {
			put(a.bar(what, from, to), 0, what)
		}
	}
	var free [most]time.Time // when each lane's last call ended
	for _, l := range r.Legs {
		for _, item := range l.Items {
			c := item.Call
			if c == nil {
				continue
			}
			lane := 0
			for lane < most-1 && free[lane].After(c.Began) {
				lane++
			}
			ended := c.Ended
			if ended.IsZero() {
				ended = r.Ended
			}
			free[lane] = ended
			lanes = max(lanes, lane+1)
			put(a.bar(string(c.State), c.Began, ended), lane+1, c.ToolID)
		}
	}
	return bars, (lanes + 1) * height
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// span is the time from one event to a later one.
func span(from, to time.Time) time.Duration { return max(0, to.Sub(from)) }
