/**
 * A client of `supervisor serve`: code mode for a gateway in Node.js. One file without
 * dependencies, made to be copied. docs/serve.md has the protocol.
 *
 *     const client = await Client.start({ command: "supervisor" });      // or Client.connect(path)
 *     const run = await client.open({ scope, config: true, tools }, { call: (c) => myTools(c) });
 *     const result = await run.exec({ code: "await tools.echo({ v: 1 })" }, { callId: "call_1" });
 *     await client.close();
 *
 * Who ends what: a Client is closed by who made it, and closes its runs with it; `close` waits
 * until neither child nor socket is left. When the connection is lost, everything that waits
 * rejects with a {@link ConnectionError}, and the signals of all tool calls fire.
 *
 * Nothing here fails open. A hook that throws refuses its call, an approval that nobody
 * handles is a no, and a peer that breaks the protocol is not talked to any more.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createConnection } from "node:net";
import type { Readable, Writable } from "node:stream";

/** Any value that JSON has. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json | undefined };

/** Who owns a run. `wait` and `abort` reach only runs of the same agent, session and agent run. */
export interface Scope {
  agentId?: string;
  sessionId?: string;
  sessionKey?: string;
  agentRunId?: string;
  sender?: string;
  channel?: string;
}

export type Source = "openclaw" | "plugin" | "mcp" | "client";

/** A tool of the run. The model does not see it; its cells do. */
export interface Tool {
  id?: string;
  name: string;
  label?: string;
  description?: string;
  source: Source;
  sourceName?: string;
  /** JSON Schema of the input, which the supervisor checks before `call`. */
  parameters?: Json;
  outputSchema?: Json;
  annotations?: { readOnlyHint?: boolean; idempotentHint?: boolean; destructiveHint?: boolean };
  /** Of an entry of an MCP server that is no tool, such as "resources/read". */
  operation?: string;
  control?: boolean;
  policy?: "allow" | "deny" | "approve";
}

/** An object that a plugin has in the cell; `{"$tool": name}` in its scope is a function. */
export interface Namespace {
  id: string;
  pluginId: string;
  globalName: string;
  description: string;
  prompt?: string;
  requiredToolNames: string[];
  scope: Json;
}

/** How a provider's API writes tools. */
export type Shape = "openai-chat" | "openai-responses" | "anthropic-messages" | "gemini";

/** What `open` asks for. `config` and `agentConfig` are values of `tools.codeMode`. */
export interface OpenParams {
  scope: Scope;
  config?: boolean | { [field: string]: Json };
  agentConfig?: boolean | { [field: string]: Json };
  context?: { rawModelCall?: boolean; toolsDisabled?: boolean; allowListEmpty?: boolean };
  tools?: Tool[];
  unavailable?: { name: string; reason: string }[];
  namespaces?: Namespace[];
  policy?: { allow?: string[]; deny?: string[]; approve?: string[] };
  shapes?: Shape[];
  strict?: boolean;
}

/** What the model is to be shown. If `engaged`, `tools` and nothing else. */
export interface Surface {
  handle: string;
  state: "engaged" | "off" | "no_tools";
  engaged: boolean;
  reason: string;
  visibleTools: string[];
  catalog?: { size: number; bySource: { [source: string]: number } };
  definitions?: { exec: Definition; wait: Definition };
  /** The value of a payload's field "tools", for each of the shapes that were asked for. */
  tools?: { [shape in Shape]?: Json[] };
  limits?: { [field: string]: Json };
  warnings: string[];
}

export interface Definition {
  name: string;
  description: string;
  parameters: Json;
}

export type Item = { type: "text"; text: string } | { type: "json"; value: Json };

/** What `exec` and `wait` give, and what the model sees as the tool's result. */
export type Result = { output?: Item[]; telemetry: Telemetry } & (
  | { status: "completed"; value: Json }
  | { status: "waiting"; runId: string; reason: "yield" | "pending_tools"; note?: string; pendingToolCalls?: PendingCall[] }
  | { status: "failed"; error: string; code?: string; phase: "input" | "guest" | "tool" | "limit" | "host" }
);

