/** Owns: an SSE client for tests that remembers its place and reconnects, as a browser does. */
import { createParser } from "eventsource-parser";

export interface StreamEvent { readonly id: string | undefined; readonly event: string; readonly data: unknown }

export class StreamClient {
  readonly events: StreamEvent[] = [];
  #lastId: string | undefined;
  #closed = false;
  #pauseMs = 100;
  #abort = new AbortController();
  connections = 0;

  constructor(private readonly url: string, private readonly apiKey: string) {}

  /** Connects, and again whenever the connection ends, until `close`. */
  start(): void { void this.#loop(); }

  close(): void {
    this.#closed = true;
    this.#abort.abort();
  }

  /** Revisions in the order they came. */
  revs(): number[] { return this.events.filter((event) => event.event === "journal").map((event) => Number(event.id)); }

  async #loop(): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#connect();
      } catch {
        // The server is away; a browser would try again.
      }
      await new Promise((next) => setTimeout(next, this.#pauseMs));
    }
  }

  async #connect(): Promise<void> {
    this.#abort = new AbortController();
    const headers = { authorization: `Bearer ${this.apiKey}`, ...(this.#lastId === undefined ? {} : { "last-event-id": this.#lastId }) };
    const reply = await fetch(this.url, { headers, signal: this.#abort.signal });
    // As a browser would not: a client that is told to slow down and does not keeps itself out for good.
    this.#pauseMs = reply.status === 429 ? Number(reply.headers.get("retry-after") ?? 5) * 1000 : 100;
    if (reply.status !== 200 || reply.body === null) throw new Error(`stream answered ${String(reply.status)}`);
    this.connections += 1;
    const parser = createParser({
      onEvent: (event) => {
        if (event.id !== undefined) this.#lastId = event.id;
        this.events.push({ id: event.id, event: event.event ?? "message", data: JSON.parse(event.data) });
      },
    });
    const decoder = new TextDecoder();
    for await (const chunk of reply.body as unknown as AsyncIterable<Uint8Array>) parser.feed(decoder.decode(chunk, { stream: true }));
  }
}
