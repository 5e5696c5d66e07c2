package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/openclaw/codemode-supervisor/limits"
	"github.com/openclaw/codemode-supervisor/test/shipped"
)

// The documents say what the product does; these tests ask the product. The conventions:
//
//   - A ```console block is a session. Lines that begin with "$ " are run by sh, with both
//     binaries in PATH; what follows is all that they print. "…" stands for anything within a
//     line, and as a line of its own for any lines. $? is that of the command before.
//   - A block with file=NAME in its info string is that file of the document's sessions.
//   - The ```go block of README.md is the body of Example in supervisor/example_test.go.

var updateDocs = flag.Bool("update-docs", false, "write the tables that are made from code into the documents")

const repo = "../.."

// document is one Markdown file of ours.
type document struct {
	path  string // from the root of the repository
	lines []string
}

// block is a fenced code block.
type block struct {
	line int // of its first line of text, from 1
	info string
	text string
}

func readDoc(t *testing.T, path string) document {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(repo, path))
	if err != nil {
		t.Fatal(err)
	}
	return document{path, strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")}
}

// allDocs lists the documents at the top and in docs/. Notices are other people's words.
func allDocs(t *testing.T) (docs []document) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		names, err := filepath.Glob(filepath.Join(repo, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			rel, _ := filepath.Rel(repo, name)
			if rel != "THIRD_PARTY_NOTICES.md" {
				docs = append(docs, readDoc(t, rel))
			}
		}
	}
	if len(docs) < 10 {
		t.Fatalf("found %d documents: the tests would pass on nothing", len(docs))
	}
	return docs
}

func (d document) blocks() (blocks []block) {
	open := -1
	for i, line := range d.lines {
		switch {
		case open < 0 && strings.HasPrefix(line, "```"):
			open = i
		case open >= 0 && line == "```":
			blocks = append(blocks, block{open + 2, strings.TrimPrefix(d.lines[open], "```"), strings.Join(d.lines[open+1:i], "\n") + "\n"})
			open = -1
		}
	}
	return blocks
}

// prose gives the lines outside of code blocks, the others blank, so that numbers stay.
func (d document) prose() []string {
	lines := slices.Clone(d.lines)
	inside := false
	for i, line := range lines {
		fence := strings.HasPrefix(line, "```")
		if inside || fence || strings.HasPrefix(line, "    ") {
			lines[i] = ""
		}
		if fence {
			inside = !inside
		}
	}
	return lines
}

// tables gives the rows of every table under a heading, without their head, cells trimmed.
func (d document) tables(t *testing.T, heading string) (tables [][][]string) {
	t.Helper()
	from := slices.Index(d.lines, heading)
	if from < 0 {
		t.Fatalf("%s has no heading %q", d.path, heading)
	}
	var rows [][]string
	end := func() {
		if len(rows) > 2 {
			tables = append(tables, rows[2:])
		}
		rows = nil
	}
	for _, line := range d.lines[from+1:] {
		if strings.HasPrefix(line, "#") {
			break
		}
		if !strings.HasPrefix(line, "|") {
			end()
			continue
		}
		var row []string
		for cell := range strings.SplitSeq(strings.Trim(line, "|"), " |") {
			row = append(row, strings.TrimSpace(cell))
		}
		rows = append(rows, row)
	}
	if end(); len(tables) == 0 {
		t.Fatalf("%s has no table under %q", d.path, heading)
	}
	return tables
}

// column gives one column of rows, without backquotes.
func column(rows [][]string, n int) (cells []string) {
	for _, row := range rows {
		cells = append(cells, strings.ReplaceAll(row[n], "`", ""))
	}
	return cells
}

func sameSet(t *testing.T, what string, documented, real []string) {
	t.Helper()
	documented, real = slices.Sorted(slices.Values(documented)), slices.Sorted(slices.Values(real))
	if diff := cmp.Diff(real, documented); diff != "" {
		t.Errorf("%s (-code +document):\n%s", what, diff)
	}
}

// constants gives the values of a file's constants whose names match, by name.
func constants(t *testing.T, path, names string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repo, path), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(names)
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		typ := ""
		if id, ok := spec.Type.(*ast.Ident); ok {
			typ = id.Name
		}
		lit, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || !match.MatchString(typ+" "+spec.Names[0].Name) {
			return true
		}
		value := lit.Value
		if lit.Kind == token.STRING {
			value, _ = strconv.Unquote(value)
		}
		found[spec.Names[0].Name] = value
		return true
	})
	if len(found) == 0 {
		t.Fatalf("%s has no constants %s", path, names)
	}
	return found
}

