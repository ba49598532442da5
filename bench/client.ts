/**
 * Owns: being Docket's users: sending prompts to the gateway and waiting for each run's end on the session's stream, as a chat
 * window does. Says nothing about speed.
 */
import { request, type ClientRequest } from "node:http";
import { Agent, request as send } from "undici";

/** Reads a session's stream for as long as the session is used. */
class Listener {
  readonly #waiting = new Map<string, (outcome: string) => void>();
  /** Runs that ended before the 202 that names them was read. */
  readonly #early = new Map<string, string>();
  readonly #request: ClientRequest;
  #rest = "";

  constructor(url: string, key: string, onFailure: (error: Error) => void) {
    this.#request = request(url, { headers: { authorization: `Bearer ${key}` } }, (response) => {
      if (response.statusCode !== 200) onFailure(new Error(`the stream answered ${String(response.statusCode)}`));
      response.setEncoding("utf8");
      response.on("data", (text: string) => { this.#take(text); });
      response.on("error", () => undefined);
    });
    this.#request.on("error", (error) => { if (!this.#request.destroyed) onFailure(error); });
    this.#request.end();
  }

  outcomeOf(runId: string): Promise<string> {
    const early = this.#early.get(runId);
    if (early === undefined) return new Promise((resolve) => { this.#waiting.set(runId, resolve); });
    this.#early.delete(runId);
    return Promise.resolve(early);
  }

  close(): void { this.#request.destroy(); }

  #take(text: string): void {
    const frames = (this.#rest + text).split("\n\n");
    this.#rest = frames.pop() ?? "";
    for (const frame of frames) {
      if (!frame.includes('"RunEnded"')) continue;
      const entry = JSON.parse(/^data: (.*)$/m.exec(frame)?.[1] ?? "{}") as { events?: { type: string; runId: string; outcome: string }[] };
      for (const { type, runId, outcome } of entry.events ?? []) {
        if (type !== "RunEnded") continue;
        const waiting = this.#waiting.get(runId);
        if (waiting === undefined) this.#early.set(runId, outcome);
        waiting?.(outcome);
        this.#waiting.delete(runId);
      }
    }
  }
}

export interface Sent { readonly sessionId: string; readonly turn: string; readonly runId: string; readonly eventKey: string }

export class Users {
  readonly #agent = new Agent({ connections: 256, keepAliveTimeout: 60_000 });
  readonly #listeners: Listener[] = [];
  #next = 0;

  constructor(private readonly gateway: string, private readonly keys: readonly string[], private readonly onFailure: (error: Error) => void) {}

  /** A session with one user who looks at its stream. The session begins with its first prompt. */
  open(sessionId: string): { say: (turn: string, text: string) => Promise<{ sent: Sent; ended: Promise<string> }>; close: () => void } {
    let listener: Listener | undefined;
    return {
      say: async (turn, text) => {
        const { body, statusCode } = await send(`${this.gateway}/v1/sessions/${sessionId}/events`, {
          method: "POST", dispatcher: this.#agent, headers: { authorization: `Bearer ${this.#key()}`, "content-type": "application/json" }, body: JSON.stringify({ text, agent: "bench" }),
        });
        const reply = await body.text();
        if (statusCode !== 202) throw new Error(`the gateway answered ${String(statusCode)} ${reply}`);
        const { runId, eventKey } = JSON.parse(reply) as { runId: string; eventKey: string };
        if (listener === undefined) {
          listener = new Listener(`${this.gateway}/v1/sessions/${sessionId}/stream?wait=1`, this.#key(), this.onFailure);
          this.#listeners.push(listener);
        }
        return { sent: { sessionId, turn, runId, eventKey }, ended: listener.outcomeOf(runId) };
      },
      close: () => { listener?.close(); },
    };
  }

  async close(): Promise<void> {
    for (const listener of this.#listeners) listener.close();
    await this.#agent.destroy();
  }

  #key(): string {
    this.#next = (this.#next + 1) % this.keys.length;
    return this.keys[this.#next] ?? "";
  }
}
