/** Owns: commands as the host would make them, and a session kept in memory the way the host keeps it: journal first, state folded along. */
import type { Principal } from "../../../src/contracts/cloudevent.js";
import type { DecisionClaims } from "../../../src/contracts/decisions.js";
import { argsDigest, callIdOf } from "../../../src/contracts/ids.js";
import type { BusyMode, JournalEntry, SessionEvent } from "../../../src/contracts/journal.js";
import { STORED_VERSION } from "../../../src/contracts/stored-version.js";
import type { DecisionKind, ToolEffects } from "../../../src/contracts/tools.js";
import type { AgentLimits, CommandOf, Decision, Effect, JudgedCall, SessionCommand, Verdict } from "../../../src/session/core/command.js";
import { decide } from "../../../src/session/core/decide.js";
import { entryDigest } from "../../../src/session/core/digest.js";
import { effectsOf } from "../../../src/session/core/effects.js";
import { evolveAll } from "../../../src/session/core/evolve.js";
import { guardEvents } from "../../../src/session/core/rest.js";
import { runOf } from "../../../src/session/core/parts.js";
import { NEW_SESSION, type OpenSession, type Run, type SessionState, type ToolCall } from "../../../src/session/core/state.js";

export const LIMITS: AgentLimits = {
  maxSteps: 8, budgetUsd: 1, maxReflections: 3, maxMailbox: 5, runTimeoutMs: 86_400_000, approvalTtlMs: 3_600_000, windowRounds: 4, windowBytes: 20_000,
};
export const USAGE = { inputTokens: 10, outputTokens: 5, cacheReadTokens: 0, cacheWriteTokens: 0 };
export const ANNA: Principal = { id: "anna", class: "person", roles: ["approver"] };
export const BEN: Principal = { id: "ben", class: "person", roles: ["approver"] };

type Loose<T> = T extends unknown ? Omit<T, "atMs" | "host" | "random" | "limits"> : never;
export type Ask = Loose<SessionCommand>;

/** One session, driven by hand. */
export class Bench {
  state: SessionState = NEW_SESSION;
  readonly entries: JournalEntry[] = [];
  atMs = 1_000_000;
  random = 0.5;
  host = "host-1";
  /** The policy of the host, where it tells. */
  policyVersion: string | undefined;
  last: { decision: Decision; effects: Effect[]; before: SessionState } | undefined;

  constructor(readonly limits: AgentLimits = LIMITS) {}

  ask(ask: Ask): Decision {
    const base = { ...ask, ...(this.policyVersion === undefined ? {} : { policyVersion: this.policyVersion }), atMs: this.atMs, host: this.host, random: this.random, limits: this.limits } as SessionCommand;
    // The ledger, as the host reads it after a create-only conflict: the document remembers few runs, the ledger all of them.
    const command = base.type === "ReceiveEvent" && this.eventsOf("EventReceived").some((event) => event.key === base.event.key) ? { ...base, seen: true } : base;
    const before = this.state;
    const decision = decide(before, command);
    if (decision.events.length > 0) this.commit(decision.events, command.type);
    this.last = { decision, effects: effectsOf(before, decision.events, this.state), before };
    return decision;
  }

  private commit(decided: readonly SessionEvent[], command: string): void {
    const rev = this.state.rev + 1;
    const previous = this.state.status === "NEW" ? "" : this.state.journalDigest;
    const draft = evolveAll(this.state, decided, { rev, atMs: this.atMs, digest: "" });
    const events = [...decided, ...guardEvents(this.state, draft)];
    const entry: JournalEntry = { v: STORED_VERSION, actorId: "a1", rev, commitId: `c${String(rev)}`, atMs: this.atMs, command, host: this.host, digest: entryDigest(previous, events), events };
    this.entries.push(entry);
    this.state = evolveAll(this.state, events, entry);
  }

