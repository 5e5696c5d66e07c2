package provider

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Step is one step of the plan: a turn of an agent, scripted, with what must come of it.
type Step struct {
	Name  string `json:"-"`     // of its file: 07_all_tools
	About string `json:"about"` // the sentence of the plan
	// Config is the value of tools.codeMode.
	Config json.RawMessage `json:"config"`
	Tools  []string        `json:"tools,omitempty"` // names; nil means all, and the MCP server
	User   string          `json:"user"`
	// Replies are the model's. An exec that ends in .js or .ts is the name of a file beside
	// the step; Load has put its text there.
	Replies []Reply `json:"replies"`
	// Visible are the tools that the model must be shown, in each request.
	Visible []string `json:"visible"`
	// BeforeWait is what the test does before wait is handed on: release, abort, expire.
	BeforeWait string `json:"beforeWait,omitempty"`
	// Results are what the model must get for its calls, in order: objects that have at least
	// these members.
	Results []json.RawMessage `json:"results"`
	// Nested are the ids of the nested calls of the first exec, in order; nil says nothing.
	Nested []string `json:"nested,omitempty"`
	// Answer is what the user gets in the end.
	Answer string `json:"answer"`
}

// Tool is a tool of the plan, in the form of a file of --tools.
type Tool struct {
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	Source       string          `json:"source"`
	SourceName   string          `json:"sourceName,omitempty"`
	Parameters   json.RawMessage `json:"parameters,omitempty"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Policy       string          `json:"policy,omitempty"` // "", deny or approve
	Control      bool            `json:"control,omitempty"`
	// One of them says how it behaves: it returns Result, or its input if Echo; Held returns
	// its input once the test lets it, and parks until then.
	Result json.RawMessage `json:"result,omitempty"`
	Echo   bool            `json:"echo,omitempty"`
	Held   bool            `json:"held,omitempty"`
}

// Namespace is one of a plugin. In its scope {"$tool": "name"} stands for a function.
type Namespace struct {
	ID            string         `json:"id"`
	PluginID      string         `json:"pluginId"`
	GlobalName    string         `json:"globalName"`
	Description   string         `json:"description"`
	Prompt        string         `json:"prompt,omitempty"`
	RequiredTools []string       `json:"requiredToolNames"`
	Scope         map[string]any `json:"scope"`
}

// MCPServer is the MCP server of the plan's gateway.
type MCPServer struct {
	Server string   `json:"server"`
	Deny   []string `json:"deny"` // patterns of what policy denies of it
}

// Plan is the plan: the steps, by name, and what its gateway has.
type Plan struct {
	Steps      []Step      `json:"-"`
	Tools      []Tool      `json:"tools"` // that no MCP server has
	Namespaces []Namespace `json:"namespaces"`
	MCP        MCPServer   `json:"mcp"`
}

// Load reads a plan: tools.json and NN_*.json of a folder.
func Load(dir fs.FS) (*Plan, error) {
	var p Plan
	if err := read(dir, "tools.json", &p); err != nil {
		return nil, err
	}
	names, err := fs.Glob(dir, "[0-9][0-9]_*.json")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		var s Step
		if err := read(dir, name, &s); err != nil {
			return nil, err
		}
		s.Name = strings.TrimSuffix(name, ".json")
		for i, r := range s.Replies {
			if ext := path.Ext(r.Exec); ext != ".js" && ext != ".ts" {
				continue
			}
			code, err := fs.ReadFile(dir, r.Exec)
			if err != nil {
				return nil, fmt.Errorf("the cell of reply %d of %s: %w", i, name, err)
			}
			s.Replies[i].Exec = string(code)
		}
		p.Steps = append(p.Steps, s)
	}
	return &p, nil
}

func read(dir fs.FS, name string, into any) error {
	f, err := dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	dec := json.NewDecoder(f)
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
