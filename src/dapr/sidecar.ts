/**
 * Owns: the sidecar's HTTP API, as far as Docket uses it: publish, state, actors, reminders. Throws Problem with a
 * retryable code when the sidecar, store or broker fails; never returns an error as a value (trap 20).
 * Does not own: what is stored or sent.
 */
import { Agent, request } from "undici";
import { Problem } from "../contracts/problems.js";
import type { ProblemCode } from "../contracts/problems.js";

export interface SidecarOptions {
  /** daprd's HTTP API. */
  readonly baseUrl: string;
  readonly apiToken?: string | undefined;
  readonly timeoutMs?: number;
}

export interface SidecarReply { readonly status: number; readonly text: string; readonly etag: string | undefined }

/** A connection pool to one sidecar. Close it at shutdown. */
export class Sidecar {
  readonly #agent: Agent;
  readonly #headers: Record<string, string>;

  constructor(private readonly options: SidecarOptions) {
    this.#agent = new Agent({ keepAliveTimeout: 30_000, connections: 128, pipelining: 1 });
    this.#headers = options.apiToken === undefined ? {} : { "dapr-api-token": options.apiToken };
  }

  /** One request. `unavailable` is the problem code for no answer at all. */
  async call(method: "GET" | "POST" | "PUT" | "DELETE", path: string, options: {
    body?: string; contentType?: string; headers?: Record<string, string>; unavailable?: ProblemCode; timeoutMs?: number;
  } = {}): Promise<SidecarReply> {
    const timeoutMs = options.timeoutMs ?? this.options.timeoutMs ?? 30_000;
    try {
      const reply = await request(`${this.options.baseUrl}${path}`, {
        method, dispatcher: this.#agent, headersTimeout: timeoutMs, bodyTimeout: timeoutMs,
        headers: { ...this.#headers, ...(options.body === undefined ? {} : { "content-type": options.contentType ?? "application/json" }), ...options.headers },
        ...(options.body === undefined ? {} : { body: options.body }),
      });
      const etag = reply.headers.etag;
      return { status: reply.statusCode, text: await reply.body.text(), etag: typeof etag === "string" ? etag : undefined };
    } catch (error) {
      throw new Problem(options.unavailable ?? "sidecar_unavailable", `${method} ${path} on the sidecar at ${this.options.baseUrl} got no answer: ${error instanceof Error ? error.message : String(error)}`,
        { cause: error, hint: "check that daprd runs (docket doctor)" });
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** Text of an unexpected answer, short enough for a log line. */
export function describeReply(reply: SidecarReply): string {
  return `HTTP ${String(reply.status)} ${reply.text.slice(0, 400)}`;
}
