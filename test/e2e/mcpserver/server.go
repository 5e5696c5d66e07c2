// Package mcpserver is a small MCP server over stdin and stdout, for the gateways under test:
// issues of a repository that is in its memory.
//
// The test binary of test/e2e is the program: with the environment variable [Env] set to the name of
// the server it serves until stdin ends.
package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Env makes the test binary of test/e2e an MCP server.
const Env = "CODEMODE_E2E_MCP"

type createIn struct {
	Title string `json:"title" jsonschema:"what it is about"`
	Body  string `json:"body,omitempty" jsonschema:"the whole story"`
}

type createOut struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
}

type listOut struct {
	Titles []string `json:"titles"`
}

type deleteIn struct {
	Repo string `json:"repo,omitempty"`
}

// Serve serves until the client goes away.
func Serve(ctx context.Context, name string) error {
	var mu sync.Mutex
	titles := []string{}
	s := mcp.NewServer(&mcp.Implementation{Name: name, Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "create_issue", Description: "Create an issue."}, func(_ context.Context, _ *mcp.CallToolRequest, in createIn) (*mcp.CallToolResult, createOut, error) {
		if in.Title == "" {
			return nil, createOut{}, errors.New("an issue needs a title")
		}
		mu.Lock()
		defer mu.Unlock()
		titles = append(titles, in.Title)
		out := createOut{Number: 6 + len(titles), Title: in.Title}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("created issue %d: %s", out.Number, out.Title)}}}, out, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "list_issues", Description: "List the issues.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, listOut, error) {
		mu.Lock()
		defer mu.Unlock()
		return nil, listOut{append([]string{}, titles...)}, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "delete_repo", Description: "Delete the repository."}, func(context.Context, *mcp.CallToolRequest, deleteIn) (*mcp.CallToolResult, any, error) {
		mu.Lock()
		defer mu.Unlock()
		titles = nil
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "deleted"}}}, nil, nil
	})
	return s.Run(ctx, &mcp.StdioTransport{})
}
