/**
 * Owns: the model behind HTTP that `npm run chaos` talks to (OpenAI's chat completions): it does what the user's text says, keeps a
 * log of every request, and can be taken away, be slow, or answer garbage.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { openAiReply } from "../contract/model/openai-wire.js";
import { argsOf, type Orders } from "./stories.js";

export const MODEL_FAULTS = ["away", "slow", "garbage"] as const;
export type ModelFault = (typeof MODEL_FAULTS)[number];

/** One request: whose, and which step of the run it was for. */
export interface ModelCall { readonly token: string; readonly step: number; readonly atMs: number }

interface WireMessage { readonly role: string; readonly content: string | null; readonly tool_calls?: readonly unknown[] }

const SLOW_MS = 6_000;
const PAGE = "<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>";

export class ChaosModel {
  readonly calls: ModelCall[] = [];
  /** Requests that met the fault since it was set. */
  hits = 0;
  #fault: ModelFault | undefined;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((req, res) => { this.#serve(req, res).catch(() => { res.destroy(); }); });
  }

  static async start(): Promise<ChaosModel> {
    const model = new ChaosModel();
    await new Promise<void>((resolve) => model.#server.listen(0, "127.0.0.1", resolve));
    return model;
  }

  get baseUrl(): string { return `http://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}/v1`; }

  set(fault: ModelFault | undefined): void {
    this.#fault = fault;
    this.hits = 0;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => { this.#server.close(resolve); });
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    let body = "";
    for await (const piece of req) body += String(piece);
    const { orders, step } = ordersIn((JSON.parse(body) as { messages: WireMessage[] }).messages);
    this.calls.push({ token: orders.token, step, atMs: Date.now() });
    const fault = this.#fault;
    if (fault !== undefined) this.hits += 1;
    if (fault === "away") { res.destroy(); return; }
    if (fault === "garbage") { this.#garble(res); return; }
    await pause((fault === "slow" ? SLOW_MS : 0) + (step === 1 ? orders.thinkMs : 0));
    const calls = (orders.rounds[step - 1] ?? []).map((call) => ({ name: call.tool, args: argsOf(orders.token, call) }));
    const reply = openAiReply({ kind: "answer", text: calls.length > 0 ? "I do it." : `done ${orders.token}`, calls }, "mixed");
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.end(reply.body);
  }

  /** By turns: a proxy's page as a success, an error, a stream that breaks off, one that is not JSON. */
  #garble(res: ServerResponse): void {
    switch (this.hits % 4) {
      case 0: res.writeHead(200, { "content-type": "text/html" }); res.end(PAGE); return;
      case 1: res.writeHead(529, { "content-type": "application/json" }); res.end('{"error":{"message":"overloaded","type":"overloaded_error"}}'); return;
      case 2: res.writeHead(200, { "content-type": "text/event-stream" }); res.end('data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"half an ans"},"finish_reason":null}]}\n\n'); return;
      default: res.writeHead(200, { "content-type": "text/event-stream" }); res.end("data: {this is not json\n\n");
    }
  }
}

/** The latest orders, and the step: 1, and one more for each answer with calls since then. What follows a run without an answer comes in one message with it. */
function ordersIn(messages: readonly WireMessage[]): { orders: Orders; step: number } {
  const at = messages.findLastIndex((message) => message.role === "user");
  const line = (messages[at]?.content ?? "").split("\n").findLast((text) => text.startsWith("{\"token\":"));
  if (line === undefined) throw new Error(`no orders in ${JSON.stringify(messages[at])}`);
  return { orders: JSON.parse(line) as Orders, step: 1 + messages.slice(at).filter((message) => (message.tool_calls?.length ?? 0) > 0).length };
}
