/**
 * Owns: one delivery of one of the session's three channels, inside its actor: events and commands (tasks), claims
 * and results (tool results), decisions (approvals resolved). Everything ends in a commit, a no-op, or a dead letter
 * with its reason; a failure of the way throws and the broker repeats it (DESIGN 3).
 */
import { parseEnvelope, principalOf, type Envelope } from "../../contracts/cloudevent.js";
import { APPROVAL_RECEIVED, DecisionMade } from "../../contracts/decisions.js";
import { argsDigest, eventKeyOf } from "../../contracts/ids.js";
import { SESSION_CANCEL, SESSION_CLOSE, SESSION_NUDGE, SESSION_REDRIVE, SessionCancel, type DeadLetterKind } from "../../contracts/messages.js";
import { Problem, type ProblemCode } from "../../contracts/problems.js";
import { TOOL_CLAIMED, TOOL_COMPLETED, ToolClaim, ToolResult } from "../../contracts/tools.js";
import { z } from "zod";
import { routeEvent } from "../../agent/route.js";
import { receiveEvent, redrivenEnvelope } from "./intake.js";
import { factsOf, judgeModification } from "./judging.js";
import { decisionKeyOf } from "./ledger.js";
import { receiptFor } from "./receipt.js";
import { principalOfRun, type SessionService } from "./service.js";
import type { BuildCommand, TurnOutcome } from "./turn.js";

export interface Target { readonly actorId: string; readonly tenant: string; readonly sessionId: string }

/** The channels that lead to a session. */
export const SESSION_CHANNELS = ["tasks", "toolResults", "approvalsResolved"] as const;
export type SessionChannel = (typeof SESSION_CHANNELS)[number];
/** What a dead delivery of a channel is: decides what a redrive does with it. */
export const DEAD_KINDS: Readonly<Record<SessionChannel, DeadLetterKind>> = { tasks: "event", toolResults: "tool_result", approvalsResolved: "decision" };

/** What became of a delivery; `code` where it was refused. */
export interface Delivered { readonly ok: true; readonly verdict: string; readonly rev: number }

const ApprovalReceipt = z.object({ approvalId: z.string(), version: z.number().int().default(1) });

export class Deliveries {
  constructor(private readonly service: SessionService) {}

