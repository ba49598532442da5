/**
 * Owns: every identifier and how it is derived. Pure: the same input gives the same id in every app, so that the
 * gateway can name a run before the session has seen its event.
 */
import { createHash } from "node:crypto";
import { z } from "zod";

/** What a person may use as a session id: 1 to 200 visible characters, no control characters (I14). */
export const SessionId = z.string().min(1).max(200).regex(/^[^\p{C}\p{Zl}\p{Zp}]+$/u, "control characters are not allowed")
  .refine((id) => id !== "." && id !== "..", "`.` and `..` cannot be part of an address");
export const Tenant = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "expected lower-case letters, digits and dashes, 63 at most");
export const DEFAULT_TENANT = "default";

/** Lower-case hex SHA-256 of UTF-8 text. */
export function sha256Hex(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/** Digest of canonical argument text as written in requests, decisions and grants (I5). */
export function argsDigest(canonicalText: string): string {
  return `sha256:${sha256Hex(canonicalText)}`;
}

/**
 * Actor id of a session: `[A-Za-z0-9_-]{1,64}` (trap 25). Readable where both parts are already safe, else hashed.
 * The two forms cannot collide: a hashed id starts with `h-`, and a readable one never does.
 */
export function actorIdOf(tenant: string, sessionId: string): string {
  const readable = `${tenant}_${sessionId}`;
  const safe = /^[A-Za-z0-9-]+$/.test(sessionId) && readable.length <= 64 && !readable.startsWith("h-");
  return safe ? readable : `h-${sha256Hex(`${tenant}\n${sessionId}`).slice(0, 48)}`;
}

/** Ledger key of an event: the hash of source and id (CloudEvents: together they identify an event). */
export function eventKeyOf(source: string, id: string): string {
  return sha256Hex(`${source}\n${id}`).slice(0, 32);
}

/** Id of the event that the n-th redrive of a letter makes of the dead one. */
export function redrivenIdOf(eventId: string, redrive: number): string { return `${eventId}#redrive-${String(redrive)}`; }

/** The run that an accepted input event starts. */
export function runIdOf(actorId: string, eventKey: string): string {
  return `run_${sha256Hex(`${actorId}\n${eventKey}`).slice(0, 24)}`;
}

/** A tool call: the n-th call of the answer that a run got at a step. */
export function callIdOf(runId: string, step: number, index: number): string {
  return `call_${sha256Hex(`${runId}\n${String(step)}\n${String(index)}`).slice(0, 24)}`;
}

/** What a decision allows for the session. */
export function allowanceIdOf(decisionId: string): string { return `alw_${sha256Hex(decisionId).slice(0, 24)}`; }

/** The approval of one tool call, or of one escalation of a run. Every re-opening has its own number. */
export function approvalIdOf(subjectId: string, opening: number): string {
  return `apr_${sha256Hex(`${subjectId}\n${String(opening)}`).slice(0, 24)}`;
}