export interface PendingCall {
  id: string;
  toolId: string;
  state: "not_started" | "in_flight";
  reason?: string;
}

/** The part of a result's telemetry that most gateways read; docs/results.md has all of it. */
export interface Telemetry {
  visibleTools: string[];
  catalog: { size: number; bySource: { [source: string]: number } };
  counts: { exec: number; wait: number; search: number; describe: number; call: number };
  calls: { id: string; toolId: string; state: "not_started" | "in_flight" | "done" | "failed"; ms: number }[];
  callsOmitted?: number;
  limits: string[];
  snapshot: { bytes: number; created: number; restored: number; discarded: number };
  timings: { [stage: string]: number };
}

/** What a before-tool hook gets: the model's exec (`toolKind` is set), or a nested call. */
export interface HookEvent extends Scope {
  toolName: string;
  toolKind?: "code_mode_exec";
  toolCallId?: string;
  toolInputKind?: "javascript" | "typescript";
  params: Json;
  runId?: string;
  parentToolCallId?: string;
  toolId?: string;
  source?: Source;
  sourceName?: string;
}

/** What a hook says of a call; `{}` lets it through as it is. */
export interface Verdict {
  block?: boolean;
  reason?: string;
  params?: Json;
  approve?: boolean;
}

/** One event of a run's trajectory. Written as JSON lines, `supervisor trajectory show` draws them. */
export interface TrajectoryEvent {
  seq: number;
  time: string;
  runId: string;
  kind: string;
  parent?: string;
  callId?: string;
  toolId?: string;
  status?: string;
  code?: string;
  ms?: number;
  data?: { bytes: number; sha256: string; content?: Json };
}

/** A nested call, which the gateway makes. */
export interface ToolCall {
  readonly runId: string;
  readonly callId: string;
  /** The exec that the model made, also after a resume. */
  readonly parentToolCallId: string;
  readonly toolId: string;
  readonly toolName: string;
  readonly source: Source;
  readonly sourceName: string;
  /** Fits the tool's parameters. Numbers have what JSON.parse leaves of them: 53 bits. */
  readonly input: Json;
  readonly scope: Scope;
  /** Fires when the answer is not wanted any more: stop, and settle soon. */
  readonly signal: AbortSignal;
  /** Says that it will take long: the run is parked meanwhile, and the model gets "waiting". */
  park(reason: string): void;
  /** Tells those who watch how far it is; the cell never sees it. Dropped while the peer does not read. */
  update(value: Json): void;
}

/**
 * What a run asks its gateway. `output` and `event` come in order; a promise of theirs is
 * awaited before anything more is read, which is how a slow one slows the supervisor down.
 */
export interface Handlers {
  /** Makes a nested call. Its value is the tool's result, what it throws (see {@link ToolError}) its failure. */
  call(call: ToolCall): unknown;
  /** The before-tool hook. Without it everything is let through. */
  hook?(event: HookEvent, signal: AbortSignal): Verdict | Promise<Verdict>;
  /** Asks a person. Without it calls that need an approval are refused. */
  approve?(event: HookEvent, reason: string | undefined, signal: AbortSignal): Approval | Promise<Approval>;
  output?(item: Item, runId: string, callId: string | undefined): void | Promise<void>;
  event?(event: TrajectoryEvent): void | Promise<void>;
}

export interface Approval {
  approved: boolean;
  reason?: string;
}

/** Thrown by `call`, it tells the cell `code`, and whether the tool had begun (default "yes"). */
export class ToolError extends Error {
  override name = "ToolError";
  constructor(message: string, readonly code?: string, readonly started?: "yes" | "no" | "unknown") {
    super(message);
  }
}

