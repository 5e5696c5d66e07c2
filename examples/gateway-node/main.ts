// The gateway as a program: a config file as its argument, what people do as JSON lines on
// stdin, what happens as JSON lines on stdout. README.md has both.
import { once } from "node:events";
import { createWriteStream, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { type Approval, Client, type Json, type OpenParams, type Tool } from "./client.js";
import { Gateway, type GatewayOptions, type GatewayTool, type Policy } from "./gateway.js";
import { McpServer } from "./mcp.js";
import { providers } from "./provider.js";

/** What a tool of the config does. One that is held is a question on stdout: its value is the answer. */
interface Behaviour {
  result?: Json;
  echo?: boolean;
  held?: boolean;
}

interface Config {
  /** The program to start, or the socket of one that runs. */
  supervisor: { command: string; args?: string[] } | { socket: string };
  provider: { kind: keyof typeof providers; url: string; model: string; key?: string };
  codeMode?: OpenParams["config"];
  agents?: GatewayOptions["agents"];
  tools?: (Tool & Behaviour)[];
  namespaces?: OpenParams["namespaces"];
  mcp?: { [name: string]: { command: string; args?: string[]; env?: { [name: string]: string } } };
  policy?: Policy;
  /** Tools that the before-tool hook refuses. */
  block?: string[];
  /** Whether each wait of the model's is a question first; a test's. */
  step?: boolean;
  /** A file to which the trajectories of all runs are appended. */
  trajectory?: string;
  /** A tool that is put into every payload; a test's. */
  smuggle?: Json;
}

type Command =
  | { do: "turn"; session: string; agent?: string; text: string }
  | { do: "answer"; question: number; value: Json }
  | { do: "abort" | "stop"; session: string }
  | { do: "transcript"; session: string };

const config = JSON.parse(readFileSync(process.argv[2] ?? "gateway.json", "utf8")) as Config;

function report(line: object): void {
  process.stdout.write(JSON.stringify(line) + "\n");
}

/** Questions to people that have no answer yet. */
const questions = new Map<number, (value: Json) => void>();
let asked = 0;

function ask(about: object, signal: AbortSignal): Promise<Json> {
  const question = ++asked;
  return new Promise((resolve, reject) => {
    questions.set(question, resolve);
    signal.addEventListener("abort", () => {
      questions.delete(question);
      report({ withdrawn: question });
      reject(new Error("nobody waits for the answer any more"));
    });
    report({ question, ...about });
  });
}

const tools: GatewayTool[] = (config.tools ?? []).map(({ result, echo, held, ...tool }) => ({
  ...tool,
  run: (input, call) => {
    if (!held) return echo ? input : result;
    call.park("somebody is asked");
    return ask({ held: tool.name, input, callId: call.callId }, call.signal);
  },
}));
const servers: McpServer[] = [];
const unavailable: { name: string; reason: string }[] = [];
for (const [name, { command, args, env }] of Object.entries(config.mcp ?? {})) {
  try {
    const server = await McpServer.start(name, command, args, env);
    servers.push(server);
    for (const t of server.tools) {
      tools.push({
        name: t.name, label: t.title, description: t.description, source: "mcp", sourceName: name,
        parameters: t.inputSchema, outputSchema: t.outputSchema, annotations: t.annotations,
        run: (input, call) => server.call(t.name, input, call.signal),
      });
    }
  } catch (e) {
    unavailable.push({ name, reason: (e as Error).message }); // the others work
  }
}

const capabilities = { hooks: true, approvals: true, output: true, events: "digest" as const };
const client = await ("socket" in config.supervisor
  ? Client.connect(config.supervisor.socket, capabilities)
  : Client.start({ ...config.supervisor, ...capabilities }));
const trajectory = config.trajectory ? createWriteStream(config.trajectory, { flags: "a", mode: 0o600 }) : undefined;

const gateway = new Gateway({
  client,
  provider: providers[config.provider.kind],
  url: config.provider.url,
  key: config.provider.key ?? "",
  model: config.provider.model,
  codeMode: config.codeMode,
  agents: config.agents,
  tools,
  unavailable,
  policy: config.policy,
  namespaces: config.namespaces,
  pause: async (session, call, signal) => {
    if (config.step && call.name === "wait") await ask({ session, before: call.name }, signal);
  },
  before: (event) => {
    report({ hook: event.toolId ?? event.toolName, kind: event.toolKind, inputKind: event.toolInputKind, session: event.sessionId, parent: event.parentToolCallId });
    if (config.block?.includes(event.toolId ?? event.toolName)) throw new Error("the gateway's config blocks it");
  },
  ask: async (question, signal) => (await ask({ approve: question.tool, params: question.params, reason: question.reason }, signal)) as unknown as Approval,
  result: (session, call, result) => report({ session, call: call.name, callId: call.id, result }),
  output: (session, item) => report({ session, output: item }),
  event: async (event) => {
    if (event.kind === "end") report({ ended: event.runId, status: event.status, code: event.code });
    if (trajectory && !trajectory.write(JSON.stringify(event) + "\n")) await once(trajectory, "drain");
  },
  smuggle: (payload) => (config.smuggle ? { ...payload, tools: [...((payload.tools as Json[]) ?? []), config.smuggle] } : payload),
});

const turns = new Set<Promise<void>>();

async function turn(c: Command & { do: "turn" }): Promise<void> {
  try {
    report({ session: c.session, answer: await gateway.turn(c.session, c.agent ?? "main", c.text) });
  } catch (e) {
    report({ session: c.session, failed: (e as Error).message });
  }
}

report({ ready: true, server: client.server.server, tools: tools.length, unavailable });
for await (const line of createInterface({ input: process.stdin })) {
  const c = JSON.parse(line) as Command;
  switch (c.do) {
    case "turn": {
      const t = turn(c).finally(() => turns.delete(t));
      turns.add(t);
      break;
    }
    case "answer":
      questions.get(c.question)?.(c.value);
      questions.delete(c.question);
      break;
    case "abort":
      void gateway.abort(c.session).catch((e: Error) => report({ session: c.session, failed: e.message }));
      break;
    case "stop":
      gateway.stop(c.session);
      break;
    case "transcript":
      report({ session: c.session, transcript: gateway.transcript(c.session) });
  }
}

// Nobody is there any more: end what is at work, and leave nothing behind.
gateway.close();
await client.close();
await Promise.all(turns);
await Promise.all(servers.map((s) => s.close()));
if (trajectory) await once(trajectory.end(), "close");
