package limits

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// SPEC 13: defaults.
func TestDefaults(t *testing.T) {
	c, warnings, err := Parse([]byte(`{}`))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Parse({}) = %v, %v", warnings, err)
	}
	want := Limits{
		Languages: JavaScript | TypeScript, Timeout: 10 * time.Second, MemoryBytes: 67_108_864,
		OutputBytes: 65_536, SnapshotBytes: 10_485_760, SnapshotTTL: 900 * time.Second,
		PendingToolCalls: 16, QueuedToolCalls: 1024, ToolCalls: 0, SearchDefault: 8, SearchMax: 50,
	}
	if diff := cmp.Diff(want, c.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	if c.Enabled {
		t.Error("enabled by default")
	}
	if diff := cmp.Diff(DefaultConfig(), c); diff != "" {
		t.Errorf("DefaultConfig and Parse({}) differ (-default +parsed):\n%s", diff)
	}
	if Default() != want {
		t.Error("Default and Parse({}) differ")
	}
	if s := c.Supervisor; s.MaxWorkers < 2 || s.MaxParkedRuns != 64 || s.Isolation.Preset != "best-effort" {
		t.Errorf("supervisor defaults: %+v", s)
	}
}

// at returns the value that the field has in c.
func at(c Config, path string) any { return lookup(path).get(&c) }

// document returns a config file that sets the field at path to text.
func document(path, text string) string {
	keys := strings.Split(path, ".")
	return "{" + strings.Join(keys, ":{") + ":" + text + strings.Repeat("}", len(keys))
}

// SPEC 13.1: every integer field is clamped at both ends, and says so; a fraction,
// another type, NaN is an error that names the field.
func TestEveryField(t *testing.T) {
	for _, f := range table {
		t.Run(f.Path, func(t *testing.T) {
			if got := at(DefaultConfig(), f.Path); !cmp.Equal(got, f.Default) {
				t.Errorf("default is %v, want %v", got, f.Default)
			}
			wrong := []string{"null", "{}", "NaN", "-Infinity", "0.5", "-1e-9", "[1]", "[[]]"}
			switch f.Type {
			case "integer":
				wrong = append(wrong, `"5"`, `true`, `1.5`, `[]`)
				testRange(t, f)
			case "string":
				wrong = append(wrong, `5`, `true`, `[]`, `"\u0000"`)
				if len(f.Enum) > 0 {
					wrong = append(wrong, `"other"`, `""`)
				}
			case "boolean":
				wrong = append(wrong, `"true"`, `1`, `[]`)
			case "array":
				wrong = append(wrong, `"javascript"`, `5`, `[""]`, `[null]`)
			}
			for _, text := range wrong {
				_, _, err := Parse([]byte(document(f.Path, text)))
				var ce *ConfigError
				if !errors.As(err, &ce) {
					t.Errorf("%s: %s gives %v, want a *ConfigError", f.Path, text, err)
					continue
				}
				if !strings.HasPrefix(ce.Field, f.Path) || ce.Got == "" || ce.Want == "" || ce.Line != 1 {
					t.Errorf("%s: %s gives %+v: it must name field, place, what came and what was expected", f.Path, text, ce)
				}
			}
		})
	}
}

