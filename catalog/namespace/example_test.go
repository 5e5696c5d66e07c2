package namespace_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/openclaw/codemode-supervisor/catalog"
	"github.com/openclaw/codemode-supervisor/catalog/namespace"
)

// A plugin offers its tool as github.issues.create(title, body).
func Example() {
	var registry namespace.Registry
	err := registry.Register("github", namespace.Namespace{
		ID:            "github",
		GlobalName:    "github",
		Description:   "Issues of the repository that the agent works in.",
		RequiredTools: []string{"create_issue"},
		Scope: func(ctx context.Context, run namespace.Run) (any, error) {
			return map[string]any{
				"repository": "openclaw/demo",
				"issues":     map[string]any{"create": namespace.Tool("create_issue", titleAndBody)},
			}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	c, _, err := catalog.Build([]catalog.Entry{{Name: "create_issue", Source: catalog.Plugin, SourceName: "github"}}, catalog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	scopes, err := registry.Build(context.Background(), c, namespace.Run{AgentID: "main"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s\n", scopes.JSON())

	// The guest ran github.issues.create("It hangs", "Every time.").
	target, err := scopes.Resolve("github\x1fissues\x1fcreate")
	if err != nil {
		fmt.Println(err)
		return
	}
	input, err := target.Input(json.RawMessage(`["It hangs", "Every time."]`))
	fmt.Println(target.Place, "calls", target.Tool.ID, "with", string(input), err)

	_, err = scopes.Resolve("github\x1fissues\x1fdelete")
	fmt.Println(err)
	// Output:
	// [{"name":"github","value":{"o":[["issues",{"o":[["create",{"t":true}]]}],["repository",{"v":"openclaw/demo"}]]}}]
	// github.issues.create calls plugin:github:create_issue with {"title":"It hangs","body":"Every time."} <nil>
	// no tool of a namespace is there; call the functions that the namespace's object has, as they stand in it
}

func titleAndBody(args []json.RawMessage) (json.RawMessage, error) {
	if len(args) != 2 {
		return nil, fmt.Errorf("create takes a title and a body, not %d arguments", len(args))
	}
	return json.Marshal(struct {
		Title json.RawMessage `json:"title"`
		Body  json.RawMessage `json:"body"`
	}{args[0], args[1]})
}
