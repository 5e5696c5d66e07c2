// The client against peers that are slow, broken or gone. What a real supervisor does is the
// business of test/e2e, which runs this file, too.
import assert from "node:assert/strict";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client, type ClientOptions, ConnectionError, type Handlers, type Json, RequestError, type Result, type Run, type ToolCall, ToolError } from "./client.js";

const dir = mkdtempSync(join(tmpdir(), "gateway-node-"));
after(() => rmSync(dir, { recursive: true }));

type Message = { id?: number | string; method?: string; params?: any; result?: any; error?: any };

/** A peer on a socket. It answers initialize and run/open by itself; the rest is the test's. */
class Peer {
  readonly got: Message[] = [];
  #waiting: (() => void)[] = [];
  constructor(readonly socket: Socket) {
    let rest = "";
    socket.setEncoding("utf8").on("error", () => {}).on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop()!;
      for (const line of lines) this.#take(JSON.parse(line) as Message);
    });
  }
  #take(m: Message): void {
    if (m.method === "initialize") {
      this.send({ id: m.id, result: { protocolVersion: 1, server: { name: "fake", version: "1" }, durable: false, maxLineBytes: 1, maxRequests: 200, maxHandles: 256 } });
    } else if (m.method === "run/open") {
      this.send({ id: m.id, result: { handle: m.params.scope.sessionId, state: "engaged", engaged: true, reason: "", visibleTools: ["exec", "wait"], warnings: [] } });
    } else {
      this.got.push(m);
      for (const wake of this.#waiting.splice(0)) wake();
    }
  }
  send(m: Message): boolean {
    return this.socket.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\n");
  }
  /** The next message that is of this method, or the answer to this id. */
  async next(what: string): Promise<Message> {
    for (;;) {
      const i = this.got.findIndex((m) => m.method === what || (m.method === undefined && m.id === what));
      if (i >= 0) return this.got.splice(i, 1)[0]!;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

let sockets = 0;

async function connected(options: ClientOptions = {}): Promise<{ client: Client; peer: Peer; end: () => Promise<void> }> {
  const path = join(dir, `s${++sockets}`);
  const server = createServer().listen(path);
  const accepted = once(server, "connection").then(([socket]) => new Peer(socket as Socket));
  await once(server, "listening");
  const client = await Client.connect(path, options);
  const peer = await accepted;
  return {
    client,
    peer,
    end: async () => {
      await client.close();
      peer.socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function opened(handlers: Partial<Handlers> = {}, sessionId = "h1"): Promise<{ client: Client; peer: Peer; run: Run; end: () => Promise<void> }> {
  const c = await connected();
  const run = await c.client.open({ scope: { sessionId } }, { call: (call) => call.input, ...handlers });
  return { ...c, run };
}

const completed = (value: Json) => ({ status: "completed", value, telemetry: {} }) as unknown as Result;

/** The promise must reject with a ConnectionError that says this. */
const lost = (p: Promise<unknown>, says: RegExp) => assert.rejects(p, (e: Error) => e instanceof ConnectionError && says.test(e.message));

test("requests, calls, output and events, in order", async () => {
  const seen: unknown[] = [];
  let call!: ToolCall;
  const { peer, run, end } = await opened({
    call: (c) => {
      call = c;
      c.update({ percent: 50 });
      c.park("a person");
      return { echo: c.input };
    },
    output: (item, runId, callId) => void seen.push([item, runId, callId]),
    event: (e) => void seen.push(e.kind),
  });
  const result = run.exec({ code: "1" }, { callId: "c1" });
  const exec = await peer.next("run/exec");
  assert.deepEqual(exec.params, { handle: "h1", callId: "c1", arguments: { code: "1" } });
  peer.send({ id: "s1", method: "tool/call", params: { handle: "h1", runId: "r", callId: "r:1", toolId: "client:app:x", input: { v: "ü\u2028\ud83d\ude00" } } });
  assert.deepEqual((await peer.next("tool/update")).params, { callId: "r:1", value: { percent: 50 } });
  assert.deepEqual((await peer.next("tool/park")).params, { callId: "r:1", reason: "a person" });
  assert.deepEqual((await peer.next("s1")).result, { value: { echo: { v: "ü\u2028\ud83d\ude00" } } });
  assert.equal(call.toolId, "client:app:x");
  peer.send({ method: "run/event", params: { handle: "h1", event: { kind: "exec" } } });
  peer.send({ method: "run/output", params: { handle: "h1", runId: "r", callId: "c1", item: { type: "text", text: "a" } } });
  peer.send({ method: "run/output", params: { handle: "other", runId: "r", item: { type: "text", text: "not ours" } } });
  peer.send({ id: exec.id, result: completed(3) });
  assert.deepEqual(await result, completed(3));
  assert.deepEqual(seen, ["exec", [{ type: "text", text: "a" }, "r", "c1"]]); // before the result
  await end();
});

test("a message may come in any number of pieces, and many in one", async () => {
  const { peer, run, end } = await opened();
  const results = [run.exec({ code: "1" }), run.exec({ code: "2" })];
  const ids = [(await peer.next("run/exec")).id, (await peer.next("run/exec")).id];
  const bytes = Buffer.from(ids.map((id) => JSON.stringify({ id, result: completed("äöü😀") }) + "\n").join(""));
  for (const byte of bytes.subarray(0, 120)) {
    peer.socket.write(Uint8Array.of(byte));
    await new Promise(setImmediate); // a packet each, in the middle of characters, too
  }
  peer.socket.write(bytes.subarray(120));
  assert.deepEqual(await Promise.all(results), [completed("äöü😀"), completed("äöü😀")]);
  await end();
});

test("what a newer peer says is ignored, what it asks is refused", async () => {
  const { peer, run, end } = await opened();
  peer.send({ method: "run/novelty", params: { handle: "h1" } });
  peer.send({ method: "tool/cancel", params: { handle: "h1", callId: "nobody's", method: "tool/call" } });
  peer.send({ id: 7 as never, method: "tool/novelty", params: { handle: "h1" } });
  peer.send({ id: "x", method: "tool/call", params: { handle: "gone", callId: "c" } });
  assert.equal((await peer.next(7 as never)).error.code, -32601);
  assert.equal((await peer.next("x")).error.code, -32002);
  const check = run.check({ tools: [] }, "openai-chat");
  peer.send({ id: (await peer.next("surface/check")).id, result: { ok: false, code: "runtime_unavailable", error: "a third tool" } });
  await assert.rejects(check, (e: RequestError) => e.data?.code === "runtime_unavailable" && /a third tool/.test(e.message));
  await end();
});

test("an answer that belongs to no request ends the connection", async () => {
  for (const answer of [{ id: 99, result: {} }, { id: null as never, error: { code: -32700, message: "that was no JSON" } }]) {
    let signal!: AbortSignal;
    const { client, peer, run, end } = await opened({ call: (c) => new Promise(() => (signal = c.signal)) });
    const result = run.exec({ code: "1" });
    peer.send({ id: "s1", method: "tool/call", params: { handle: "h1", callId: "c" } });
    peer.send(answer);
    await lost(result, /request 99, which is not open|that was no JSON/);
    assert.equal(signal.aborted, true);
    await lost(run.wait({ runId: "r" }), /is gone/);
    await lost(client.open({ scope: {} }, { call: () => null }), /is gone/);
    await end();
  }
});

test("what breaks the protocol ends the connection, with a reason", async () => {
  for (const [sent, says] of [
    ['{"id": 1, "resu', /in the middle of a message, after 15 bytes/],
    ["", /it ended/],
    ["not json\n", /no JSON: "not json"/],
    ["[]\n", /no message/],
    ["null\n", /no message/],
    ["\n", /no JSON/],
    [Buffer.from([0x22, 0xff, 0x22, 0x0a]), /no JSON/],
  ] as [string | Buffer, RegExp][]) {
    const { peer, run, end } = await opened();
    const result = run.exec({ code: "1" });
    await peer.next("run/exec");
    peer.socket.end(sent);
    await lost(result, says);
    await end();
  }
});

test("a line without end does not fill the memory", async () => {
  const { peer, run, end } = await opened();
  const result = run.exec({ code: "1" });
  const piece = Buffer.alloc(1 << 20, "x");
  let sent = 0;
  const flood = () => {
    while (!peer.socket.destroyed && peer.socket.write(piece)) sent++;
  };
  peer.socket.on("drain", flood);
  flood();
  await lost(result, /a line of more than 67108864 bytes/);
  assert.ok(sent < 80, `it took ${sent} MiB`);
  await end();
});

test("too much of our own is refused before it is sent", async () => {
  const { client, peer, run, end } = await opened({ call: () => "x".repeat(65 << 20) });
  await assert.rejects(run.exec({ code: "x".repeat(65 << 20) }), /at most 67108864 are allowed/);
  peer.send({ id: "s1", method: "tool/call", params: { handle: "h1", callId: "c" } });
  assert.match((await peer.next("s1")).result.error.message, /at most 67108864/);
  const open = Array.from({ length: client.server.maxRequests }, () => run.exec({ code: "1" }));
  await assert.rejects(run.exec({ code: "1" }), (e: RequestError) => e.code === -32000);
  const all = Promise.allSettled(open);
  await end();
  assert.ok((await all).every((r) => r.status === "rejected" && r.reason instanceof ConnectionError));
});

test("a peer that does not read gets everything later, in order, and no updates", async () => {
  let call!: ToolCall;
  const { peer, run, end } = await opened({ call: (c) => new Promise(() => (call = c)) });
  peer.send({ id: "s1", method: "tool/call", params: { handle: "h1", callId: "c" } });
  while (!call) await new Promise(setImmediate);
  peer.socket.pause();
  const big = "x".repeat(1 << 20);
  const results = Array.from({ length: 50 }, (_, i) => run.exec({ code: big, i }));
  call.update(1);
  peer.socket.resume();
  for (let i = 0; i < 50; i++) {
    const m = await peer.next("run/exec");
    assert.equal(m.params.arguments.i, i);
    peer.send({ id: m.id, result: completed(i) });
  }
  assert.deepEqual((await Promise.all(results)).map((r) => r.status === "completed" && r.value), [...Array(50).keys()]);
  call.update(2);
  assert.equal((await peer.next("tool/update")).params.value, 2);
  await end();
});

test("a slow handler slows the peer down, and does not hold up the end", async () => {
  const mega = 1 << 20;
  let seen = 0, unsent = 0;
  const { peer, run, end } = await opened({
    output: async () => {
      if (seen++ > 0) return;
      for (let i = 0; i < 200; i++) await new Promise(setImmediate); // all that could be read, would have been
      unsent = peer.socket.writableLength;
    },
  });
  const result = run.exec({ code: "1" });
  const { id } = await peer.next("run/exec");
  const item = { type: "text", text: "x".repeat(mega) };
  for (let i = 0; i < 50; i++) peer.send({ method: "run/output", params: { handle: "h1", runId: "r", item } });
  peer.send({ id, result: completed(null) });
  assert.equal((await result).status, "completed");
  assert.equal(seen, 50);
  assert.ok(unsent > 40 * mega, `while the handler was at work, all but ${unsent} bytes were taken`);
  await end();

  const stuck = await opened({ output: () => new Promise(() => {}) });
  stuck.peer.send({ method: "run/output", params: { handle: "h1", runId: "r", item } });
  const never = stuck.run.exec({ code: "1" });
  await Promise.all([lost(never, /it was closed/), stuck.end()]);
});

test("a signal cancels, and the result comes all the same", async () => {
  const { peer, run, end } = await opened();
  await assert.rejects(run.exec({ code: "1" }, { signal: AbortSignal.abort(new Error("too late")) }), /too late/);
  const abort = new AbortController();
  const result = run.exec({ code: "1" }, { signal: abort.signal });
  const { id } = await peer.next("run/exec");
  abort.abort();
  assert.deepEqual((await peer.next("$/cancelRequest")).params, { id });
  peer.send({ id, result: { status: "failed", error: "the run was aborted", code: "aborted", phase: "host" } });
  const r = await result;
  assert.equal(r.status === "failed" && r.code, "aborted");
  assert.deepEqual(peer.got, []); // the one with the signal that had fired was never sent
  await end();
});

test("tool/cancel reaches the one call that it names", async () => {
  const calls: ToolCall[] = [];
  const { peer, end } = await opened({
    call: (c) => new Promise((_, reject) => (calls.push(c), c.signal.addEventListener("abort", () => reject(new ToolError("stopped", "stopped", "unknown"))))),
  });
  for (const callId of ["a", "b"]) peer.send({ id: callId, method: "tool/call", params: { handle: "h1", callId } });
  peer.send({ method: "tool/cancel", params: { handle: "h1", callId: "b", method: "tool/call" } });
  assert.deepEqual((await peer.next("b")).result, { error: { message: "stopped", code: "stopped", started: "unknown" } });
  assert.deepEqual(calls.map((c) => c.signal.aborted), [false, true]);
  await end();
});

test("handlers that fail, fail closed", async () => {
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  const answers: (() => unknown)[] = [() => undefined, () => 1n, () => cycle, () => Promise.reject(new ToolError("no", "not_found", "no")), () => assert.fail("broken")];
  const { peer, run, end } = await opened({ call: () => answers.shift()!(), hook: () => undefined as never, approve: () => Promise.reject(new Error("nobody")) });
  const got: Message[] = [];
  for (let i = 0; i < 5; i++) {
    peer.send({ id: `t${i}`, method: "tool/call", params: { handle: "h1", callId: `c${i}` } });
    got.push((await peer.next(`t${i}`)).result);
  }
  assert.deepEqual(got[0], { value: null });
  for (const [i, says] of [[1, /BigInt/], [2, /circular/], [3, /^no$/], [4, /broken/]] as const) assert.match(got[i]!.error.message, says);
  assert.deepEqual(got[3]!.error, { message: "no", code: "not_found", started: "no" });
  peer.send({ id: "h", method: "hook/beforeToolCall", params: { handle: "h1", event: { toolName: "x", toolCallId: "c" } } });
  assert.match((await peer.next("h")).error.message, /no verdict/);
  peer.send({ id: "a", method: "tool/approve", params: { handle: "h1", event: { toolName: "x", toolCallId: "c" } } });
  assert.match((await peer.next("a")).error.message, /nobody/);
  const wrong = run.abort();
  peer.send({ id: (await peer.next("run/abort")).id, result: "one" });
  await assert.rejects(wrong, /no result/);
  await end();

  const bare = await opened();
  bare.peer.send({ id: "a", method: "tool/approve", params: { handle: "h1", event: {} } });
  assert.deepEqual((await bare.peer.next("a")).result, { approved: false, reason: "nobody can be asked" });
  await bare.end();
});

/** A program that is started as `NAME serve --stdio`. */
function program(body: string): string {
  const path = join(dir, `p${++sockets}`);
  writeFileSync(path, `#!${process.execPath}\n${body}`);
  chmodSync(path, 0o755);
  return path;
}
const answerInitialize = `
  const answer = (version) => process.stdin.once("data", (line) => console.log(JSON.stringify(
    { jsonrpc: "2.0", id: JSON.parse(line).id, result: { protocolVersion: version, maxRequests: 9 } })));`;

test("a child that is not there, dies, or speaks another version", async () => {
  await lost(Client.start({ command: join(dir, "nothing") }), /cannot be started: .*ENOENT/);
  let log = "";
  const dies = program(`console.error("the config is wrong"); process.exit(3);`);
  await lost(Client.start({ command: dies, log: (t) => (log += t) }), /exited with status 3; its last words: the config is wrong/);
  assert.equal(log, "the config is wrong\n");
  await lost(Client.start({ command: program(`${answerInitialize} answer(2);`) }), /version 2 of the protocol/);

  const killed = await Client.start({ command: program(`${answerInitialize} answer(1); process.stdin.on("data", () => process.kill(process.pid, "SIGKILL"));`) });
  await lost(killed.open({ scope: {} }, { call: () => null }), /SIGKILL/);
  await killed.close();
});

test("close leaves no child, also of one that does not want to go", async () => {
  const polite = await Client.start({ command: program(`${answerInitialize} answer(1);`) });
  await Promise.all([polite.close(), polite.close()]);
  await lost(polite.open({ scope: {} }, { call: () => null }), /it was closed; it exited with status 0/);
  const stubborn = await Client.start({ command: program(`${answerInitialize} answer(1); setInterval(() => {}, 1000);`), graceMs: 50 });
  await stubborn.close();
  await lost(stubborn.open({ scope: {} }, { call: () => null }), /it was ended by SIGKILL/);
  await lost(Client.connect(join(dir, "no-socket")), /ENOENT.*is supervisor serve --listen/);
  for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate); // a handle is closed at the end of a turn
  const left = process.getActiveResourcesInfo().filter((r) => /Process|Pipe(?!Wrap)|TCP|Timeout/.test(r));
  assert.deepEqual(left, []);
});

// Against a real supervisor, if SUPERVISOR names the program.
const command = process.env.SUPERVISOR ?? "";
const real = { skip: command ? false : "SUPERVISOR does not name the program" };
const quietly = { command, log: () => {} };

test("a real supervisor: many cells at once, with calls, output and events", real, async () => {
  const client = await Client.start({ ...quietly, output: true, events: "content" });
  const output: string[] = [];
  const kinds = new Set<string>();
  const run = await client.open(
    { scope: { sessionId: "s" }, config: { enabled: true, timeoutMs: 60_000 }, tools: [{ name: "add", source: "client" }] },
    {
      call: ({ input }) => (input as { a: number }).a + 1,
      output: (item) => void output.push(item.type === "text" ? item.text : ""),
      event: (e) => void kinds.add(e.kind),
    },
  );
  assert.deepEqual(run.surface.visibleTools, ["exec", "wait"]);
  const results = await Promise.all(Array.from({ length: 100 }, (_, i) => run.exec(JSON.stringify({ code: `text("${i}"); await tools.add({ a: ${i} })` }), { callId: `c${i}` })));
  assert.deepEqual(results.map((r) => r.status === "completed" && r.value), Array.from({ length: 100 }, (_, i) => i + 1));
  assert.deepEqual(output.map(Number).sort((a, b) => a - b), [...Array(100).keys()]);
  for (const kind of ["exec", "tool_call", "tool_result", "output", "end"]) assert.ok(kinds.has(kind), kind);
  await run.close();
  await assert.rejects(run.exec({ code: "1" }), (e: RequestError) => e.code === -32002);
  await client.close();
});

test("a real supervisor: an abort, and mistakes of the gateway's", real, async () => {
  const client = await Client.start(quietly);
  const tools: [{ name: string; source: "client" }] = [{ name: "hang", source: "client" }];
  const abort = new AbortController();
  let stopped = false;
  const run = await client.open({ scope: {}, config: true, tools }, {
    call: (c) => new Promise((resolve) => {
      c.signal.addEventListener("abort", () => resolve((stopped = true)));
      abort.abort();
    }),
  });
  const r = await run.exec({ code: "await tools.hang()" }, { signal: abort.signal });
  assert.equal(r.status === "failed" && r.code, "aborted");
  assert.equal(r.telemetry.calls[0]!.state, "in_flight");
  const wrong = await run.exec({ cod: "1" });
  assert.equal(wrong.status === "failed" && wrong.code, "invalid_input");
  await assert.rejects(client.open({ scope: {}, config: { enabled: "yes" } }, { call: () => null }), (e: RequestError) => e.code === -32004 && e.data?.code === "invalid_config");
  await assert.rejects(client.open({ scope: {}, tool: [] } as never, { call: () => null }), (e: RequestError) => e.code === -32602 && /tools/.test(e.message));
  await assert.rejects(run.check({ tools: [{ type: "function", function: { name: "hang" } }] }, "openai-chat"), /the request was not sent/);
  await client.close();
  assert.equal(stopped, true);
});

test("a real supervisor: with a state directory a parked cell outlives the connection", real, async () => {
  const args = ["--state-dir", join(dir, "state")];
  const scope = { agentId: "a", sessionId: "s" };
  const params = { scope, config: true, tools: [{ name: "x", source: "client" as const }] };
  const first = await Client.start({ ...quietly, args });
  assert.equal(first.server.durable, true);
  const r = await (await first.open(params, { call: () => null })).exec({ code: `const kept = 42n; await yield_control("later"); kept` });
  assert.equal(r.status, "waiting");
  await first.close();
  const runId = r.status === "waiting" ? r.runId : "";
  const second = await Client.start({ ...quietly, args });
  const foreign = await (await second.open({ ...params, scope: { ...scope, sessionId: "other" } }, { call: () => null })).wait({ runId });
  assert.equal(foreign.status === "failed" && foreign.code, "invalid_input");
  const done = await (await second.open(params, { call: () => null })).wait({ runId });
  assert.equal(done.status === "completed" && done.value, "42");
  await second.close();
});
