/** MCP server "GitHub MCP": 3 of 9 functions. */
declare namespace MCP.github {
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
  /**
   * create_issue: Create an issue in a repository.
   * Needs write access.
   * Markdown * / is understood.
   * @ deprecated for `${x}`
   * @param input.title What it is about, in one line (length >= 1, length <= 256)
   * @param input.owner Owner * / of the repository
   * @param input.state default "open"
   * @param input.labels unique items
   * @param input["auth-method"] How to sign in
   * @param input.milestone integer, >= 1
   */
  function createIssue(input: {
    title: string;
    owner: string;
    state?: "open" | "closed";
    labels?: (string | null /* pattern ^[a-z]+$ */)[];
    "auth-method"?: string;
    milestone?: number;
    meta?: Record<string, string>;
  }): Promise<Result<{ number: number /* integer */; url: string /* uri */; [key: string]: unknown }>>;
  namespace resources {
    /** Lists the resources. */
    function list(input?: { cursor?: string }): Promise<{ resources: { uri: string; name: string; title?: string; description?: string; mimeType?: string; size?: number }[]; nextCursor?: string }>;
    function read(input: { uri: string }): Promise<{ contents: { uri: string; mimeType?: string; text?: string; blob?: string /* base64 */ }[] }>;
  }
}
