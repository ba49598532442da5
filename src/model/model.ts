/**
 * Owns: the seam to language models. A provider turns a ModelRequest into streamed deltas and one ModelAnswer. It
 * retries nothing and estimates nothing: usage is what the provider reports, failures are typed for the session.
 */
import type { Usage } from "../contracts/journal.js";
import type { ModelMessage } from "../contracts/transcript.js";

export interface ModelTool { readonly name: string; readonly description: string; readonly inputSchema: Record<string, unknown> }

export type { ModelMessage } from "../contracts/transcript.js";

export interface ModelRequest {
  /** Model name without the provider prefix. */
  readonly model: string;
  readonly instructions: string;
  readonly tools: readonly ModelTool[];
  readonly messages: readonly ModelMessage[];
  readonly maxOutputTokens: number;
  readonly signal: AbortSignal;
  readonly onDelta?: (text: string) => void;
  /** For logs, and for scripted models. */
  readonly context: { readonly sessionId: string; readonly runId: string; readonly step: number; readonly attempt: number };
}

export interface ModelAnswer {
  readonly model: string;
  readonly text: string;
  /** `args` is the JSON text as the model wrote it (digits kept; may be invalid JSON). */
  readonly calls: readonly { readonly id: string; readonly name: string; readonly args: string }[];
  readonly stop: "end" | "tool_use" | "max_tokens" | "refusal";
  readonly usage: Usage;
  /** USD; null where the model has no price. */
  readonly costUsd: number | null;
  /**
   * The provider's own state of this answer (thinking blocks with their signatures), as JSON text. Nobody else reads it:
   * keep it and hand it back on the assistant message, or drop it whole; never change it.
   */
  readonly carry?: string;
}

/** Why a call failed. `not_sent`: nothing was sent, since our own rate limit had no room or the way to it was down: no failure of the model. `transient`: 429, 529, 5xx, network (may carry retryAfterMs). `permanent`: 4xx, bad key, unknown model. */
export class ModelError extends Error {
  readonly kind: "transient" | "permanent" | "aborted" | "not_sent";
  readonly retryAfterMs: number | undefined;
  readonly partialText: string;
  /** What was used up to the failure, where the provider had said. */
  readonly usage: Usage | undefined;
  /** There was no room: the provider said 429 or 529, or our own limit is used up. */
  readonly limited: boolean;
  constructor(kind: "transient" | "permanent" | "aborted" | "not_sent", message: string, options: { retryAfterMs?: number; partialText?: string; usage?: Usage; limited?: boolean; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ModelError";
    this.kind = kind;
    this.retryAfterMs = options.retryAfterMs;
    this.partialText = options.partialText ?? "";
    this.usage = options.usage;
    this.limited = options.limited === true;
  }
}

/** A language model provider. Throws ModelError, nothing else. */
export interface Model {
  readonly provider: string;
  answer(request: ModelRequest): Promise<ModelAnswer>;
  /** Upper bound in USD of one call, for the budget reservation (I11). 0 where the model has no price. */
  reserveUsd(request: Pick<ModelRequest, "model" | "messages" | "maxOutputTokens" | "instructions"> & Partial<Pick<ModelRequest, "tools">>): number;
}
