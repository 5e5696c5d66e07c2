// The smallest client of an MCP server over stdio that a gateway can do with: tools, and nothing
// else. A real gateway takes the SDK.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Json } from "./client.js";

export interface McpTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: Json;
  outputSchema?: Json;
  annotations?: { readOnlyHint?: boolean; idempotentHint?: boolean; destructiveHint?: boolean };
}

const MAX_PAGES = 100;
const START_MS = 10_000;
const GRACE_MS = 2_000;

export class McpServer {
  tools: McpTool[] = [];
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, { resolve(result: any): void; reject(error: Error): void }>();
  readonly #gone: Promise<unknown>;
  #lastId = 0;

  private constructor(readonly name: string, command: string, args: string[], env: { [name: string]: string }) {
    this.#child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "inherit"] });
    this.#gone = once(this.#child, "close").catch((e: Error) => e); // or it could not be started
    void this.#gone.then((why) => this.#lose(why instanceof Error ? why.message : "it ended"));
    this.#child.stdin!.on("error", () => {}); // its end says it
    createInterface({ input: this.#child.stdout! }).on("line", (line) => this.#receive(line));
  }

  /** Starts a server and asks for its tools. */
  static async start(name: string, command: string, args: string[] = [], env: { [name: string]: string } = {}): Promise<McpServer> {
    const server = new McpServer(name, command, args, env);
    const signal = AbortSignal.timeout(START_MS);
    try {
      await server.#request("initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "gateway-node", version: "0" } }, signal);
      server.#send({ method: "notifications/initialized" });
      let cursor: string | undefined;
      for (let page = 0; page < MAX_PAGES; page++) {
        const list = await server.#request("tools/list", { cursor }, signal);
        server.tools.push(...(list.tools as McpTool[]));
        if (!(cursor = list.nextCursor)) break;
      }
      return server;
    } catch (e) {
      await server.close();
      throw e;
    }
  }

  /** Calls a tool and gives MCP's own result: the cell decides what to do with isError. */
  call(tool: string, input: Json, signal: AbortSignal): Promise<Json> {
    return this.#request("tools/call", { name: tool, arguments: input }, signal);
  }

  async close(): Promise<void> {
    this.#child.stdin!.end();
    const killer = setTimeout(() => this.#child.kill("SIGKILL"), GRACE_MS);
    await this.#gone;
    clearTimeout(killer);
  }

  #send(message: object): void {
    this.#child.stdin!.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  }

  #request(method: string, params: object, signal: AbortSignal): Promise<any> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      if (!this.#child.stdin!.writable) throw new Error(`the MCP server ${this.name} is gone`);
      const cancel = () => {
        this.#pending.delete(id);
        this.#send({ method: "notifications/cancelled", params: { requestId: id } });
        reject(new Error(`${method} of the MCP server ${this.name} was cancelled: ${String(signal.reason)}`));
      };
      signal.addEventListener("abort", cancel, { once: true });
      const settled = () => signal.removeEventListener("abort", cancel);
      this.#pending.set(id, { resolve: (r) => (settled(), resolve(r)), reject: (e) => (settled(), reject(e)) });
      this.#send({ id, method, params });
    });
  }

  #receive(line: string): void {
    let m: any;
    try {
      m = JSON.parse(line);
    } catch {
      return; // a server that prints to its stdout is not ours to mend
    }
    if (m?.method !== undefined && m.id !== undefined) {
      this.#send(m.method === "ping" ? { id: m.id, result: {} } : { id: m.id, error: { code: -32601, message: "this client offers nothing" } });
      return;
    }
    const pending = this.#pending.get(m?.id);
    if (!pending) return;
    this.#pending.delete(m.id);
    if (m.error) pending.reject(new Error(`the MCP server ${this.name}: ${m.error.message}`));
    else pending.resolve(m.result);
  }

  #lose(why: string): void {
    for (const pending of this.#pending.values()) pending.reject(new Error(`the MCP server ${this.name} is gone: ${why}`));
    this.#pending.clear();
  }
}
