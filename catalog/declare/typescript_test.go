package declare

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// compilerDir is where scripts/typescript.sh puts the compiler.
func compilerDir(t *testing.T) string {
	t.Helper()
	const version = "5.9.3"
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
	dir = filepath.Join(dir, ".cache", "typescript", version)
	if _, err := os.Stat(filepath.Join(dir, "lib", "typescript.js")); err != nil {
		t.Fatalf("the TypeScript compiler is missing: run make deps (%v)", err)
	}
	return dir
}

type diagnostic struct {
	File    string
	Line    int
	Code    int
	Message string
}

type compiled struct {
	Diagnostics []diagnostic
	Outline     map[string][]string
}

// compile type-checks files in one program.
func compile(t *testing.T, files map[string]string) compiled {
	t.Helper()
	dir := compilerDir(t)
	request, err := json.Marshal(map[string]any{"files": files})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	cmd := exec.Command("node", "--max-old-space-size=3000", filepath.Join("testdata", "check.js"), dir)
	cmd.Stdin = bytes.NewReader(request)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node testdata/check.js: %v\n%s", err, stderr.Bytes())
	}
	var c compiled
	if err := json.Unmarshal(out, &c); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d files, %d KB compiled in %v", len(files), len(request)>>10, time.Since(start).Round(100*time.Millisecond))
	return c
}

// report fails for every diagnostic, with the line that it is about.
func (c compiled) report(t *testing.T, files map[string]string) {
	t.Helper()
	for i, d := range c.Diagnostics {
		if i == 40 {
			t.Errorf("and %d more", len(c.Diagnostics)-i)
			break
		}
		line := ""
		if lines := strings.Split(files[d.File], "\n"); d.Line > 0 && d.Line <= len(lines) {
			line = lines[d.Line-1]
			if d.Code == 2578 && d.Line < len(lines) { // unused @ts-expect-error: the next line should not compile
				line = lines[d.Line]
			}
		}
		t.Errorf("%s:%d: TS%d: %s\n\t%.600s", d.File, d.Line, d.Code, d.Message, line)
	}
}

// corpusTool is a tool of a real MCP server. The corpus has 1,705 tools, 836 of them with
// an input schema and 71 with one of their output. All prose was taken out of it.
type corpusTool struct {
	Server, Name, Description string
	Input, Output             json.RawMessage
}

func corpus(t testing.TB) []corpusTool {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "corpus.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var c struct{ Tools []corpusTool }
	if err := json.NewDecoder(z).Decode(&c); err != nil {
		t.Fatal(err)
	}
	if len(c.Tools) < 1500 {
		t.Fatalf("the corpus has %d tools", len(c.Tools))
	}
	return c.Tools
}

// servers groups tools by server. Function names are made as unique as the catalog makes
// them.
func servers(tools []corpusTool) []Server {
	var list []Server
	index := map[string]int{}
	taken := map[string]bool{}
	for _, tool := range tools {
		i, ok := index[tool.Server]
		if !ok {
			i = len(list)
			index[tool.Server] = i
			list = append(list, Server{Identifier: identifier(tool.Server), Name: tool.Server})
		}
		name := identifier(tool.Name)
		for n := 2; taken[tool.Server+"\x00"+name]; n++ {
			name = fmt.Sprintf("%s%d", identifier(tool.Name), n)
		}
		taken[tool.Server+"\x00"+name] = true
		list[i].Methods = append(list[i].Methods, Method{
			Path: []string{name}, Name: tool.Name, Description: tool.Description, Input: tool.Input, Output: tool.Output,
		})
	}
	return list
}

// hardCase is a schema written for these tests, with values that it accepts and does not.
// What TypeScript refuses of the latter is in reject. The last two are about inputs, where
// required properties with a default may be missing and an object is expected.
type hardCase struct {
	Name                                     string
	Schema                                   json.RawMessage
	Accept, Reject, AcceptInput, RejectInput []json.RawMessage
	Broken                                   bool // validators refuse the schema
}

func hardCases(t testing.TB) []hardCase {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "hard.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var list []hardCase
	for i, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		var c hardCase
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatalf("hard.jsonl:%d: %v", i+1, err)
		}
		list = append(list, c)
	}
	if len(list) < 80 {
		t.Fatalf("%d hard cases", len(list))
	}
	return list
}

