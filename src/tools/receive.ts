/**
 * Owns: from the bytes of a delivery to a request that is worth looking at, and whether its grant permits it.
 * What is malformed becomes a dead letter with its reason (I14), what is not granted a refusal (I4, I5).
 */
import { CHANNELS } from "../contracts/channels.js";
import { EnvelopeAttributes, parseEnvelope, type Envelope } from "../contracts/cloudevent.js";
import { actorIdOf, argsDigest, sha256Hex } from "../contracts/ids.js";
import type { DeadLetter } from "../contracts/messages.js";
import { Problem, type ProblemCode } from "../contracts/problems.js";
import { GrantClaims, TOOL_REQUESTED, ToolRequest } from "../contracts/tools.js";
import type { GrantVerifier } from "./ports.js";

/** Clocks of two hosts may differ by this much (the same allowance as in signatures). */
const CLOCK_SKEW_MS = 30_000;
const CALL_ID = /^[A-Za-z0-9_-]{1,100}$/;

export type Received =
  | { readonly ok: true; readonly request: ToolRequest; readonly envelope: Envelope }
  | { readonly ok: false; readonly letter: DeadLetter };

/** Reads a tool request out of a raw CloudEvent. */
export function readRequest(text: string, nowMs: number): Received {
  let envelope: Envelope;
  try {
    envelope = parseEnvelope(text);
  } catch (error) {
    const code = error instanceof Problem ? error.code : "not_json";
    return { ok: false, letter: deadLetter(text, nowMs, { kind: "unreadable", reason: code, message: messageOf(error) }) };
  }
  const { data, ...attributes } = envelope;
  const malformed = (message: string, reason: ProblemCode = "validation_failed"): Received => ({
    ok: false, letter: { ...deadLetter(text, nowMs, { kind: "tool_request", reason, message }), envelope: attributes },
  });
  if (envelope.type !== TOOL_REQUESTED) return malformed(`the event is a ${envelope.type}, expected ${TOOL_REQUESTED}`, "unknown_type");
  const parsed = ToolRequest.safeParse(JSON.parse(data));
  if (!parsed.success) return malformed(`the request does not fit: ${parsed.error.issues.map((issue) => `${issue.path.map(String).join(".") || "(whole)"}: ${issue.message}`).join("; ")}`);
  if (!CALL_ID.test(parsed.data.callId)) return malformed(`callId ${JSON.stringify(parsed.data.callId.slice(0, 100))} is not usable as a key, expected letters, digits, _ and -`);
  return { ok: true, request: parsed.data, envelope };
}

export interface Refusal { readonly code: string; readonly message: string }

/**
 * Why this request must not run; undefined where the grant is for exactly this call: this session, call, tool and
 * argument text (I4, I5). Also gives the time after which the grant is worthless. Throws only a retryable Problem.
 */
export async function judgeGrant(request: ToolRequest, verifier: GrantVerifier, nowMs: number): Promise<{ refusal?: Refusal; expiresAtMs: number }> {
  let claims: GrantClaims;
  try {
    claims = GrantClaims.parse(await verifier.verify(request.grant));
  } catch (error) {
    // A verifier that cannot get at its keys proves nothing about the grant: the way failed, not the request.
    if (error instanceof Problem && error.retryable) throw error;
    return { refusal: { code: "bad_signature", message: `the grant does not verify: ${messageOf(error)}` }, expiresAtMs: nowMs };
  }
  const refusal = mismatch(request, claims, nowMs);
  return { ...(refusal === undefined ? {} : { refusal }), expiresAtMs: claims.exp * 1000 + CLOCK_SKEW_MS };
}

function mismatch(request: ToolRequest, claims: GrantClaims, nowMs: number): Refusal | undefined {
  const differs = (what: string, granted: string, asked: string): Refusal => ({ code: "forbidden", message: `the grant is for ${what} ${granted}, the request for ${asked}` });
  const digest = argsDigest(request.args);
  if (claims.sub !== request.actorId) return differs("session", claims.sub, request.actorId);
  const actorId = actorIdOf(request.tenant, request.sessionId);
  if (actorId !== request.actorId) return differs("session", claims.sub, `${request.tenant}/${request.sessionId} (${actorId})`);
  if (claims.jti !== request.callId) return differs("call", claims.jti, request.callId);
  if (claims.tool !== request.tool) return differs("tool", claims.tool, request.tool);
  if (digest !== request.argsDigest) return { code: "digest_mismatch", message: `the arguments have digest ${digest}, the request says ${request.argsDigest}` };
  if (claims.digest !== digest) return { code: "digest_mismatch", message: `the grant is for arguments ${claims.digest}, the request carries ${digest}` };
  if (claims.exp * 1000 + CLOCK_SKEW_MS <= nowMs) return { code: "expired", message: `the grant expired at ${new Date(claims.exp * 1000).toISOString()}` };
  return undefined;
}

/** A dead letter of a request that was readable: one, however often the session repeats it. */
export function requestLetter(text: string, received: { readonly request: ToolRequest; readonly envelope: Envelope }, refusal: Refusal, nowMs: number): DeadLetter {
  const envelope = EnvelopeAttributes.parse(received.envelope);
  const { tenant, sessionId, actorId, runId, callId, tool } = received.request;
  return {
    ...deadLetter(text, nowMs, { kind: "tool_request", reason: refusal.code, message: refusal.message }),
    deadLetterId: letterId(`${refusal.code}\n${JSON.stringify({ ...received.request, publication: 0 })}`), tries: received.request.try, tenant, sessionId, actorId, runId, callId, tool, envelope,
  };
}

function deadLetter(text: string, nowMs: number, what: { kind: DeadLetter["kind"]; reason: string; message: string }): DeadLetter {
  return {
    deadLetterId: letterId(`${what.reason}\n${text}`), ...what, topic: CHANNELS.toolRequests.topic, app: "tools", tries: 1,
    payload: text, payloadEncoding: "utf8", firstFailedAtMs: nowMs, lastFailedAtMs: nowMs,
  };
}

function letterId(content: string): string { return `dl_${sha256Hex(`${CHANNELS.toolRequests.topic}\n${content}`).slice(0, 32)}`; }

function messageOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).slice(0, 2000);
}
