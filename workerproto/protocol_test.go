package workerproto

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vmihailenco/msgpack/v5"
)

// The tests of this file read PROTOCOL.md and hold it to the code, so that the page
// cannot drift.

// chapter gives the text under a heading, up to the next one of any depth.
func chapter(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(page), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("PROTOCOL.md has no %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n#")
	return text
}

// table gives the cells of the rows of the table in text, without its head.
func table(t *testing.T, text string) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(text) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "|")
		if !ok {
			continue
		}
		var cells []string
		for cell := range strings.SplitSeq(strings.TrimSuffix(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("no table in %.80q", text)
	}
	return rows[2:]
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestProtocolExample(t *testing.T) {
	text := chapter(t, "## Example")
	var stream []byte
	var dump string
	for line := range strings.Lines(text) {
		if line, ok := strings.CutPrefix(line, "    "); ok {
			dump += line
			b, err := hex.DecodeString(strings.ReplaceAll(line[10:58], " ", ""))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			stream = append(stream, b...)
		}
	}
	want := []Message{
		&ToolCall{ID: 1, Method: "call", Tool: "get_weather", Input: []byte(`{"city":"Kyiv"}`)},
		&Idle{Pending: 1, Settled: 2, Timer: NoTimer, MemoryBytes: 24 << 16},
	}
	var frames []byte
	for _, m := range want {
		frames = append(frames, frameOf(t, m)...)
	}
	if now := hex.Dump(frames); dump != now {
		t.Errorf("the example should be\n%s", now)
	}
	c := over(stream)
	for _, m := range want {
		got, err := c.ReadEvent()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("(-want +read):\n%s", diff)
		}
	}
}

func TestProtocolTypes(t *testing.T) {
	type row struct {
		name, direction string
		maxBody         int
	}
	got := map[Type]row{}
	for _, cells := range table(t, chapter(t, "## Messages")) {
		var numbers []Type
		for n := range strings.SplitSeq(cells[0], ", ") {
			numbers = append(numbers, Type(number(t, n)))
		}
		for _, n := range numbers {
			if event := n >= 128; event != (cells[2] == "event") {
				t.Errorf("type %d is a %s", n, cells[2])
			}
			if cells[1] != "" {
				got[n] = row{cells[1], cells[2], number(t, cells[3])}
			} else if _, used := kinds[n]; used {
				t.Errorf("type %d is reserved, and used", n)
			}
		}
	}
	want := map[Type]row{}
	for n, k := range kinds {
		direction := "command"
		if k.event {
			direction = "event"
		}
		want[n] = row{k.name, direction, int(k.maxBody)}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(row{})); diff != "" {
		t.Errorf("table of messages (-code +page):\n%s", diff)
	}
}

func TestProtocolLimits(t *testing.T) {
	want := map[string]int{
		"headerBytes": headerBytes, "firstRead": firstRead, "queueBytes": queueBytes,
		"MaxSource": MaxSource, "MaxTools": MaxTools, "MaxFile": MaxFile, "MaxScopes": MaxScopes, "MaxMissed": MaxMissed, "MaxToolInput": MaxToolInput, "MaxWaitingInput": MaxWaitingInput, "MaxToolResult": MaxToolResult,
		"MaxItem": MaxItem, "MaxError": MaxError, "MaxName": MaxName,
		"MaxNote": MaxNote, "MaxPart": MaxPart, "maxText": maxText, "envelope": envelope,
	}
	got := map[string]int{}
	for _, cells := range table(t, chapter(t, "## Limits")) {
		got[strings.Trim(cells[0], "`")] = number(t, cells[1])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("table of limits (-code +page):\n%s", diff)
	}
}

// NoTimer is a number in two rows of fields, and no bound that TestProtocolFields could try.
func TestProtocolNoTimer(t *testing.T) {
	row := "rounded up; 4,294,967,295 if it has none"
	if text := chapter(t, "### idle"); uint32(NoTimer) != 4_294_967_295 || !strings.Contains(text, row) {
		t.Errorf("the row of timer should say %q", row)
	}
}

func TestProtocolVersion(t *testing.T) {
	var newest int
	for _, cells := range table(t, chapter(t, "## Versions")) {
		newest = number(t, cells[0])
	}
	if newest != Version {
		t.Errorf("the newest version of the page is %d, the code's is %d", newest, Version)
	}
	header := fmt.Sprintf("%02x    %02x    %02x\n", magic0, magic1, Version)
	if text := chapter(t, "## Frame"); !strings.Contains(text, header) || !strings.Contains(text, fmt.Sprintf("`ver` is %d.", Version)) {
		t.Errorf("the drawn frame should have the bytes %s", header)
	}
	if text := chapter(t, "## Before the first frame"); !strings.Contains(text, "`"+CookieKey+"`") || !strings.Contains(text, fmt.Sprintf("descriptor %d,", ChannelFD)) {
		t.Errorf("the launch should name %s and descriptor %d", CookieKey, ChannelFD)
	}
}

