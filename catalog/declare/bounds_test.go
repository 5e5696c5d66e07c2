package declare

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// repeat joins n parts.
func repeat(n int, sep string, part func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = part(i)
	}
	return strings.Join(parts, sep)
}

// hugeSchemas are about as much as the catalog lets through (256 KiB), and built to make
// a careless renderer work long or write much.
var hugeSchemas = map[string]string{
	"deep":             strings.Repeat(`{"items":`, 400) + "{}" + strings.Repeat("}", 400),
	"deep-allOf":       strings.Repeat(`{"allOf":[`, 240) + "{}" + strings.Repeat("]}", 240),
	"union":            `{"anyOf":[` + repeat(5000, ",", func(i int) string { return fmt.Sprintf(`{"properties":{"a%d":{}}}`, i) }) + `]}`,
	"union-of-strings": `{"anyOf":[` + repeat(9000, ",", func(i int) string { return fmt.Sprintf(`{"const":"a%d"}`, i) }) + `]}`,
	"intersection": `{"allOf":[` + repeat(200, ",", func(i int) string {
		return `{"oneOf":[` + repeat(40, ",", func(j int) string { return fmt.Sprintf(`{"required":["k%d"]}`, j) }) + `]}`
	}) + `]}`,
	"properties": `{"type":"object","properties":{` + repeat(15000, ",", func(i int) string { return fmt.Sprintf(`"p%d":{}`, i) }) + `}}`,
	"required": `{"type":"object","required":[` + repeat(20000, ",", func(i int) string { return fmt.Sprintf(`"r%d"`, i) }) +
		`],"properties":{` + repeat(4000, ",", func(i int) string { return fmt.Sprintf(`"r%d":{"$ref":"#/$defs/x"}`, i) }) + `},"$defs":{"x":{}}}`,
	"enum":     `{"enum":[` + repeat(40000, ",", func(i int) string { return fmt.Sprint(i) }) + `]}`,
	"patterns": `{"patternProperties":{` + repeat(10000, ",", func(i int) string { return fmt.Sprintf(`"^p%d":{}`, i) }) + `}}`,
	"laughs": `{"$ref":"#/$defs/a0","$defs":{` + repeat(3000, ",", func(i int) string {
		return fmt.Sprintf(`"a%d":{"properties":{"x":{"$ref":"#/$defs/a%d"},"y":{"$ref":"#/$defs/a%d"}}}`, i, i+1, i+1)
	}) + `}}`,
	"laughs-allOf": `{"$ref":"#/$defs/a0","$defs":{` + repeat(3000, ",", func(i int) string {
		return fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i, i+1, i+1)
	}) + `}}`,
	"laughs-defaults": `{"type":"object","properties":{` + repeat(50, ",", func(i int) string {
		return fmt.Sprintf(`"v%d":{"$ref":"#/$defs/a0","properties":{"d%d":{"default":1}}}`, i, i)
	}) + `},"$defs":{` + repeat(1500, ",", func(i int) string {
		return fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"}],"properties":{"z%d":{"default":1}},"required":["z%d"],"anyOf":[{"$ref":"#/$defs/a%d"}]}`, i, i+1, i, i, i+1)
	}) + `}}`,
	"circle": `{"$ref":"#/$defs/a0","$defs":{` + repeat(3000, ",", func(i int) string {
		return fmt.Sprintf(`"a%d":{"$ref":"#/$defs/a%d"}`, i, (i+1)%3000)
	}) + `}}`,
	"circles": `{"type":"object","properties":{"x":{"$ref":"#/$defs/a0"}},"$defs":{` + repeat(300, ",", func(i int) string {
		return fmt.Sprintf(`"a%d":{"anyOf":[%s]}`, i, repeat(20, ",", func(j int) string { return fmt.Sprintf(`{"$ref":"#/$defs/a%d"}`, (i*7+j*13)%300) }))
	}) + `}}`,
	"default-chain": `{"type":"object","required":["p0"],"properties":{` + repeat(4000, ",", func(i int) string {
		return fmt.Sprintf(`"p%d":{"$ref":"#/properties/p%d"}`, i, (i+1)%4000)
	}) + `}}`,
	"pointer": `{"$ref":"#` + strings.Repeat("/$ref", 40000) + `"}`,
	"texts":   `{"type":"object","description":"` + strings.Repeat("*/ ", 60000) + `","properties":{"` + strings.Repeat("k", 60000) + `":{"pattern":"` + strings.Repeat("*/", 10000) + `"}}}`,
	"tuple":   `{"prefixItems":[` + repeat(20000, ",", func(i int) string { return `{}` }) + `]}`,
	"literal": `{"const":` + strings.Repeat(`{"a":[`, 200) + strings.Repeat(`]}`, 200) + `}`,
	"literals": `{"enum":[` + repeat(60, ",", func(i int) string {
		return `{` + repeat(300, ",", func(j int) string { return fmt.Sprintf(`"k%d":%d`, j, i) }) + `}`
	}) + `]}`,
}

