/**
 * Owns: one HTTP request to a receiver, and what its answer means for the notice. Addresses are secrets: they are in no error, no log and no row.
 * Redirects are not followed, little of an answer is read, and a receiver's words are kept only where they are a code.
 */
export interface Outgoing { readonly method: "POST" | "PATCH"; readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly body: string }
/** `later`: a failure of the way, or a receiver that is busy. `refused`: it says no, which a person may put right. `gone`: it will never take it. */
export type Answer =
  | { readonly kind: "sent"; readonly note: string; readonly text: string }
  | { readonly kind: "later" | "refused"; readonly note: string; readonly retryAfterMs: number }
  | { readonly kind: "gone"; readonly note: string };

const ANSWER_BYTES = 64 * 1024;
const LONGEST_WAIT_MS = 3_600_000;

/** Never throws. */
export async function post(request: Outgoing, timeoutMs: number): Promise<Answer> {
  try {
    const response = await fetch(request.url, { method: request.method, headers: request.headers, body: request.body, redirect: "manual", signal: AbortSignal.timeout(timeoutMs) });
    return answerOf(response.status, response.headers.get("retry-after"), await textOf(response));
  } catch (error) {
    return { kind: "later", note: `not reached: ${reasonOf(error)}`, retryAfterMs: 0 };
  }
}

/** What a status means. Pure. */
export function answerOf(status: number, retryAfter: string | null, text: string): Answer {
  const code = /^[a-z][a-z_]{1,59}$/.test(text.trim()) ? ` ${text.trim()}` : "";
  const note = `HTTP ${String(status)}${code}`;
  if (status >= 200 && status < 300) return { kind: "sent", note: `HTTP ${String(status)}`, text };
  if (status === 410) return { kind: "gone", note };
  if (status >= 500 || status === 429 || status === 408 || status === 425) return { kind: "later", note, retryAfterMs: waitOf(retryAfter) };
  return { kind: "refused", note, retryAfterMs: 0 };
}

/** Exponential with full jitter. `attempts` so far, `random` in [0,1). */
export function backoffMs(attempts: number, random: number, { baseMs, capMs }: { readonly baseMs: number; readonly capMs: number }): number {
  return Math.floor(random * Math.min(capMs, baseMs * 2 ** Math.min(attempts - 1, 30)));
}

/** In seconds, as Slack and Discord say it. */
function waitOf(retryAfter: string | null): number {
  const seconds = Number(retryAfter ?? "0");
  return Number.isFinite(seconds) && seconds > 0 ? Math.min(seconds * 1000, LONGEST_WAIT_MS) : 0;
}

/** A code only: messages of the network have addresses in them. */
function reasonOf(error: unknown): string {
  const { name, cause } = error as { name?: unknown; cause?: { code?: unknown } };
  const { code } = cause ?? {};
  return typeof code === "string" && /^[A-Z0-9_]{2,60}$/.test(code) ? code : name === "TimeoutError" ? "no answer in time" : "the connection failed";
}

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (body === null) return "";
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > ANSWER_BYTES) break;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
