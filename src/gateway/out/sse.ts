/**
 * Owns: writing one server-sent event stream to a client that may be slow, stalled or gone. Journal events wait for the
 * client (back-pressure), deltas are left out when it lags, and a client that takes nothing for `stallMs` is cut: it
 * resumes by its last id.
 */
import type { ServerResponse } from "node:http";

export interface SseLimits { readonly heartbeatMs: number; readonly bufferBytes: number; readonly stallMs: number }

export interface SseEvent {
  readonly event: string;
  /** Becomes the client's Last-Event-ID. Digits only. */
  readonly id?: number;
  readonly data: unknown;
}

export class SseWriter {
  /** Fires once, when the client is gone or was cut. */
  readonly closed: AbortSignal;
  readonly #heartbeat: NodeJS.Timeout;

  /** Sends the head. `retryMs` is how long an EventSource waits before it reconnects. */
  constructor(private readonly res: ServerResponse, private readonly limits: SseLimits, retryMs = 2_000) {
    const gone = new AbortController();
    this.closed = gone.signal;
    this.#heartbeat = setInterval(() => { this.#comment("hb"); }, limits.heartbeatMs);
    res.once("close", () => { clearInterval(this.#heartbeat); gone.abort(); });
    // A reset by the client comes as an error before the close; it is no failure of ours.
    res.on("error", () => undefined);
    res.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache, no-store, no-transform", "x-accel-buffering": "no" });
    res.write(`retry: ${retryMs}\n\n`);
    if (res.destroyed || res.writableEnded) { clearInterval(this.#heartbeat); gone.abort(); }
  }

  /** Sends, and waits until the client has room for more. */
  async send(event: SseEvent): Promise<void> {
    if (this.closed.aborted || this.res.write(frame(event))) return;
    await this.#drained();
  }

  /** Sends if the client keeps up; else leaves it out. */
  offer(event: SseEvent): void {
    if (this.closed.aborted || this.res.writableNeedDrain || this.res.writableLength > this.limits.bufferBytes) return;
    this.res.write(frame(event));
  }

  /** Ends the stream in order. */
  end(): void {
    clearInterval(this.#heartbeat);
    if (!this.res.writableEnded) this.res.end();
  }

  #comment(text: string): void {
    if (!this.closed.aborted && !this.res.writableNeedDrain) this.res.write(`: ${text}\n\n`);
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(stalled);
        this.res.off("drain", done).off("close", done);
        resolve();
      };
      const stalled = setTimeout(() => { this.res.destroy(); }, this.limits.stallMs);
      this.res.once("drain", done).once("close", done);
    });
  }
}

/** JSON has no raw line breaks, so no data can forge a field or an event. */
function frame(event: SseEvent): string {
  return `${event.id === undefined ? "" : `id: ${event.id}\n`}event: ${event.event}\ndata: ${JSON.stringify(event.data)}\n\n`;
}
