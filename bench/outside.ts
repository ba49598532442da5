/**
 * Owns: what lies outside Docket in the benchmark, on one loopback server: a model that speaks OpenAI's chat completions and
 * the book in which tools record their effects. Both count per turn, so that the checks afterwards can tell lost from doubled.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A turn is named in the event's text; model and tool hand the name on. */
export function textOf(turn: string, tool: "record_effect" | "record_decided_effect" = "record_effect"): string {
  return `${tool} for <${turn}>`;
}

export interface Outside {
  readonly url: string;
  /** Milliseconds before the model answers; may be changed while it runs. */
  delayMs: number;
  /** Times at which the model was asked, by turn. */
  readonly modelCallsMs: ReadonlyMap<string, readonly number[]>;
  /** Effects by turn: the idempotency keys that came, and when the first did. */
  readonly effects: ReadonlyMap<string, { readonly keys: readonly string[]; readonly atMs: number }>;
  /** Resolves at the turn's first effect. */
  effectOf(turn: string): Promise<number>;
  close(): Promise<void>;
}

export async function startOutside(): Promise<Outside> {
  const modelCallsMs = new Map<string, number[]>();
  const effects = new Map<string, { keys: string[]; atMs: number }>();
  const waiting = new Map<string, (atMs: number) => void>();
  const outside = { delayMs: 0 };

  const answer = (body: string, response: ServerResponse): void => {
    const asked = /^(record_\w+) for <([^>]+)>/.exec(lastUserText(body));
    const [, tool = "record_effect", turn = ""] = asked ?? [];
    const calls = modelCallsMs.get(turn);
    if (calls === undefined) modelCallsMs.set(turn, [performance.now()]);
    else calls.push(performance.now());
    const reply = body.lastIndexOf('"role":"tool"') > body.lastIndexOf('"role":"user"') ? said(`The effect of ${turn} is recorded.`) : called(tool, turn);
    const send = (): void => { response.writeHead(200, { "content-type": "text/event-stream" }).end(reply); };
    if (outside.delayMs === 0) send();
    else setTimeout(send, outside.delayMs);
  };
  const record = (body: string, response: ServerResponse): void => {
    const [key = "", turn = ""] = body.split(" ");
    const known = effects.get(turn);
    if (known === undefined) {
      const atMs = performance.now();
      effects.set(turn, { keys: [key], atMs });
      waiting.get(turn)?.(atMs);
      waiting.delete(turn);
    } else {
      known.keys.push(key);
    }
    response.writeHead(200).end("{}");
  };
  const server = createServer((request, response) => {
    read(request, (body) => { (request.url === "/effects" ? record : answer)(body, response); });
  });
  server.keepAliveTimeout = 120_000;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return Object.assign(outside, {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    modelCallsMs, effects,
    effectOf: (turn: string) => new Promise<number>((resolve) => {
      const known = effects.get(turn);
      if (known === undefined) waiting.set(turn, resolve);
      else resolve(known.atMs);
    }),
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => { server.close(resolve); });
    },
  });
}

function read(request: IncomingMessage, done: (body: string) => void): void {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => { chunks.push(chunk); });
  request.on("end", () => { done(Buffer.concat(chunks).toString("utf8")); });
}

/** The last user message, without parsing a whole conversation for it. */
function lastUserText(body: string): string {
  const at = body.lastIndexOf('"role":"user"');
  return /"content":"([^"]*)"/.exec(body.slice(at))?.[1] ?? "";
}

function called(tool: string, turn: string): string {
  const call = { index: 0, id: `call_${turn}`, type: "function", function: { name: tool, arguments: JSON.stringify({ turn }) } };
  return stream([{ delta: { role: "assistant", content: null, tool_calls: [call] }, finish_reason: null }, { delta: {}, finish_reason: "tool_calls" }]);
}

function said(text: string): string {
  return stream([{ delta: { role: "assistant", content: text }, finish_reason: null }, { delta: {}, finish_reason: "stop" }]);
}

function stream(choices: readonly object[]): string {
  const chunk = (choice: object | undefined, more: object = {}): string =>
    `data: ${JSON.stringify({ id: "chatcmpl-bench", object: "chat.completion.chunk", created: 1, model: "bench", choices: choice === undefined ? [] : [{ index: 0, ...choice }], ...more })}\n\n`;
  const usage = { usage: { prompt_tokens: 80, completion_tokens: 20, total_tokens: 100 } };
  return `${choices.map((choice) => chunk(choice)).join("")}${chunk(undefined, usage)}data: [DONE]\n\n`;
}