func TestProtocolCosts(t *testing.T) {
	text := chapter(t, "## Output budget")
	for _, kind := range []string{"text", "json"} {
		row := fmt.Sprintf("| `output` of kind %s | %d + length of `json` |", kind, ItemCost(kind, nil))
		if !strings.Contains(text, row) {
			t.Errorf("the table of costs should have the row\n%s", row)
		}
	}
}

// mentioned finds the values of "one of `"a"`, `"b"`".
var mentioned = regexp.MustCompile("`\"([^\"]*)\"`")

// TestProtocolFields holds every field's name, type and bound to the page: at the bound
// a message is written and read, and above it neither.
func TestProtocolFields(t *testing.T) { // SPEC 15.5
	for _, typ := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(typ.String(), func(t *testing.T) {
			message := reflect.TypeOf(kinds[typ].new()).Elem()
			var documented []string
			for _, cells := range table(t, chapter(t, "### "+typ.String())) {
				name, bound := strings.Trim(cells[0], "`"), cells[2]
				documented = append(documented, name+" "+cells[1])
				fieldBound(t, typ, name, cells[1], bound)
			}
			if diff := cmp.Diff(fieldsOf(message, ""), documented); diff != "" {
				t.Errorf("fields (-code +page):\n%s", diff)
			}
		})
	}
}

// fieldsOf lists names and types of a message's fields, in order.
func fieldsOf(t reflect.Type, prefix string) (list []string) {
	types := map[reflect.Kind]string{
		reflect.String: "str", reflect.Slice: "bin", reflect.Bool: "bool", reflect.Struct: "map",
		reflect.Uint32: "uint32", reflect.Uint64: "uint64",
	}
	for i := range t.NumField() {
		name := prefix + fieldName(t, i)
		list = append(list, name+" "+types[t.Field(i).Type.Kind()])
		if t.Field(i).Type.Kind() == reflect.Struct {
			list = append(list, fieldsOf(t.Field(i).Type, name+".")...)
		}
	}
	return list
}

// fieldBound tries a field's values on both sides of the bound that the page gives it.
func fieldBound(t *testing.T, typ Type, name, kind, bound string) {
	t.Helper()
	limit, isLimit := strings.CutPrefix(bound, "≤ ")
	limit, isText := strings.CutSuffix(limit, ", UTF-8")
	isText = isText || kind == "str"
	switch {
	case isLimit:
		n := number(t, limit)
		tryField(t, typ, name, "", true)
		tryField(t, typ, name, long(n), true)
		tryField(t, typ, name, long(n+1), false)
		tryField(t, typ, name, "\xc3\x28", !isText)
		tryField(t, typ, name, "\xed\xa0\x80", !isText) // half a surrogate pair
	case strings.HasPrefix(bound, "one of "):
		for _, m := range mentioned.FindAllStringSubmatch(bound, -1) {
			tryField(t, typ, name, m[1], true)
		}
		tryField(t, typ, name, "nonsense", false)
		tryField(t, typ, name, "", strings.Contains(bound, "`\"\"`"))
	case bound != "" || kind == "str" || kind == "bin":
		t.Errorf("%s has the bound %q, which this test does not understand", name, bound)
	}
}

// tryField sets one field of a good message and says whether it may be written and read.
func tryField(t *testing.T, typ Type, name, value string, good bool) {
	t.Helper()
	var m Message
	for _, sample := range samples {
		if sample.Type() == typ {
			m = kinds[typ].new()
			reflect.ValueOf(m).Elem().Set(reflect.ValueOf(sample).Elem())
			break
		}
	}
	v := reflect.ValueOf(m).Elem()
	field := v.Field(fieldIndex(v.Type(), name))
	if field.Kind() == reflect.String {
		field.SetString(value)
	} else if field.SetBytes([]byte(value)); value == "" {
		field.SetBytes(nil)
	}
	what := fmt.Sprintf("%s %s with %d bytes %.20q", typ, name, len(value), value)
	if _, err := Append(nil, m); (err == nil) != good {
		t.Errorf("%s: writing it gave %v", what, err)
	}
	// The reader cannot rely on the writer: this body was never checked.
	var body bytes.Buffer
	if err := msgpack.NewEncoder(&body).Encode(m); err != nil {
		t.Fatal(err)
	}
	got, err := decode(typ, body.Bytes())
	if (err == nil) != good {
		t.Errorf("%s: reading it gave %v", what, err)
	}
	if !good {
		wantViolation(t, err, name)
	} else if !reflect.DeepEqual(got, m) {
		t.Errorf("%s came out different", what)
	}
}