func values(m map[string]string) []string { return slices.Collect(maps.Values(m)) }

// TestDocsSessions runs every session of every document.
func TestDocsSessions(t *testing.T) {
	bin := binaries(t)
	sessions := 0
	for _, doc := range allDocs(t) {
		t.Run(doc.path, func(t *testing.T) {
			s := session{dir: t.TempDir(), bin: bin, cache: cacheHome(t)}
			blocks := doc.blocks()
			for _, b := range blocks {
				if _, name, ok := strings.Cut(b.info, "file="); ok {
					if err := os.WriteFile(filepath.Join(s.dir, name), []byte(b.text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, b := range blocks {
				if b.info == "console" {
					sessions++
					s.play(t, doc.path, b)
				}
			}
		})
	}
	if sessions < 3 {
		t.Errorf("found %d sessions: the test passes on nothing", sessions)
	}
}

// session is a shell in a folder of its own.
type session struct {
	dir, bin, cache string
	exit            int
}

func (s *session) play(t *testing.T, path string, b block) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(b.text, "\n"), "\n")
	if !strings.HasPrefix(lines[0], "$ ") {
		t.Fatalf("%s:%d: a session must begin with a command", path, b.line)
	}
	for i := 0; i < len(lines); {
		command, line := strings.TrimPrefix(lines[i], "$ "), b.line+i
		i++
		var want []string
		for ; i < len(lines) && !strings.HasPrefix(lines[i], "$ "); i++ {
			want = append(want, lines[i])
		}
		got := s.run(t, command)
		if !shows(want, got) {
			t.Errorf("%s:%d: $ %s\ngot:\n%s\nwant:\n%s", path, line, command, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

func (s *session) run(t *testing.T, command string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", fmt.Sprintf("(exit %d); %s", s.exit, command))
	cmd.Dir = s.dir
	cmd.Env = []string{
		"PATH=" + s.bin + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"HOME=" + s.dir, "TMPDIR=" + os.TempDir(), "XDG_CACHE_HOME=" + s.cache,
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	s.exit = cmd.ProcessState.ExitCode()
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// shows tells whether what was printed is what the document says.
func shows(want, got []string) bool {
	if len(want) == 0 || len(got) == 0 {
		return len(got) == 0 && (len(want) == 0 || want[0] == "…" && shows(want[1:], got))
	}
	if want[0] == "…" {
		return shows(want[1:], got) || shows(want, got[1:])
	}
	parts := strings.Split(want[0], "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^"+strings.Join(parts, ".*")+"$").MatchString(got[0]) && shows(want[1:], got[1:])
}

func TestShows(t *testing.T) {
	for _, tt := range []struct {
		want, got string
		ok        bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", "a|b", false}, {"a|b", "a", false}, {"", "", true}, {"a", "", false},
		{"a…c", "abc", true}, {"a…", "ab|c", false}, {"…", "a|b", true}, {"…", "", true}, {"a|…|d", "a|b|c|d", true}, {"a|…|d", "a|b", false},
		{"a.c", "abc", false},
	} {
		split := func(s string) []string {
			return slices.DeleteFunc(strings.Split(s, "|"), func(l string) bool { return l == "" })
		}
		if shows(split(tt.want), split(tt.got)) != tt.ok {
			t.Errorf("shows(%q, %q) is not %v", tt.want, tt.got, tt.ok)
		}
	}
}

// The README shows examples/embed as it is, and it prints what its last comment says.
func TestDocsEmbedding(t *testing.T) {
	var shown string
	for _, b := range readDoc(t, "README.md").blocks() {
		if b.info == "go" {
			shown += b.text
		}
	}
	source, err := os.ReadFile(filepath.Join(repo, "examples", "embed", "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(source), shown); diff != "" {
		t.Errorf("the Go block of README.md is not examples/embed/main.go (-example +README):\n%s", diff)
	}
	if n := strings.Count(shown, "\n"); n >= 100 {
		t.Errorf("the example has %d lines", n)
	}
	_, comment, ok := strings.Cut(shown, "\t// Output:\n")
	if !ok {
		t.Fatal("the example does not say what it prints")
	}
	var want []string
	for line := range strings.Lines(strings.TrimSuffix(comment, "}\n")) {
		want = append(want, strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "\t// "))
	}
	dir := t.TempDir()
	if err := shipped.Build(filepath.Join(dir, "embed"), nil, "examples/embed"); err != nil {
		t.Fatal(err)
	}
	s := session{dir: dir, bin: binaries(t), cache: cacheHome(t)}
	if diff := cmp.Diff(want, s.run(t, "./embed")); diff != "" {
		t.Errorf("the example prints (-comment +output):\n%s", diff)
	}
}

// Exit codes, codes and phases are those of the code.
func TestDocsResults(t *testing.T) {
	exits := constants(t, "cmd/supervisor/main.go", "^ exit")
	delete(exits, "exitCodes") // the text of --help
	help := (&session{dir: t.TempDir(), bin: binaries(t), cache: cacheHome(t)}).run(t, "supervisor --help")
	for _, path := range []string{"README.md", "docs/results.md"} {
		documented := strings.Split(strings.Join(column(readDoc(t, path).tables(t, "## Exit codes")[0], 0), ", "), ", ")
		sameSet(t, path+": exit codes", documented, values(exits))
	}
	var inHelp []string
	for i := slices.Index(help, "Exit codes:") + 1; i < len(help); i++ {
		if code, _, ok := strings.Cut(strings.TrimSpace(help[i]), "  "); ok {
			inHelp = append(inHelp, strings.Split(code, ", ")...)
		}
	}
	sameSet(t, "--help: exit codes", inHelp, values(exits))

	results := readDoc(t, "docs/results.md")
	rows := results.tables(t, "## Codes")[0]
	sameSet(t, "codes", column(rows, 0), append(values(constants(t, "supervisor/result.go", "^Code ")), "(none)"))
	sameSet(t, "phases", column(results.tables(t, "## Phases")[0], 0), values(constants(t, "supervisor/result.go", "^Phase ")))
	sameSet(t, "states of a call", column(results.tables(t, "## Telemetry")[1], 0), values(constants(t, "supervisor/telemetry.go", "^CallState ")))
	sameSet(t, "kinds of events", column(results.tables(t, "## Trajectory")[0], 0), values(constants(t, "supervisor/trajectory/trajectory.go", "^Kind ")))

	byExit := exitsByCode(t, exits)
	for _, row := range rows {
		code := strings.ReplaceAll(row[0], "`", "")
		if code == "(none)" {
			code = ""
		}
		if want := byExit[code]; row[2] != want {
			t.Errorf("code %q: the document says exit %s, the program exits with %s", code, row[2], want)
		}
		if !slices.Contains(phases[code], row[1]) {
			t.Errorf("code %q: the document says phase %s, the stories %v", code, row[1], phases[code])
		}
	}

	toolCodes := slices.Concat(values(constants(t, "supervisor/executor.go", "^ code")),
		values(constants(t, "cmd/supervisor/internal/toolfile/tool.go", "^ Code")), []string{"invalid_result"})
	sameSet(t, "codes of tool errors", column(results.tables(t, "## Codes of tool errors")[0], 0), toolCodes)
}

// exitsByCode reads exitOf in cmd/supervisor: the exit code for each code of a result.
func exitsByCode(t *testing.T, exits map[string]string) map[string]string {
	t.Helper()
	named := constants(t, "supervisor/result.go", "^Code ")
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repo, "cmd/supervisor/run.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	byCode := map[string]string{}
	for _, code := range named {
		byCode[code] = exits["exitHost"] // what is in no case
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncDecl); ok && f.Name.Name != "exitOf" {
			return false
		}
		c, ok := n.(*ast.CaseClause)
		if !ok {
			return true
		}
		exit := c.Body[len(c.Body)-1].(*ast.ReturnStmt).Results[0].(*ast.Ident).Name
		for _, e := range c.List {
			switch e := e.(type) {
			case *ast.BasicLit:
				byCode[""] = exits[exit]
			case *ast.SelectorExpr:
				byCode[named[e.Sel.Name]] = exits[exit]
			}
		}
		return true
	})
	return byCode
}

// The fields of results are those that a real one has.
func TestDocsResultFields(t *testing.T) {
	s := session{dir: t.TempDir(), bin: binaries(t), cache: cacheHome(t)}
	if err := os.WriteFile(filepath.Join(s.dir, "ask.json5"), []byte(`{tools: [{name: "ask", policy: "approve", result: 1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var fields, telemetry []string
	for _, command := range []string{
		`supervisor run --json --set onOutputLimit=truncate --set maxOutputBytes=1024 -e 'text("x".repeat(2000))'`,
		`supervisor run --json -e 'import "x"'`,
		`supervisor run --json --no-wait --approve ask --state-dir state --tools ask.json5 -e 'tools.ask({}); await yield_control("x")'`,
	} {
		var result map[string]any
		if err := json.Unmarshal([]byte(s.run(t, command)[0]), &result); err != nil {
			t.Fatal(err)
		}
		fields = slices.AppendSeq(fields, maps.Keys(result))
		tm := result["telemetry"].(map[string]any)
		telemetry = slices.AppendSeq(telemetry, maps.Keys(tm))
		if layers := tm["worker"].(map[string]any)["isolation"].([]any); runtime.GOOS == "linux" {
			var names []string
			for _, l := range layers {
				names = append(names, l.(map[string]any)["layer"].(string))
			}
			sameSet(t, "layers in SECURITY.md", column(readDoc(t, "SECURITY.md").tables(t, "## Layers that exist")[0], 0), names)
		}
	}
	compact := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	doc := readDoc(t, "docs/results.md")
	sameSet(t, "fields of a result", column(doc.tables(t, "## Fields")[0], 0), compact(fields))
	sameSet(t, "fields of telemetry", column(doc.tables(t, "## Telemetry")[0], 0), compact(append(telemetry, "callsOmitted")))
}

// The config table is made from limits.Fields.
func TestDocsConfig(t *testing.T) {
	doc := readDoc(t, "docs/config.md")
	marker := slices.IndexFunc(doc.lines, func(l string) bool { return strings.HasPrefix(l, "<!-- The table is made from limits.Fields()") })
	if marker < 0 {
		t.Fatal("docs/config.md has no mark where its table begins")
	}
	from := marker + 2
	to := from
	for to < len(doc.lines) && strings.HasPrefix(doc.lines[to], "|") {
		to++
	}
	want := fieldTable()
	if got := doc.lines[from:to]; !slices.Equal(got, want) {
		if *updateDocs {
			blank := []string{}
			if from == to {
				blank = []string{""}
			}
			lines := slices.Concat(doc.lines[:from], want, blank, doc.lines[to:])
			if err := os.WriteFile(filepath.Join(repo, doc.path), []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("docs/config.md: run go test ./test/e2e -run TestDocsConfig -update-docs (-code +document):\n%s", cmp.Diff(want, got))
	}
	for _, name := range column(doc.tables(t, "## Not for all commands")[0], 0) {
		if !slices.ContainsFunc(limits.Fields(), func(f limits.Field) bool { return bare(f.Path) == name }) {
			t.Errorf("docs/config.md: there is no field %s", name)
		}
	}
}

func bare(path string) string { return strings.TrimPrefix(path, "tools.codeMode.") }

func fieldTable() []string {
	lines := []string{"| field | default | values | |", "| --- | --- | --- | --- |"}
	for _, f := range limits.Fields() {
		def := f.DefaultDoc
		if def == "" {
			def = fieldValue(f.Default)
		}
		allowed := f.Type
		switch {
		case f.Type == "integer" && f.MaxField != "":
			allowed = fmt.Sprintf("%s to `%s`", grouped(f.Min), f.MaxField)
		case f.Type == "integer":
			allowed = grouped(f.Min) + " to " + grouped(f.Max)
		case f.Type == "array" && len(f.Enum) > 0:
			allowed = "list of `" + strings.Join(f.Enum, "`, `") + "`"
		case len(f.Enum) > 0:
			allowed = "`" + strings.Join(f.Enum, "`, `") + "`"
		case f.Type == "array":
			allowed = "list of texts"
		case f.Type == "string":
			allowed = "text"
		case f.Type == "boolean":
			allowed = "true, false"
		}
		lines = append(lines, fmt.Sprintf("| `%s` | %s | %s | %s |", bare(f.Path), def, allowed, f.Doc))
	}
	return lines
}

func fieldValue(v any) string {
	switch v := v.(type) {
	case int64:
		return grouped(v)
	case []string:
		if len(v) == 0 {
			return "none"
		}
		return strings.Join(v, ", ")
	case string:
		if v == "" {
			return "none"
		}
		return "`" + v + "`"
	}
	return fmt.Sprint(v)
}

// grouped writes 65536 as 65,536.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// The fields of tool files are those that the reader knows.
func TestDocsToolFiles(t *testing.T) {
	doc := readDoc(t, "docs/tool-files.md")
	known := lists(t, "cmd/supervisor/internal/toolfile/parse.go", "cmd/supervisor/internal/toolfile/behaviour.go")
	sameSet(t, "fields", column(doc.tables(t, "## Fields")[0], 0), known["entryFields"])
	sameSet(t, "behaviours", column(doc.tables(t, "## Behaviours")[0], 0), known["behaviours"])
	sameSet(t, "modifiers", column(doc.tables(t, "## Behaviours")[1], 0), known["modifiers"])
}

// lists gives the variables of Go files that are lists of texts.
func lists(t *testing.T, paths ...string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(repo, path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			if list, ok := spec.Values[0].(*ast.CompositeLit); ok {
				for _, e := range list.Elts {
					if lit, ok := e.(*ast.BasicLit); ok {
						text, _ := strconv.Unquote(lit.Value)
						found[spec.Names[0].Name] = append(found[spec.Names[0].Name], text)
					}
				}
			}
			return true
		})
	}
	return found
}

// RATIONALE.md has every library that go.mod requires, with the licence of the notices, and
// the headings that comments in the code refer to.
func TestDocsRationale(t *testing.T) {
	doc := readDoc(t, "RATIONALE.md")
	goMod := readDoc(t, "go.mod")
	var required []string
	for _, line := range goMod.lines {
		if f := strings.Fields(line); strings.HasPrefix(line, "\t") && !strings.Contains(line, "// indirect") {
			required = append(required, f[0])
		}
	}
	licences := map[string]string{}
	for _, line := range readDoc(t, "THIRD_PARTY_NOTICES.md").lines {
		if f := strings.Split(line, " | "); len(f) == 5 {
			licences[strings.TrimPrefix(f[0], "| ")] = f[3]
		}
	}
	documented := map[string]string{}
	for _, row := range doc.tables(t, "## Which libraries, and why these?")[0] {
		documented[strings.Trim(row[0], "`")] = row[1]
	}
	for _, path := range required {
		licence, ok := documented[path]
		if !ok {
			t.Errorf("RATIONALE.md does not say why %s", path)
		} else if want := licences[path]; want != "" && licence != want {
			t.Errorf("RATIONALE.md says that %s is %s, the notices say %s", path, licence, want)
		}
	}
	cite := regexp.MustCompile(`RATIONALE\.md,\s*(?://\s*)?"([^"]+)"`)
	err := filepath.WalkDir(repo, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2) {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".go" {
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range cite.FindAllSubmatch(b, -1) {
			if !slices.Contains(doc.lines, "## "+string(m[1])) {
				t.Errorf("%s refers to %q, which is no heading of RATIONALE.md", path, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

var (
	markdownLink = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	makeTarget   = regexp.MustCompile("(?:`|^    )make ([a-z][a-z0-9-]*)")
	notAnchor    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Links lead somewhere inside of the repository; what `make` is told to do, it can.
func TestDocsLinks(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(repo, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range allDocs(t) {
		for i, line := range doc.prose() {
			for _, m := range markdownLink.FindAllStringSubmatch(line, -1) {
				if problem := followLink(t, doc, m[1]); problem != "" {
					t.Errorf("%s:%d: link %s: %s", doc.path, i+1, m[1], problem)
				}
			}
		}
		for i, line := range doc.lines {
			for _, m := range makeTarget.FindAllStringSubmatch(line, -1) {
				if !bytes.Contains(makefile, []byte("\n"+m[1]+":")) {
					t.Errorf("%s:%d: there is no target %q in the Makefile", doc.path, i+1, m[1])
				}
			}
		}
	}
}

func followLink(t *testing.T, doc document, link string) (problem string) {
	if strings.HasPrefix(link, "https://") {
		return ""
	}
	path, anchor, hasAnchor := strings.Cut(link, "#")
	target := doc.path
	if path != "" {
		target = filepath.Join(filepath.Dir(doc.path), path)
	}
	if !filepath.IsLocal(target) {
		return "it leaves the repository"
	}
	if _, err := os.Stat(filepath.Join(repo, target)); err != nil {
		return "there is no such file"
	}
	if !hasAnchor {
		return ""
	}
	for _, line := range readDoc(t, target).prose() {
		if title := strings.TrimLeft(line, "#"); title != line {
			slug := strings.ReplaceAll(notAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-")
			if slug == anchor {
				return ""
			}
		}
	}
	return "there is no such heading"
}

// No document names a machine of ours, a registry's host, or sells.
func TestDocsWords(t *testing.T) {
	forbidden := regexp.MustCompile(`(?i)(?:^|[\s"'(=` + "`" + `])/(?:work|root|home|Users)/|\.\./\.\./|` +
		`https?://(?:localhost|\d+\.\d+\.\d+\.\d+|(?:registry|proxy|sum)\.)|` +
		`\b(?:blazing\w*|seamless\w*|robust\w*|powerful\w*|world-class|cutting-edge|state-of-the-art|effortless\w*|enterprise-grade|military-grade|unbreakable|leverag\w+)\b`)
	for _, doc := range allDocs(t) {
		for i, line := range doc.lines {
			if m := forbidden.FindString(line); m != "" {
				t.Errorf("%s:%d: %q", doc.path, i+1, m)
			}
		}
	}
}
