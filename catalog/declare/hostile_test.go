package declare

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// Pieces of text that mean something to a reader of TypeScript, or look like nothing.
var pieces = []string{
	"*/", "*\u200b/", "*\\/", "/*", "//", "/**", "*", "/", "\n", "\r", "\r\n", "\u2028", "\u2029", "\u0085", "\v", "\x00", "\x1b[31m", "`", "${x}", "'", `"`,
	`\`, "}", "{", ")", "(", ";", ": ", "<", ">", "|", "&", "\u202e", "\u2066", "\u200b", "\ufeff", "\u00ad", "\U000e0041", "\ufffd", "é", "名", "😀", "́",
	"declare var hacked: 1", "interface Hacked {}", "function hacked(): void", "import 'x'", "export {}", "@ts-ignore", "@ts-expect-error", "@ts-nocheck",
	"@jsx h", "@deprecated", "@param input.x", "<reference path='x'/>", " ", "a", "key", "0", "-", ".", "__proto__", "constructor", "toString", "never", "Result",
	"Promise", "delete", "await", "]", "[", "?", "=", "=>", "#", "%", "~1", "\\u0041", "\t", "…",
}

func hostile(r *rand.Rand, most int) string {
	var b strings.Builder
	for range r.Intn(most + 1) {
		b.WriteString(pieces[r.Intn(len(pieces))])
	}
	return b.String()
}

// hostileSchema has hostile text wherever a schema has text.
func hostileSchema(r *rand.Rand, depth int) any {
	text := func() string { return hostile(r, 4) }
	if depth > 3 {
		return map[string]any{"type": "string", "pattern": text(), "default": text()}
	}
	sub := func() any { return hostileSchema(r, depth+1) }
	subs := func() any { return []any{sub(), sub()} }
	s := map[string]any{"description": hostile(r, 12), "title": text(), "default": text()}
	add := func(percent int, key string, value func() any) {
		if r.Intn(100) < percent {
			s[key] = value()
		}
	}
	properties := map[string]any{}
	for range r.Intn(5) {
		properties[text()] = sub()
	}
	if depth == 0 || r.Intn(3) > 0 {
		s["type"], s["properties"] = "object", properties
	}
	label := text()
	add(30, "required", func() any { return []any{text(), text()} })
	add(20, "additionalProperties", sub)
	add(20, "patternProperties", func() any { return map[string]any{text(): sub()} })
	add(20, "enum", func() any { return []any{text(), map[string]any{text(): text()}, 1} })
	add(15, "const", func() any { return text() })
	add(20, "anyOf", subs)
	add(10, "allOf", subs)
	add(10, "items", sub)
	add(10, "prefixItems", subs)
	add(20, "format", func() any { return text() })
	add(20, "pattern", func() any { return text() })
	add(10, "not", func() any { return map[string]any{"const": text()} })
	add(10, "if", func() any { return map[string]any{"const": text()} })
	add(10, "propertyNames", func() any { return map[string]any{"pattern": text()} })
	add(10, "$ref", func() any { return "#/$defs/" + text() })
	if depth == 0 {
		escaped := strings.NewReplacer("~", "~0", "/", "~1", "%", "%25").Replace(label)
		self := map[string]any{"$ref": "#/$defs/" + escaped}
		s["$defs"] = map[string]any{label: map[string]any{"type": "object", "properties": map[string]any{text(): self, "again": self, "more": sub()}}}
		properties["recursive"] = self
		delete(s, "$ref")
		delete(s, "enum")
		delete(s, "const")
	}
	return s
}

func hostileServer(r *rand.Rand, id int, methods int) Server {
	s := Server{Identifier: fmt.Sprintf("h%d", id), Name: hostile(r, 6)}
	names := []string{"Result", "Content", "$api2", "Promise", "Record", "größe", "名前", "_", "async", "undefined", "type", "a\u200db", "HostileRecursive", "any", "string", "MCP", "Tools", "of"}
	for i := range methods {
		m := Method{Path: []string{fmt.Sprintf("m%d", i)}, Name: hostile(r, 4), Description: hostile(r, 20)}
		if i < len(names) {
			m.Path[0] = names[i]
		}
		m.Input, _ = json.Marshal(hostileSchema(r, 0))
		m.Output, _ = json.Marshal(hostileSchema(r, 0))
		s.Methods = append(s.Methods, m)
	}
	for _, kind := range []string{"resources/list", "resources/read", "prompts/list", "prompts/get"} {
		s.Methods = append(s.Methods, Method{Path: strings.Split(kind, "/"), Kind: kind, Description: hostile(r, 4)})
	}
	return s
}

// SPEC 7.6: text from schemas cannot close a comment, keys that are no identifier are
// quoted, every file compiles. No text declares anything: what is declared is what the
// methods say, with the properties that the schemas have.
func TestHostileText(t *testing.T) {
	files := map[string]string{}
	want := map[string][]string{}
	r := rand.New(rand.NewSource(7))
	for i := range 12 {
		s := hostileServer(r, i, 25)
		file := fmt.Sprintf("/h%d.d.ts", i)
		files[file] = s.File(1 << 30)
		want[file] = outlineOf(s)
	}
	// The same in a file that has no room for all.
	small := hostileServer(r, 99, 25)
	files["/small.d.ts"] = small.File(20_000)
	for i := range 40 {
		m := hostileServer(r, 0, 1).Methods[0]
		id, function := fmt.Sprintf("plugin:%s:%d", hostile(r, 3), i), fmt.Sprintf("tool%d", i)
		switch i {
		case 0:
			function = "delete"
		case 1:
			function = "new"
		case 2:
			function = "größe"
		case 3, 4:
			function = ""
		}
		file := fmt.Sprintf("/tool%d.d.ts", i)
		files[file] = ToolFile(id, function, m, 1<<30)
		if function == "" {
			function = "call"
		}
		want[file] = []string{"interface Tools", "interface Tools > method " + function + keysOf(m.Input), "var tools"}
	}
	var unavailable []Unavailable
	for range 50 {
		unavailable = append(unavailable, Unavailable{hostile(r, 6), hostile(r, 20)})
	}
	files["/index.d.ts"] = Index([]Server{small}, unavailable)
	want["/index.d.ts"] = []string{"namespace MCP", "namespace MCP > function $api()"}

	c := compile(t, files)
	c.report(t, files)
	for file, outline := range want {
		got := slices.DeleteFunc(c.Outline[file], func(line string) bool { return strings.Contains(line, "type ") })
		if !slices.Equal(got, outline) {
			t.Errorf("%s declares\n%s\nwant\n%s\n%s", file, strings.Join(got, "\n"), strings.Join(outline, "\n"), firstLines(files[file], 60))
			return
		}
	}
	if got := len(c.Outline["/small.d.ts"]); got < 25+2+4 {
		t.Errorf("the small file declares %d things", got)
	}
	for file, text := range files {
		for i, line := range strings.Split(text, "\n") {
			if bad := strings.IndexFunc(line, func(r rune) bool { return r < ' ' || isLineBreak(r) || r == '\u202e' || r == '\u200b' }); bad >= 0 {
				t.Errorf("%s:%d: character %q in %q", file, i+1, line[bad:bad+1], line)
			}
		}
	}
}

func firstLines(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// outlineOf is what testdata/check.js has to find, but for types.
func outlineOf(s Server) []string {
	ns := "namespace MCP." + s.Identifier
	list := []string{ns, ns + ` > function $api("schema")`}
	space := ""
	for _, m := range s.Methods {
		if len(m.Path) == 1 {
			list = append(list, ns+" > function "+m.Path[0]+keysOf(m.Input))
			continue
		}
		if m.Path[0] != space {
			space = m.Path[0]
			list = append(list, ns+" > namespace "+space)
		}
		keys := map[string]string{"resources/read": `("uri")`, "prompts/get": `("name","arguments")`}[m.Kind]
		if keys == "" {
			keys = `("cursor")`
		}
		list = append(list, ns+" > namespace "+space+" > function "+m.Path[1]+keys)
	}
	return list
}

// keysOf lists the properties that the input of a function has, if it is an object type
// and nothing else.
func keysOf(schema json.RawMessage) string {
	n := bare(build(parse(schema), true, maxNodes))
	if n.kind != object {
		return "()"
	}
	var keys []string
	for _, f := range n.fields {
		key := f.name
		if strings.HasPrefix(key, `"`) {
			if err := json.Unmarshal([]byte(key), &key); err != nil {
				panic(err)
			}
		}
		text, _ := json.Marshal(key)
		keys = append(keys, strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&", `\u2028`, "\u2028", `\u2029`, "\u2029").Replace(string(text)))
	}
	return "(" + strings.Join(keys, ",") + ")"
}
