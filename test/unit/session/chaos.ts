/**
 * Owns: an honest but chaotic host: it reports only what could have happened, but late, twice, out of order, or for attempts
 * long given up. Each move is drawn from numbers, so that fast-check can shrink a failing run.
 */
import type { BusyMode } from "../../../src/contracts/journal.js";
import { argsDigest, callIdOf } from "../../../src/contracts/ids.js";
import type { DecisionKind, ToolEffects, ToolFailureKind } from "../../../src/contracts/tools.js";
import type { CommandOf, JudgedCall, Verdict } from "../../../src/session/core/command.js";
import { isCompactable } from "../../../src/session/core/decide/compaction.js";
import { assemble, modelOf, partsOf, runOf } from "../../../src/session/core/parts.js";
import type { OpenSession, Run } from "../../../src/session/core/state.js";
import { ANNA, Bench, BEN, callOf, claims, LIMITS, prepared, receive, USAGE, type Ask } from "./support.js";

export interface Move { readonly kind: number; readonly a: number; readonly b: number; readonly c: number }

export const pick = <T>(list: readonly T[], n: number): T | undefined => (list.length === 0 ? undefined : list[n % list.length]);
const MODES: BusyMode[] = ["enqueue", "enqueue", "reject", "interrupt", "steer", "withdraw"];
const EFFECTS: ToolEffects[] = ["none", "idempotent", "once", "once"];
const VERDICTS: Verdict["verdict"][] = ["allow", "allow", "ask", "ask", "deny"];
const ON_EXPIRY: Verdict["onExpiry"][] = ["reject", "escalate", "keep", "stop"];
const KINDS: DecisionKind[] = ["approve", "approve", "modify", "reject", "respond", "raise", "retry", "give_up"];
const FAILURES: ToolFailureKind[] = ["transient", "transient", "permanent", "business", "refused", "timeout"];
const DELAYS = [0, 10, 700, 700, 5000, 5000, 16_000, 16_000, 31_000, 31_000, 61_000, 90_000, 90_000, 400_000, 4_000_000];

type Dispatch = Pick<CommandOf<"RecordToolResult">, "callId" | "try">;
type Attempt = Pick<CommandOf<"RecordAnswer">, "runId" | "step" | "attempt">;

export class ChaoticHost {
  readonly bench = new Bench({ ...LIMITS, maxSteps: 5, budgetUsd: 0.09, maxReflections: 2 });
  private events = 0;
  private sent: Ask[] = [];

  move({ kind, a, b, c }: Move): void {
    const { bench } = this;
    bench.random = c / 1000;
    bench.host = `host-${String(b % 3)}`;
    if (bench.state.status === "NEW") { this.receive(0, b); return; }
    const moves = [
      () => this.receive(a, b), () => this.receive(a, b), () => this.repeat(a), () => this.answer(a, b, c), () => this.answer(a, b, c), () => this.answer(a, b, c),
      () => this.modelFails(a, b), () => this.claim(a, b), () => this.result(a, b, c), () => this.result(a, b, c), () => this.result(a, b, c),
      () => this.decide(a, b, c), () => this.decide(a, b, c), () => this.decide(a, b, c), () => this.decide(a, b, c), () => this.tick(a, b), () => this.tick(a, b), () => this.takeNext(a), () => this.takeNext(a),
      () => this.surround(a, b, c), () => this.smallThings(a, b), () => this.cancel(a, b), () => this.quarantine(a, b), () => this.delete(a, b), () => this.compact(b),
    ];
    pick(moves, kind)?.();
  }

  private ask(ask: Ask): void {
    this.sent.push(ask);
    this.bench.ask(ask);
  }

  private receive(a: number, b: number): void {
    this.events += 1;
    const expiresAtMs = b % 6 === 0 ? this.bench.atMs + (pick(DELAYS, a + b) ?? 0) - 10 : undefined;
    this.ask(receive(this.events, { mode: pick(MODES, a) ?? "enqueue", ...(expiresAtMs === undefined ? {} : { expiresAtMs }), ...(b % 7 === 1 ? { check: { code: "refused_by_check" } } : {}) }));
  }

  /** Any command comes again, however old: redelivery, or a commit whose reply was lost. */
  private repeat(a: number): void {
    const ask = pick(this.sent, a);
    if (ask !== undefined) this.bench.ask(ask);
  }