/** The supervisor refused a request. `code` is JSON-RPC's. */
export class RequestError extends Error {
  override name = "RequestError";
  constructor(readonly method: string, readonly code: number, message: string, readonly data?: { code?: string; hint?: string }) {
    super(`${method}: ${message}` + (data?.hint ? ` (${data.hint})` : ""));
  }
}

/** The connection is gone. Nobody knows what became of the requests that were under way. */
export class ConnectionError extends Error {
  override name = "ConnectionError";
}

export interface ClientOptions {
  /** Of the gateway, for the supervisor's log. */
  name?: string;
  version?: string;
  /** Whether the runs of this client have hooks, approvals, output, and events, with contents or without. */
  hooks?: boolean;
  approvals?: boolean;
  output?: boolean;
  events?: "digest" | "content";
}

export interface StartOptions extends ClientOptions {
  /** The program. */
  command: string;
  /** What comes after `serve --stdio`, such as `--state-dir`. */
  args?: string[];
  env?: NodeJS.ProcessEnv;
  /** Gets what the supervisor logs; default: this process's standard error. */
  log?: (text: string) => void;
  /** How long it may take to end, in milliseconds, before it is killed; default 5,000. */
  graceMs?: number;
}

export interface Server {
  protocolVersion: number;
  server: { name: string; version: string };
  durable: boolean;
  maxLineBytes: number;
  maxRequests: number;
  maxHandles: number;
}

export interface CallOptions {
  /** The id that the model gave its call: the root of the run's trajectory. */
  callId?: string;
  /**
   * Aborts an exec, gives a wait up. The result comes all the same, and says what became of the
   * nested calls. Without an answer, {@link Client.close} is what ends it.
   */
  signal?: AbortSignal;
}

const PROTOCOL = 1;
const MAX_LINE = 64 << 20; // bytes, both ways, without the newline
const GRACE_MS = 5_000; // for a child that was asked to end
const MAX_LOG = 4 << 10; // characters of its last words

type Message = { id?: unknown; method?: unknown; params?: unknown; result?: unknown; error?: unknown };
type Pending = { method: string; resolve(result: unknown): void; reject(error: Error): void };

/** The two streams, and how the peer is made to go: `stop` says how it went, if there is something to say. */
type Transport = { input: Readable; output: Writable; stop(): Promise<string> };

/** A connection to a supervisor. */
export class Client {
  /** What the supervisor said of itself. */
  server!: Server;

  readonly #transport: Transport;
  readonly #pending = new Map<number, Pending>();
  readonly #runs = new Map<string, Handlers>();
  readonly #asked = new Map<string, AbortController>(); // what the supervisor waits for
  readonly #queue: string[] = []; // lines for which the peer has no place
  #blocked = false;
  #giveUp: (() => void) | undefined; // ends the waiting for a slow handler
  #lastId = 0;
  #ended: Promise<void> | undefined;
  #why: ConnectionError | undefined;

