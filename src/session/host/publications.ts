/**
 * Owns: building the message of an outbox row from the state and the journal (the row only points). The event id
 * carries the publication number, so that a broker's duplicate window cannot swallow a repetition; the idempotency
 * key inside does not change (DESIGN 3).
 */
import type { ChannelName } from "../../contracts/channels.js";
import type { Envelope } from "../../contracts/cloudevent.js";
import { APPROVAL_PENDING, type PendingApproval } from "../../contracts/decisions.js";
import type { JournalEntry, SessionEvent, SessionEventOf } from "../../contracts/journal.js";
import { DEAD_LETTERED, RUN_ENDED, type DeadLetter, type RunEndedMessage } from "../../contracts/messages.js";
import { CHANNELS } from "../../contracts/channels.js";
import { TOOL_REQUESTED, type ToolRequest } from "../../contracts/tools.js";
import type { OpenSession, OutboxRow, ToolCall } from "../core/state.js";
import type { GrantSigner } from "./ports.js";

export interface Publication { readonly channel: ChannelName; readonly envelope: Envelope }

export interface PublicationSource {
  entries(fromRev: number, toRev: number): Promise<JournalEntry[]>;
  readonly signer: GrantSigner;
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
  return { channel: "toolRequests", envelope: { ...base(state, row, TOOL_REQUESTED, request), correlationid: run.correlationId, partitionkey: call.tool } };
}

async function pendingApproval(state: OpenSession, row: OutboxRow, source: PublicationSource): Promise<Publication | undefined> {
  const record = state.approvals.find((candidate) => candidate.approvalId === row.subject);
  const run = "run" in state ? state.run : undefined;
  if (record === undefined || run === undefined) return undefined;
  const call = run.calls.find((candidate) => candidate.callId === record.callId);
  const sealed = call === undefined ? undefined : await argumentsOf(source, call);
  const received = await find(source, run.eventRev, "EventReceived", (event) => event.key === run.key);
  const pending: PendingApproval = {
    tenant: state.tenant, sessionId: state.sessionId, actorId: state.actorId, agent: state.agent, record,
    args: sealed?.args ?? "{}", rationale: sealed?.text ?? record.question, trigger: received?.event.data.text ?? "",
  };
  return { channel: "approvalsPending", envelope: { ...base(state, row, APPROVAL_PENDING, pending), correlationid: run.correlationId } };
}

async function runEnded(state: OpenSession, row: OutboxRow, source: PublicationSource): Promise<Publication | undefined> {
  const ended = await find(source, row.rev, "RunEnded", (event) => event.runId === row.subject);
  const rejected = ended === undefined ? await find(source, row.rev, "EventRejected", (event) => event.runId === row.subject) : undefined;
  const common = { tenant: state.tenant, sessionId: state.sessionId, actorId: state.actorId, agent: state.agent, rev: row.rev };
  if (ended !== undefined) {
    const { runId, key, outcome, code, text } = ended.event;
    const message: RunEndedMessage = { ...common, runId, key, outcome, text, endedAtMs: ended.entry.atMs, ...(code === undefined ? {} : { code }) };
    return { channel: "responses", envelope: base(state, row, RUN_ENDED, message) };
  }
  if (rejected === undefined) return undefined;
  const { runId, key, code, message: text } = rejected.event;
  const message: RunEndedMessage = { ...common, runId, key, outcome: "rejected", code, text, endedAtMs: rejected.entry.atMs };
  return { channel: "responses", envelope: base(state, row, RUN_ENDED, message) };
}

async function deadLetter(state: OpenSession, row: OutboxRow, source: PublicationSource): Promise<Publication | undefined> {
  const dead = await find(source, row.rev, "DeadLetterRecorded", (event) => event.deadLetterId === row.subject);
  if (dead === undefined) return undefined;
  const { deadLetterId, kind, reason, tries, callId, payload } = dead.event;
  const letter: DeadLetter = {
    deadLetterId, kind: kind as DeadLetter["kind"], reason, message: reason, topic: kind === "tool_request" ? CHANNELS.toolRequests.topic : CHANNELS.tasks.topic,
    app: "sessions", tries, tenant: state.tenant, sessionId: state.sessionId, actorId: state.actorId, payload, payloadEncoding: "utf8",
    firstFailedAtMs: dead.entry.atMs, lastFailedAtMs: dead.entry.atMs, ...(callId === undefined ? {} : { callId }),
  };
  return { channel: "deadLetters", envelope: base(state, row, DEAD_LETTERED, letter) };
}

function base(state: OpenSession, row: OutboxRow, type: string, data: object): Envelope {
  return {
    specversion: "1.0", id: `${state.actorId}:${row.rowId}:${String(row.publication)}`, source: "docket://sessions", type, subject: state.sessionId,
    tenant: state.tenant, partitionkey: state.actorId, data: JSON.stringify(data),
  };
}
