package guest

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/openclaw/codemode-supervisor/catalog/words"
	"github.com/openclaw/codemode-supervisor/cmd/qjs-worker/internal/engine"

	"github.com/klauspost/compress/zstd"
)

// Surface is what a guest sees of the catalog without asking anybody (SPEC 6.3, 7.4). It
// stays outside of the VM, and the prelude fetches what the cell uses: ten thousand tools
// cost neither time at the start nor room in the heap or in a snapshot.
type Surface struct {
	Tools     Packed // ALL_TOOLS: a JSON array of compact entries; empty is none
	Functions Packed // a line `<name> <id>` for each convenience function; the id is a JSON string
	MCP       Packed // such a line for each path under MCP
	Down      Packed // a line `<name> <reason>` for each server that failed to start; the reason is a JSON string
	Files     []File
}

// File is a declaration file.
type File struct {
	Path, Description string
	Bytes             int // of the text
	Text              Packed
}

// Packed is text that may be packed: a zstd frame of it. It is unpacked when it is first
// used.
type Packed struct {
	Data []byte
	text bool // Data is text, whatever it was
}

// zstdMagic begins a zstd frame (RFC 8878, section 3.1.1), and no UTF-8 text.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

// maxUnpacked bounds what a text may become. The supervisor sends it, and bounds it more
// tightly itself.
const maxUnpacked = 64 << 20

