/**
 * Owns: one delivery of one of the session's three channels, inside its actor: events and commands (tasks), claims
 * and results (tool results), decisions (approvals resolved). Everything ends in a commit, a no-op, or a dead letter
 * with its reason; a failure of the way throws and the broker repeats it (DESIGN 3).
 */
import { MAX_COMMAND_BYTES, parseEnvelope, principalOf, serializeEnvelope, type Envelope } from "../../contracts/cloudevent.js";
import { ALLOWANCE_REVOKE, AllowanceRevoke, APPROVAL_RECEIVED, APPROVAL_TEND, ApprovalTend, DECISION_MADE, DecisionMade } from "../../contracts/decisions.js";
import { argsDigest, eventKeyOf } from "../../contracts/ids.js";
import { PROMPT_RECEIVED, PromptReceived, RESERVED_TYPE_PREFIX, SESSION_CANCEL, SESSION_CLOSE, SESSION_COMPACT, SESSION_DELETE, SESSION_NUDGE, SESSION_REDRIVE, SESSION_RELEASE, SessionCancel, SessionCompact, SessionDelete, SessionOrder, SessionRedrive, type DeadLetterKind } from "../../contracts/messages.js";
import { Problem, type ProblemCode } from "../../contracts/problems.js";
import { TOOL_CLAIMED, TOOL_COMPLETED, ToolClaim, ToolResult } from "../../contracts/tools.js";
import { z } from "zod";
import { routeEvent } from "../../agent/route.js";
import { isLate } from "../../platform/signing.js";
import { knowsKey } from "../core/decide/intake.js";
import { receiveEvent, redrivenEnvelope } from "./intake.js";
import { judgeDecision } from "./judging-decisions.js";
import { decisionKeyOf } from "./ledger.js";
import { Patience } from "./patience.js";
import type { RefusedEvent, Refusals } from "./refusals.js";
import type { SessionCommand } from "../core/command.js";
import type { SessionState } from "../core/state.js";
import type { SessionService } from "./service.js";
import type { BuildCommand, TurnContext, TurnOutcome } from "./turn.js";

export interface Target { readonly actorId: string; readonly tenant: string; readonly sessionId: string }

/** The channels that lead to a session. */
export const SESSION_CHANNELS = ["tasks", "toolResults", "approvalsResolved"] as const;
export type SessionChannel = (typeof SESSION_CHANNELS)[number];
/** What a dead delivery of a channel is: decides what a redrive does with it. */
export const DEAD_KINDS: Readonly<Record<SessionChannel, DeadLetterKind>> = { tasks: "event", toolResults: "tool_result", approvalsResolved: "decision" };

/** What became of a delivery; `code` where it was refused. */
export interface Delivered { readonly ok: true; readonly verdict: string; readonly rev: number }

const ApprovalReceipt = z.object({ approvalId: z.string(), version: z.number().int().default(1) });

/** What a redrive delivers again as it was: the channel it died on. */
const REDRIVEN_CHANNELS = { tool_result: "toolResults", decision: "approvalsResolved" } as const;

export class Deliveries {
  readonly #patience = new Patience();

  constructor(private readonly service: SessionService, private readonly refusals: Refusals) {}

  /** Handles the raw text of a delivery. Throws Problem (retryable) for failures of the way. */
  async handle(target: Target, channel: SessionChannel, text: string): Promise<Delivered> {
    const envelope = parseEnvelope(text, MAX_COMMAND_BYTES); // the router has judged its size
    try {
      return await this.#deliver(target, channel, envelope);
    } catch (error) {
      const poison = this.#poisonOf(error, `${channel}\n${envelope.source}\n${envelope.id}`);
      if (poison === undefined) throw error;
      return await this.#dead(target, { channel, envelope, text }, poison);
    }
  }

