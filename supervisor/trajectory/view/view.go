// Package view draws a trajectory for people: as a tree in a terminal ([Text]) and as one
// HTML page ([HTML]).
//
//	log, err := trajectory.Read(file)
//	err = view.HTML(page, log.Tree())
//
// What is drawn is a stranger's word. The terminal gets no control character of it, the
// page no markup and no script: it is built by html/template, needs nothing from anywhere,
// and its Content-Security-Policy lets only its own style and script run.
package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
)

// duration is short: 12.3ms, 4.56s, 1m3s.
func duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// size is 12 B, 3.4 KiB, 5.6 MiB.
func size(n int) string {
	switch {
	case n < 1<<10:
		return strconv.Itoa(n) + " B"
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// sizeOf is the size of a content, or "-" of one of which nothing was kept.
func sizeOf(d *trajectory.Data) string {
	if d == nil {
		return "-"
	}
	return size(d.Bytes)
}

// clip cuts a text at a character boundary and says so.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// printable takes out what drives a terminal or turns lines around; keep are the
// characters that stay all the same.
func printable(s, keep string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || strings.ContainsRune(keep, r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// brief shows the beginning of a content as JSON on one line; "" if it was not kept.
func brief(d *trajectory.Data) string {
	if d == nil || len(d.Content) == 0 {
		return ""
	}
	const most = 120
	return clip(printable(string(d.Content[:min(len(d.Content), 2*most)]), ""), most)
}

// body shows a content as a text of its own, at most n bytes: a JSON string as what it
// says, anything else with line breaks.
func body(d *trajectory.Data, n int) string {
	raw := d.Content
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
		var b bytes.Buffer
		if len(raw) <= n && shallow(raw) && json.Indent(&b, raw, "", "  ") == nil {
			s = b.String()
		}
	}
	if len(s) > n {
		s = clip(s, n) + fmt.Sprintf("\n[%s in all; the file has the rest]", size(d.Bytes))
	}
	return printable(s, "\n\t")
}

// shallow tells that line breaks and indentation do not blow a content up: 64 KiB of
// brackets would become a gigabyte.
func shallow(raw []byte) bool {
	const most = 32
	depth, text, escaped := 0, false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case text:
			escaped = c == '\\'
			text = c != '"'
		case c == '"':
			text = true
		case c == '[' || c == '{':
			if depth++; depth > most {
				return false
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return true
}

// ending says in words how a leg ended.
func ending(l *trajectory.Leg) string {
	switch l.End {
	case trajectory.LegParked:
		if l.Reason != "" {
			return "parked (" + strings.ReplaceAll(l.Reason, "_", " ") + ")"
		}
		return "parked"
	case trajectory.LegKilled:
		return "killed"
	case trajectory.LegLeft:
		return "left to the state directory"
	case trajectory.LegEnded:
		return "ended"
	}
	return "open"
}

// starting says how the nth leg began, counted from 0.
func starting(r *trajectory.Run, n int) string {
	switch {
	case r.Legs[n].Resumed:
		return "resumed"
	case r.Partial:
		return "begins before this file"
	}
	return "started"
}

// gap is the time between the nth leg and the one after it, and what it was.
func gap(r *trajectory.Run, n int) (from, to time.Time, what string) {
	l := r.Legs[n]
	from, to = l.Ended, r.Ended
	if n+1 < len(r.Legs) {
		to = r.Legs[n+1].Began
	}
	switch l.End {
	case trajectory.LegParked:
		return from, to, "parked"
	case trajectory.LegKilled:
		return from, to, "killed"
	case trajectory.LegLeft:
		return from, to, "left"
	}
	return from, from, ""
}

// over tells that the run has an end.
func over(r *trajectory.Run) bool {
	return r.State == trajectory.Completed || r.State == trajectory.Failed
}

// callNote is the rest of what is worth a word about a call.
func callNote(c *trajectory.Call) string {
	var notes []string
	if c.Code != "" {
		notes = append(notes, c.Code)
	}
	if c.Sends > 1 {
		notes = append(notes, fmt.Sprintf("sent %d times", c.Sends))
	}
	if c.Sends == 0 && c.State == trajectory.CallFailed {
		notes = append(notes, "not sent")
	}
	return strings.Join(notes, ", ")
}

// stepsNote says what hooks, and those who were asked, made of a call, and how much was told of it
// while it was at work. The steps of one kind stand together: there can be thousands of updates.
func stepsNote(c *trajectory.Call) string {
	var notes []string
	updates, questions := 0, 0
	var asked time.Time // since when nobody has answered
	for _, s := range c.Steps {
		switch {
		case s.Kind == trajectory.Update:
			updates++
		case s.Kind == trajectory.Hook:
			if note := hookNote(s.Status); !slices.Contains(notes[:min(len(notes), maxNotes)], note) { // it is asked again after a kill
				notes = append(notes, note)
			}
		case s.Status == trajectory.ApprovalAsked:
			if questions++; questions == 1 {
				asked = s.Time
			}
		case s.Kind == trajectory.Approval:
			notes = append(notes, approvalNote(s.Status, questions, span(asked, s.Time)))
			questions = 0
		}
	}
	if len(notes) > maxNotes { // of a run that was killed again and again, or a liar's
		notes = append(notes[:maxNotes], "…")
	}
	if questions > 0 {
		notes = append(notes, approvalNote(trajectory.ApprovalAsked, questions, 0))
	}
	if updates > 0 {
		notes = append(notes, count(updates, "update"))
	}
	return strings.Join(notes, ", ")
}

// maxNotes bounds the words on a call's line.
const maxNotes = 8

func hookNote(status string) string {
	switch status {
	case trajectory.HookBlocked:
		return "blocked by the hook"
	case trajectory.HookRewritten:
		return "rewritten by the hook"
	case trajectory.HookApproval:
		return "the hook wants an approval"
	}
	return "hook " + status
}

// approvalNote says how an approval went: how often it was asked for, and how long it took.
func approvalNote(status string, asked int, took time.Duration) string {
	s := "approval " + status
	if asked > 0 && status != trajectory.ApprovalAsked {
		s += " after " + duration(took)
	}
	if asked > 1 {
		s += fmt.Sprintf(" (asked %d times)", asked)
	}
	return s
}

// count writes 1 call, 2 calls.
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// summary counts what is in a run.
func summary(r *trajectory.Run) string {
	parts := []string{count(len(r.Legs), "leg"), count(r.Counts.Calls, "call")}
	for _, p := range []struct {
		n    int
		what string
	}{{r.Counts.Failed, "failed"}, {r.Counts.Denied, "denied"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	for _, p := range []struct {
		n    int
		what string
	}{{r.Counts.Approvals, "approval"}, {r.Counts.Outputs, "output"}, {r.Counts.Parks, "park"}, {r.Counts.Kills, "kill"}} {
		if p.n > 0 {
			parts = append(parts, count(p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}
