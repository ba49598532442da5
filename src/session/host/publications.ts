/**
 * Owns: building the message of an outbox row from the state and the journal (the row only points). The event id
 * carries the publication number, so that a broker's duplicate window cannot swallow a repetition; the idempotency
 * key inside does not change (DESIGN 3).
 */
import type { ChannelName } from "../../contracts/channels.js";
import { attributesOf, serializeEnvelope, type Envelope } from "../../contracts/cloudevent.js";
import { APPROVAL_PENDING, type PendingApproval } from "../../contracts/decisions.js";
import type { JournalEntry, SessionEvent, SessionEventOf } from "../../contracts/journal.js";
import { DEAD_LETTERED, DeadLetterKind, RUN_ENDED, type DeadLetter, type RunEndedMessage } from "../../contracts/messages.js";
import { CHANNELS } from "../../contracts/channels.js";
import { TOOL_REQUESTED, type ToolRequest } from "../../contracts/tools.js";
import type { OpenSession, OutboxRow, ToolCall } from "../core/state.js";
import type { GrantSigner } from "./ports.js";
import type { TracedRun } from "./traces.js";

export interface Publication { readonly channel: ChannelName; readonly envelope: Envelope }

export interface PublicationSource {
  entries(fromRev: number, toRev: number): Promise<JournalEntry[]>;
  readBlob(key: string): Promise<string | undefined>;
  readonly signer: GrantSigner;
  /** Trace parent of what the run sends out; left out where nobody takes spans. */
  readonly traceOf?: (run: TracedRun, about: { readonly callId: string } | "event" | "stretch") => Promise<string | undefined>;
}

/** The message of a row, or undefined when the row's subject is gone (nothing is left to say). */
export async function publicationOf(state: OpenSession, row: OutboxRow, source: PublicationSource): Promise<Publication | undefined> {
  switch (row.kind) {
    case "tool_request": return await toolRequest(state, row, source);
    case "approval_pending": return await pendingApproval(state, row, source);
    case "response": return await runEnded(state, row, source);
    case "dead_letter": return await deadLetter(state, row, source);
  }
}

async function find<T extends SessionEvent["type"]>(source: PublicationSource, rev: number, type: T, matches: (event: SessionEventOf<T>) => boolean): Promise<{ event: SessionEventOf<T>; entry: JournalEntry } | undefined> {
  for (const entry of await source.entries(rev, rev)) {
    for (const event of entry.events) {
      if (event.type === type && matches(event as SessionEventOf<T>)) return { event: event as SessionEventOf<T>, entry };
    }
  }
  return undefined;
}

/** Sealed arguments of a call, from the answer that proposed it or the decision that modified it. */
export async function argumentsOf(source: Pick<PublicationSource, "entries">, call: Pick<ToolCall, "callId" | "argsRev" | "argsDigest">): Promise<{ args: string; text: string } | undefined> {
  for (const entry of await source.entries(call.argsRev, call.argsRev)) {
    for (const event of entry.events) {
      if (event.type === "ModelAnswered") {
        const proposed = event.calls.find((candidate) => candidate.callId === call.callId && candidate.argsDigest === call.argsDigest);
        if (proposed !== undefined) return { args: proposed.args, text: event.text };
      }
      if (event.type === "DecisionRecorded" && event.args !== undefined && event.argsDigest === call.argsDigest) return { args: event.args, text: "" };
    }
  }
  return undefined;
}

async function toolRequest(state: OpenSession, row: OutboxRow, source: PublicationSource): Promise<Publication | undefined> {
  const run = "run" in state ? state.run : undefined;
  const call = run?.calls.find((candidate) => candidate.callId === row.subject);
  if (run === undefined || call?.life.phase !== "dispatched" || call.grant === undefined) return undefined;
  const sealed = await argumentsOf(source, call);
  if (sealed === undefined) return undefined;
  const request: ToolRequest = {
    tenant: state.tenant, sessionId: state.sessionId, actorId: state.actorId, agent: state.agent, runId: run.runId, callId: call.callId,
    tool: call.tool, args: sealed.args, argsDigest: call.argsDigest, try: call.life.try, publication: row.publication,
    idempotencyKey: call.callId, deadlineAtMs: call.life.deadlineAtMs, correlationId: run.correlationId,
    grant: await source.signer.sign({
      iss: "docket/sessions", aud: "docket/tools", sub: state.actorId, jti: call.callId, tool: call.tool, digest: call.argsDigest,
      iat: Math.floor(call.grant.issuedAtMs / 1000), exp: Math.floor(call.grant.expiresAtMs / 1000),
    }),
  };
  return { channel: "toolRequests", envelope: { ...base(state, row, TOOL_REQUESTED, request), ...traced(await source.traceOf?.(run, call)), correlationid: run.correlationId, partitionkey: call.tool } };
}

async function pendingApproval(state: OpenSession, row: OutboxRow, source: PublicationSource): Promise<Publication | undefined> {
  const record = state.approvals.find((candidate) => candidate.approvalId === row.subject);
  const run = "run" in state ? state.run : undefined;
  if (record === undefined || run === undefined) return undefined;
  const call = run.calls.find((candidate) => candidate.callId === record.callId);
  const sealed = call === undefined ? undefined : await argumentsOf(source, call);
  const received = await find(source, run.eventRev, "EventReceived", (event) => event.key === run.key);
  const trace = traced(await source.traceOf?.(run, "event"));
  const pending: PendingApproval = {
    ...trace, tenant: state.tenant, sessionId: state.sessionId, actorId: state.actorId, agent: state.agent, record,
    args: sealed?.args ?? "{}", rationale: sealed?.text ?? record.question, trigger: received?.event.data.text ?? "",
  };
  return { channel: "approvalsPending", envelope: { ...base(state, row, APPROVAL_PENDING, pending), ...trace, correlationid: run.correlationId } };
}