  async #deliver(target: Target, channel: SessionChannel, envelope: Envelope): Promise<Delivered> {
    switch (channel) {
      case "tasks": return await this.#task(target, envelope);
      case "toolResults": return await this.#toolReport(target, envelope);
      case "approvalsResolved": return await this.#decision(target, envelope);
    }
  }

  /** Why the delivery is given up; undefined where the way failed, which is no fault of the delivery (DESIGN 3). */
  #poisonOf(error: unknown, delivery: string): { problem: Problem; tries: number } | undefined {
    // A full mailbox is a verdict here: repeating the delivery would hold up every other session of the channel.
    if (error instanceof Problem && (!error.retryable || error.code === "mailbox_full")) return { problem: error, tries: 1 };
    if (error instanceof Problem && error.code !== "internal") return undefined;
    const { over, tries } = this.#patience.isOver(delivery);
    const message = error instanceof Error ? error.message : String(error);
    return over ? { problem: new Problem("internal", `it failed ${String(tries)} times for a reason that nobody foresaw, last: ${message}`, { cause: error }), tries } : undefined;
  }

  async #task(target: Target, envelope: Envelope): Promise<Delivered> {
    const { actorId } = target;
    switch (envelope.type) {
      case SESSION_NUDGE:
        await this.service.nudge(actorId);
        return { ok: true, verdict: "nudged", rev: 0 };
      case APPROVAL_RECEIVED: {
        const receipt = read(ApprovalReceipt, envelope);
        return settled(await this.service.run(actorId, (context) => ({ ...this.service.base(context), type: "AcknowledgeApproval", ...receipt })));
      }
      case SESSION_RELEASE: return await this.#release(target, envelope);
      case SESSION_COMPACT:
        void this.service.compact(actorId, read(SessionCompact, envelope)); // takes longer than a delivery may
        return { ok: true, verdict: "asked", rev: 0 };
      case SESSION_DELETE: return await this.#delete(target, envelope);
      case SESSION_CANCEL:
      case SESSION_CLOSE: return await this.#stopSession(target, envelope);
      case APPROVAL_TEND:
      case ALLOWANCE_REVOKE: return await this.#personal(target, envelope);
      case SESSION_REDRIVE: return await this.#redrive(target, envelope);
      default: return await this.#receive(target, envelope, envelope);
    }
  }

  /** An input event. The receipt lets the gateway drop its inbox row (DESIGN 7.10); a repetition repeats it. */
  async #receive(target: Target, event: Envelope, delivered: Envelope): Promise<Delivered> {
    if (event.type === PROMPT_RECEIVED) read(PromptReceived, event);
    else if (event.type.startsWith(RESERVED_TYPE_PREFIX)) throw new Problem("unknown_type", `${event.type} is neither a prompt nor a command that this version knows`);
    const routed = routeEvent([...this.service.deps.catalog.agents.values()], event, { defaultAgent: this.service.deps.catalog.defaultAgent });
    if (!routed.ok) throw routed.problem;
    const outcome = await this.service.run(target.actorId, receiveEvent(this.service.source, { ...target, agent: routed.agent.name }, event), event.traceparent);
    const { decision, after } = outcome;
    if (!decision.ok && decision.code !== "duplicate" && outcome.entry === undefined) throw new Problem(decision.code, decision.message);
    if (!decision.ok && decision.code === "duplicate" && !knowsKey(after, eventKeyOf(event.source, event.id))) {
      // Known to the ledger alone: an old event, or one that was refused.
      return { ok: true, verdict: await this.refusals.repeat(target, refusedEvent(event, delivered)), rev: after.rev };
    }
    return await this.#answer(target, delivered, { verdict: verdictOf(outcome), rev: after.rev });
  }

  /** The dead event as a new one; or what is signed, as it was. */
  async #redrive(target: Target, command: Envelope): Promise<Delivered> {
    const { as, event } = read(SessionRedrive, command);
    if (as !== "event") {
      const delivered = await this.#deliver(target, REDRIVEN_CHANNELS[as], parseEnvelope(event));
      // So that the console sees that it has arrived.
      await this.service.deps.store.refuse(target.actorId, eventKeyOf(command.source, command.id), { rev: delivered.rev, verdict: "accepted" });
      return delivered;
    }
    const anew = redrivenEnvelope(command);
    if (anew.type === SESSION_CANCEL || anew.type === SESSION_CLOSE) return await this.#stopSession(target, anew);
    return await this.#receive(target, anew, command);
  }

  /** A command that found nothing to stop is remembered, so that its repetition does not stop what came later (I2). */
  async #stopSession(target: Target, envelope: Envelope): Promise<Delivered> {
    const { runId, reason } = read(SessionCancel, envelope);
    const principal = principalOf(envelope);
    const key = eventKeyOf(envelope.source, envelope.id);
    const { store } = this.service.deps;
    const known = await store.readLedger(target.actorId, key);
    if (known?.refusal !== undefined) return { ok: true, verdict: await this.refusals.repeat(target, refusedEvent(envelope, envelope)), rev: known.rev };
    if (known !== undefined) return await this.#answer(target, envelope, { verdict: known.verdict === undefined || known.verdict === "accepted" ? "duplicate" : known.verdict, rev: known.rev });
    const who = principal === undefined ? {} : { principal };
    const outcome = await this.service.run(target.actorId, unlessSeen(key, (context) => (envelope.type === SESSION_CLOSE
      ? { ...this.service.base(context), type: "Close", key, reason, ...who }
      : { ...this.service.base(context), type: "Cancel", key, reason, ...who, ...(runId === undefined ? {} : { runId }) })));
    const { rev } = settledIn(target, envelope, outcome);
    const verdict = verdictOf(outcome);
    // A cancel that stopped something is in the ledger by its commit; one that found nothing, and a close, are not.
    if (verdict === "not_found" || envelope.type === SESSION_CLOSE) await store.refuse(target.actorId, key, { rev, verdict });
    return await this.#answer(target, envelope, { verdict, rev });
  }

  async #answer(target: Target, envelope: Envelope, content: { verdict: string; rev: number }): Promise<Delivered> {
    await this.refusals.receipt(target, envelope, content);
    return { ok: true, ...content };
  }

  async #release(target: Target, envelope: Envelope): Promise<Delivered> {
    const { reason } = read(SessionOrder, envelope);
    const principal = principalOf(envelope);
    const key = eventKeyOf(envelope.source, envelope.id);
    const outcome = await this.service.run(target.actorId, unlessSeen(key, (context) => ({ ...this.service.base(context), type: "Release", key, reason, ...(principal === undefined ? {} : { principal }) })));
    return settled(outcome);
  }

  /**
   * Refused for a session that is not at rest: the console has said so before, and the session shows it. What was done is remembered, so
   * that its repetition does not delete what a new event has opened since (I2).
   */
  async #delete(target: Target, envelope: Envelope): Promise<Delivered> {
    const { reason, idleForMs } = read(SessionDelete, envelope);
    const principal = principalOf(envelope);
    const key = eventKeyOf(envelope.source, envelope.id);
    const { store } = this.service.deps;
    const known = await store.readLedger(target.actorId, key);
    if (known !== undefined) return { ok: true, verdict: "duplicate", rev: known.rev };
    const outcome = await this.service.run(target.actorId, (context) => ({
      ...this.service.base(context), type: "Delete", reason, ...(idleForMs === undefined ? {} : { idleForMs }), ...(principal === undefined ? {} : { principal }),
    }));
    if (outcome.entry !== undefined && outcome.after.status === "DELETED") await this.service.releaseWorkspace(outcome.after);
    const delivered = settled(outcome);
    if (outcome.after.status === "DELETED") await store.refuse(target.actorId, key, { rev: delivered.rev, verdict: "accepted" });
    return delivered;
  }

  async #toolReport(target: Target, envelope: Envelope): Promise<Delivered> {
    if (envelope.type === TOOL_CLAIMED) {
      const claim = read(ToolClaim, envelope);
      return settledIn(target, envelope, await this.service.run(target.actorId, (context) => inSession(context.state, { ...this.service.base(context), type: "RecordClaim", callId: claim.callId, try: claim.try, worker: claim.worker }), envelope.traceparent));
    }
    if (envelope.type !== TOOL_COMPLETED) throw new Problem("unknown_type", `${envelope.type} is not a tool claim or result that this version knows`);
    const result = read(ToolResult, envelope);
    const claims = await this.service.deps.results.verify(result.proof, this.service.deps.clock.nowMs());
    if (claims.sub !== target.actorId || claims.jti !== result.callId || claims.try !== result.try || claims.outcome !== result.outcome || claims.outputDigest !== argsDigest(result.output)) {
      throw new Problem("bad_signature", `the result of call ${result.callId} does not match what the worker signed`);
    }
    return settledIn(target, envelope, await this.service.run(target.actorId, this.#recordResult(target, result), envelope.traceparent));
  }

  #recordResult(target: Target, result: ToolResult): BuildCommand {
    return (context) => {
      const content = context.keep(target.actorId, result.output);
      return inSession(context.state, {
        ...this.service.base(context), type: "RecordToolResult", callId: result.callId, try: result.try, outcome: result.outcome,
        content: { ...content, truncated: content.truncated || result.truncated }, reserveUsd: this.service.reserveForNext(context.state),
        ...(result.failure === undefined ? {} : { failure: { kind: result.failure.kind, message: result.failure.message, ...(result.failure.retryAfterMs === undefined ? {} : { retryAfterMs: result.failure.retryAfterMs }) } }),
      });
    };
  }

  /** I10: signature, person, digest, version and state are checked; a refusal changes nothing and is recorded. */
  async #decision(target: Target, envelope: Envelope): Promise<Delivered> {
    if (envelope.type !== DECISION_MADE) throw new Problem("unknown_type", `${envelope.type} is not a decision that this version knows`);
    const made = read(DecisionMade, envelope);
    const claims = await this.service.deps.decisions.verify(made.decision, this.service.deps.clock.nowMs());
    if (claims.sub !== target.actorId || claims.approvalId !== made.approvalId) throw new Problem("bad_signature", `decision ${claims.jti} was signed for another session or approval`);
    const outcome = await this.service.run(target.actorId, async (context) => {
      const { state } = context;
      if (state.status === "NEW" || await context.seen(decisionKeyOf(claims.jti))) return undefined;
      const judged = isLate(claims, context.atMs) ? { ok: false as const, code: "expired" as const } : await judgeDecision(this.service.deps.catalog, context, state, claims);
      return { ...this.service.base(context), type: "Decide", claims, judged, reserveUsd: this.service.reserveForNext(state) };
    }, envelope.traceparent);
    return settledIn(target, envelope, outcome);
  }

  /** Assignment, snooze, a revoked allowance: refused without a commit where there is nothing to change, and then remembered (I2). */
  async #personal(target: Target, envelope: Envelope): Promise<Delivered> {
    const who = principalOf(envelope);
    const about = { key: eventKeyOf(envelope.source, envelope.id), ...(who === undefined ? {} : { principal: who }) };
    const asked = envelope.type === APPROVAL_TEND ? { type: "TendApproval" as const, tend: read(ApprovalTend, envelope) } : { type: "RevokeAllowance" as const, ...read(AllowanceRevoke, envelope) };
    const outcome = await this.service.run(target.actorId, unlessSeen(about.key, (context) => inSession(context.state, { ...this.service.base(context), ...about, ...asked })));
    const delivered = settledIn(target, envelope, outcome);
    if (delivered.verdict !== "accepted" && delivered.verdict !== "duplicate") await this.service.deps.store.refuse(target.actorId, about.key, { rev: delivered.rev, verdict: delivered.verdict });
    return delivered;
  }

  /** Recorded first, then acked. An event's one outcome is the dead letter (I1). */
  async #dead(target: Target, delivery: { channel: SessionChannel; envelope: Envelope; text: string }, poison: { problem: Problem; tries: number }): Promise<Delivered> {
    const { channel, envelope, text } = delivery;
    const { problem, tries } = poison;
    if (channel === "tasks") return { ok: true, verdict: await this.refusals.refuse(target, refusedDelivery(envelope, text), poison), rev: 0 };
    await this.service.deadLetters.record({ channel, kind: DEAD_KINDS[channel], reason: problem.code, message: problem.message, payload: text, envelope, tries, ...target });
    return { ok: true, verdict: problem.code, rev: 0 };
  }
}