// SPEC 7.6: every file compiles under tsc --strict, and accepts what the tool's schema
// accepts; SPEC 7.7: outputSchema gives the type of structuredContent.
func TestTypes(t *testing.T) {
	files := map[string]string{}
	var counts counts
	list := servers(corpus(t))
	if path := os.Getenv("DECLARE_TOOLS"); path != "" { // a larger corpus, with descriptions
		list = servers(toolsFile(t, path))
	}
	for i, s := range list {
		base := fmt.Sprintf("/s%d", i)
		files[base+".d.ts"] = s.File(1 << 30)
		files[base+".ts"] = checkServer(t, s, &counts)
	}
	files["/resolved.d.ts"] = "type Resolved<F> = F extends (input: never) => infer P ? Awaited<P> : never;\n"
	files["/index.d.ts"] = Index(list, []Unavailable{{"x", "y"}})
	for _, c := range hardCases(t) {
		m := Method{Name: c.Name, Input: c.Schema, Output: c.Schema}
		files["/hard_"+c.Name+".d.ts"] = ToolFile("plugin:hard:"+c.Name, c.Name, m, 1<<20)
		files["/hard_"+c.Name+".ts"] = checkHard(t, c, &counts)
	}
	compile(t, files).report(t, files)
	t.Logf("%+v", counts)
	if counts.Schemas < 800 || counts.Inputs < 4500 || counts.Refused < 1500 || counts.Outputs < 500 || counts.Hard < 400 {
		t.Errorf("too few values were checked: %+v", counts)
	}
}

type counts struct{ Schemas, Inputs, Refused, Outputs, Hard, HardRefused int }

func toolsFile(t *testing.T, path string) []corpusTool {
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Tools []struct {
			SourceName, Name, Description string
			Parameters, OutputSchema      json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		t.Fatal(err)
	}
	var list []corpusTool
	for _, tool := range f.Tools {
		list = append(list, corpusTool{tool.SourceName, tool.Name, tool.Description, tool.Parameters, tool.OutputSchema})
	}
	return list
}

const expectError = "// @ts-expect-error\n"

// checkServer writes a program that calls each tool with inputs that its schema accepts,
// and with some that it does not.
func checkServer(t *testing.T, s Server, counts *counts) string {
	var b strings.Builder
	for i, m := range s.Methods {
		call := "MCP." + s.Identifier + "." + m.Path[0]
		if s.Identifier != identifier(s.Identifier) {
			t.Fatal(s.Identifier)
		}
		if len(m.Input) == 0 {
			fmt.Fprintf(&b, "%s(); %s({ a: [null] });\n", call, call)
			continue
		}
		counts.Schemas++
		g := newGenerator(t, m.Input, int64(i))
		accepted, refused := g.inputs(6)
		for _, v := range accepted {
			fmt.Fprintf(&b, "%s(%s);\n", call, literalOf(v))
			counts.Inputs++
		}
		for _, v := range refused {
			fmt.Fprintf(&b, "%s%s(%s);\n", expectError, call, literalOf(v))
			counts.Refused++
		}
		if len(m.Output) == 0 {
			continue
		}
		values := newGenerator(t, m.Output, int64(i)).values(12)
		for _, v := range values {
			fmt.Fprintf(&b, "{ const r: Resolved<typeof %s> = { content: [], structuredContent: %s }; }\n", call, literalOf(v))
			counts.Outputs++
		}
	}
	return b.String()
}

func checkHard(t *testing.T, c hardCase, counts *counts) string {
	var b strings.Builder
	output := func(v any) {
		fmt.Fprintf(&b, "{ const r: Resolved<Tools[%q]> = %s; }\n", c.Name, literalOf(v))
	}
	input := func(v any) { fmt.Fprintf(&b, "tools.%s(%s);\n", c.Name, literalOf(v)) }
	g := newGenerator(t, c.Schema, 1)
	for _, v := range decodeAll(t, c.Accept) {
		if !c.Broken && !g.accepts(v) {
			t.Errorf("%s: the validator does not accept %s", c.Name, literalOf(v))
		}
		output(v)
		if isObject(v) {
			input(v)
		}
		counts.Hard++
	}
	for _, v := range decodeAll(t, c.AcceptInput) {
		input(v)
		counts.Hard++
	}
	if g.schema != nil {
		for _, v := range g.values(12) {
			output(v)
			if isObject(v) {
				input(v)
			}
			counts.Hard++
		}
	}
	for _, v := range decodeAll(t, c.Reject) {
		if !c.Broken && g.accepts(v) {
			t.Errorf("%s: the validator accepts %s", c.Name, literalOf(v))
		}
		b.WriteString(expectError)
		output(v)
		counts.HardRefused++
	}
	for _, v := range decodeAll(t, c.RejectInput) {
		b.WriteString(expectError)
		input(v)
		counts.HardRefused++
	}
	return b.String()
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

func decodeAll(t *testing.T, list []json.RawMessage) []any {
	var values []any
	for _, raw := range list {
		values = append(values, decode(t, raw))
	}
	return values
}
