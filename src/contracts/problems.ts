/**
 * Owns: the one error shape of every boundary and the list of codes (docs/errors.md is checked against it).
 * HTTP renders a Problem as an RFC 9457 problem document, the CLI as message + hint + exit code.
 */
import { z } from "zod";

/** code → HTTP status, title, whether trying the same again can help. */
export const PROBLEMS = {
  bad_request: { status: 400, title: "The request is malformed", retryable: false },
  validation_failed: { status: 422, title: "The payload does not fit its schema", retryable: false },
  idempotency_key_reused: { status: 422, title: "The idempotency key was used for another request", retryable: false },
  not_json: { status: 400, title: "The body is not JSON", retryable: false },
  not_a_cloudevent: { status: 400, title: "The body is not a CloudEvent 1.0", retryable: false },
  unknown_type: { status: 422, title: "This version of Docket does not know the event's type", retryable: false },
  reserved_type: { status: 403, title: "This event type is reserved for Docket itself", retryable: false },
  unauthenticated: { status: 401, title: "No valid credentials", retryable: false },
  forbidden: { status: 403, title: "Not allowed for this principal", retryable: false },
  sign_in_unavailable: { status: 503, title: "The identity provider does not answer", retryable: true },
  sign_in_refused: { status: 401, title: "The identity provider's answer is not usable", retryable: false },
  sign_in_replayed: { status: 401, title: "The sign-in was used, took too long, or began elsewhere", retryable: false },
  clock_skew: { status: 401, title: "The clocks of console and identity provider differ", retryable: false },
  no_role: { status: 403, title: "Signed in, but without any role here", retryable: false },
  bad_signature: { status: 401, title: "The signature does not verify", retryable: false },
  stale_timestamp: { status: 401, title: "The signed timestamp is outside the replay window", retryable: false },
  callback_replayed: { status: 409, title: "The callback was taken before", retryable: false },
  link_expired: { status: 410, title: "The link's time has passed", retryable: false },
  link_used: { status: 409, title: "The link was used before", retryable: false },
  not_found: { status: 404, title: "There is nothing here", retryable: false },
  session_not_found: { status: 404, title: "No such session", retryable: false },
  approval_not_found: { status: 404, title: "No such approval", retryable: false },
  dead_letter_not_found: { status: 404, title: "No such dead letter", retryable: false },
  agent_unknown: { status: 422, title: "No agent takes this event", retryable: false },
  agent_mismatch: { status: 409, title: "The session belongs to another agent", retryable: false },
  session_id_missing: { status: 422, title: "The event names no session", retryable: false },
  payload_too_large: { status: 413, title: "The payload is too large", retryable: false },
  rate_limited: { status: 429, title: "Too many requests", retryable: true },
  mailbox_full: { status: 429, title: "The session's mailbox is full", retryable: true },
  session_busy: { status: 409, title: "The session is busy and the event asked not to wait", retryable: true },
  session_closed: { status: 409, title: "The session is closed", retryable: false },
  session_quarantined: { status: 409, title: "The session is quarantined", retryable: false },
  session_too_large: { status: 507, title: "The session's state is full", retryable: false },
  too_old: { status: 422, title: "The event is older than the ledger's horizon", retryable: false },
  expired: { status: 410, title: "The event's expiry time has passed", retryable: false },
  duplicate: { status: 200, title: "The event was accepted before", retryable: false },
  already_decided: { status: 409, title: "The approval has been decided", retryable: false },
  approval_expired: { status: 410, title: "The approval has expired", retryable: false },
  approval_withdrawn: { status: 409, title: "The approval was withdrawn", retryable: false },
  digest_mismatch: { status: 409, title: "The decision is for other arguments", retryable: false },
  version_mismatch: { status: 409, title: "The approval has changed since it was shown", retryable: false },
  already_redriven: { status: 409, title: "That redrive was made already, with another payload", retryable: false },
  decision_not_allowed: { status: 403, title: "This approval does not allow that decision", retryable: false },
  not_an_approver: { status: 403, title: "This principal may not decide this approval", retryable: false },
  own_request: { status: 403, title: "The requester may not decide", retryable: false },
  arguments_invalid: { status: 422, title: "The arguments do not fit the tool's schema", retryable: false },
  denied_by_policy: { status: 403, title: "Policy denies this call", retryable: false },
  not_known_yet: { status: 202, title: "Accepted; the verdict is not known yet", retryable: true },
  newer_version: { status: 503, title: "A newer version of Docket wrote this", retryable: true },
  store_unavailable: { status: 503, title: "The store does not answer", retryable: true },
  sidecar_unavailable: { status: 503, title: "The Dapr sidecar does not answer", retryable: true },
  actor_unavailable: { status: 503, title: "The session's actor does not answer", retryable: true },
  broker_unavailable: { status: 503, title: "The broker did not take the message", retryable: true },
  config_invalid: { status: 500, title: "The configuration is not usable", retryable: false },
  internal: { status: 500, title: "Docket failed", retryable: true },
} as const;

export type ProblemCode = keyof typeof PROBLEMS;

/** RFC 9457 problem document with Docket's own members. */
export const ProblemDocument = z.object({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  detail: z.string(),
  code: z.string(),
  retryable: z.boolean(),
  hint: z.string().optional(),
  instance: z.string().optional(),
  errors: z.array(z.object({ path: z.string(), message: z.string() })).optional(),
});
export type ProblemDocument = z.infer<typeof ProblemDocument>;

/** An expected failure. `message` says what failed, the value, where, what was expected; `hint` what to do next. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly hint: string | undefined;
  readonly errors: { path: string; message: string }[] | undefined;

  constructor(code: ProblemCode, detail: string, options: { hint?: string; errors?: { path: string; message: string }[]; cause?: unknown } = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "Problem";
    this.code = code;
    this.hint = options.hint;
    this.errors = options.errors;
  }

  get status(): number { return PROBLEMS[this.code].status; }
  get retryable(): boolean { return PROBLEMS[this.code].retryable; }

  /** The document to send; nothing in it is private. */
  toDocument(instance?: string): ProblemDocument {
    return {
      type: `urn:docket:problem:${this.code}`,
      title: PROBLEMS[this.code].title,
      status: this.status,
      detail: this.message,
      code: this.code,
      retryable: this.retryable,
      ...(this.hint === undefined ? {} : { hint: this.hint }),
      ...(instance === undefined ? {} : { instance }),
      ...(this.errors === undefined ? {} : { errors: this.errors }),
    };
  }
}

/** Turns zod issues into the `errors` member. */
export function zodErrors(error: z.ZodError): { path: string; message: string }[] {
  return error.issues.map((issue) => ({ path: issue.path.map(String).join("."), message: issue.message }));
}