// SPEC 6.9, 7.6: whatever the schema, time and size are bounded.
func TestHugeSchemas(t *testing.T) {
	files := map[string]string{}
	for name, schema := range hugeSchemas {
		if !json.Valid([]byte(schema)) {
			t.Fatalf("%s is no JSON", name)
		}
		start := time.Now()
		m := Method{Path: []string{"f"}, Name: "f", Description: schema, Input: json.RawMessage(schema), Output: json.RawMessage(schema)}
		s := Server{Identifier: "huge_" + strings.ReplaceAll(name, "-", "_"), Name: name, Methods: []Method{m}}
		full := s.File(1 << 30)
		small := s.Header(10_000, func(Method) bool { return true })
		tool := ToolFile("plugin:"+name, "f", m, 16<<10)
		line := Inline(m.Input, 300)
		took := time.Since(start)
		t.Logf("%-16s %4d KB schema: %4d KB file, %2d KB header, %2d KB tool file, %3d B inline, %v",
			name, len(schema)>>10, len(full)>>10, len(small)>>10, len(tool)>>10, len(line), took.Round(time.Millisecond))
		if len(full) > 1<<20 || len(small) > 12_000 || len(tool) > 18<<10 || len(line) > 300 {
			t.Errorf("%s: too large", name)
		}
		if took > 5*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		files["/"+s.Identifier+".d.ts"] = full
		files["/tool_"+s.Identifier+".d.ts"] = strings.ReplaceAll(tool, "  f(", "  f_"+s.Identifier+"(")
	}
	compile(t, files).report(t, files)
}

// No input panics, takes long, or gives text that is not UTF-8 or not balanced.
func FuzzDeclare(f *testing.F) {
	for _, c := range hardCases(f) {
		f.Add(string(c.Schema), c.Name, "A description */ of\nit.", 300)
	}
	for i, tool := range corpus(f) {
		if i%50 == 0 {
			f.Add(string(tool.Input), tool.Name, "", 4000)
		}
	}
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}`, "*/", "\u2028*\u200b/", 0)
	f.Fuzz(func(t *testing.T, schema, name, description string, max int) {
		start := time.Now()
		m := Method{Path: []string{name}, Name: name, Description: description, Input: json.RawMessage(schema), Output: json.RawMessage(schema)}
		s := Server{Identifier: name, Name: name, Methods: []Method{m, {Path: []string{name, name}}}}
		line := Inline(m.Input, max)
		if len(line) > max && line != "" {
			t.Errorf("Inline has %d bytes, at most %d are possible", len(line), max)
		}
		file, tool := s.File(max), ToolFile(name, name, m, max)
		for _, text := range []string{line, file, tool, s.File(1 << 30), ToolFile(description, "", m, 1<<30), Index([]Server{s}, []Unavailable{{name, description}})} {
			if !utf8.ValidString(text) {
				t.Errorf("not UTF-8: %q", text)
			}
			if err := balanced(text); err != nil {
				t.Errorf("%v in\n%s", err, text)
			}
			if strings.Contains(text, "\u2028") || strings.Contains(text, "\r") {
				t.Errorf("line separators in %q", text)
			}
		}
		if again := s.File(max); again != file {
			t.Error("not the same twice")
		}
		if len(file) > max+2500+20*len(name) && max > 0 {
			t.Errorf("File(%d) has %d bytes", max, len(file))
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// balanced checks that brackets outside of strings and comments come in pairs.
func balanced(text string) error {
	var open []rune
	closing := map[rune]rune{'(': ')', '[': ']', '{': '}', '<': '>'}
	for i := 0; i < len(text); {
		rest := text[i:]
		switch c := rune(text[i]); {
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return fmt.Errorf("a comment without an end")
			}
			i += end + 2
			continue
		case strings.HasPrefix(rest, "//"):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				return fmt.Errorf("a comment without an end")
			}
			i += end
			continue
		case c == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' && text[end] != '\n' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(text) || text[end] != '"' {
				return fmt.Errorf("a string without an end")
			}
			i = end
		case closing[c] != 0:
			open = append(open, closing[c])
		case c == ')' || c == ']' || c == '}' || c == '>' && !strings.HasSuffix(text[:i], "="):
			if len(open) == 0 || open[len(open)-1] != c {
				return fmt.Errorf("%c too many", c)
			}
			open = open[:len(open)-1]
		}
		i++
	}
	if len(open) > 0 {
		return fmt.Errorf("%q are missing", string(open))
	}
	return nil
}
