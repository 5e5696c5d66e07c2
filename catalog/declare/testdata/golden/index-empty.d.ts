// Each server is MCP.<identifier>; its file has the types of its functions.
// No server is available.
declare namespace MCP {
  /** The servers, and this text. */
  function $api(): Promise<{
    servers: { identifier: string; name: string; functions: number; file: string }[];
    unavailable?: { name: string; reason: string }[];
    header: string;
  }>;
}
