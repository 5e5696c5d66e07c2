// A gateway as small as it can be while it is one: sessions, tools of four kinds, policy, people
// who are asked, and the loop between a model and what it calls. The model sees exec and wait,
// or, when code mode is off, the tools themselves.
import type { Approval, Client, Handlers, HookEvent, Item, Json, OpenParams, Result, Run, Tool, TrajectoryEvent } from "./client.js";
import { complete, type Message, type ModelCall, type Payload, type Provider } from "./provider.js";
import { ToolError } from "./client.js";

/** What a tool has of its call. Without code mode nobody can be told to wait: `park` does nothing. */
export interface CallContext {
  callId: string;
  signal: AbortSignal;
  park(reason: string): void;
}

/** A tool of the gateway, wherever it comes from. */
export interface GatewayTool extends Tool {
  run(input: Json, call: CallContext): unknown;
}

/** Tool ids in which `*` stands for anything, such as `mcp:github:*`. Deny wins over approve. */
export interface Policy {
  deny?: string[];
  approve?: string[];
}

export interface GatewayOptions {
  client: Client;
  provider: Provider;
  url: string;
  key: string;
  model: string;
  /** The value of `tools.codeMode`. */
  codeMode: OpenParams["config"];
  /** What an agent has of its own. */
  agents?: { [id: string]: { model?: string; codeMode?: OpenParams["config"] } };
  tools: GatewayTool[];
  /** MCP servers that did not start. */
  unavailable?: { name: string; reason: string }[];
  policy?: Policy;
  namespaces?: OpenParams["namespaces"];
  /** Is told of an exec or a wait of the model's before it is handed on, and may hold it. */
  pause?(session: string, call: ModelCall, signal: AbortSignal): void | Promise<void>;
  /** Refuses a call before it is started, by throwing. It sees the model's exec, too. */
  before?(event: HookEvent): void;
  /** Asks a person, and takes its time. */
  ask(question: { tool: string; params: Json; reason?: string }, signal: AbortSignal): Promise<Approval>;
  /** Follows what happens. */
  result?(session: string, call: ModelCall, result: Result): void;
  output?(session: string, item: Item): void;
  event?(event: TrajectoryEvent): void | Promise<void>;
  /** Changes a payload before it is checked and sent; for tests of the guard. */
  smuggle?(payload: Payload): Payload;
}

/** Nested calls stand in the transcript under the exec that made them; the model does not get them. */
export type Entry = Message | { role: "nested"; callId: string; parentCallId: string; catalogId: string; input: Json; state: "done" | "failed" };

interface Session {
  transcript: Entry[];
  turns: number;
  run?: Run;
  stop?: AbortController;
}

const MAX_ROUNDS = 32; // requests to the model in one turn
const OWNERS = { openclaw: "core", plugin: "default", mcp: "default", client: "app" };

export class Gateway {
  readonly #o: GatewayOptions;
  readonly #tools = new Map<string, GatewayTool>();
  readonly #sessions = new Map<string, Session>();