/** An event under its own id; `delivered` is it, or the command that redrives it. */
function refusedEvent(event: Envelope, delivered: Envelope, text = serializeEnvelope(event)): RefusedEvent {
  return { event, letter: { channel: "tasks", kind: "event", payload: text, envelope: event }, ...(delivered === event ? {} : { delivered }) };
}

/** What the letter of a dead delivery holds: of a redrive what was to be redriven, so that it can be redriven again. */
function refusedDelivery(envelope: Envelope, text: string): RefusedEvent {
  if (envelope.type !== SESSION_REDRIVE) return refusedEvent(envelope, envelope, text);
  try {
    const { as, event, redrive } = read(SessionRedrive, envelope);
    if (as === "event") return refusedEvent(redrivenEnvelope(envelope), envelope);
    return { event: envelope, letter: { channel: REDRIVEN_CHANNELS[as], kind: as, payload: event, envelope: parseEnvelope(event) }, mark: `\nredrive ${String(redrive)}` };
  } catch {
    return refusedEvent(envelope, envelope, text); // the command itself does not fit
  }
}

/** A command for a session that is there. */
function inSession<T>(state: SessionState, command: T): T | undefined { return state.status === "NEW" ? undefined : command; }

/** Nothing, for a command that the ledger knows: the document's ring may have forgotten it (I2). */
function unlessSeen(key: string, build: (context: TurnContext) => SessionCommand | undefined): BuildCommand {
  return async (context) => (await context.seen(key) ? undefined : build(context));
}

