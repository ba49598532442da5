/**
 * Owns: one HTTP call's connection: abort, and giving up on a server that went silent. It watches bytes, so that the
 * pings which the SDKs swallow count as life.
 */

/** Longest silence of a server before its call counts as lost. */
export const IDLE_TIMEOUT_MS = 120_000;

export interface Wire {
  readonly fetch: typeof globalThis.fetch;
  /** Fires when the caller aborts, and when the server went silent. */
  readonly signal: AbortSignal;
  /** How long nothing had come, where that is why the call ended. */
  stalledMs(): number | undefined;
  close(): void;
}

/** Opens the watch over one call. Close it when the call is over, whatever came of it. */
export function openWire(signal: AbortSignal, idleTimeoutMs: number): Wire {
  const silence = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const alive = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => silence.abort(), idleTimeoutMs);
  };
  alive();
  return {
    signal: AbortSignal.any([signal, silence.signal]),
    stalledMs: () => (silence.signal.aborted ? idleTimeoutMs : undefined),
    close: () => clearTimeout(timer),
    async fetch(input, init) {
      const response = await globalThis.fetch(input, init);
      alive();
      if (response.body === null) return response;
      const watched = new TransformStream<Uint8Array, Uint8Array>({ transform: (chunk, out) => { alive(); out.enqueue(chunk); } });
      return new Response(response.body.pipeThrough(watched), { status: response.status, statusText: response.statusText, headers: response.headers });
    },
  };
}
