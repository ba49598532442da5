/**
 * Owns: being Docket's users: sending prompts to the gateway and waiting for each run's end on the session's stream, as a chat
 * window does. Says nothing about speed.
 */
import { request, type ClientRequest } from "node:http";
import { Agent, request as send } from "undici";

/** A turn that takes longer is given up and counts as a failure: a bench that waits for a lost answer for ever would report nothing. */
const GIVE_UP_MS = 120_000;
const WITHOUT = "without a stream";
const RECONNECT_MS = 250;
/** The session is not there yet, or the gateway is not: whoever has a window open waits. */
const COMES_YET: readonly number[] = [404, 503];

/** Reads a session's stream for as long as the session is used, and connects again where it ended, as a browser does. */
class Listener {
  readonly #waiting = new Map<string, (outcome: string) => void>();
  /** Runs that ended before the 202 that names them was read. */
  readonly #early = new Map<string, string>();
  #request: ClientRequest | undefined;
  #reconnect: NodeJS.Timeout | undefined;
  #closed = false;
  #lastId: string | undefined;
  #rest = "";

  constructor(private readonly url: string, private readonly key: string, private readonly onFailure: (error: Error) => void) { this.#connect(); }

  outcomeOf(runId: string): Promise<string> {
    const early = this.#early.get(runId);
    this.#early.delete(runId);
    if (early !== undefined) return Promise.resolve(early);
    if (this.#closed) return Promise.resolve(WITHOUT);
    return new Promise((resolve) => {
      const giveUp = setTimeout(() => { this.#waiting.delete(runId); resolve(`not within ${String(GIVE_UP_MS / 1000)} s`); }, GIVE_UP_MS);
      this.#waiting.set(runId, (outcome) => { clearTimeout(giveUp); resolve(outcome); });
    });
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#reconnect);
    this.#request?.destroy();
  }

  #connect(): void {
    const resume = this.#lastId === undefined ? {} : { "last-event-id": this.#lastId };
    this.#rest = "";
    this.#request = request(this.url, { headers: { authorization: `Bearer ${this.key}`, ...resume } }, (response) => {
      const { statusCode = 0 } = response;
      if (statusCode !== 200 && !COMES_YET.includes(statusCode)) this.#fail(new Error(`the stream answered ${String(statusCode)}`));
      response.setEncoding("utf8");
      response.on("data", (text: string) => { if (statusCode === 200) this.#take(text); });
      response.on("error", () => undefined);
    });
    this.#request.on("error", () => undefined);
    // Comes after every end, good or bad.
    this.#request.on("close", () => { if (!this.#closed) this.#reconnect = setTimeout(() => { this.#connect(); }, RECONNECT_MS); });
    this.#request.end();
  }

  /** Connecting again would not help. */
  #fail(error: Error): void {
    this.close();
    this.onFailure(error);
    for (const settle of this.#waiting.values()) settle(WITHOUT);
    this.#waiting.clear();
  }

  #take(text: string): void {
    const frames = (this.#rest + text).split("\n\n");
    this.#rest = frames.pop() ?? "";
    for (const frame of frames) {
      this.#lastId = /^id: (.*)$/m.exec(frame)?.[1] ?? this.#lastId;
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