// Text gives the text. What cannot be unpacked is a fault of ours, and empty.
func (p *Packed) Text() []byte {
	if p.text {
		return p.Data
	}
	p.text = true
	if !bytes.HasPrefix(p.Data, zstdMagic) {
		return p.Data
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err == nil {
		p.Data, err = d.DecodeAll(p.Data, nil)
		d.Close()
	}
	if err != nil {
		p.Data = nil
	}
	return p.Data
}

// lines gives the table that the prelude calls by this name.
func (s *Surface) lines(table string) []byte {
	switch table {
	case "MCP":
		return s.MCP.Text()
	case "down":
		return s.Down.Text()
	}
	return s.Functions.Text()
}

// find gives the id behind a name in a table of lines, as it stands there, or "".
func find(lines []byte, name string) string {
	if strings.ContainsAny(name, " \n") {
		return ""
	}
	key := []byte(name + " ")
	at := 0
	if !bytes.HasPrefix(lines, key) {
		if at = bytes.Index(lines, []byte("\n"+name+" ")); at < 0 {
			return ""
		}
		at++
	}
	id, _, _ := bytes.Cut(lines[at+len(key):], []byte("\n"))
	return string(id)
}

// members gives the names below a path in a table of lines, each on a line, once: with an
// empty path the first segments.
func members(lines []byte, path string) []string {
	prefix := path
	if prefix != "" {
		prefix += "."
	}
	var found []string
	for line := range bytes.Lines(lines) {
		name, _, _ := bytes.Cut(line, []byte(" "))
		rest, ok := strings.CutPrefix(string(name), prefix)
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(rest, ".")
		if len(found) == 0 || found[len(found)-1] != first { // the lines are sorted
			found = append(found, first)
		}
	}
	return found
}

func (g *Guest) hostFind(args []engine.Value) (engine.Value, error) {
	s, err := g.stringsOf(args, 2)
	if err != nil {
		return 0, err
	}
	return g.vm.NewString(find(g.surface.lines(s[0]), s[1]))
}

func (g *Guest) hostNames(args []engine.Value) (engine.Value, error) {
	s, err := g.stringsOf(args, 2)
	if err != nil {
		return 0, err
	}
	var b strings.Builder
	for _, name := range members(g.surface.lines(s[0]), s[1]) {
		b.WriteString(name)
		b.WriteByte('\n')
	}
	return g.vm.NewString(b.String())
}

func (g *Guest) hostList([]engine.Value) (engine.Value, error) {
	list := g.surface.Tools.Text()
	if len(list) == 0 {
		return g.vm.NewString("[]")
	}
	return g.vm.NewString(string(list))
}

func (g *Guest) hostFiles([]engine.Value) (engine.Value, error) {
	type info struct {
		Path        string `json:"path"`
		Description string `json:"description"`
		Bytes       int    `json:"bytes"`
	}
	infos := []info{}
	for _, f := range g.surface.Files {
		infos = append(infos, info{f.Path, f.Description, f.Bytes})
	}
	text, err := json.Marshal(infos)
	if err != nil {
		return 0, err
	}
	return g.vm.NewString(string(text))
}

// hostFile gives the text of a file, "" if there is none.
func (g *Guest) hostFile(args []engine.Value) (engine.Value, error) {
	s, err := g.stringsOf(args, 1)
	if err != nil {
		return 0, err
	}
	for i := range g.surface.Files {
		if f := &g.surface.Files[i]; f.Path == s[0] {
			return g.vm.NewString(string(f.Text.Text()))
		}
	}
	return g.vm.NewString("")
}

func (g *Guest) hostMissed(args []engine.Value) (engine.Value, error) {
	s, err := g.stringsOf(args, 1)
	if err != nil {
		return 0, err
	}
	g.host.Missed(s[0])
	return 0, nil
}

// hostNearest gives a JSON array of up to three things that exist and that a name could have
// meant. What they are depends on the kind: "tools" for a member of tools, "MCP" for one of
// MCP or of a server, "files", or "global"; for the last the caller has more, a name a line.
func (g *Guest) hostNearest(args []engine.Value) (engine.Value, error) {
	s, err := g.stringsOf(args, 3)
	if err != nil {
		return 0, err
	}
	near := g.surface.nearest(s[0], s[1], s[2])
	if near == nil {
		near = []string{}
	}
	text, err := json.Marshal(near)
	if err != nil {
		return 0, err
	}
	return g.vm.NewString(string(text))
}

// suggestions is how many there are at most.
const suggestions = 3

func (s *Surface) nearest(kind, name, more string) []string {
	var known []words.Candidate
	if kind == "files" {
		for _, f := range s.Files {
			known = append(known, words.Candidate{Name: f.Path, Show: f.Path})
		}
		return words.Nearest(name, suggestions, known)
	}
	for line := range strings.Lines(more) {
		line = strings.TrimSuffix(line, "\n")
		known = append(known, words.Candidate{Name: line, Show: line})
	}
	server, method, two := strings.Cut(name, ".")
	if kind == "MCP" && !two {
		for _, server := range members(s.MCP.Text(), "") {
			known = append(known, words.Candidate{Name: server, Show: "MCP." + server, Bonus: 0.1})
		}
		method = name
	}
	if kind != "MCP" {
		method = name
		known = append(known, s.native()...)
		for _, server := range members(s.MCP.Text(), "") {
			known = append(known, words.Candidate{Name: server, Show: "MCP." + server})
		}
	}
	for line := range bytes.Lines(s.MCP.Text()) {
		path, _, _ := strings.Cut(string(line), " ")
		owner, member, _ := strings.Cut(path, ".")
		c := words.Candidate{Name: member, Show: "MCP." + path}
		if kind == "MCP" && two && owner == server {
			c.Bonus = 0.1
		}
		known = append(known, c)
	}
	return words.Nearest(method, suggestions, known)
}

// native are the members of tools, and the tools that have no function there.
func (s *Surface) native() []words.Candidate {
	var known []words.Candidate
	for _, name := range []string{"search", "describe", "call"} {
		known = append(known, words.Candidate{Name: name, Show: "tools." + name})
	}
	named := map[string]bool{}
	for line := range bytes.Lines(s.Functions.Text()) {
		name, id, _ := strings.Cut(string(line), " ")
		named[strings.TrimSuffix(id, "\n")] = true
		known = append(known, words.Candidate{Name: name, Show: "tools." + name})
	}
	var entries []struct {
		ID   json.RawMessage `json:"id"`
		Name string          `json:"name"`
	}
	if json.Unmarshal(s.Tools.Text(), &entries) == nil {
		for _, e := range entries {
			if !named[string(e.ID)] {
				known = append(known, words.Candidate{Name: e.Name, Show: "tools.call(" + string(e.ID) + ")"})
			}
		}
	}
	return known
}
