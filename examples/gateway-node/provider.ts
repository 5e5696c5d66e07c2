// Two kinds of model providers over HTTP, streamed: what goes out, what comes back.
import type { Json, Shape, Tool } from "./client.js";

/** A call that the model makes. `arguments` is the JSON text that it wrote, right or wrong. */
export interface ModelCall {
  id: string;
  name: string;
  arguments: string;
}

/** The part of a transcript that a model sees. */
export type Message =
  | { role: "user"; text: string }
  | { role: "assistant"; text: string; calls: ModelCall[] }
  | { role: "tool"; callId: string; name: string; text: string; isError: boolean };

export type Payload = { [field: string]: Json };

/** Events of one answer; `stop` must be the last. */
type Part = { text: string } | { index: number; id?: string; name?: string; arguments?: string } | { stop: string };

export interface Provider {
  shape: Shape;
  path: string;
  headers: (key: string) => { [name: string]: string };
  /** A tool of the gateway's own, when code mode is off. */
  tool: (t: Tool) => Json;
  payload: (model: string, messages: Message[], tools: Json[]) => Payload;
  /** What one server-sent event says. */
  parts: (event: any) => Part[];
}

const openai: Provider = {
  shape: "openai-chat",
  path: "/v1/chat/completions",
  headers: (key) => ({ authorization: `Bearer ${key}` }),
  tool: (t) => ({ type: "function", function: { name: t.name, description: t.description ?? "", parameters: t.parameters ?? { type: "object" } } }),
  payload: (model, messages, tools) => ({
    model,
    stream: true,
    messages: messages.map((m): Json => {
      if (m.role === "user") return { role: "user", content: m.text };
      if (m.role === "tool") return { role: "tool", tool_call_id: m.callId, content: m.text };
      const calls = m.calls.map((c) => ({ id: c.id, type: "function", function: { name: c.name, arguments: c.arguments } }));
      return { role: "assistant", content: m.text, ...(calls.length > 0 && { tool_calls: calls }) };
    }),
    ...(tools.length > 0 && { tools }),
  }),
  parts: (event) => {
    const choice = event.choices?.[0];
    const parts: Part[] = [];
    if (choice?.delta?.content) parts.push({ text: choice.delta.content });
    for (const c of choice?.delta?.tool_calls ?? []) parts.push({ index: c.index, id: c.id, name: c.function?.name, arguments: c.function?.arguments });
    if (choice?.finish_reason) parts.push({ stop: choice.finish_reason });
    return parts;
  },
};

const anthropic: Provider = {
  shape: "anthropic-messages",
  path: "/v1/messages",
  headers: (key) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
  tool: (t) => ({ name: t.name, description: t.description ?? "", input_schema: t.parameters ?? { type: "object" } }),
  payload: (model, messages, tools) => ({
    model,
    max_tokens: 4096,
    stream: true,
    messages: messages.flatMap((m, i): Json[] => {
      if (m.role === "user") return [{ role: "user", content: m.text }];
      if (m.role === "assistant") {
        const uses = m.calls.map((c) => ({ type: "tool_use", id: c.id, name: c.name, input: object(c.arguments) }));
        return [{ role: "assistant", content: [...(m.text ? [{ type: "text", text: m.text }] : []), ...uses] }];
      }
      if (messages[i - 1]?.role === "tool") return []; // all results of a message stand in one
      const next = messages.findIndex((r, at) => at > i && r.role !== "tool");
      const results = messages.slice(i, next < 0 ? undefined : next) as (Message & { role: "tool" })[];
      return [{ role: "user", content: results.map((r) => ({ type: "tool_result", tool_use_id: r.callId, content: r.text, is_error: r.isError })) }];
    }),
    ...(tools.length > 0 && { tools }),
  }),
  parts: (event) => {
    switch (event.type) {
      case "content_block_start":
        return event.content_block.type === "tool_use" ? [{ index: event.index, id: event.content_block.id, name: event.content_block.name }] : [];
      case "content_block_delta":
        if (event.delta.type === "text_delta") return [{ text: event.delta.text }];
        return event.delta.type === "input_json_delta" ? [{ index: event.index, arguments: event.delta.partial_json }] : [];
      case "message_delta":
        return event.delta.stop_reason ? [{ stop: event.delta.stop_reason }] : [];
    }
    return [];
  },
};

export const providers = { openai, anthropic };

// What the model wrote goes to exec as it is; this is only for the transcript of a provider
// that wants an object.
function object(text: string): Json {
  try {
    return JSON.parse(text || "{}") as Json;
  } catch {
    return {};
  }
}

/** Sends a payload and gives the assistant's whole message. */
export async function complete(p: Provider, url: string, key: string, payload: Payload, signal: AbortSignal): Promise<Message & { role: "assistant" }> {
  const response = await fetch(url + p.path, {
    method: "POST",
    headers: { "content-type": "application/json", ...p.headers(key) },
    body: JSON.stringify(payload),
    signal,
  });
  if (!response.ok || !response.body) throw new Error(`the provider answered ${response.status}: ${(await response.text()).slice(0, 500)}`);
  const message: Message & { role: "assistant" } = { role: "assistant", text: "", calls: [] };
  const calls = new Map<number, ModelCall>();
  let stop = "";
  for await (const data of events(response.body)) {
    if (data === "[DONE]") break;
    const event = JSON.parse(data);
    if (event.error) throw new Error(`the provider broke off: ${JSON.stringify(event.error).slice(0, 500)}`);
    for (const part of p.parts(event)) {
      if ("text" in part) message.text += part.text;
      else if ("stop" in part) stop = part.stop;
      else {
        const call = calls.get(part.index) ?? { id: "", name: "", arguments: "" };
        calls.set(part.index, { id: part.id ?? call.id, name: part.name ?? call.name, arguments: call.arguments + (part.arguments ?? "") });
      }
    }
  }
  if (!stop) throw new Error("the provider's stream ended in the middle of a message"); // half a call must not run
  message.calls = [...calls.values()];
  return message;
}

const MAX_EVENT = 16 << 20; // characters

/** The data of server-sent events. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  let data: string[] = [];
  for await (const chunk of body) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    if (rest.length > MAX_EVENT) throw new Error(`the provider sent an event of more than ${MAX_EVENT} characters`);
    for (const ended of lines) {
      const line = ended.replace(/\r$/, "");
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      else if (line === "" && data.length > 0) {
        yield data.join("\n");
        data = [];
      }
    }
  }
}
