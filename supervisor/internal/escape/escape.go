// Package escape tries to break out of a cell from inside, with the means of the language
// (SPEC 4.6, 15.5): it lists all that a cell can reach, and makes attempts that are known to
// have broken other sandboxes.
//
//	res := s.Exec(ctx, supervisor.Program{Code: escape.Cell(), Catalog: cat, Executor: …})
//	added, missing := escape.Compare(lines)        // lines is the value of the cell
//	res = s.Exec(ctx, supervisor.Program{Code: escape.Attempts(), …})
//	attempts, err := escape.Judge(res.Value)
//
// Both cells need the catalog of [Tools] and an executor that answers with [Answer]; the first
// gives about 200 KB. What a worker could do that has broken out of its engine is package attack's.
package escape

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog"
)

var (
	//go:embed walk.js
	walk string
	//go:embed attempts.js
	attempts string
	//go:embed golden.txt
	golden string
)

// Cell is the program whose value is the list of what a cell can reach: a JSON array of
// lines, sorted. It needs MaxOutputBytes of [OutputBytes].
func Cell() string { return walk }

// OutputBytes is what the output of the cells may need.
const OutputBytes = 1 << 20

// Compare tells what of lines is not in the list of the product as it was built, and what of
// that list is not in lines. Both empty is as it must be.
func Compare(lines []string) (added, missing []string) {
	want := strings.Split(strings.TrimSuffix(golden, "\n"), "\n")
	known, got := map[string]bool{}, map[string]bool{}
	for _, l := range want {
		known[l] = true
	}
	for _, l := range lines {
		got[l] = true
		if !known[l] {
			added = append(added, l)
		}
	}
	for _, l := range want {
		if !got[l] {
			missing = append(missing, l)
		}
	}
	return added, missing
}

// Attempts is the program whose value is what became of each attempt, for [Judge].
func Attempts() string { return attempts }

// Attempt is one attempt to break out.
type Attempt struct {
	Name    string `json:"name"`
	Outcome string `json:"outcome"` // Refused or Escaped
	Detail  string `json:"detail"`  // how it was refused, or what it got
}

// The outcomes of an attempt.
const (
	Refused = "refused"
	Escaped = "ESCAPED"
)

// names are those that the cell declares, so that an attempt that was not made is missed.
var names = regexp.MustCompile(`(?m)^attempt\("([^"]+)"`)

// Judge reads the value of the cell. It fails if the value is not a list of all attempts:
// the cell is as hostile as any, and an attempt that ends the list early might have succeeded.
func Judge(value json.RawMessage) ([]Attempt, error) {
	d := json.NewDecoder(bytes.NewReader(value))
	d.DisallowUnknownFields()
	var list []Attempt
	if err := d.Decode(&list); err != nil {
		return nil, fmt.Errorf("reading the outcome of the attempts: %w", err)
	}
	var want, got []string
	for _, m := range names.FindAllStringSubmatch(attempts, -1) {
		want = append(want, m[1])
	}
	for _, a := range list {
		if a.Outcome != Refused && a.Outcome != Escaped {
			return nil, fmt.Errorf("attempt %q has outcome %q", a.Name, a.Outcome)
		}
		got = append(got, a.Name)
	}
	if !slices.Equal(want, got) {
		return nil, fmt.Errorf("the attempts are %q, want %q", got, want)
	}
	return list, nil
}

// hidden is a tool that no cell may call.
const hidden = "open_vault"

// Tools are the entries of the catalog that both cells need. One of them must not be callable.
func Tools() []catalog.Entry {
	entry := func(name string) catalog.Entry {
		return catalog.Entry{Name: name, Description: "for escape attempts", Source: catalog.Client}
	}
	strict := entry("strict")
	strict.Parameters = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	vault := entry(hidden)
	vault.Source, vault.SourceName, vault.Denied = catalog.MCP, "vault", true
	shelf := entry("echo")
	shelf.Source, shelf.SourceName = catalog.MCP, "shelf"
	return []catalog.Entry{
		entry("object"), entry("array"), entry("text"), entry("nothing"), entry("refuse"), entry("reject"), entry("echo"), entry("hostile"), strict,
		// Names that hide what every object has; none may become a function of tools.
		entry("__proto__"), entry("constructor"), entry("then"), entry("toString"),
		vault, shelf,
	}
}

// Error is a tool's failure with a code. Who calls [Answer] gives it the form of its own.
type Error struct{ Message, Code string }

func (e *Error) Error() string { return e.Message }

// Answer is what the tool of that name does. echo gives the name and the input as they
// arrived, so that a cell sees what it really called.
func Answer(tool string, input json.RawMessage) (json.RawMessage, error) {
	switch tool {
	case "object":
		return json.RawMessage(`{"a":1,"b":{"c":[null,true,"x"]},"then":null}`), nil
	case "array":
		return json.RawMessage(`[1,[2],{"a":3}]`), nil
	case "text":
		return json.RawMessage(`"text"`), nil
	case "nothing":
		return nil, nil
	case "refuse":
		return nil, &Error{Message: "refused with a code", Code: "escape_refused"}
	case "reject":
		return nil, fmt.Errorf("rejected")
	case "hostile": // what a tool that is not to be trusted may send
		return json.RawMessage(`{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"then":{},"toJSON":1,"length":4294967295,"__proto__":{"polluted":true}}`), nil
	case hidden:
		return json.RawMessage(`"the vault is open"`), nil
	}
	if len(input) == 0 {
		input = json.RawMessage("null")
	}
	return json.Marshal(struct {
		Tool  string          `json:"tool"`
		Input json.RawMessage `json:"input"`
	}{tool, input})
}
