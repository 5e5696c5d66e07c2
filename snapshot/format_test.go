package snapshot

import (
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The tests of this file read FORMAT.md and hold it to the code, so that the page cannot
// drift.

// chapter gives the text under a heading, up to the next one of any depth.
func chapter(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("FORMAT.md has no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

// tables gives the cells of the rows of the tables in text, without their heads.
func tables(text string) (tables [][][]string) {
	var rows [][]string
	for line := range strings.Lines(text + "\n\n") {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !ok {
			if len(rows) > 2 {
				tables = append(tables, rows[2:])
			}
			rows = nil
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.TrimSuffix(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return tables
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// exampleKey and exampleSalt are those of FORMAT.md.
func exampleKey() *Key {
	k := new(Key)
	for i := range k.secret {
		k.secret[i] = byte(i)
	}
	return k
}

func exampleSalt() (salt [saltSize]byte) {
	for i := range salt {
		salt[i] = byte(0x20 + i)
	}
	return salt
}

func TestFormatExample(t *testing.T) {
	b := Binding{Kind: KindLog, RunID: "r1", Owner: Owner{AgentID: "main", SessionID: "s1"}}
	want := exampleKey().seal(b, []byte(`{"call":1}`), exampleSalt())
	var sealed []byte
	var dump string
	for line := range strings.Lines(chapter(t, "## Example")) {
		if line, ok := strings.CutPrefix(line, "    "); ok {
			dump += line
			b, err := hex.DecodeString(strings.ReplaceAll(line[10:58], " ", ""))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			sealed = append(sealed, b...)
		}
	}
	if now := hex.Dump(want); dump != now {
		t.Errorf("the example should be\n%s", now)
	}
	if plain, err := exampleKey().Open(b, sealed); err != nil || string(plain) != `{"call":1}` {
		t.Errorf("the example opens as %q, %v", plain, err)
	}
}

func TestFormatContainer(t *testing.T) {
	all := tables(chapter(t, "## Container"))
	if len(all) != 2 {
		t.Fatalf("got %d tables, want 2", len(all))
	}
	engine := strings.Repeat("e1", 32)
	sealed := exampleKey().seal(Binding{Kind: KindImage, Engine: engine}, []byte("text"), exampleSalt())
	salt := exampleSalt()
	want := map[string]string{"magic": magic, "version": "\x01", "kind": "\x01",
		"engine": strings.Repeat("\xe1", 32), "salt": string(salt[:])}
	end := 0
	for _, cells := range all[0] {
		offset, size, field := cells[0], cells[1], cells[2]
		switch field {
		case "text":
			if number(t, offset) != headerSize {
				t.Errorf("the text begins at %s, want %d", offset, headerSize)
			}
		case "tag":
			if number(t, size) != tagSize {
				t.Errorf("the tag has %s bytes, want %d", size, tagSize)
			}
		default:
			at, n := number(t, offset), number(t, size)
			if got := string(sealed[at : at+n]); at != end || got != want[field] {
				t.Errorf("%s at %d is %q, want %q at %d", field, at, got, want[field], end)
			}
			end = at + n
			delete(want, field)
		}
	}
	if len(want) > 0 || end != headerSize || len(sealed) != Overhead+len("text") {
		t.Errorf("the table ends at %d and lacks %q; the header has %d bytes", end, slices.Sorted(maps.Keys(want)), headerSize)
	}
	if text := "A container has " + strconv.Itoa(Overhead) + " bytes more"; !strings.Contains(chapter(t, "## Container"), text) {
		t.Errorf("the page does not say %q", text)
	}

	kinds := map[Kind]bool{KindImage: true, KindRecord: true, KindLog: true, KindResult: true}
	for _, cells := range all[1] {
		k := Kind(number(t, cells[0]))
		if !kinds[k] || k.String() != cells[1] || k.limit() != number(t, cells[2]) {
			t.Errorf("the page has kind %q; the code has %d, %v, at most %d", cells, k, k, k.limit())
		}
		delete(kinds, k)
	}
	if len(kinds) > 0 {
		t.Errorf("the page lacks %v", slices.Sorted(maps.Keys(kinds)))
	}
}

func TestFormatInfo(t *testing.T) {
	page, err := os.ReadFile("FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range []string{containerInfo, checkInfo, rowInfo} {
		if !strings.Contains(string(page), info) {
			t.Errorf("the page lacks %q", info)
		}
	}
}

func TestFormatDirectory(t *testing.T) {
	dir := t.TempDir() + "/state"
	d := openDisk(t, DiskOptions{Dir: dir})
	m := parked("r1", 1)
	if err := d.Save(m, []byte("record"), []byte("image")); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, pattern := range []string{"*", "images/*", "instances/*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			name, _ := filepath.Rel(dir, p)
			got = append(got, name)
		}
	}
	table := tables(chapter(t, "## State directory"))[0]
	for _, cells := range table {
		pattern := strings.NewReplacer("`", "", "RUN", "r1", "SALT", "*", "RANDOM", "*").Replace(cells[0])
		i := slices.IndexFunc(got, func(name string) bool { ok, _ := filepath.Match(pattern, name); return ok })
		if i < 0 {
			t.Errorf("there is no %q among %q", pattern, got)
			continue
		}
		got = slices.Delete(got, i, i+1)
	}
	if want := []string{"images", "instances"}; !slices.Equal(got, want) {
		t.Errorf("the page lacks some of %q", got)
	}

	// The fields of a row.
	var fields []string
	for _, cells := range tables(chapter(t, "### Database"))[1] {
		for f := range strings.SplitSeq(cells[0], ", ") {
			fields = append(fields, strings.Trim(f, "`"))
		}
	}
	text, err := encodeRow(d.rowKey, &row{Meta: m, Instance: "i", Image: "i", Sum: []byte("s")})
	if err != nil {
		t.Fatal(err)
	}
	var have map[string]any
	if err := json.Unmarshal(text[32:], &have); err != nil {
		t.Fatal(err)
	}
	slices.Sort(fields)
	if got := slices.Sorted(maps.Keys(have)); !slices.Equal(got, fields) {
		t.Errorf("a row has the fields %q, the page %q", got, fields)
	}
}

// begin is when the tests take place.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// engineA and engineB are hashes of engines.
var engineA, engineB = strings.Repeat("a1", 32), strings.Repeat("b2", 32)

// parked is a run that waits; it was parked that many seconds after begin.
func parked(id string, seconds int) Meta {
	at := begin.Add(time.Duration(seconds) * time.Second)
	return Meta{ID: id, Owner: Owner{AgentID: "main", SessionID: "s1"}, State: Waiting, Engine: engineA,
		Created: begin, Parked: at, Expires: at.Add(15 * time.Minute), TTL: 15 * time.Minute}
}

// over is a run that has ended.
func over(id string, seconds int) Meta {
	m := parked(id, seconds)
	m.State = Completed
	return m
}

func openDisk(t testing.TB, o DiskOptions) *Disk {
	t.Helper()
	d, err := OpenDisk(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}
