/**
 * Owns: making a dead letter of anything that arrives on the dead-letter topic (I14). Docket's own apps send DeadLetter
 * records; the sidecar, as a last resort, forwards the dead event itself, without reason or count; and raw bytes come as they are.
 */
import { z, type ZodType } from "zod";
import { EnvelopeAttributes, parseEnvelope, serializeEnvelope, type Envelope } from "../../contracts/cloudevent.js";
import { CHANNELS, DEAD_LETTER_TOPIC } from "../../contracts/channels.js";
import { APPROVAL_PENDING, DECISION_MADE } from "../../contracts/decisions.js";
import { sha256Hex } from "../../contracts/ids.js";
import { JOURNAL_APPENDED, JournalAppended } from "../../contracts/journal.js";
import { DEAD_LETTERED, DeadLetter, type DeadLetterKind } from "../../contracts/messages.js";
import { Problem, type ProblemCode } from "../../contracts/problems.js";
import { TOOL_CLAIMED, TOOL_COMPLETED, TOOL_REQUESTED } from "../../contracts/tools.js";
import { payloadOf, unpacked } from "../../platform/letter-parcel.js";

const KINDS: Readonly<Record<string, { kind: DeadLetterKind; topic: string }>> = {
  [TOOL_REQUESTED]: { kind: "tool_request", topic: CHANNELS.toolRequests.topic },
  [TOOL_CLAIMED]: { kind: "tool_result", topic: CHANNELS.toolResults.topic },
  [TOOL_COMPLETED]: { kind: "tool_result", topic: CHANNELS.toolResults.topic },
  [DECISION_MADE]: { kind: "decision", topic: CHANNELS.approvalsResolved.topic },
  [JOURNAL_APPENDED]: { kind: "journal", topic: CHANNELS.journal.topic },
  [APPROVAL_PENDING]: { kind: "approval", topic: CHANNELS.approvalsPending.topic },
};

/** Never throws. The same text gives the same id, so a repeated delivery is one letter. `bytes`: where they are no text. */
export function letterOf(text: string, nowMs: number, bytes?: Uint8Array): DeadLetter {
  if (bytes !== undefined) return { ...rawLetter(text, nowMs, { kind: "unreadable", reason: "not_json", message: `the sidecar gave up on ${String(bytes.length)} bytes that are no text` }), ...payloadOf(bytes) };
  const envelope = readable(text);
  if (envelope === undefined) return rawLetter(text, nowMs, { kind: "unreadable", ...whyUnreadable(text) });
  if (envelope.type !== DEAD_LETTERED) {
    return rawLetter(text, nowMs, { kind: KINDS[envelope.type]?.kind ?? "event", reason: "forwarded_by_sidecar", message: "the sidecar gave up on the event; it does not say why" }, envelope);
  }
  const parsed = DeadLetter.safeParse(dataOf(envelope));
  return parsed.success ? unpacked(parsed.data)
    : rawLetter(text, nowMs, { kind: "unreadable", reason: "unreadable", message: `a dead letter that does not fit its own schema: ${parsed.error.issues[0]?.message ?? ""}` }, envelope);
}

/** A letter for a message of the console's own subscriptions that does not fit. */
export function unusableLetter(text: string, nowMs: number, kind: "journal" | "approval", why: Unusable): DeadLetter {
  return { ...rawLetter(text, nowMs, { kind, reason: why.code, message: why.message }, readable(text)), tries: 1, ...(kind === "journal" ? { topic: CHANNELS.journal.topic } : { topic: CHANNELS.approvalsPending.topic }) };
}

/** What fits of a batch of the journal; each entry that does not is a letter of its own, so that it can be delivered again alone. */
export function readJournal(text: string, nowMs: number): { readonly fitting: JournalAppended[]; readonly unusable: DeadLetter[] } {
  const read = readData(text, z.object({ appended: z.array(z.unknown()) }), JOURNAL_APPENDED);
  if (!read.ok) return { fitting: [], unusable: [unusableLetter(text, nowMs, "journal", read)] };
  const fitting: JournalAppended[] = [];
  const unusable: DeadLetter[] = [];
  for (const [index, item] of read.data.appended.entries()) {
    const parsed = JournalAppended.safeParse(item);
    if (parsed.success) fitting.push(parsed.data);
    else unusable.push(unusableLetter(serializeEnvelope({ ...read.envelope, id: `${read.envelope.id}:${String(index)}`, data: JSON.stringify({ appended: [item] }) }), nowMs, "journal", { ok: false, code: "validation_failed", message: issuesOf(parsed.error) }));
  }
  return { fitting, unusable };
}

export interface Unusable { readonly ok: false; readonly code: ProblemCode; readonly message: string }

/** The data of an envelope, if it fits and has the type that is asked for. */
export function readData<T>(text: string, schema: ZodType<T>, type?: string): { ok: true; envelope: Envelope; data: T } | Unusable {
  try {
    const envelope = parseEnvelope(text);
    if (type !== undefined && envelope.type !== type) return { ok: false, code: "unknown_type", message: `the event is a ${envelope.type}, expected ${type}` };
    const parsed = schema.safeParse(dataOf(envelope));
    if (parsed.success) return { ok: true, envelope, data: parsed.data };
    return { ok: false, code: "validation_failed", message: issuesOf(parsed.error) };
  } catch (error) {
    return { ok: false, code: error instanceof Problem ? error.code : "validation_failed", message: error instanceof Error ? error.message : String(error) };
  }
}

function issuesOf(error: z.ZodError): string {
  return error.issues.slice(0, 5).map((issue) => `${issue.path.map(String).join(".")}: ${issue.message}`).join("; ");
}

function rawLetter(text: string, nowMs: number, what: Pick<DeadLetter, "kind" | "reason" | "message">, envelope?: Envelope): DeadLetter {
  // daprd stamps topic and trace anew on each forward: what identifies an event is its source, id and data.
  const identity = envelope === undefined ? text : `${envelope.type}\n${envelope.source}\n${envelope.id}\n${envelope.data}`;
  return {
    deadLetterId: `dl_${sha256Hex(identity).slice(0, 24)}`, ...what,
    topic: envelope === undefined ? DEAD_LETTER_TOPIC : (KINDS[envelope.type]?.topic ?? CHANNELS.tasks.topic), app: "console", tries: 0,
    ...(envelope?.tenant === undefined ? {} : { tenant: envelope.tenant }),
    ...(envelope?.subject === undefined ? {} : { sessionId: envelope.subject }),
    ...(envelope === undefined ? {} : { envelope: EnvelopeAttributes.parse(envelope) }),
    payload: text, payloadEncoding: "utf8", firstFailedAtMs: nowMs, lastFailedAtMs: nowMs,
  };
}

function whyUnreadable(text: string): { reason: ProblemCode; message: string } {
  const why = readData(text, z.unknown());
  return why.ok ? { reason: "internal", message: "" } : { reason: why.code, message: `the sidecar gave up on it: ${why.message}` };
}

function readable(text: string): Envelope | undefined {
  try {
    return parseEnvelope(text);
  } catch {
    return undefined;
  }
}

function dataOf(envelope: Envelope): unknown {
  try {
    return JSON.parse(envelope.data);
  } catch {
    return undefined;
  }
}
