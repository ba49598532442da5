/**
 * Owns: what a redrive does for each kind of dead letter.
 *
 * - `event`: a SESSION_REDRIVE command on the tasks channel; the session makes a new event of it (new id and expiry, `causationid`).
 * - `unreadable`: the same, with an edited payload that is a CloudEvent. Without one there is nothing to send.
 * - `tool_request`: the event whose run made the call, as a new event. The call itself is never sent again: a grant is minted
 *   once, and its result went to the model or to a person long ago.
 * - `tool_result`, `decision`: the command carries them as they were signed, and the session judges them like any delivery. So they
 *   cannot be edited, and a decision only counts while it is valid.
 * - `journal`, `approval`: taken into the read model again, here, if they fit by now.
 *
 * The command's id is made of letter and redrive number, so repeating a redrive whose answer was lost has no second effect.
 */
import { z } from "zod";
import type { DeadLetterItem } from "../contracts/api.js";
import { parseEnvelope, serializeEnvelope, EnvelopeAttributes, type Envelope } from "../contracts/cloudevent.js";
import { APPROVAL_PENDING, PendingApproval } from "../contracts/decisions.js";
import { actorIdOf, eventKeyOf, redrivenIdOf } from "../contracts/ids.js";
import { JOURNAL_APPENDED, JournalBatch } from "../contracts/journal.js";
import { PROMPT_RECEIVED, RESERVED_TYPE_PREFIX, SESSION_REDRIVE, type DeadLetter, type SessionRedrive } from "../contracts/messages.js";
import { Problem } from "../contracts/problems.js";
import { sessionCommand } from "../contracts/shell-word.js";
import type { Authenticated } from "../platform/apikeys.js";
import { envelopeFor } from "./envelopes.js";
import { readData } from "./intake/letters.js";

/** `event`: the event behind a call whose letter does not hold it. */
export interface RedriveRequest { readonly reason: string; readonly payload?: string | undefined; readonly redrive?: number | undefined; readonly event?: string | undefined }
export type RedrivePlan =
  /** `arrived`: where an outcome shows that the session has it. */
  | { readonly action: "send"; readonly redrive: number; readonly sessionId: string; readonly command: Envelope; readonly arrived: { readonly actorId: string; readonly eventKey: string } }
  | { readonly action: "take-in"; readonly redrive: number; readonly kind: "journal" | "approval"; readonly text: string };

/** Throws Problem where the letter cannot be redriven, saying what to do instead. */
export function planRedrive(item: DeadLetterItem, request: RedriveRequest, caller: Authenticated, nowMs: number): RedrivePlan {
  const { letter } = item;
  const redrive = redriveNumber(item, request.redrive);
  switch (letter.kind) {
    case "journal": case "approval":
      return { action: "take-in", redrive, kind: letter.kind, text: fitting(letter, letter.kind, request.payload ?? payloadText(letter)) };
    case "event": case "unreadable": case "tool_request":
      return planEvent(letter, redrive, request, caller, nowMs);
    case "tool_result": case "decision":
      return planSigned(letter, letter.kind, redrive, { request, caller, nowMs });
  }
}

function fitting(letter: DeadLetter, kind: "journal" | "approval", text: string): string {
  const read = kind === "journal" ? readData(text, JournalBatch, JOURNAL_APPENDED) : readData(text, PendingApproval, APPROVAL_PENDING);
  if (read.ok) return text;
  throw new Problem("validation_failed", `dead letter ${letter.deadLetterId} does not fit as ${kind}: ${read.message}`, { hint: "redrive it with an edited payload, or with the version of Docket that knows it" });
}

function planSigned(letter: DeadLetter, kind: "tool_result" | "decision", redrive: number, how: { request: RedriveRequest; caller: Authenticated; nowMs: number }): RedrivePlan {
  const { request, caller, nowMs } = how;
  const what = kind === "decision" ? "decision" : "tool result";
  if (request.payload !== undefined) throw new Problem("validation_failed", `a dead ${what} is signed, so an edited one would prove nothing`, { hint: "redrive it as it is" });
  const text = payloadText(letter);
  const addressed = readData(text, Addressed);
  if (!addressed.ok) throw new Problem("validation_failed", `dead letter ${letter.deadLetterId} holds no ${what} that could be delivered again: ${addressed.message}`, { hint: "ask the session anew" });
  const { envelope, data: { sessionId, decision, approvalId } } = addressed;
  const tenant = letter.tenant ?? addressed.data.tenant;
  if (tenant !== caller.tenant) throw new Problem("forbidden", `dead letter ${letter.deadLetterId} is for tenant ${tenant}`);
  if (decision !== undefined && expiryOf(decision) <= nowMs) {
    throw new Problem("expired", `the decision of dead letter ${letter.deadLetterId} is no longer valid`, { hint: `decide again: docket approval show ${approvalId ?? ""}` });
  }
  const command = commandFor(letter, { redrive, tenant, sessionId, text, as: kind, causationId: envelope.id, request, caller, nowMs });
  return { action: "send", redrive, sessionId, command, arrived: { actorId: actorIdOf(tenant, sessionId), eventKey: eventKeyOf(command.source, command.id) } };
}

const Addressed = z.object({ tenant: z.string(), sessionId: z.string(), decision: z.string().optional(), approvalId: z.string().optional() });

