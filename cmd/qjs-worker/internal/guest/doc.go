// Package guest is what JavaScript sees: the globals of a cell, the tools, output,
// timers, and the table that turns guest values into JSON (VALUES.md).
//
// Nearly all of it is JavaScript, the chapters in prelude/. [Build] evaluates them once
// into a start image; [New] restores the image in about a millisecond, whatever the
// size of the prelude. The default way to use it:
//
//	image, err := guest.Build(mod)
//	g, err := guest.New(mod, image, engine.Config{Interrupt: stop}, host, 64<<20, guest.Options{Tools: catalog})
//	defer g.VM().Close()
//	err = g.Run(`(async () => tools.echo({v: 1}))`, "cell.js") // host.Call was called
//	err = g.Settle(1, []byte(`{"v":1}`), nil)
//	outcome, done := g.Outcome()
//
// Who owns what. A Guest is driven by one goroutine, which calls Run once and then Settle and
// FireTimers as things happen; each returns when nothing is left to do. The [Host] is
// called on that goroutine, from inside guest code. Closing the VM is the caller's.
//
// Everything that a run waits for (its promise, pending calls, timers, rejections)
// lives in the VM. A [Guest] holds nothing that cannot be found again there, so what
// [Guest.Park] writes between two calls is the whole run, and [Guest.Unpark] goes on with it
// in any process of the same build. What the guest does not wait for but lets go of, its
// yields, [Guest.Resume] settles.
//
// What it does not protect against: the guest is hostile and may attack the engine itself.
// That the prelude takes the engine's functions before any guest code runs keeps output,
// calls and values right when a cell patches Array.prototype; it is no security border.
// The process is.
package guest