func testRange(t *testing.T, f field) {
	tests := []struct {
		text string
		want int64 // different from the number that text says where it is clamped
	}{
		{fmt.Sprint(f.Min), f.Min},
		{fmt.Sprint(f.Max), f.Max},
		{fmt.Sprintf("%d.0", f.Max), f.Max},
		{fmt.Sprintf("0x%x", f.Max), f.Max},
		{fmt.Sprintf("+%d", f.Min), f.Min},
		{fmt.Sprint(f.Max + 1), f.Max},
		{"1e400", f.Max},
		{"1e99999999999999999999", f.Max},
		{strings.Repeat("9", 5000), f.Max},
		{"9223372036854775808", f.Max},
		{fmt.Sprint(f.Min - 1), f.Min},
		{"-1", f.Min},
		{"-1e400", f.Min},
		{"-9223372036854775809", f.Min},
		{"0", max(f.Min, 0)},
		{"-0", max(f.Min, 0)},
	}
	for _, tt := range tests {
		c, warnings, err := Parse([]byte(document(f.Path, tt.text)))
		if err != nil {
			t.Errorf("%s = %.30s: %v", f.Path, tt.text, err)
			continue
		}
		if got := at(c, f.Path); got != tt.want {
			t.Errorf("%s = %.30s: got %v, want %d", f.Path, tt.text, got, tt.want)
		}
		n, _ := new(big.Float).SetString(tt.text)
		clamped := n == nil || n.Cmp(big.NewFloat(float64(tt.want))) != 0
		if clamped != (len(warnings) == 1) {
			t.Errorf("%s = %.30s: warnings %v", f.Path, tt.text, warnings)
		}
		for _, w := range warnings {
			if w.Field != f.Path || w.Used != tt.want || !strings.Contains(w.Bound, fmt.Sprint(tt.want)) || len(w.String()) > 300 {
				t.Errorf("%s = %.30s: the warning %q must name field, value and bound", f.Path, tt.text, w)
			}
		}
	}
}

func TestWholeNumber(t *testing.T) {
	tests := []struct {
		text  string
		n     int64
		whole bool
	}{
		{"5000", 5000, true}, {"5e3", 5000, true}, {"5000.0", 5000, true}, {"0.5e1", 5, true}, {"50000e-1", 5000, true},
		{"1E+2", 100, true}, {"0e999999999999999999999", 0, true}, {"0.000", 0, true}, {"-0", 0, true},
		{"0.5", 0, false}, {"5e-1", 0, false}, {"1e-99999999999999999999", 0, false}, {"1.0000000000000000001", 0, false},
		{"NaN", 0, false}, {"Infinity", 0, false}, {"-Infinity", 0, false},
		{"999999999999999999", 999999999999999999, true}, {"1e18", math.MaxInt64, true}, {"-1e30", -math.MaxInt64, true},
	}
	for _, tt := range tests {
		if n, whole := wholeNumber(tt.text); n != tt.n || whole != tt.whole {
			t.Errorf("wholeNumber(%s) = %d, %v; want %d, %v", tt.text, n, whole, tt.n, tt.whole)
		}
	}
}

// SPEC 2.1: the only switch.
// Validation 2: an object config without enabled: true leaves code mode off
func TestEnabled(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: false, `{tools: {}}`: false,
		`{tools: {codeMode: true}}`: true, `{tools: {codeMode: false}}`: false,
		`{tools: {codeMode: {}}}`: false, `{tools: {codeMode: {timeoutMs: 5000}}}`: false,
		`{tools: {codeMode: {enabled: true}}}`: true, `{tools: {codeMode: {enabled: false}}}`: false,
	} {
		c, _, err := Parse([]byte(text))
		if err != nil || c.Enabled != want {
			t.Errorf("Parse(%s): enabled %v, %v; want %v", text, c.Enabled, err, want)
		}
	}
}

