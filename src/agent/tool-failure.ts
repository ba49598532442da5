/**
 * Owns: how a tool says what went wrong. The kind decides what happens next: `transient` is tried again, `permanent`
 * and `business` are not; `not_started` is proof that nothing happened; `outcome_unknown` admits that something may have (I6).
 * Throwing one of the first four is the tool's word that the effect did not happen. Anything else that a tool
 * throws proves nothing: with `effects: once` the outcome is then unknown.
 */
const BRAND = Symbol.for("docket.tool-failure");

export type ToolFailureReason = "transient" | "permanent" | "business" | "not_started" | "outcome_unknown";

export class ToolFailure extends Error {
  readonly [BRAND] = true;

  private constructor(readonly reason: ToolFailureReason, message: string, readonly retryAfterMs: number | undefined, cause: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "ToolFailure";
  }

  /** It failed, nothing happened, trying again may help (503, a lock, a rate limit). */
  static transient(message: string, options: { retryAfterMs?: number; cause?: unknown } = {}): ToolFailure {
    return new ToolFailure("transient", message, options.retryAfterMs, options.cause);
  }

  /** It failed, nothing happened, the same call will fail again (404, bad credentials). */
  static permanent(message: string, options: { cause?: unknown } = {}): ToolFailure {
    return new ToolFailure("permanent", message, undefined, options.cause);
  }

  /** A rule of the business says no; the model should be told and choose otherwise. */
  static business(message: string): ToolFailure {
    return new ToolFailure("business", message, undefined, undefined);
  }

  /** The work had not begun: proof for a tool with `effects: once` that it may run again. */
  static notStarted(message: string, options: { cause?: unknown } = {}): ToolFailure {
    return new ToolFailure("not_started", message, undefined, options.cause);
  }

  /** It may have happened and may not: a person decides. */
  static unknown(message: string, options: { cause?: unknown } = {}): ToolFailure {
    return new ToolFailure("outcome_unknown", message, undefined, options.cause);
  }

  /** Also recognises failures made by another copy of this module. */
  static is(error: unknown): error is ToolFailure {
    return error instanceof Error && BRAND in error;
  }
}