  later(ms: number): this { this.atMs += ms; return this; }
  get open(): OpenSession { if (this.state.status === "NEW") throw new Error("still NEW"); return this.state; }
  get run(): Run { const run = runOf(this.state); if (run === undefined) throw new Error(`no run in ${this.state.status}`); return run; }
  call(index = 0): ToolCall { return this.run.calls[index]!; }
  get types(): string[] { return this.last?.decision.events.map((event) => event.type) ?? []; }
  get effects(): string[] { return this.last?.effects.map((effect) => effect.type) ?? []; }
  eventsOf<T extends SessionEvent["type"]>(type: T): Extract<SessionEvent, { type: T }>[] {
    return this.entries.flatMap((entry) => entry.events).filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type);
  }

  // what most tests begin with
  receive(n = 1, about: { mode?: BusyMode; expiresAtMs?: number; check?: { code: string } } = {}): Decision { return this.ask(receive(n, about)); }
  answer(calls: readonly JudgedCall[] = [], about: Partial<CommandOf<"RecordAnswer">> = {}): Decision {
    const { runId, steps, attempt } = this.run;
    return this.ask({ type: "RecordAnswer", runId, step: steps + 1, attempt, model: "m", text: calls.length === 0 ? "done" : "calling", stop: calls.length === 0 ? "end" : "tool_use", calls, usage: USAGE, costUsd: 0.01, reserveUsd: 0.02, ...about });
  }
  result(index = 0, about: Partial<CommandOf<"RecordToolResult">> = {}): Decision {
    const call = this.call(index);
    const attempt = "try" in call.life ? call.life.try : 1;
    return this.ask({ type: "RecordToolResult", callId: call.callId, try: attempt, outcome: "succeeded", content: { text: "ok", truncated: false }, reserveUsd: 0.02, ...about });
  }
  fails(kind: "transient" | "permanent" | "business" | "refused" | "timeout", index = 0): Decision {
    return this.result(index, { outcome: "failed", failure: { kind, message: `${kind} failure` } });
  }
  tick(about: Partial<CommandOf<"Tick">> = {}): Decision { return this.ask({ type: "Tick", deadHosts: [], reserveUsd: 0.02, published: [], ...about }); }
  decides(kind: DecisionKind, about: Partial<DecisionClaims> = {}, judged: CommandOf<"Decide">["judged"] = { ok: true }): Decision {
    const record = this.open.approvals[0]!;
    return this.ask({ type: "Decide", judged, reserveUsd: 0.02, claims: claims(kind, { approvalId: record.approvalId, version: record.version, argsDigest: record.argsDigest, ...about }) });
  }
  takeNext(): Decision { return this.ask({ type: "TakeNext", key: this.open.mailbox[0]!.key, prepared: prepared(), requestedBy: "anna", correlationId: "c" }); }
  confirm(): Decision { return this.tick({ published: this.open.outbox.map((row) => row.rowId) }); }
}

export function prepared(check?: { code: string }, input = "please"): CommandOf<"ReceiveEvent">["prepared"] {
  return { check: check === undefined ? { ok: true } : { ok: false, code: check.code, message: "not allowed by the agent" }, input, reserveUsd: 0.02 };
}

export function receive(n: number, about: { mode?: BusyMode; expiresAtMs?: number; check?: { code: string }; principal?: Principal; agent?: string; seen?: boolean } = {}): Loose<CommandOf<"ReceiveEvent">> {
  return {
    type: "ReceiveEvent", tenant: "default", sessionId: "s1", actorId: "a1", agent: about.agent ?? "demo", agentVersion: "1", seen: about.seen ?? false, prepared: prepared(about.check, `please ${String(n)}`),
    event: {
      key: `key-${String(n)}`, runId: `run-${String(n)}`, source: "test", id: String(n), eventType: "demo.asked", mode: about.mode ?? "enqueue", principal: about.principal ?? { id: "requester", class: "person", roles: ["approver"] },
      correlationId: `corr-${String(n)}`, ...(about.expiresAtMs === undefined ? {} : { expiresAtMs: about.expiresAtMs }), data: { text: `{"n":${String(n)}}`, truncated: false },
    },
  };
}

export function verdict(kind: Verdict["verdict"], about: Partial<Verdict> = {}): Verdict {
  return {
    verdict: kind, rule: `rule-${kind}`, policyVersion: "p1", reason: `policy says ${kind}`, risk: "medium", allowed: ["approve", "modify", "reject", "respond"],
    approvers: { roles: [], quorum: 1, excludeRequester: true }, onExpiry: "reject", ...about,
  };
}

/** The same event on a host that has another version of the agent. */
export function under(agentVersion: string, asked: ReturnType<typeof receive>): ReturnType<typeof receive> {
  return { ...asked, agentVersion, prepared: { ...asked.prepared, agentVersion } };
}

/** The n-th call of an answer of run-1 at the given step. */
export function callOf(kind: Verdict["verdict"], about: { index?: number; step?: number; runId?: string; effects?: ToolEffects; critical?: boolean; maxTries?: number; args?: string; tool?: string; toolDigest?: string; verdict?: Partial<Verdict> } = {}): JudgedCall {
  const index = about.index ?? 0;
  const args = about.args ?? `{"n":${String(index)}}`;
  const callId = callIdOf(about.runId ?? "run-1", about.step ?? 1, index);
  return {
    ok: true, callId, providerCallId: `p-${String(about.step ?? 1)}-${String(index)}`, tool: about.tool ?? "refund", args, argsDigest: argsDigest(args), effects: about.effects ?? "once", critical: about.critical ?? false,
    timeoutMs: 10_000, maxTries: about.maxTries ?? 3, verdict: verdict(kind, about.verdict), ...(about.toolDigest === undefined ? {} : { toolDigest: about.toolDigest }),
  };
}

let decisionCount = 0;
export function claims(kind: DecisionKind, about: Partial<DecisionClaims>): DecisionClaims {
  decisionCount += 1;
  return {
    iss: "docket/console", aud: "docket/sessions", sub: "a1", jti: `decision-${String(decisionCount)}`, approvalId: "", version: 1, argsDigest: "", kind, principal: ANNA, via: "cli", iat: 0, exp: 0,
    ...(kind === "respond" ? { text: "a person says: done by hand" } : {}), ...(kind === "raise" ? { raise: { budgetUsd: 10, maxSteps: 50 } } : {}), ...about,
  };
}