  /** An answer to any model call that ever started. */
  private answer(a: number, b: number, c: number): void {
    const started = this.bench.eventsOf("ModelCallStarted");
    const model = modelOf(this.bench.state);
    const run = runOf(this.bench.state);
    const current = run !== undefined && model?.phase === "running" ? { runId: run.runId, step: model.step, attempt: model.attempt } : undefined;
    const at: Attempt | undefined = a % 5 === 0 ? pick(started, b) : current;
    if (at === undefined) return;
    const calls = Array.from({ length: pick([0, 1, 1, 2, 3, 20], b) ?? 0 }, (_, index) => this.propose(at, index, a + b * 7 + c + index));
    const stop = calls.length > 0 ? "tool_use" : pick(["end", "end", "max_tokens", "refusal"] as const, c) ?? "end";
    this.ask({ type: "RecordAnswer", runId: at.runId, step: at.step, attempt: at.attempt, model: "m", text: c % 9 === 0 ? "" : `said ${String(c)}`, stop, calls, usage: USAGE, costUsd: c % 11 === 0 ? null : 0.02, reserveUsd: 0.02 });
  }

  private propose(at: Attempt, index: number, seed: number): JudgedCall {
    const { runId, step } = at;
    if (seed % 13 === 0) return { ok: false, callId: callIdOf(runId, step, index), providerCallId: `p-${String(index)}`, tool: "refund", args: "{broken", message: "arguments are not JSON" };
    return callOf(pick(VERDICTS, seed) ?? "ask", {
      index, step, runId, effects: pick(EFFECTS, Math.floor(seed / 3)) ?? "once", critical: seed % 4 === 0, maxTries: 1 + (seed % 3), args: `{"amount":${String(seed % 4)}}`,
      verdict: { onExpiry: pick(ON_EXPIRY, Math.floor(seed / 5)) ?? "reject", approvers: { roles: [], quorum: 1 + (Math.floor(seed / 7) % 2), excludeRequester: true }, ...(seed % 3 === 0 ? { expiresInMs: 20_000 } : {}), allowSession: seed % 2 === 0, policyVersion: seed % 17 === 0 ? "p2" : "p1",
        ...(seed % 4 === 1 ? { chain: [{ afterMs: 6_000 }, { afterMs: 12_000, to: { roles: ["lead"], groups: [] } }] } : {}), ...(seed % 6 === 0 ? { consentForMs: 10_000 } : {}) },
    });
  }

  private modelFails(a: number, b: number): void {
    const run = runOf(this.bench.state);
    const model = modelOf(this.bench.state);
    const old = pick(this.bench.eventsOf("ModelCallStarted"), b);
    const at: Attempt | undefined = a % 3 === 0 || run === undefined || model?.phase !== "running" ? old : { runId: run.runId, step: model.step, attempt: model.attempt };
    if (at === undefined) return;
    const kind = pick(["transient", "transient", "transient", "transient", "transient", "transient", "lost", "lost", "aborted", "permanent"] as const, b) ?? "transient";
    this.ask({ type: "RecordModelFailure", runId: at.runId, step: at.step, attempt: at.attempt, kind, message: `${kind} failure`, ...(a % 2 === 0 ? { partialText: "half an ans" } : {}), ...(b % 2 === 0 ? { usage: USAGE, costUsd: 0.01 } : {}) });
  }

  private dispatched(a: number): Dispatch | undefined {
    const all = this.bench.eventsOf("ToolCallDispatched");
    const open = runOf(this.bench.state)?.calls.flatMap((call) => (call.life.phase === "dispatched" ? [{ callId: call.callId, try: call.life.try }] : [])) ?? [];
    return a % 4 === 0 ? pick(all, a) : pick(open, a);
  }

  private claim(a: number, b: number): void {
    const at = this.dispatched(a);
    if (at !== undefined) this.ask({ type: "RecordClaim", callId: at.callId, try: at.try, worker: `worker-${String(b % 2)}` });
  }

  private result(a: number, b: number, c: number): void {
    const at = this.dispatched(a);
    if (at === undefined) return;
    const outcome = pick(["succeeded", "succeeded", "failed", "failed", "outcome_unknown", "not_started"] as const, b) ?? "succeeded";
    const failure = { kind: pick(FAILURES, c) ?? "transient", message: "the tool failed", ...(c % 3 === 0 ? { retryAfterMs: 3000 } : {}) };
    this.ask({ type: "RecordToolResult", callId: at.callId, try: at.try, outcome, ...(outcome === "failed" ? { failure } : {}), content: { text: `result ${String(c)}`, truncated: c % 5 === 0 }, reserveUsd: 0.02 });
  }