  constructor(options: GatewayOptions) {
    this.#o = options;
    for (const tool of options.tools) {
      const id = tool.id ?? `${tool.source}:${tool.sourceName ?? OWNERS[tool.source]}:${tool.name}`;
      if (this.#tools.has(id)) throw new Error(`two tools have the id ${id}`);
      this.#tools.set(id, { ...tool, id, policy: this.#policyOf(id) ?? tool.policy });
    }
  }

  transcript(session: string): readonly Entry[] {
    return this.#sessions.get(session)?.transcript ?? [];
  }

  /** Aborts the cells of a session, also those that are parked; the model is told so, and its turn goes on. */
  async abort(session: string): Promise<void> {
    await this.#sessions.get(session)?.run?.abort();
  }

  /** Ends the turn of a session. */
  stop(session: string): void {
    this.#sessions.get(session)?.stop?.abort(new Error("the turn was stopped"));
  }

  /** Ends all turns. */
  close(): void {
    for (const id of this.#sessions.keys()) this.stop(id);
  }

  /** One turn of an agent: from what somebody said to the model's answer. One at a time a session. */
  async turn(sessionId: string, agentId: string, text: string): Promise<string> {
    const session = this.#sessions.get(sessionId) ?? { transcript: [], turns: 0 };
    this.#sessions.set(sessionId, session);
    if (session.stop) throw new Error(`session ${sessionId} is at work`);
    const stop = (session.stop = new AbortController());
    try {
      return await this.#turn(session, sessionId, agentId, text, stop.signal);
    } finally {
      session.run = session.stop = undefined;
    }
  }

  async #turn(session: Session, sessionId: string, agentId: string, text: string, signal: AbortSignal): Promise<string> {
    const o = this.#o;
    const run = (session.run = await o.client.open(
      {
        scope: { agentId, sessionId, agentRunId: `${sessionId}/${++session.turns}` },
        config: o.codeMode,
        agentConfig: o.agents?.[agentId]?.codeMode,
        tools: [...this.#tools.values()].map(({ run: _, ...tool }) => tool),
        unavailable: o.unavailable,
        namespaces: o.namespaces,
        shapes: [o.provider.shape],
      },
      this.#handlers(session, sessionId),
    ));
    try {
      session.transcript.push({ role: "user", text });
      for (let round = 0; round < MAX_ROUNDS; round++) {
        const seen = session.transcript.filter((m): m is Message => m.role !== "nested");
        let payload = o.provider.payload(o.agents?.[agentId]?.model ?? o.model, seen, this.#shown(run));
        payload = o.smuggle?.(payload) ?? payload;
        await run.check(payload, o.provider.shape); // throws, and then nothing is sent
        const message = await complete(o.provider, o.url, o.key, payload, signal);
        session.transcript.push(message);
        if (message.calls.length === 0) return message.text;
        for (const call of message.calls) { // each gets a result, also when the turn is stopped: providers insist on it
          session.transcript.push({ role: "tool", callId: call.id, name: call.name, ...(await this.#dispatch(run, sessionId, call, signal)) });
        }
        signal.throwIfAborted();
      }
      throw new Error(`the model did not come to an end in ${MAX_ROUNDS} requests`);
    } finally {
      await run.close(); // what is parked ends with the turn
    }
  }

  /** The tools in the payload. */
  #shown(run: Run): Json[] {
    const { surface } = run;
    if (surface.engaged) return surface.tools![this.#o.provider.shape]!;
    return surface.state === "off" ? this.#direct().map((tool) => this.#o.provider.tool(tool)) : [];
  }

  /** What a model may call by name when code mode is off. */
  #direct(): GatewayTool[] {
    const all = [...this.#tools.values()];
    return all.filter((t) => t.policy !== "deny" && all.filter((other) => other.name === t.name).length === 1);
  }

  async #dispatch(run: Run, sessionId: string, call: ModelCall, signal: AbortSignal): Promise<{ text: string; isError: boolean }> {
    try {
      signal.throwIfAborted();
      if (run.surface.engaged && (call.name === "exec" || call.name === "wait")) {
        await this.#o.pause?.(sessionId, call, signal);
        const result = await run[call.name](call.arguments, { callId: call.id, signal });
        this.#o.result?.(sessionId, call, result);
        return { text: JSON.stringify(result), isError: result.status === "failed" };
      }
      const tool = run.surface.state === "off" && this.#direct().find((t) => t.name === call.name);
      if (!tool) throw new Error(`there is no tool ${call.name}`);
      const params = withDefaults(JSON.parse(call.arguments || "{}"), tool.parameters);
      this.#o.before?.({ toolName: tool.name, toolId: tool.id, toolCallId: call.id, params });
      if (tool.policy === "approve") {
        const answer = await this.#o.ask({ tool: tool.id!, params }, signal);
        if (!answer.approved) throw new Error(`it was not approved: ${answer.reason ?? "no reason was given"}`);
      }
      return { text: JSON.stringify(await tool.run(params, { callId: call.id, signal, park: () => {} })), isError: false };
    } catch (e) {
      return { text: `error: ${(e as Error).message}`, isError: true }; // the model can do better
    }
  }

  /** What the supervisor asks back, for one turn. */
  #handlers(session: Session, sessionId: string): Handlers {
    const o = this.#o;
    return {
      call: async (call) => {
        const tool = this.#tools.get(call.toolId);
        if (!tool) throw new ToolError(`there is no tool ${call.toolId}`, "unknown_tool", "no");
        const entry = { role: "nested" as const, callId: call.callId, parentCallId: call.parentToolCallId, catalogId: call.toolId, input: call.input };
        try {
          const value = await tool.run(call.input, call);
          session.transcript.push({ ...entry, state: "done" });
          return value;
        } catch (e) {
          session.transcript.push({ ...entry, state: "failed" });
          throw e;
        }
      },
      hook: (event) => {
        try {
          o.before?.(event);
          return {};
        } catch (e) {
          return { block: true, reason: (e as Error).message };
        }
      },
      approve: (event, reason, signal) => o.ask({ tool: event.toolId ?? event.toolName, params: event.params, reason }, signal),
      output: (item) => o.output?.(sessionId, item),
      event: (event) => o.event?.(event),
    };
  }

  #policyOf(id: string): "deny" | "approve" | undefined {
    const { deny, approve } = this.#o.policy ?? {};
    return deny?.some((p) => matches(p, id)) ? "deny" : approve?.some((p) => matches(p, id)) ? "approve" : undefined;
  }
}

// Without code mode nobody checks a model's input; a real gateway validates it.
function withDefaults(input: { [key: string]: Json }, schema: any): Json {
  const filled = { ...input };
  for (const [key, property] of Object.entries<any>(schema?.properties ?? {})) {
    if (property.default !== undefined) filled[key] ??= property.default;
  }
  return filled;
}

function matches(pattern: string, id: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(id);
}
