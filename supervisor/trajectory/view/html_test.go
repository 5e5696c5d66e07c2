package view

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/supervisor/trajectory"
	"golang.org/x/net/html"
)

func render(t testing.TB, tree *trajectory.Tree) []byte {
	var out bytes.Buffer
	if err := HTML(&out, tree, `<i>t</i>.jsonl`); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func parse(t testing.TB, page []byte) *html.Node {
	doc, err := html.Parse(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// all gives the elements with a tag, and with a class if one is given.
func all(doc *html.Node, tag, class string) (found []*html.Node) {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == tag && (class == "" || slices.Contains(strings.Fields(attr(n, "class")), class)) {
			found = append(found, n)
		}
	}
	return found
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// busy makes a run of n calls, in groups that run side by side.
func busy(n int) *trajectory.Tree {
	at := time.Date(2026, 11, 30, 22, 0, 0, 0, time.UTC)
	content := &trajectory.Data{Bytes: 7, SHA256: strings.Repeat("0", 64), Content: json.RawMessage(`{"k":1}`)}
	add := func(e trajectory.Event) trajectory.Event {
		at = at.Add(time.Millisecond)
		e.Time, e.RunID, e.Parent = at, "r", "call_1"
		return e
	}
	events := []trajectory.Event{add(trajectory.Event{Kind: trajectory.Exec})}
	for i := 0; i < n; i += 8 {
		for k := range 8 {
			events = append(events, add(trajectory.Event{Kind: trajectory.ToolCall, CallID: strconv.Itoa(i + k), ToolID: "client:app:t" + strconv.Itoa(k), Data: content}))
		}
		for k := range 8 {
			events = append(events, add(trajectory.Event{Kind: trajectory.ToolResult, CallID: strconv.Itoa(i + 7 - k), Status: "done", Data: content}))
		}
	}
	return trajectory.NewTree(append(events, add(trajectory.Event{Kind: trajectory.End, Status: "completed"})))
}

// trees are pages to look at: the fixtures, and large ones.
func trees(t testing.TB) map[string]*trajectory.Tree {
	m := map[string]*trajectory.Tree{"5000": busy(2500), "empty": trajectory.NewTree(nil)}
	for name, b := range fixtures(t) {
		m[name] = read(t, b)
	}
	return m
}

// A page has nothing from anywhere, its policy lets its own style and script run and
// nothing else, and no text of the file becomes an element or an attribute.
func TestPageIsClosed(t *testing.T) {
	tags := strings.Fields("html head meta title style body header h1 h2 p span form label input button output small kbd main section bdi code svg rect line text title ol li details summary div pre b script")
	for name, tree := range trees(t) {
		t.Run(name, func(t *testing.T) {
			doc := parse(t, render(t, tree))
			for n := range doc.Descendants() {
				if n.Type != html.ElementNode {
					continue
				}
				if !slices.Contains(tags, n.Data) {
					t.Errorf("an element <%s>", n.Data)
				}
				for _, a := range n.Attr {
					if strings.HasPrefix(a.Key, "on") || slices.Contains([]string{"src", "href", "style", "action", "srcset", "xlink:href"}, a.Key) {
						t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
					}
				}
			}
			scripts, styles := all(doc, "script", ""), all(doc, "style", "")
			if len(scripts) != 1 || len(styles) != 1 || textOf(scripts[0]) != pageJS || textOf(styles[0]) != pageCSS {
				t.Fatalf("%d scripts, %d styles, or not ours", len(scripts), len(styles))
			}
			var csp string
			for _, m := range all(doc, "meta", "") {
				if attr(m, "http-equiv") == "Content-Security-Policy" {
					csp = attr(m, "content")
				}
			}
			hash := func(n *html.Node) string {
				sum := sha256.Sum256([]byte(textOf(n)))
				return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
			}
			want := "default-src 'none'; style-src " + hash(styles[0]) + "; script-src " + hash(scripts[0]) + "; base-uri 'none'; form-action 'none'"
			if csp != want {
				t.Errorf("policy %q, want %q", csp, want)
			}
		})
	}
}

// What a liar writes is shown, as text.
func TestPageEscapes(t *testing.T) {
	page := render(t, read(t, fixtures(t)["hostile"]))
	doc := parse(t, page)
	const evil = "<script>alert(1)</script>"
	if !strings.Contains(textOf(all(doc, "h2", "")[0]), evil) || !strings.Contains(textOf(all(doc, "h1", "")[0]), "<i>t</i>.jsonl") {
		t.Error("the texts are gone")
	}
	for _, pre := range all(doc, "pre", "") {
		if s := textOf(pre); !strings.Contains(s, evil) || strings.ContainsAny(s, "\u202e\x1b\x07\u2028") {
			t.Errorf("got %q", s)
		}
	}
	if bytes.Contains(page, []byte("<script>alert")) || bytes.Contains(page, []byte("<img")) {
		t.Error("a text is markup")
	}
}

// SPEC 18.1: legs, calls, parks and kills are rows, in order; parallel calls share the time axis.
func TestPageRows(t *testing.T) {
	doc := parse(t, render(t, read(t, fixtures(t)["parked-killed"])))
	var rows []string
	for _, row := range all(doc, "li", "row") {
		rows = append(rows, strings.TrimPrefix(attr(row, "class"), "row ")+" "+textOf(all(row, "span", "label")[0]))
		if len(all(row, "summary", "")) != 1 || len(all(row, "rect", "")) != 1 {
			t.Errorf("row %s has no summary or no bar", rows[len(rows)-1])
		}
	}
	want := []string{
		"leg leg 1", "output output text", "done client:app:read", "done client:app:slow", "yield yield", "parked parked",
		"leg leg 2", "done mcp:github:list-issues", "failed client:app:pay", "killed killed",
		"leg leg 3", "denied mcp:vault:open", "failed client:app:pay", "yield yield", "parked parked",
		"leg leg 4", "output output json", "completed end",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("got  %q\nwant %q", rows, want)
	}
	number := func(n *html.Node, key string) float64 {
		x, err := strconv.ParseFloat(attr(n, key), 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, bar := range all(doc, "rect", "") {
		if x, w := number(bar, "x"), number(bar, "width"); x < 0 || w < 2 || x+w > 1000.01 {
			t.Errorf("a bar from %v, %v long", x, w)
		}
	}
	bars := all(doc, "svg", "bar")
	first, second := all(bars[2], "rect", "")[0], all(bars[3], "rect", "")[0]
	if number(second, "x") >= number(first, "x")+number(first, "width") {
		t.Error("calls that ran side by side do not overlap")
	}
}

// SPEC 10.1, 10.6: what was decided about a call stands in its row, and unfolds.
func TestPageSteps(t *testing.T) {
	doc := parse(t, render(t, read(t, fixtures(t)["approvals"])))
	if about := textOf(all(doc, "p", "about")[0]); !strings.Contains(about, "6 calls, 3 failed, 4 approvals, 3 parks") {
		t.Errorf("the summary is %q", about)
	}
	var got []string
	var deploy *html.Node
	for _, row := range all(doc, "li", "row") {
		label := textOf(all(row, "span", "label")[0])
		if strings.HasPrefix(label, "client:") {
			got = append(got, label+": "+textOf(all(row, "span", "brief")[0]))
		}
		if label == "client:app:deploy" {
			deploy = row
		}
	}
	want := []string{
		"client:app:build: rewritten by the hook, 2 updates",
		"client:app:rm: blocked, not sent, blocked by the hook",
		"client:app:pay: approval granted after 2.04s",
		"client:app:deploy: not_approved, not sent, the hook wants an approval, approval refused after 1m28s (asked 2 times)",
		"client:app:pay: not_approved, not sent, approval refused",
		"client:app:pay: approval asked",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var fields []string
	for _, p := range all(deploy, "p", "") {
		if text := textOf(p); strings.HasPrefix(text, "Hook ") || strings.HasPrefix(text, "Approval ") {
			fields = append(fields, text)
		}
	}
	want = []string{
		"Hook approval, 22:00:02.070000, +0s", "Approval asked, 22:00:02.071000, +1ms",
		"Hook approval, 22:01:00.000000, +57.93s", "Approval asked, 22:01:00.001000, +57.93s",
		"Approval refused, 22:01:30.001000, +1m28s",
	}
	if diff := cmp.Diff(want, fields); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pre := all(deploy, "pre", ""); len(pre) == 0 || textOf(pre[0]) != "it is Friday" {
		t.Errorf("the hook's reason is not shown")
	}
}

// A call with endless steps has a bounded row, and counts what is not in it.
func TestPageManySteps(t *testing.T) {
	events := []trajectory.Event{{RunID: "r", Kind: trajectory.Exec}}
	const n = 5000
	for range n {
		for _, e := range []trajectory.Event{
			{Kind: trajectory.Update}, {Kind: trajectory.Hook, Status: "blocked"}, {Kind: trajectory.Approval, Status: "asked"}, {Kind: trajectory.Approval, Status: "granted"},
		} {
			e.RunID, e.CallID, e.ToolID = "r", "r:1", "client:app:t"
			events = append(events, e)
		}
	}
	tree := trajectory.NewTree(events)
	doc := parse(t, render(t, tree))
	row := all(doc, "li", "in_flight")
	if steps := len(all(row[0], "p", "")); steps < 3*maxSteps || steps > 3*maxSteps+20 || !strings.Contains(textOf(row[0]), fmt.Sprintf("Left out %d steps", 4*n-3*maxSteps)) {
		t.Errorf("%d lines: %.300s", steps, textOf(row[0]))
	}
	for line := range strings.Lines(text(t, tree, false)) {
		if strings.Contains(line, "client:app:t") && (len(line) > 500 || !strings.Contains(line, "…") || !strings.Contains(line, fmt.Sprintf("%d updates", n))) {
			t.Errorf("%d bytes: %.600s", len(line), line)
		}
	}
}

// Pages are bounded, and say what is not on them.
func TestPageBounds(t *testing.T) {
	page := render(t, busy(maxRows+800)) // large: nothing but a look at its bytes
	if n := bytes.Count(page, []byte(`<li class="row `)); n < maxRows-4 || n > maxRows+4 {
		t.Errorf("%d rows", n)
	}
	if !bytes.Contains(page, []byte("rows did not fit</p>")) {
		t.Error("nothing is said of the rows that did not fit")
	}
	var events []trajectory.Event
	for i := range maxRows { // each a leg, or a run of its own
		events = append(events, trajectory.Event{RunID: "legs", Kind: trajectory.Resume}, trajectory.Event{RunID: strconv.Itoa(i), Kind: trajectory.Park})
	}
	if page := render(t, trajectory.NewTree(events)); len(page) > 64<<20 || !bytes.Contains(page, []byte("runs did not fit")) {
		t.Errorf("a page of %d bytes", len(page))
	}
	large := &trajectory.Data{Content: json.RawMessage(`"` + strings.Repeat("x", 2*maxBody) + `"`)}
	events = nil
	for range 300 {
		events = append(events, trajectory.Event{RunID: "r", Kind: trajectory.Output, Data: large})
	}
	if page := render(t, trajectory.NewTree(events)); len(page) > 2*maxBodies {
		t.Errorf("a page of %d bytes", len(page))
	}
}

// FuzzViews: whatever is in a file can be drawn, and is no markup.
func FuzzViews(f *testing.F) {
	for _, b := range fixtures(f) {
		for line := range bytes.Lines(b) { // whole files take the fuzzer minutes to make smaller
			f.Add(line)
		}
	}
	scripts := regexp.MustCompile(`(?i)<script`)
	f.Fuzz(func(t *testing.T, b []byte) {
		tree := read(t, b)
		text(t, tree, true)
		page := render(t, tree)
		if n := len(scripts.FindAll(page, -1)); n != 1 {
			t.Fatalf("%d scripts", n)
		}
	})
}

// browsers are the names of a headless Chromium.
var browsers = []string{"chromium-headless-shell", "headless_shell", "chromium", "chromium-browser", "google-chrome", "chrome"}

// A real browser draws all rows, and reports no error of the script or the policy.
func TestPageInBrowser(t *testing.T) {
	var browser string
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		t.Skipf("requires a browser: none of %s is in PATH", strings.Join(browsers, ", "))
	}
	dir := t.TempDir()
	for name, tree := range trees(t) {
		t.Run(name, func(t *testing.T) {
			page := render(t, tree)
			file := filepath.Join(dir, name+".html")
			if err := os.WriteFile(file, page, 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			// Its own sandbox needs what a container may not give; the page is ours.
			cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+filepath.Join(dir, "profile"),
				"--enable-logging=stderr", "--dump-dom", "file://"+file)
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.Bytes())
			}
			for line := range strings.Lines(stderr.String()) {
				if strings.Contains(line, "CONSOLE") {
					t.Errorf("the browser says: %s", line)
				}
			}
			drawn := parse(t, out)
			rows := len(all(parse(t, page), "li", "row"))
			if got := attr(all(drawn, "html", "")[0], "data-rows"); got != strconv.Itoa(rows) {
				t.Errorf("the script drew %q rows, the page has %d", got, rows)
			}
			if got, want := textOf(all(drawn, "output", "")[0]), fmt.Sprintf("%d of %d rows", rows, rows); got != want {
				t.Errorf("it says %q, want %q", got, want)
			}
		})
	}
}