  private decide(a: number, b: number, c: number): void {
    const { approvals } = this.bench.open;
    const record = pick(approvals, a);
    const closed = pick(this.bench.eventsOf("ApprovalOpened"), a)?.record;
    const about = a % 6 === 0 ? closed : record;
    if (about === undefined) return;
    const kind = b % 3 !== 0 ? pick(about.allowed, c) ?? "approve" : pick(KINDS, b) ?? "approve";
    const args = `{"amount":${String(c % 4)},"by":"person"}`;
    const remember = kind === "approve" && c % 4 === 0 ? { remember: { forMs: 60_000 * (1 + (b % 30)), ...(a % 2 === 0 ? { uses: 1 + (a % 3) } : {}) } } : {};
    const ok = { ok: true, ...(kind === "approve" && c % 3 === 0 ? { current: { args, verdict: { ...callVerdict(c), policyVersion: c % 2 === 0 ? "p1" : "p2" } } } : {}), ...(kind === "modify" && c % 5 !== 0 ? { modified: { args, argsDigest: argsDigest(args), verdict: callVerdict(c) } } : {}) } as const;
    this.ask({ type: "Decide", judged: c % 10 === 0 ? { ok: false, code: "bad_signature" } : ok, reserveUsd: 0.02, claims: claims(kind, {
      approvalId: about.approvalId, version: c % 12 === 0 ? 7 : about.version, argsDigest: c % 14 === 0 ? "sha256:other" : about.argsDigest, ...remember, principal: pick([ANNA, BEN, { ...ANNA, id: "requester" }, { ...ANNA, roles: [] }], b) ?? ANNA,
    }) });
  }

  /** What people do around a decision, late and twice too. */
  private surround(a: number, b: number, c: number): void {
    const approvalId = (pick(this.bench.open.approvals, a) ?? pick(this.bench.eventsOf("ApprovalOpened"), a)?.record)?.approvalId ?? "apr_none";
    const allowanceId = (pick(this.bench.open.allowances ?? [], a) ?? pick(this.bench.eventsOf("AllowanceGranted"), a)?.allowance)?.allowanceId ?? "alw_none";
    const key = `around-${String(c % 40)}`;
    if (b % 3 === 0) this.ask({ type: "RevokeAllowance", key, allowanceId, reason: "", principal: ANNA });
    else this.ask({ type: "TendApproval", key, tend: { approvalId, reason: "", ...(b % 3 === 1 ? { assignTo: a % 2 === 0 ? "ben" : null } : { snoozeUntilMs: a % 2 === 0 ? this.bench.atMs + 60_000 : null }) }, principal: BEN });
  }

