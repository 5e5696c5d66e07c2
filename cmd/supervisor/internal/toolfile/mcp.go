package toolfile

import (
	"encoding/json"
	"errors"

	"github.com/openclaw/codemode-supervisor/catalog"
)

// mcpResult turns what a behaviour gave into the result of an MCP tool call (SPEC 20). A
// failure of the tool is a result with isError; a call that was given up has no result.
func mcpResult(value json.RawMessage, err error) (json.RawMessage, error) {
	if err == nil {
		return catalog.MCPResult(value), nil
	}
	var failed *ToolError
	if !errors.As(err, &failed) {
		return nil, err
	}
	return catalog.MCPError(failed.Message), nil
}