  private constructor(transport: Transport) {
    this.#transport = transport;
    transport.output.on("error", (e) => void this.#end(`writing: ${e.message}`));
    transport.output.on("drain", () => this.#flush(false));
    void this.#read();
  }

  /** Starts `command serve --stdio` as a child, which ends with this process or with {@link close}. */
  static async start(options: StartOptions): Promise<Client> {
    const child = spawn(options.command, ["serve", "--stdio", ...(options.args ?? [])], {
      env: options.env ?? process.env,
      stdio: ["pipe", "pipe", "pipe"],
    });
    const failed = new Promise<string>((resolve) => child.once("error", (e) => resolve(`${options.command} cannot be started: ${e.message}`)));
    const exited = once(child, "close").then(() => undefined, () => undefined);
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-MAX_LOG);
      (options.log ?? ((t) => process.stderr.write(t)))(text);
    });
    const stop = async (): Promise<string> => {
      child.stdin.end();
      const killer = setTimeout(() => {
        child.kill("SIGKILL");
        child.stderr.destroy(); // somebody else may hold it open
      }, options.graceMs ?? GRACE_MS);
      const unstarted = await Promise.race([failed, exited]);
      clearTimeout(killer);
      return unstarted ?? story(child, said);
    };
    return Client.#initialize(new Client({ input: child.stdout, output: child.stdin, stop }), options);
  }

  /** Connects to the socket of `supervisor serve --listen unix:PATH`. */
  static async connect(path: string, options: ClientOptions = {}): Promise<Client> {
    const socket = createConnection(path);
    const stop = async (): Promise<string> => {
      const closed = socket.closed ? undefined : once(socket, "close").catch(() => undefined);
      socket.destroy();
      await closed;
      return "";
    };
    try {
      await once(socket, "connect");
    } catch (e) {
      throw new ConnectionError(`connecting to ${path}: ${text(e)}; is supervisor serve --listen unix:${path} running?`);
    }
    return Client.#initialize(new Client({ input: socket, output: socket, stop }), options);
  }

  static async #initialize(client: Client, o: ClientOptions): Promise<Client> {
    try {
      const server = (await client.#request("initialize", {
        protocolVersion: PROTOCOL,
        client: { name: o.name ?? "gateway-node", version: o.version ?? "0" },
        capabilities: { hooks: o.hooks, approvals: o.approvals, output: o.output, events: o.events },
      })) as Server;
      if (server.protocolVersion !== PROTOCOL) {
        throw new ConnectionError(`the supervisor speaks version ${server.protocolVersion} of the protocol, this client ${PROTOCOL}`);
      }
      client.server = server;
      return client;
    } catch (e) {
      await client.close();
      throw e;
    }
  }

  /** Opens a run: decides what the model is shown, and what its cells may call. */
  async open(params: OpenParams, handlers: Handlers): Promise<Run> {
    const surface = (await this.#request("run/open", params)) as Surface;
    this.#runs.set(surface.handle, handlers);
    const request = async (method: string, more: object, signal?: AbortSignal) => {
      const result = await this.#request(method, { handle: surface.handle, ...more }, signal);
      if (method === "run/close") this.#runs.delete(surface.handle);
      return result;
    };
    return new Run(surface, request);
  }

  /** Ends the connection and with it its runs (durable parked ones are kept), and waits until nothing of it is left. */
  async close(): Promise<void> {
    await this.#end("it was closed");
  }

  #request(method: string, params: object, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      signal?.throwIfAborted(); // it is not sent, and rejects
      if (this.#why) throw this.#why;
      if (this.#ended) throw new ConnectionError("the connection to the supervisor is being closed");
      if (this.#pending.size >= (this.server?.maxRequests ?? 1)) {
        throw new RequestError(method, -32000, `${this.#pending.size} requests are open, which is all that the supervisor takes`);
      }
      const id = ++this.#lastId;
      const line = encode({ jsonrpc: "2.0", id, method, params });
      const cancel = () => this.#notify("$/cancelRequest", { id });
      const settled = () => signal?.removeEventListener("abort", cancel);
      signal?.addEventListener("abort", cancel, { once: true });
      this.#pending.set(id, {
        method,
        resolve: (result) => (settled(), resolve(result)),
        reject: (error) => (settled(), reject(error)),
      });
      this.#send(line);
    });
  }

  #notify(method: string, params: object): void {
    if (!this.#ended) this.#send(encode({ jsonrpc: "2.0", method, params }));
  }

  // What waits here is bounded: by maxRequests, and by what the supervisor asks of us.
  #send(line: string): void {
    this.#queue.push(line);
    this.#flush(this.#blocked);
  }

  #flush(blocked: boolean): void {
    this.#blocked = blocked;
    while (!this.#blocked && !this.#ended) {
      const line = this.#queue.shift();
      if (line === undefined) return;
      this.#blocked = !this.#transport.output.write(line);
    }
  }

  async #read(): Promise<void> {
    let parts: Buffer[] = []; // of a line that has not ended
    let size = 0;
    try {
      for await (let chunk of this.#transport.input as AsyncIterable<Buffer>) {
        for (let end = chunk.indexOf(10); ; end = chunk.indexOf(10)) {
          const part = end < 0 ? chunk : chunk.subarray(0, end);
          if ((size += part.length) > MAX_LINE) throw new Error(`it sent a line of more than ${MAX_LINE} bytes`);
          parts.push(part);
          if (end < 0) break;
          const line = Buffer.concat(parts, size);
          parts = [];
          size = 0;
          if (!this.#ended) await this.#receive(line); // and else reads on, so that the peer can end
          chunk = chunk.subarray(end + 1);
        }
      }
      await this.#end(size > 0 ? `it ended in the middle of a message, after ${size} bytes` : "it ended");
    } catch (e) {
      await this.#end(text(e));
    }
  }

  #receive(line: Buffer): void | Promise<void> {
    let m: Message;
    try {
      m = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(line)) as Message;
    } catch {
      throw new Error(`it sent what is no JSON: ${JSON.stringify(line.toString("latin1", 0, 80))}`);
    }
    if (typeof m !== "object" || m === null || Array.isArray(m)) throw new Error("it sent what is no message");
    if (typeof m.method === "string") {
      const params = (m.params ?? {}) as { [key: string]: never };
      if (m.id === undefined) return this.#told(m.method, params);
      void this.#answer(m.id, m.method, params);
      return;
    }
    const pending = this.#pending.get(m.id as number);
    const error = m.error as { code: number; message: string; data?: { hint?: string } } | null | undefined;
    if (!pending) { // the two sides are out of step: some request of ours may never be answered
      throw new Error(error ? `it refused something: ${error.message}` : `it answered request ${JSON.stringify(m.id)}, which is not open`);
    }
    this.#pending.delete(m.id as number);
    if (error) pending.reject(new RequestError(pending.method, error.code, error.message, error.data));
    else if (typeof m.result === "object" && m.result !== null) pending.resolve(m.result);
    else pending.reject(new ConnectionError(`${pending.method}: the supervisor answered with what is no result`));
  }

  #told(method: string, p: { [key: string]: never }): void | Promise<void> {
    const handlers = this.#runs.get(p.handle!);
    switch (method) {
      case "tool/cancel":
        return this.#asked.get(`${p.method} ${p.handle} ${p.callId}`)?.abort();
      case "run/output":
        return this.#slowly(() => handlers?.output?.(p.item!, p.runId!, p.callId));
      case "run/event":
        return this.#slowly(() => handlers?.event?.(p.event!));
    } // what a newer supervisor tells beyond that is not for us
  }

  // Waits for a handler, at most until the end of the connection. What it throws is an uncaught
  // exception, as in any event listener of Node's.
  #slowly(handler: () => void | Promise<void>): Promise<void> {
    return new Promise((resolve) => {
      this.#giveUp = resolve;
      void (async () => handler())().finally(resolve);
    });
  }

  // Answers a request of the supervisor's, sooner or later; nobody waits for it here.
  async #answer(id: unknown, method: string, p: { [key: string]: never }): Promise<void> {
    const event = p.event as HookEvent | undefined;
    const key = `${method} ${p.handle} ${p.callId ?? event?.toolCallId ?? ""}`;
    const abort = new AbortController();
    this.#asked.set(key, abort);
    let line: string;
    try {
      const result = await this.#ask(method, p, abort.signal);
      line = encode({ jsonrpc: "2.0", id, result });
    } catch (e) {
      const error = e instanceof RequestError ? { code: e.code, message: e.message } : { code: -32603, message: text(e) };
      line = encode({ jsonrpc: "2.0", id, error });
    }
    if (this.#asked.get(key) === abort) this.#asked.delete(key);
    if (!this.#ended) this.#send(line);
  }

  async #ask(method: string, p: { [key: string]: never }, signal: AbortSignal): Promise<object> {
    const handlers = this.#runs.get(p.handle!);
    if (!handlers) throw new RequestError(method, -32002, "this handle is not open");
    switch (method) {
      case "tool/call":
        try {
          const value = await handlers.call({
            ...(p as unknown as ToolCall),
            signal,
            park: (reason) => this.#notify("tool/park", { callId: p.callId, reason }),
            update: (value) => this.#blocked || this.#notify("tool/update", { callId: p.callId, value: value ?? null }),
          });
          encode({ value }); // what is no JSON, or too long, is the tool's failure
          return { value: value ?? null };
        } catch (e) {
          const { code, started } = e instanceof ToolError ? e : {};
          return { error: { message: text(e).slice(0, 32 << 10) || "it failed", code, started } };
        }
      case "hook/beforeToolCall":
        if (!handlers.hook) return {};
        return verdict(await handlers.hook(p.event!, signal));
      case "tool/approve":
        if (!handlers.approve) return { approved: false, reason: "nobody can be asked" };
        return verdict(await handlers.approve(p.event!, p.reason, signal));
    }
    throw new RequestError(method, -32601, "this client has no such method");
  }

  #end(why: string): Promise<void> {
    return (this.#ended ??= (async () => {
      this.#queue.length = 0;
      this.#giveUp?.();
      for (const abort of this.#asked.values()) abort.abort();
      const how = await this.#transport.stop();
      this.#why = new ConnectionError(`the connection to the supervisor is gone: ${why}` + (how && `; ${how}`));
      for (const pending of this.#pending.values()) pending.reject(this.#why);
      this.#pending.clear();
      this.#runs.clear();
    })());
  }
}