/** When a signed decision ends to be valid. Not verified here: the session does that. */
function expiryOf(jws: string): number {
  try {
    return z.object({ exp: z.number() }).parse(JSON.parse(Buffer.from(jws.split(".")[1] ?? "", "base64url").toString("utf8"))).exp * 1000;
  } catch {
    return Infinity; // the session says what is wrong with it
  }
}

interface CommandContent {
  readonly redrive: number; readonly tenant: string; readonly sessionId: string; readonly text: string; readonly as: SessionRedrive["as"]; readonly causationId: string;
  readonly request: RedriveRequest; readonly caller: Authenticated; readonly nowMs: number;
}

/** The command's id. */
function redriveIdOf(deadLetterId: string, redrive: number): string { return `redrive:${deadLetterId}:${String(redrive)}`; }

function commandFor({ deadLetterId }: DeadLetter, content: CommandContent): Envelope {
  const { redrive, tenant, sessionId, text, as, causationId, request, caller, nowMs } = content;
  const data: SessionRedrive = { deadLetterId, event: text, redrive, reason: request.reason, as };
  return envelopeFor({ id: redriveIdOf(deadLetterId, redrive), type: SESSION_REDRIVE, tenant, sessionId, data, atMs: nowMs, by: caller.principal, causationId });
}

/**
 * Without a number the first redrive is meant: asked for twice at once, it is still one. A further one names its number. A
 * redrive that was claimed but never got away is tried again under the same number.
 */
function redriveNumber({ letter, state, redriveCount }: DeadLetterItem, wanted: number | undefined): number {
  if (wanted !== undefined && wanted <= redriveCount + 1) return wanted;
  if (wanted === undefined && state === "dead") return Math.max(redriveCount, 1);
  throw new Problem("version_mismatch", `dead letter ${letter.deadLetterId} was redriven ${redriveCount === 1 ? "once" : `${String(redriveCount)} times`}${wanted === undefined ? "" : `, and redrive ${String(wanted)} was asked for`}`,
    { hint: `name the number to redrive it again: ${String(redriveCount + 1)}` });
}

function planEvent(letter: DeadLetter, redrive: number, request: RedriveRequest, caller: Authenticated, nowMs: number): RedrivePlan {
  const { event, text } = request.payload === undefined ? originalEvent(letter, request.event) : editedEvent(letter, request.payload, caller);
  const sessionId = letter.sessionId ?? event.subject;
  if (sessionId === undefined) throw new Problem("session_id_missing", `dead letter ${letter.deadLetterId} names no session`, { hint: "redrive it with an edited payload that has a subject" });
  const tenant = letter.tenant ?? event.tenant ?? caller.tenant;
  const command = commandFor(letter, { redrive, tenant, sessionId, text, as: "event", causationId: event.id, request, caller, nowMs });
  return { action: "send", redrive, sessionId, command, arrived: { actorId: actorIdOf(tenant, sessionId), eventKey: eventKeyOf(event.source, redrivenIdOf(event.id, redrive)) } };
}

interface DeadEvent { readonly event: Envelope; readonly text: string }

/** The event as it came, byte for byte. */
function originalEvent(letter: DeadLetter, found: string | undefined): DeadEvent {
  const text = found ?? (letter.kind === "tool_request" ? eventBehind(letter) : payloadText(letter));
  try {
    return { event: parseEnvelope(text), text };
  } catch (error) {
    // Some senders keep attributes and data apart.
    const attributes = EnvelopeAttributes.safeParse(letter.envelope);
    if (letter.kind === "event" && attributes.success) return written({ ...attributes.data, data: text });
    throw new Problem("not_a_cloudevent", `dead letter ${letter.deadLetterId} holds no event that could be sent again: ${error instanceof Error ? error.message : String(error)}`,
      { hint: "redrive it with an edited payload: a whole CloudEvent as JSON text", cause: error });
  }
}

/** The letter of a dead call carries the event behind it. */
function eventBehind(letter: DeadLetter): string {
  const event = heldEvent(letter);
  if (event !== undefined) return event;
  throw new Problem("validation_failed", `dead letter ${letter.deadLetterId} does not say which event its call belongs to`,
    { hint: letter.sessionId === undefined ? "redrive it with an edited payload" : `ask the session anew: ${sessionCommand("send", letter.sessionId)} "..."` });
}

/** The event that the letter of a dead call carries; undefined where it carries none. */
export function heldEvent(letter: DeadLetter): string | undefined {
  try {
    return z.object({ event: z.string().min(1) }).parse(JSON.parse(payloadText(letter))).event;
  } catch {
    return undefined;
  }
}

/** Whoever edits an event is its sender from then on, and stays in the letter's tenant. */
function editedEvent(letter: DeadLetter, payload: string, caller: Authenticated): DeadEvent {
  const event = parseEnvelope(payload);
  if (event.type.startsWith(RESERVED_TYPE_PREFIX) && event.type !== PROMPT_RECEIVED) throw new Problem("reserved_type", `the edited event has type ${event.type}; only Docket itself sends those`);
  return written({ ...event, tenant: letter.tenant ?? caller.tenant, principal: JSON.stringify(caller.principal) });
}

function written(event: Envelope): DeadEvent { return { event, text: serializeEnvelope(event) }; }

function payloadText(letter: DeadLetter): string {
  return letter.payloadEncoding === "base64" ? Buffer.from(letter.payload, "base64").toString("utf8") : letter.payload;
}
