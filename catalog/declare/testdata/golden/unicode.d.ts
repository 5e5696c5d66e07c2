/** MCP server "größe": 1 function. */
declare namespace MCP.größe {
  /** What every tool resolves to. isError: true is no exception. */
  type Result<T = unknown> = { content: Content[]; structuredContent?: T; isError?: boolean };
  type Content =
    | { type: "text"; text: string }
    | { type: "image" | "audio"; data: string /* base64 */; mimeType: string }
    | { type: "resource"; resource: { uri: string; mimeType?: string; text?: string; blob?: string } }
    | { type: "resource_link"; uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number };
  /** These declarations for one tool, or for all; with { schema: true } the JSON schemas, too. */
  function $api(tool?: string, options?: { schema?: boolean }): Promise<{
    server: { identifier: string; name: string; functions: number; file: string };
    header: string;
    tools: { method: string; name: string; description: string; callable: string }[];
    schemas?: Record<string, { input: unknown; output?: unknown }>;
  }>;
  function 名前(input?: Record<string, unknown>): Promise<Result>;
}