  private tick(a: number, b: number): void {
    this.bench.later(pick(DELAYS, a) ?? 0);
    this.ask({ type: "Tick", deadHosts: b % 3 === 0 ? ["host-0", "host-1", "host-2"] : [], reserveUsd: 0.02, published: this.#publishedOf(b), ...(b % 2 === 0 ? { guardGeneration: this.bench.open.guard.generation } : {}) });
  }

  #publishedOf(b: number): string[] { return this.bench.open.outbox.filter((_, index) => (index + b) % 2 === 0).map((row) => row.rowId); }

  private takeNext(a: number): void {
    const item = pick(this.bench.open.mailbox, a % 5 === 0 ? a : 0);
    if (item !== undefined) this.ask({ type: "TakeNext", key: item.key, prepared: prepared(a % 9 === 0 ? { code: "refused_by_check" } : undefined), requestedBy: "requester", correlationId: "c" });
  }

  private smallThings(a: number, b: number): void {
    const { approvals } = this.bench.open;
    if (a % 3 === 0) this.ask({ type: "Tick", deadHosts: [], reserveUsd: 0.02, published: this.#publishedOf(b) });
    const record = pick(approvals, b);
    if (a % 3 !== 0 && record !== undefined) this.ask({ type: "AcknowledgeApproval", approvalId: record.approvalId, version: record.version });
    const model = modelOf(this.bench.state);
    if (a % 3 !== 0 && model !== undefined) this.ask({ type: "StartModelCall", step: model.step, attempt: model.attempt, reserveUsd: 0.02 });
  }

  private cancel(a: number, b: number): void {
    if (a % 120 === 0) { this.ask({ type: "Close", key: "close", reason: "enough" }); return; }
    if (a % 4 !== 0) return;
    const runId = pick([undefined, this.bench.open.mailbox[0]?.runId, "run-1"], b);
    this.ask({ type: "Cancel", key: `cancel-${String(a)}-${String(this.sent.length)}`, reason: "stop", ...(runId === undefined ? {} : { runId }), ...(b % 2 === 0 ? { partialText: "so far" } : {}) });
  }

  /** Seldom, and not for long: a check-up does not trust what is stored, and an operator releases the session. A sound one is healed without effect. */
  private quarantine(a: number, b: number): void {
    if (this.bench.open.quarantine !== undefined) this.release();
    else if (a % 4 === 0) this.ask({ type: "Heal", found: [], quarantine: { reason: pick(["journal_gap", "journal_digest"] as const, b) ?? "journal_gap", message: "an entry is missing" }, reserveUsd: 0.02 });
    else this.heal();
  }

  release(): void { this.ask({ type: "Release", key: `release-${String(this.sent.length)}`, reason: "looked at" }); }

  private delete(a: number, b: number): void {
    const { erase } = this.bench.open;
    if (erase !== undefined && (a % 2 === 0 || erase.dueAtMs <= this.bench.atMs)) this.ask({ type: "RecordErased", toRev: b % 5 === 0 ? 1 : erase.toRev });
    else this.ask({ type: "Delete", reason: "enough", ...(b % 3 === 0 ? { idleForMs: 5000 } : {}) });
  }

  /** At any entry up to which every event has its outcome; the core refuses what must stay. */
  compact(b: number): void {
    const { bench } = this;
    if (!isCompactable(bench.open)) return;
    const open = new Set<string>();
    const boundaries = bench.entries.filter(({ rev, events }) => {
      for (const event of events) {
        if (event.type === "EventReceived") open.add(event.key);
        if (event.type === "RunEnded" || event.type === "EventRejected") open.delete(event.key);
      }
      return open.size === 0 && rev >= (bench.open.keptFromRev ?? bench.open.baseRev ?? 1);
    });
    const to = pick(boundaries, b);
    if (to === undefined) return;
    bench.later(86_400_000);
    this.ask({ type: "Compact", toRev: to.rev, toDigest: to.digest, toAtMs: to.atMs });
  }

  heal(): void { this.ask({ type: "Heal", found: [], reserveUsd: 0.02 }); }

  /** Part of the state gets lost behind the core's back. */
  harm(n: number): void {
    const { bench } = this;
    const state = bench.open;
    const run = runOf(state);
    const calls = (change: (call: Run["calls"][number]) => Run["calls"][number]): OpenSession => (run === undefined ? state : { ...state, run: { ...run, calls: run.calls.map(change) } } as OpenSession);
    const lost = pick<() => OpenSession>([
      () => assemble({ ...partsOf(state), common: { ...partsOf(state).common, approvals: [] } }),
      () => ({ ...state, outbox: state.outbox.filter((row) => row.kind !== "tool_request") }),
      () => calls((call) => (call.life.phase === "awaiting_approval" ? { ...call, life: { phase: "proposed" } } : call)),
      () => (run === undefined ? state : assemble({ common: partsOf(state).common, run })),
    ], n);
    bench.state = lost?.() ?? state;
  }

  /** Everything outstanding comes to its end: the model answers, tools succeed, people give up or approve, the broker works. */
  drain(): void {
    const { bench } = this;
    for (let turn = 0; turn < 400 && !atRest(bench); turn += 1) {
      bench.confirm();
      if (bench.open.quarantine !== undefined) { this.release(); continue; }
      const record = bench.open.approvals[0];
      const run = runOf(bench.state);
      const model = modelOf(bench.state);
      const call = run?.calls.find((open) => open.life.phase === "dispatched");
      if (record !== undefined) bench.decides(record.kind === "escalation" ? "give_up" : "reject", { principal: turn % 2 === 0 ? ANNA : BEN });
      else if (model?.phase === "running") bench.answer();
      else if (call?.life.phase === "dispatched") bench.ask({ type: "RecordToolResult", callId: call.callId, try: call.life.try, outcome: "succeeded", content: { text: "ok", truncated: false }, reserveUsd: 0.02 });
      else if (bench.open.status === "IDLE" && bench.open.mailbox.length > 0) bench.takeNext();
      else bench.later(61_000).tick();
    }
    const { erase } = bench.open;
    if (erase !== undefined) bench.later(86_400_000).ask({ type: "RecordErased", toRev: erase.toRev });
    bench.later(61_000).tick();
  }
}

function callVerdict(c: number): Verdict {
  const call = callOf(pick(["allow", "ask", "deny"] as const, c) ?? "ask", { verdict: { approvers: { roles: [], quorum: 1 + (c % 2), excludeRequester: true } } });
  if (!call.ok) throw new Error("a judged call was expected");
  return call.verdict;
}

export function atRest(bench: Bench): boolean {
  const { status, mailbox, outbox } = bench.open;
  return (status === "IDLE" || status === "CLOSED" || status === "DELETED") && mailbox.length === 0 && outbox.length === 0;
}
