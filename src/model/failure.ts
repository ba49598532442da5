/**
 * Owns: what a failed call means to the session: may it be tried again, and when. A provider hands in what its SDK
 * threw as a plain ProviderFailure; everything else is treated as the network's doing.
 */
import type { Usage } from "../contracts/journal.js";
import { ModelError } from "./model.js";

/** What an SDK's API error says, without the SDK. `status` is missing when the failure came inside a running stream. */
export interface ProviderFailure {
  readonly status: number | undefined;
  readonly type: string | undefined;
  readonly code: string | undefined;
  readonly message: string;
  readonly headers: Headers | undefined;
}

export interface CallSoFar {
  readonly provider: string;
  readonly model: string;
  readonly signal: AbortSignal;
  /** The connection was given up because nothing came for this long. */
  readonly stalledMs: number | undefined;
  readonly partialText: string;
  readonly usage: Usage | undefined;
  /** Must not appear in a message (I13). */
  readonly apiKey: string | undefined;
}

/** Failures inside a stream carry a type, not a status. */
const PERMANENT_TYPES = new Set(["invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error", "request_too_large", "insufficient_quota", "BadRequestError"]);
/** A 429 that no waiting cures: a person has to pay or raise a limit. */
const NEEDS_A_PERSON = /insufficient_quota|spend_limit|billing/;
const TRANSIENT_STATUS = new Set([408, 409, 425, 429]);

/** Turns anything thrown by a call into the one error the session knows. */
export function modelErrorOf(thrown: unknown, failure: ProviderFailure | undefined, at: CallSoFar): ModelError {
  if (thrown instanceof ModelError) return thrown;
  const rest = { partialText: at.partialText, ...(at.usage === undefined ? {} : { usage: at.usage }), cause: thrown };
  const who = `${at.provider}:${at.model}`;
  if (at.signal.aborted) return new ModelError("aborted", `the call to ${who} was aborted`, rest);
  if (at.stalledMs !== undefined) return new ModelError("transient", `${who} sent nothing for ${at.stalledMs} ms; the connection was given up`, rest);
  if (failure === undefined) return new ModelError("transient", `the connection to ${who} failed: ${redact(messageOf(thrown), at.apiKey)}`, rest);
  const retryAfterMs = retryAfterMsOf(failure.headers, Date.now());
  const status = failure.status === undefined ? "inside the stream" : `with ${failure.status}`;
  return new ModelError(kindOf(failure), `${who} answered ${status}${failure.type === undefined ? "" : ` (${failure.type})`}: ${redact(failure.message, at.apiKey)}`,
    { ...rest, limited: isLimit(failure), ...(retryAfterMs === undefined ? {} : { retryAfterMs }) });
}

function isLimit({ status, type }: ProviderFailure): boolean { return status === 429 || status === 529 || type === "rate_limit_error" || type === "overloaded_error"; }

function kindOf(failure: ProviderFailure): "transient" | "permanent" {
  if (NEEDS_A_PERSON.test(`${failure.code ?? ""} ${failure.type ?? ""}`)) return "permanent";
  if (failure.status === undefined) return PERMANENT_TYPES.has(failure.type ?? "") ? "permanent" : "transient";
  if (TRANSIENT_STATUS.has(failure.status)) return "transient";
  return failure.status >= 500 && failure.status !== 501 ? "transient" : "permanent";
}

/** `retry-after-ms`, else `retry-after` in seconds or as an HTTP date. Undefined where neither says anything usable. */
export function retryAfterMsOf(headers: Headers | undefined, nowMs: number): number | undefined {
  const exact = Number.parseFloat(headers?.get("retry-after-ms") ?? "");
  if (Number.isFinite(exact) && exact >= 0) return Math.ceil(exact);
  const text = headers?.get("retry-after") ?? "";
  if (/^\s*\d+(\.\d+)?\s*$/.test(text)) return Math.ceil(Number.parseFloat(text) * 1000);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}

function redact(message: string, apiKey: string | undefined): string {
  const short = message.length > 2000 ? `${message.slice(0, 2000)}…` : message;
  return apiKey === undefined || apiKey === "" ? short : short.replaceAll(apiKey, "[key]");
}

function messageOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown);
  return thrown.cause instanceof Error && thrown.cause.message !== thrown.message ? `${thrown.message} (${thrown.cause.message})` : thrown.message;
}