// SPEC 2.1: an agent's own value.
func TestOverride(t *testing.T) {
	global, _, err := Parse([]byte(`{tools: {codeMode: {enabled: true, timeoutMs: 5000, maxSearchLimit: 20}}, supervisor: {isolation: {require: ["seccomp"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	before := global.clone()
	tests := []struct {
		agent   string
		enabled bool
		timeout time.Duration
	}{
		{`true`, true, 5 * time.Second},
		{`false`, false, 5 * time.Second},
		{`{}`, true, 5 * time.Second},
		{`{timeoutMs: 7000}`, true, 7 * time.Second},
		{`{enabled: false, timeoutMs: 7000}`, false, 7 * time.Second},
	}
	for _, tt := range tests {
		c, warnings, err := global.Override([]byte(tt.agent))
		if err != nil || len(warnings) > 0 {
			t.Errorf("Override(%s): %v, %v", tt.agent, warnings, err)
		}
		if c.Enabled != tt.enabled || c.Limits.Timeout != tt.timeout || c.Limits.SearchMax != 20 {
			t.Errorf("Override(%s) = %+v", tt.agent, c)
		}
	}
	for _, agent := range []string{`null`, `"true"`, `1`, `[]`, `{timeoutMS: 1}`, ``} {
		if _, _, err := global.Override([]byte(agent)); err == nil {
			t.Errorf("Override(%s) was accepted", agent)
		}
	}
	if diff := cmp.Diff(before, global); diff != "" {
		t.Errorf("Override changed the global config:\n%s", diff)
	}
}

// SPEC 13.1: unknown fields are errors, with the path and the nearest valid name.
func TestErrors(t *testing.T) {
	tests := []struct {
		text, field, nearest string
		line, column         int
	}{
		{"{tools: {codeMode: {\n  timeoutMS: 5 } } }", "tools.codeMode.timeoutMS", "timeoutMs", 2, 3},
		{`{tools: {codeMode: {max_output_bytes: 5}}}`, "tools.codeMode.max_output_bytes", "maxOutputBytes", 1, 21},
		{`{tools: {codeMode: {xyz: 5}}}`, "tools.codeMode.xyz", "", 1, 21},
		{`{tools: {codemode: true}}`, "tools.codemode", "codeMode", 1, 10},
		{`{tool: {}}`, "tool", "tools", 1, 2},
		{`{supervisor: {isolation: {presets: "strict"}}}`, "supervisor.isolation.presets", "preset", 1, 27},
		{`{supervisor: {isolation: {preset: "stict"}}}`, "supervisor.isolation.preset", "strict", 1, 35},
		{`{supervisor: {isolation: true}}`, "supervisor.isolation", "", 1, 26},
		{`{supervisor: []}`, "supervisor", "", 1, 14},
		{`{supervisor: {workerSHA256: "abc"}}`, "supervisor.workerSHA256", "", 1, 29},
		{`{tools: {codeMode: {languages: ["JavaScript"]}}}`, "tools.codeMode.languages[0]", "javascript", 1, 33},
		{`{tools: {codeMode: {languages: ["javascript", "python"]}}}`, "tools.codeMode.languages[1]", "", 1, 47},
		{`{tools: {codeMode: {languages: []}}}`, "tools.codeMode.languages", "", 1, 32},
		{`{tools: {codeMode: {runtime: "quickjs"}}}`, "tools.codeMode.runtime", "", 1, 30},
		{`{tools: {codeMode: {mode: "auto"}}}`, "tools.codeMode.mode", "", 1, 27},
		{`{tools: {codeMode: 1}}`, "tools.codeMode", "", 1, 20},
		{`{tools: {codeMode: {timeoutMs: 5, timeoutMs: 6}}}`, "", "", 1, 35},
		{`{tools: `, "", "", 1, 9},
		{`[]`, "", "", 1, 1},
		{`{__proto__: 1}`, "__proto__", "", 1, 2},
		{strings.Repeat(`[`, 100_000), "", "", 1, 1001},
		{`{"` + strings.Repeat("x", 10_000) + `": 1}`, strings.Repeat("x", 60) + "…", "", 1, 2},
	}
	for _, tt := range tests {
		_, _, err := Parse([]byte(tt.text))
		var ce *ConfigError
		if !errors.As(err, &ce) {
			t.Errorf("Parse(%.60s) = %v, want a *ConfigError", tt.text, err)
			continue
		}
		got := []any{ce.Field, ce.Nearest, ce.Line, ce.Column}
		if diff := cmp.Diff([]any{tt.field, tt.nearest, tt.line, tt.column}, got); diff != "" {
			t.Errorf("Parse(%.60s): %v (-want +got):\n%s", tt.text, err, diff)
		}
		if len(err.Error()) > 500 {
			t.Errorf("Parse(%.60s): the message has %d bytes", tt.text, len(err.Error()))
		}
	}
	if _, _, err := Parse([]byte(strings.Repeat(" ", MaxConfigBytes) + "{}")); err == nil {
		t.Error("a config of more than 1 MiB was accepted")
	}
}

// The words that people read.
func TestMessages(t *testing.T) {
	_, _, err := Parse([]byte("{tools: {codeMode: {\n  timeoutMS: 5}}}"))
	want := `config field tools.codeMode.timeoutMS (line 2, column 3): unknown field; did you mean "timeoutMs"?`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, _, err = Parse([]byte(`{tools: {codeMode: {timeoutMs: "5"}}}`))
	want = `config field tools.codeMode.timeoutMs (line 1, column 32): expected a whole number from 100 to 60000, got the string "5"`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, warnings, _ := Parse([]byte(`{tools: {codeMode: {timeoutMs: 5}}}`))
	want = `tools.codeMode.timeoutMs: 5 is below the minimum 100; using 100`
	if len(warnings) != 1 || warnings[0].String() != want {
		t.Errorf("got  %v\nwant %s", warnings, want)
	}
}

// SPEC 13: searchDefaultLimit is never above maxSearchLimit, whatever the order.
func TestSearchLimits(t *testing.T) {
	tests := []struct {
		text         string
		def, maximum int
		warnings     int
	}{
		{`maxSearchLimit: 3`, 3, 3, 0},
		{`searchDefaultLimit: 20`, 20, 50, 0},
		{`searchDefaultLimit: 10, maxSearchLimit: 3`, 3, 3, 1},
		{`maxSearchLimit: 3, searchDefaultLimit: 10`, 3, 3, 1},
		{`maxSearchLimit: 500, searchDefaultLimit: 500`, 50, 50, 2},
	}
	for _, tt := range tests {
		c, warnings, err := Parse([]byte(`{tools: {codeMode: {` + tt.text + `}}}`))
		if err != nil || c.Limits.SearchDefault != tt.def || c.Limits.SearchMax != tt.maximum || len(warnings) != tt.warnings {
			t.Errorf("%s: default %d, max %d, warnings %v, %v", tt.text, c.Limits.SearchDefault, c.Limits.SearchMax, warnings, err)
		}
	}
}

func TestLanguages(t *testing.T) {
	c, _, err := Parse([]byte(`{tools: {codeMode: {languages: ["typescript", "typescript"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	l := c.Limits.Languages
	if l != TypeScript || l.Has("javascript") || !l.Has("typescript") || l.Has("python") || l.String() != "typescript" {
		t.Errorf("languages %v", l)
	}
}

// SPEC 13.4: paths and values of --set.
func TestSet(t *testing.T) {
	tests := []struct {
		path, value string
		field       string
		want        any
	}{
		{"timeoutMs", "5000", "tools.codeMode.timeoutMs", int64(5000)},
		{"timeoutMs", " 0x1388 // hex", "tools.codeMode.timeoutMs", int64(5000)},
		{"tools.codeMode.timeoutMs", "5e3", "tools.codeMode.timeoutMs", int64(5000)},
		{"enabled", "true", "tools.codeMode.enabled", true},
		{"onOutputLimit", "truncate", "tools.codeMode.onOutputLimit", "truncate"},
		{"onOutputLimit", "'truncate'", "tools.codeMode.onOutputLimit", "truncate"},
		{"languages", "['javascript']", "tools.codeMode.languages", []string{"javascript"}},
		{"supervisor.worker", "/opt/it's/worker", "supervisor.worker", "/opt/it's/worker"},
		{"supervisor.worker", "123", "supervisor.worker", "123"},
		{"supervisor.workerSHA256", strings.Repeat("AB", 32), "supervisor.workerSHA256", strings.Repeat("ab", 32)},
		{"supervisor.isolation.preset", "strict", "supervisor.isolation.preset", "strict"},
		{"supervisor.isolation.require", `["seccomp"]`, "supervisor.isolation.require", []string{"seccomp"}},
		{"supervisor.isolation.uid", "65534", "supervisor.isolation.uid", int64(65534)},
	}
	for _, tt := range tests {
		c := DefaultConfig()
		if warnings, err := c.Set(tt.path, tt.value); err != nil || len(warnings) > 0 {
			t.Errorf("Set(%q, %q): %v, %v", tt.path, tt.value, warnings, err)
		}
		if diff := cmp.Diff(tt.want, at(c, tt.field)); diff != "" {
			t.Errorf("Set(%q, %q) (-want +got):\n%s", tt.path, tt.value, diff)
		}
	}
	for _, tt := range []struct{ path, value, nearest string }{
		{"timeoutMS", "1", "timeoutMs"}, {"supervisor.pol", "1", "supervisor.pool"}, {"tools.codeMode.runtim", "1", "runtime"},
		{"", "1", ""}, {"supervisor", "{}", ""}, {"tools.codeMode", "true", ""}, {"supervisor.isolation", "{}", ""},
		{"timeoutMs", "", ""}, {"timeoutMs", "abc", ""}, {"timeoutMs", "1.5", ""}, {"enabled", "yes", ""}, {"languages", "typescript", ""},
	} {
		c := DefaultConfig()
		_, err := c.Set(tt.path, tt.value)
		var ce *ConfigError
		if !errors.As(err, &ce) || ce.Nearest != tt.nearest || ce.Line != 0 {
			t.Errorf("Set(%q, %q) = %v, want a *ConfigError with the hint %q", tt.path, tt.value, err, tt.nearest)
		}
		if diff := cmp.Diff(DefaultConfig(), c); diff != "" {
			t.Errorf("Set(%q, %q) failed and changed the config:\n%s", tt.path, tt.value, diff)
		}
	}
	c := DefaultConfig()
	if warnings, err := c.Set("timeoutMs", "1"); err != nil || len(warnings) != 1 || c.Limits.Timeout != 100*time.Millisecond {
		t.Errorf("Set(timeoutMs, 1): %v, %v, %v", c.Limits.Timeout, warnings, err)
	}
	if warnings, err := c.Set("maxSearchLimit", "3"); err != nil || len(warnings) != 0 || c.Limits.SearchDefault != 3 {
		t.Errorf("Set(maxSearchLimit, 3): %v, %v, %v", c.Limits.SearchDefault, warnings, err)
	}
}

// Parse never panics, and what it lets through is inside every range (SPEC 13.1)
// and survives Marshal.
func FuzzParse(f *testing.F) {
	for i := range table {
		for _, v := range []string{"1", "-1e400", "'x'", "['javascript']", "true", "NaN"} {
			f.Add([]byte(document(table[i].Path, v)))
		}
	}
	f.Add(DefaultConfig().Marshal())
	f.Add([]byte(`{tools:{codeMode:true},supervisor:{isolation:{require:['a','a','b']}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Parse(data)
		if err != nil {
			var ce *ConfigError
			if !errors.As(err, &ce) {
				t.Fatalf("Parse(%q): %T, want *ConfigError", data, err)
			}
			return
		}
		for _, f := range table {
			if n, ok := at(c, f.Path).(int64); ok && (n < f.Min || n > f.Max) {
				t.Errorf("Parse(%q): %s is %d, outside %d to %d", data, f.Path, n, f.Min, f.Max)
			}
		}
		if c.Limits.SearchDefault > c.Limits.SearchMax || c.Limits.Languages == 0 {
			t.Errorf("Parse(%q): %+v", data, c.Limits)
		}
		again, warnings, err := Parse(c.Marshal())
		if err != nil || len(warnings) > 0 || !cmp.Equal(c, again) {
			t.Errorf("Parse(%q): Marshal does not give it back: %v %v\n%s", data, warnings, err, cmp.Diff(c, again))
		}
	})
}