async function runEnded(state: OpenSession, row: OutboxRow, source: PublicationSource): Promise<Publication | undefined> {
  const ended = await find(source, row.rev, "RunEnded", (event) => event.runId === row.subject);
  const rejected = ended === undefined ? await find(source, row.rev, "EventRejected", (event) => event.runId === row.subject) : undefined;
  const common = { tenant: state.tenant, sessionId: state.sessionId, actorId: state.actorId, agent: state.agent, rev: row.rev };
  if (ended !== undefined) {
    const { runId, key, outcome, code, text } = ended.event;
    const message: RunEndedMessage = { ...common, runId, key, outcome, text, endedAtMs: ended.entry.atMs, ...(code === undefined ? {} : { code }) };
    return { channel: "responses", envelope: { ...base(state, row, RUN_ENDED, message), ...traced(await source.traceOf?.({ runId, key }, "stretch")) } };
  }
  if (rejected === undefined) return undefined;
  const { runId, key, code, message: text } = rejected.event;
  const message: RunEndedMessage = { ...common, runId, key, outcome: "rejected", code, text, endedAtMs: rejected.entry.atMs };
  return { channel: "responses", envelope: base(state, row, RUN_ENDED, message) };
}

/**
 * The journal only notes that something died; the letter carries it whole. A dead event is the event as it came; a dead
 * tool request is its tool, arguments and last error, and the event behind it, which a redrive delivers again.
 */
async function deadLetter(state: OpenSession, row: OutboxRow, source: PublicationSource): Promise<Publication | undefined> {
  const dead = await find(source, row.rev, "DeadLetterRecorded", (event) => event.deadLetterId === row.subject);
  if (dead === undefined) return undefined;
  const { deadLetterId, reason, tries, callId, key } = dead.event;
  const kind = DeadLetterKind.parse(dead.event.kind);
  const message = dead.event.message ?? reason;
  const event = key === undefined ? undefined : await eventOf(state, key, dead.event.eventRev ?? runRevOf(state, key), source);
  const call = callId === undefined ? undefined : await deadCall(state, callId, dead.event.argsRev, source);
  const payload = kind === "tool_request" ? JSON.stringify({ ...call, callId, error: message, event: event === undefined ? undefined : serializeEnvelope(event) }) : event === undefined ? dead.event.payload : serializeEnvelope(event);
  const letter: DeadLetter = {
    deadLetterId, kind, reason, message, topic: kind === "tool_request" ? CHANNELS.toolRequests.topic : CHANNELS.tasks.topic,
    app: "sessions", tries, tenant: state.tenant, sessionId: state.sessionId, actorId: state.actorId, payload, payloadEncoding: "utf8",
    firstFailedAtMs: dead.entry.atMs, lastFailedAtMs: dead.entry.atMs,
    ...(callId === undefined ? {} : { callId }), ...(call === undefined ? {} : { tool: call.tool }), ...(event === undefined ? {} : { envelope: attributesOf(event) }),
  };
  return { channel: "deadLetters", envelope: base(state, row, DEAD_LETTERED, letter) };
}

function runRevOf(state: OpenSession, key: string): number | undefined {
  return "run" in state && state.run.key === key ? state.run.eventRev : undefined;
}

/** The event behind a key, as it was received. */
async function eventOf(state: OpenSession, key: string, rev: number | undefined, source: PublicationSource): Promise<Envelope | undefined> {
  if (rev === undefined) return undefined;
  const received = (await find(source, rev, "EventReceived", (event) => event.key === key))?.event;
  if (received === undefined) return undefined;
  return {
    specversion: "1.0", id: received.id, source: received.source, type: received.eventType, subject: state.sessionId, tenant: state.tenant, agent: state.agent,
    correlationid: received.correlationId, data: received.data.blob === undefined ? received.data.text : await source.readBlob(received.data.blob.key) ?? JSON.stringify(received.data.text),
    ...(received.principal === undefined ? {} : { principal: JSON.stringify(received.principal) }),
  };
}

async function deadCall(state: OpenSession, callId: string, argsRev: number | undefined, source: PublicationSource): Promise<{ tool: string; args: string; argsDigest: string } | undefined> {
  const call = "run" in state ? state.run.calls.find((candidate) => candidate.callId === callId) : undefined;
  if (call !== undefined) return { tool: call.tool, argsDigest: call.argsDigest, args: (await argumentsOf(source, call))?.args ?? "" };
  const answered = argsRev === undefined ? undefined : await find(source, argsRev, "ModelAnswered", (event) => event.calls.some((proposed) => proposed.callId === callId));
  const proposed = answered?.event.calls.find((candidate) => candidate.callId === callId);
  return proposed === undefined ? undefined : { tool: proposed.tool, args: proposed.args, argsDigest: proposed.argsDigest };
}

function base(state: OpenSession, row: OutboxRow, type: string, data: object): Envelope {
  return {
    specversion: "1.0", id: `${state.actorId}:${row.rowId}:${String(row.publication)}`, source: "docket://sessions", type, subject: state.sessionId,
    tenant: state.tenant, partitionkey: state.actorId, data: JSON.stringify(data),
  };
}

function traced(traceparent: string | undefined): { traceparent?: string } { return traceparent === undefined ? {} : { traceparent }; }