/** One agent run: what the model is shown, and its cells. */
export class Run {
  readonly #request: (method: string, more: object, signal?: AbortSignal) => Promise<unknown>;

  /** @internal */
  constructor(readonly surface: Surface, request: (method: string, more: object, signal?: AbortSignal) => Promise<unknown>) {
    this.#request = request;
  }

  /** Runs a cell. `args` are the model's arguments: an object, or the JSON text that it wrote. */
  async exec(args: Json, o: CallOptions = {}): Promise<Result> {
    return (await this.#request("run/exec", { callId: o.callId, arguments: args }, o.signal)) as Result;
  }

  /** Goes on with a cell whose result was "waiting", also one of an earlier connection. */
  async wait(args: Json, o: CallOptions = {}): Promise<Result> {
    return (await this.#request("run/wait", { callId: o.callId, arguments: args }, o.signal)) as Result;
  }

  /** Aborts one cell, or all of this run, and says how many that were. */
  async abort(runId?: string): Promise<number> {
    return ((await this.#request("run/abort", { runId })) as { aborted: number }).aborted;
  }

  /** Throws unless the payload shows the model exactly what {@link surface} says. Call it before each request is sent. */
  async check(payload: Json, shape?: Shape): Promise<void> {
    const r = (await this.#request("surface/check", { payload, shape })) as { ok?: boolean; code?: string; error?: string };
    if (r.ok !== true) throw new RequestError("surface/check", 0, r.error ?? "it gave no answer", { code: r.code });
  }

  /** Ends the run's cells. */
  async close(): Promise<void> {
    await this.#request("run/close", {});
  }
}

function encode(message: object): string {
  const line = JSON.stringify(message) + "\n";
  const bytes = Buffer.byteLength(line) - 1;
  if (bytes > MAX_LINE) throw new Error(`the message has ${bytes} bytes, at most ${MAX_LINE} are allowed`);
  return line;
}

// A hook that forgot to return something has not decided.
function verdict<T extends object>(v: T): T {
  if (typeof v !== "object" || v === null) throw new Error("the gateway's handler gave no verdict");
  return v;
}

function text(e: unknown): string {
  return e instanceof Error ? e.message : String(e);
}

function story(child: ChildProcess, said: string): string {
  const how = child.signalCode ? `it was ended by ${child.signalCode}` : `it exited with status ${child.exitCode}`;
  return how + (said.trim() && child.exitCode !== 0 ? `; its last words: ${said.trim()}` : "");
}