/** Throws Problem `session_not_found`, `session_quarantined`: what no session takes is recorded, not swallowed. */
function settledIn(target: Target, envelope: Envelope, outcome: TurnOutcome): Delivered {
  const { before, decision, entry } = outcome;
  if (before.status === "NEW" || before.status === "DELETED") throw new Problem("session_not_found", `${envelope.type} ${envelope.id} is for session ${target.sessionId}, which does not exist`);
  if (!decision.ok && decision.code === "session_quarantined" && entry === undefined) throw new Problem(decision.code, decision.message);
  return settled(outcome);
}

function verdictOf({ decision }: TurnOutcome): ProblemCode | "accepted" { return decision.ok ? "accepted" : decision.code; }

function settled(outcome: TurnOutcome): Delivered {
  return { ok: true, verdict: verdictOf(outcome), rev: outcome.after.rev };
}

function read<T extends z.ZodType>(schema: T, envelope: Envelope): z.output<T> {
  let data: unknown;
  try {
    data = JSON.parse(envelope.data);
  } catch (error) {
    throw new Problem("not_json", `the data of ${envelope.type} ${envelope.id} is not JSON`, { cause: error });
  }
  const parsed = schema.safeParse(data);
  if (!parsed.success) throw new Problem("validation_failed", `the data of ${envelope.type} ${envelope.id} does not fit: ${parsed.error.issues.map((issue) => `${issue.path.map(String).join(".")}: ${issue.message}`).join("; ")}`);
  return parsed.data;
}
