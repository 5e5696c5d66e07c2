// Each server is MCP.<identifier>; its file has the types of its functions.
// MCP.github: server "GitHub MCP", 9 functions, mcp/github.d.ts
// MCP.größe: server "größe \n* /", 1 function, mcp/größe.d.ts
// Unavailable: server "jira": exec: "jira-mcp": not found in $PATH * /
declare namespace MCP {
  /** The servers, and this text. */
  function $api(): Promise<{
    servers: { identifier: string; name: string; functions: number; file: string }[];
    unavailable?: { name: string; reason: string }[];
    header: string;
  }>;
}