  /** Handles the raw text of a delivery. Throws Problem (retryable) for failures of the way. */
  async handle(target: Target, channel: SessionChannel, text: string): Promise<Delivered> {
    const envelope = parseEnvelope(text);
    try {
      switch (channel) {
        case "tasks": return await this.#task(target, envelope);
        case "toolResults": return await this.#toolReport(target, envelope);
        case "approvalsResolved": return await this.#decision(target, envelope);
      }
    } catch (error) {
      // A full mailbox is a verdict here: repeating the delivery would hold up every other session of the channel.
      if (error instanceof Problem && (!error.retryable || error.code === "mailbox_full")) return await this.#dead(target, channel, envelope, text, error);
      throw error;
    }
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
      case SESSION_CANCEL:
      case SESSION_CLOSE: return await this.#stopSession(target, envelope);
      case SESSION_REDRIVE: return await this.#receive(target, redrivenEnvelope(envelope), envelope);
      default: return await this.#receive(target, envelope, envelope);
    }
  }

  /** An input event. The receipt lets the gateway drop its inbox row (DESIGN 7.10); a repetition repeats it. */
  async #receive(target: Target, event: Envelope, delivered: Envelope): Promise<Delivered> {
    const routed = routeEvent([...this.service.deps.catalog.agents.values()], event, { defaultAgent: this.service.deps.catalog.defaultAgent });
    if (!routed.ok) throw routed.problem;
    const outcome = await this.service.run(target.actorId, receiveEvent(this.service.source, { ...target, agent: routed.agent.name }, event));
    const { decision } = outcome;
    if (!decision.ok && decision.code !== "duplicate" && outcome.entry === undefined) throw new Problem(decision.code, decision.message);
    await this.#receipt(target, delivered, outcome, decision.ok ? "accepted" : decision.code);
    return settled(outcome);
  }

  async #stopSession(target: Target, envelope: Envelope): Promise<Delivered> {
    const { runId, reason } = read(SessionCancel, envelope);
    const principal = principalOf(envelope);
    const key = eventKeyOf(envelope.source, envelope.id);
    const who = principal === undefined ? {} : { principal };
    const outcome = await this.service.run(target.actorId, (context) => (envelope.type === SESSION_CLOSE
      ? { ...this.service.base(context), type: "Close", key, reason, ...who }
      : { ...this.service.base(context), type: "Cancel", key, reason, ...who, ...(runId === undefined ? {} : { runId }) }));
    await this.#receipt(target, envelope, outcome, outcome.decision.ok ? "accepted" : outcome.decision.code);
    return settled(outcome);
  }

  async #toolReport(target: Target, envelope: Envelope): Promise<Delivered> {
    if (envelope.type === TOOL_CLAIMED) {
      const claim = read(ToolClaim, envelope);
      return settled(await this.service.run(target.actorId, (context) => ({ ...this.service.base(context), type: "RecordClaim", callId: claim.callId, try: claim.try, worker: claim.worker })));
    }
    if (envelope.type !== TOOL_COMPLETED) throw new Problem("validation_failed", `${envelope.type} is not a tool claim or result`);
    const result = read(ToolResult, envelope);
    const claims = await this.service.deps.results.verify(result.proof, this.service.deps.clock.nowMs());
    if (claims.sub !== target.actorId || claims.jti !== result.callId || claims.try !== result.try || claims.outcome !== result.outcome || claims.outputDigest !== argsDigest(result.output)) {
      throw new Problem("bad_signature", `the result of call ${result.callId} does not match what the worker signed`);
    }
    return settled(await this.service.run(target.actorId, this.#recordResult(target, result)));
  }

  #recordResult(target: Target, result: ToolResult): BuildCommand {
    return (context) => {
      const content = context.keep(target.actorId, result.output);
      return {
        ...this.service.base(context), type: "RecordToolResult", callId: result.callId, try: result.try, outcome: result.outcome,
        content: { ...content, truncated: content.truncated || result.truncated }, reserveUsd: this.service.reserveForNext(context.state),
        ...(result.failure === undefined ? {} : { failure: { kind: result.failure.kind, message: result.failure.message, ...(result.failure.retryAfterMs === undefined ? {} : { retryAfterMs: result.failure.retryAfterMs }) } }),
      };
    };
  }

  /** I10: signature, person, digest, version and state are checked; a refusal changes nothing and is recorded. */
  async #decision(target: Target, envelope: Envelope): Promise<Delivered> {
    const made = read(DecisionMade, envelope);
    const claims = await this.service.deps.decisions.verify(made.decision, this.service.deps.clock.nowMs());
    if (claims.sub !== target.actorId || claims.approvalId !== made.approvalId) throw new Problem("bad_signature", `decision ${claims.jti} was signed for another session or approval`);
    const outcome = await this.service.run(target.actorId, async (context) => {
      const { state } = context;
      if (state.status === "NEW" || await context.seen(decisionKeyOf(claims.jti))) return undefined;
      const record = state.approvals.find((candidate) => candidate.approvalId === claims.approvalId);
      const run = "run" in state ? state.run : undefined;
      const judged = claims.kind === "modify" && record?.tool !== undefined && run !== undefined
        ? judgeModification(this.service.deps.catalog, record.tool, claims.args ?? "", factsOf(state, run, await principalOfRun(context)))
        : { ok: true as const };
      return { ...this.service.base(context), type: "Decide", claims, judged, reserveUsd: this.service.reserveForNext(state) };
    });
    if (outcome.before.status === "NEW") throw new Problem("session_not_found", `decision ${claims.jti} is for session ${target.sessionId}, which does not exist`);
    return settled(outcome);
  }

  async #receipt(target: Target, envelope: Envelope, outcome: TurnOutcome, verdict: string): Promise<void> {
    await this.service.publish("responses", receiptFor(target, envelope, { verdict, rev: outcome.after.rev, atMs: this.service.deps.clock.nowMs() }));
  }

  /** The event's one outcome is the dead letter (I1): recorded first, then the receipt. */
  async #dead(target: Target, channel: SessionChannel, envelope: Envelope, text: string, problem: Problem): Promise<Delivered> {
    await this.service.deadLetters.record({ channel, kind: DEAD_KINDS[channel], reason: problem.code, message: problem.message, payload: text, envelope, ...target });
    if (channel === "tasks") {
      const state = await this.service.turns.read(target.actorId);
      await this.#receipt(target, envelope, { decision: { ok: true, events: [] }, before: state, after: state, events: [] }, problem.code);
    }
    return { ok: true, verdict: problem.code, rev: 0 };
  }
}

function settled(outcome: TurnOutcome): Delivered {
  const verdict: ProblemCode | "accepted" = outcome.decision.ok ? "accepted" : outcome.decision.code;
  return { ok: true, verdict, rev: outcome.after.rev };
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
