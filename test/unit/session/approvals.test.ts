/** Groups, separation of duties, chains, allowances, consent at dispatch, tending: the rules around a person's word (I4, I5, I10). */
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import type { Principal } from "../../../src/contracts/cloudevent.js";
import { argsDigest } from "../../../src/contracts/ids.js";
import type { Remember } from "../../../src/contracts/decisions.js";
import type { Verdict } from "../../../src/session/core/command.js";
import { MAX_ALLOWANCES } from "../../../src/session/core/limits.js";
import { foldIsState } from "./invariants.js";
import { ANNA, Bench, BEN, callOf, LIMITS, receive, verdict } from "./support.js";

let bench: Bench;
const HOUR = 3_600_000;
const waiting = (about: Partial<Verdict> = {}, args = "{\"n\":0}"): Bench => {
  bench = new Bench();
  bench.receive(1);
  bench.answer([callOf("ask", { verdict: about, args })]);
  return bench;
};
const current = (kind: "allow" | "ask" | "deny", about: Partial<Verdict> = {}, args = "{\"n\":0}") => ({ ok: true, current: { args, verdict: verdict(kind, about) } }) as const;
const statuses = (): string[] => bench.eventsOf("ToolResultRecorded").map(({ status }) => status);
const LEAD: Principal = { id: "lea", class: "person", roles: ["lead"] };
beforeEach(() => { waiting(); });

describe("who may decide", () => {
  it.each<[string, Principal, string | undefined]>([
    ["with the role, in the group", { ...ANNA, groups: ["emea"] }, undefined],
    ["with the role, in another group", { ...ANNA, groups: ["apac"] }, "not_an_approver"],
    ["with the role, in no group", ANNA, "not_an_approver"],
    ["in the group, without the role", { ...ANNA, roles: ["viewer"], groups: ["emea"] }, "not_an_approver"],
  ])("where a group is named: %s", (_, principal, code) => {
    waiting({ approvers: { roles: ["approver"], groups: ["emea"], quorum: 1, excludeRequester: false } });
    expect(bench.decides("approve", { principal })).toMatchObject(code === undefined ? { ok: true } : { ok: false, code });
  });

  it("is nobody who sent a message into the run, where the rule excludes the requester", () => {
    bench = new Bench();
    bench.receive(1);
    bench.ask(receive(2, { mode: "steer", principal: ANNA }));
    bench.answer([callOf("ask")]);
    expect(bench.decides("approve")).toMatchObject({ ok: false, code: "own_request" });
    expect(bench.decides("approve", { principal: BEN })).toMatchObject({ ok: true });
  });

  it("signs once, even after others have signed in between", () => {
    waiting({ approvers: { roles: [], quorum: 3, excludeRequester: true } });
    bench.decides("approve");
    bench.decides("approve", { principal: BEN });
    expect(bench.decides("approve")).toMatchObject({ ok: false, code: "already_decided" });
    expect(bench.open.status).toBe("AWAITING_APPROVAL");
  });
});

describe("a chain", () => {
  const chain: Verdict["chain"] = [{ afterMs: 600_000 }, { afterMs: 1_800_000, to: { roles: ["lead"], groups: [] } }];

  it("reminds, then lets more people decide, then expires; each step once and on time", () => {
    waiting({ chain });
    expect(bench.decides("approve", { principal: LEAD })).toMatchObject({ ok: false, code: "not_an_approver" });
    bench.later(599_000).tick();
    expect(bench.eventsOf("ApprovalReminded")).toEqual([]);
    bench.later(1_000).tick();
    bench.tick();
    expect(bench.eventsOf("ApprovalReminded")).toEqual([{ type: "ApprovalReminded", approvalId: bench.open.approvals[0]!.approvalId, step: 0 }]);
    expect(bench.decides("approve", { principal: LEAD })).toMatchObject({ ok: false, code: "not_an_approver" });
    bench.later(1_200_000).tick();
    expect(bench.eventsOf("ApprovalReminded")).toHaveLength(2);
    expect(bench.decides("approve", { principal: LEAD })).toMatchObject({ ok: true });
    foldIsState(bench);
  });

  it("that was slept through is taken whole at once, and the expiry too", () => {
    waiting({ chain });
    bench.later(2 * HOUR).tick();
    expect(bench.types.slice(0, 4)).toEqual(["ApprovalReminded", "ApprovalReminded", "ApprovalExpired", "ToolResultRecorded"]);
  });

  it("wakes a parked session at its next step", () => {
    waiting({ chain });
    bench.ask({ type: "AcknowledgeApproval", approvalId: bench.open.approvals[0]!.approvalId, version: 1 });
    bench.later(1000).tick();
    expect(bench.open.guard).toMatchObject({ armed: true, periodMs: 60_000, dueAtMs: 1_000_000 + 600_000 });
  });
});

describe("an approval nobody decides is no denial", () => {
  it("`reject`: the call is expired, not rejected, and proposing it again asks again", () => {
    bench.later(HOUR).tick();
    expect(statuses()).toEqual(["expired"]);
    bench.answer([callOf("ask", { step: 2 })]);
    expect(bench.eventsOf("ApprovalOpened")).toHaveLength(2);
  });

  it("`stop`: the run ends expired, with a code that says why", () => {
    waiting({ onExpiry: "stop" });
    bench.later(HOUR).tick();
    expect(statuses()).toEqual(["expired"]);
    expect(bench.open).toMatchObject({ status: "IDLE", recentRuns: [{ outcome: "expired", code: "approval_expired" }] });
    foldIsState(bench);
  });
});

describe("assignment and snooze", () => {
  const tend = (key: string, about: object) => bench.ask({ type: "TendApproval", key, tend: { approvalId: bench.open.approvals[0]!.approvalId, reason: "", ...about }, principal: BEN });

  it("are seen and recorded, and change neither who may decide nor when it expires", () => {
    const before = bench.open.approvals[0]!;
    tend("k1", { assignTo: "ben" });
    tend("k2", { snoozeUntilMs: bench.atMs + 600_000 });
    expect(bench.open.approvals[0]).toEqual({ ...before, assignedTo: "ben", snoozedUntilMs: bench.atMs + 600_000 });
    expect(bench.eventsOf("ApprovalAssigned")).toMatchObject([{ to: "ben", principal: { id: "ben" } }]);
    expect(tend("k1", { assignTo: "zoe" })).toMatchObject({ ok: false, code: "duplicate" });
    tend("k3", { assignTo: null, snoozeUntilMs: null });
    expect(bench.open.approvals[0]).toEqual(before);
    expect(bench.decides("approve")).toMatchObject({ ok: true });
    foldIsState(bench);
  });

  it("of a decided approval say that it is decided", () => {
    const { approvalId } = bench.open.approvals[0]!;
    bench.decides("approve");
    expect(bench.ask({ type: "TendApproval", key: "late", tend: { approvalId, assignTo: "ben", reason: "" } })).toMatchObject({ ok: false, code: "already_decided", events: [] });
  });
});

describe("allow this tool for this session", () => {
  const hour: Remember = { forMs: HOUR };
  const may = { allowSession: true, approvers: { roles: [], quorum: 1, excludeRequester: false } } as const;
  /** Grants, lets the call finish, and proposes another. */
  const grantAndPropose = (remember: Remember, next: { args?: string; verdict?: Partial<Verdict>; afterMs?: number } = {}): string[] => {
    waiting(may);
    expect(bench.decides("approve", { remember }, current("ask", may))).toMatchObject({ ok: true });
    bench.result();
    bench.later(next.afterMs ?? 0);
    bench.answer([callOf("ask", { step: 2, args: next.args ?? "{\"n\":1}", verdict: { ...may, ...next.verdict } })]);
    foldIsState(bench);
    return bench.types;
  };

  it("lets the next call run without asking, and says by whose word", () => {
    expect(grantAndPropose(hour)).toContain("ToolCallDispatched");
    const [granted] = bench.eventsOf("AllowanceGranted");
    expect(granted!.allowance).toMatchObject({ tool: "refund", grantedBy: "anna", rule: "rule-ask", policyVersion: "p1" });
    expect(bench.eventsOf("ToolCallAllowed")).toMatchObject([{ allowanceId: granted!.allowance.allowanceId }]);
  });

  it.each<[string, Remember, Parameters<typeof grantAndPropose>[1], string | undefined]>([
    ["its time is over", hour, { afterMs: HOUR }, "expired"],
    ["the policy is another", hour, { verdict: { policyVersion: "p2" } }, "policy_changed"],
    ["the risk is high now", hour, { verdict: { risk: "high" } }, undefined],
    ["other rules ask too", hour, { verdict: { rule: "rule-ask,other" } }, undefined],
    ["two people are wanted", hour, { verdict: { approvers: { roles: [], quorum: 2, excludeRequester: false } } }, undefined],
    ["an argument is another", { ...hour, where: "{\"n\":0}" }, {}, undefined],
    ["an argument is written otherwise", { ...hour, where: "{\"n\":0}" }, { args: "{\"n\":0e0}" }, undefined],
    ["policy denies it", hour, { verdict: { allowSession: false } }, undefined],
  ])("asks again when %s", (_, remember, next, ended) => {
    expect(grantAndPropose(remember, next)).toContain("ApprovalOpened");
    expect(bench.eventsOf("AllowanceEnded").map(({ reason }) => reason)).toEqual(ended === undefined ? [] : [ended]);
  });

  it("asks again for a run that the granting person asked for, where the rule excludes the requester", () => {
    const strict = { ...may, approvers: { roles: [], quorum: 1, excludeRequester: true } };
    waiting(strict);
    bench.decides("approve", { remember: hour }, current("ask", strict));
    bench.result();
    bench.answer();
    bench.confirm();
    bench.ask(receive(2, { principal: ANNA }));
    bench.answer([callOf("ask", { runId: "run-2", verdict: strict, args: "{\"n\":1}" })]);
    expect(bench.types).toContain("ApprovalOpened");
  });

  it("is used up", () => {
    expect(grantAndPropose({ ...hour, uses: 1 })).toContain("ToolCallDispatched");
    bench.result();
    bench.answer([callOf("ask", { step: 3, args: "{\"n\":2}", verdict: may })]);
    expect(bench.types).toEqual(expect.arrayContaining(["AllowanceEnded", "ApprovalOpened"]));
  });

  it("is revoked by a person, once, and asks again", () => {
    waiting(may);
    bench.decides("approve", { remember: hour }, current("ask", may));
    const { allowanceId } = bench.open.allowances![0]!;
    const revoke = (key: string) => bench.ask({ type: "RevokeAllowance", key, allowanceId, reason: "no more", principal: BEN });
    expect(revoke("k1")).toMatchObject({ ok: true });
    expect(revoke("k1")).toMatchObject({ ok: false, code: "duplicate" });
    expect(revoke("k2")).toMatchObject({ ok: false, code: "not_found" });
    bench.result();
    bench.answer([callOf("ask", { step: 2, args: "{\"n\":1}", verdict: may })]);
    expect(bench.types).toContain("ApprovalOpened");
    foldIsState(bench);
  });

  it.each<[string, Partial<Verdict>, Remember, string]>([
    ["for risk high", { ...may, risk: "high" }, hour, "decision_not_allowed"],
    ["for a quorum", { ...may, approvers: { roles: [], quorum: 2, excludeRequester: false } }, hour, "decision_not_allowed"],
    ["where policy does not let it", { approvers: may.approvers, allowSession: false }, hour, "decision_not_allowed"],
    ["for arguments that are not those shown", may, { ...hour, where: "{\"n\":7}" }, "arguments_invalid"],
    ["for no arguments at all", may, { ...hour, where: "{}" }, "arguments_invalid"],
  ])("is refused %s", (_, about, remember, code) => {
    waiting(about);
    expect(bench.decides("approve", { remember }, current("ask", about))).toMatchObject({ ok: false, code });
    expect(bench.types).toEqual(["DecisionRefused"]);
  });

  it("is refused beyond ten that still hold, until one is revoked or over", () => {
    const grant = (step: number) => bench.decides("approve", { remember: step === 1 ? { forMs: HOUR / 2 } : hour }, current("ask", may, `{"n":${String(step)}}`));
    /** Another tool each time: no allowance covers it. */
    const propose = (step: number) => bench.answer([callOf("ask", { step, tool: `tool-${String(step)}`, args: `{"n":${String(step)}}`, verdict: may })]);
    bench = new Bench({ ...LIMITS, maxSteps: 50 });
    bench.receive(1);
    for (let step = 1; step <= MAX_ALLOWANCES; step += 1) {
      propose(step);
      expect(grant(step)).toMatchObject({ ok: true });
      bench.result();
    }
    propose(MAX_ALLOWANCES + 1);
    expect(grant(MAX_ALLOWANCES + 1)).toMatchObject({ ok: false, code: "decision_not_allowed", message: expect.stringContaining("revoke one first") as string });
    const [first, second] = bench.open.allowances!;
    bench.ask({ type: "RevokeAllowance", key: "k", allowanceId: second!.allowanceId, reason: "", principal: BEN });
    expect(grant(MAX_ALLOWANCES + 1)).toMatchObject({ ok: true });
    bench.result();
    propose(MAX_ALLOWANCES + 2);
    bench.later(HOUR / 2);
    expect(grant(MAX_ALLOWANCES + 2)).toMatchObject({ ok: true });
    expect(bench.eventsOf("AllowanceEnded").at(-1)).toMatchObject({ allowanceId: first!.allowanceId, reason: "expired" });
    expect(bench.open.allowances).toHaveLength(MAX_ALLOWANCES);
    foldIsState(bench);
  });

  it("is refused with any other answer than approve", () => {
    waiting(may);
    expect(bench.decides("reject", { remember: hour, text: "no" })).toMatchObject({ ok: false, code: "arguments_invalid" });
  });

  it("never lets a call run that none was granted for, whatever comes (property)", () => {
    fc.assert(fc.property(fc.array(fc.record({ args: fc.constantFrom("{\"n\":0}", "{\"n\":1}"), risk: fc.constantFrom("low" as const, "medium" as const, "high" as const), policyVersion: fc.constantFrom("p1", "p2"), laterMs: fc.constantFrom(0, 600_000, HOUR) }), { maxLength: 5 }), fc.option(fc.constantFrom(1, 2), { nil: undefined }), fc.boolean(), (proposals, uses, limited) => {
      waiting(may);
      bench.decides("approve", { remember: { ...hour, ...(uses === undefined ? {} : { uses }), ...(limited ? { where: "{\"n\":0}" } : {}) } }, current("ask", may));
      const grantedAtMs = bench.atMs;
      let used = 0;
      let gone = false;
      for (const [index, proposal] of proposals.entries()) {
        bench.result();
        bench.later(proposal.laterMs);
        bench.answer([callOf("ask", { step: index + 2, args: proposal.args, verdict: { ...may, risk: proposal.risk, policyVersion: proposal.policyVersion } })]);
        const over = bench.atMs >= grantedAtMs + HOUR || proposal.policyVersion !== "p1" || (uses !== undefined && used >= uses);
        gone ||= over;
        const rightful = !gone && proposal.risk !== "high" && (!limited || proposal.args === "{\"n\":0}");
        expect(bench.types.includes("ToolCallDispatched")).toBe(rightful);
        if (!rightful) return;
        used += 1;
      }
    }), { numRuns: 200 });
  });
});

describe("consent is asked again when a call goes out", () => {
  it("a retry after the approval has run out does not go out; the model is told that it expired", () => {
    waiting({ consentForMs: 60_000 });
    bench.decides("approve");
    bench.fails("transient");
    bench.later(60_000).tick();
    expect(statuses()).toEqual(["expired"]);
    expect(bench.eventsOf("ToolCallDispatched")).toHaveLength(1);
  });

  it("a retry within it does", () => {
    waiting({ consentForMs: 60_000 });
    bench.decides("approve");
    bench.fails("transient");
    bench.later(30_000).tick();
    expect(bench.eventsOf("ToolCallDispatched")).toHaveLength(2);
  });

  it.each<[string, (bench: Bench) => void, RegExp | undefined]>([
    ["nothing has changed", () => undefined, undefined],
    ["its time is over", (b) => { b.later(30_000); }, /a time that is over/],
    ["the policy is another", (b) => { b.policyVersion = "p2"; }, /under policy p1, and p2 holds now/],
    ["its arguments are others than those permitted", (b) => { const state = structuredClone(b.open) as { run?: { calls: { argsDigest: string }[] } }; state.run!.calls[0]!.argsDigest = argsDigest("{\"n\":9}"); b.state = state as typeof b.state; }, /for other arguments/],
  ])("each alone: %s", (_, change, said) => {
    bench = new Bench();
    bench.policyVersion = "p1";
    bench.receive(1);
    bench.answer([callOf("ask", { verdict: { consentForMs: 60_000 } })]);
    bench.decides("approve", {}, current("ask", { consentForMs: 60_000 }));
    bench.fails("transient");
    bench.later(30_000);
    change(bench);
    bench.tick();
    expect(bench.eventsOf("ToolCallDispatched")).toHaveLength(said === undefined ? 2 : 1);
    expect(bench.eventsOf("ToolResultRecorded").map(({ status, content }) => `${status}: ${content.text}`)).toEqual(said === undefined ? [] : [expect.stringMatching(said)]);
  });

  it.each([["approved", "ask"], ["allowed", "allow"]] as const)("a retry of a call that was %s under another policy does not go out", (_, kind) => {
    bench = new Bench();
    bench.policyVersion = "p1";
    bench.receive(1);
    bench.answer([callOf(kind)]);
    if (kind === "ask") bench.decides("approve", {}, current("ask"));
    bench.fails("transient");
    bench.policyVersion = "p2";
    bench.later(60_000).tick();
    expect(statuses()).toEqual(["expired"]);
  });

  it("a call that may have had its effect is not told expired: a person is asked (I6)", () => {
    bench = new Bench();
    bench.policyVersion = "p1";
    bench.receive(1);
    bench.answer([callOf("allow", { effects: "idempotent" })]);
    bench.fails("timeout");
    bench.policyVersion = "p2";
    bench.later(60_000).tick();
    expect(bench.open.status).toBe("ESCALATED");
    expect(bench.open.approvals[0]).toMatchObject({ escalation: "outcome_unknown" });
  });
});

describe("a tool that has changed since the question was put", () => {
  const shown = (toolDigest: string, about: Partial<Verdict> = {}): void => {
    bench = new Bench();
    bench.receive();
    bench.answer([callOf("ask", { toolDigest, verdict: about })]);
    bench.confirm();
  };
  const now = (toolDigest: string, kind: "allow" | "ask" | "deny" = "ask") => ({ ...current(kind), toolDigest }) as const;

  it("is asked about once more: the approval counts for nothing, and is published as the next version", () => {
    shown("t1");
    const [before] = bench.open.approvals;
    expect(bench.decides("approve", {}, now("t2"))).toMatchObject({ ok: false, code: "version_mismatch" });
    expect(bench.types).toEqual(["ApprovalAskedAgain", "DecisionRefused"]);
    expect(bench.open.approvals).toEqual([{ ...before, version: 2, toolDigest: "t2", signatures: [] }]);
    expect(bench.open.outbox.map(({ rowId }) => rowId)).toContain(`approval:${before!.approvalId}:2`);
    expect(bench.decides("approve", { version: 1 }, now("t2"))).toMatchObject({ ok: false, code: "version_mismatch" });
    expect(bench.decides("approve", {}, now("t2"))).toMatchObject({ ok: true });
    expect(bench.call()).toMatchObject({ argsDigest: before!.argsDigest, life: { phase: "dispatched" } });
    foldIsState(bench);
  });

  it("voids the signatures of a quorum", () => {
    shown("t1", { approvers: { roles: [], quorum: 2, excludeRequester: true } });
    bench.decides("approve", { principal: BEN }, now("t1"));
    bench.decides("approve", {}, now("t2"));
    expect(bench.open.approvals[0]!.signatures).toEqual([]);
  });

  it("is asked about again before new arguments too, and not before a rejection, an objection, or where nobody knew the tool", () => {
    shown("t1");
    expect(bench.decides("modify", {}, { ok: true, toolDigest: "t2", modified: { args: "{\"n\":1}", argsDigest: "d", verdict: verdict("ask") } })).toMatchObject({ code: "version_mismatch" });
    shown("t1");
    expect(bench.decides("approve", { principal: { ...ANNA, roles: ["viewer"] } }, now("t2"))).toMatchObject({ code: "not_an_approver" });
    expect(bench.decides("approve", {}, { ...current("deny", { policyVersion: "p2" }), toolDigest: "t2" })).toMatchObject({ code: "denied_by_policy" });
    expect(bench.decides("reject", { text: "no" }, { ok: true, toolDigest: "t2" })).toMatchObject({ ok: true });
    waiting();
    expect(bench.decides("approve", {}, now("t2"))).toMatchObject({ ok: true });
  });
});

describe("policy that has changed since the question was put", () => {
  it("and denies the call now: an approval is refused, a rejection is not", () => {
    expect(bench.decides("approve", {}, current("deny", { policyVersion: "p2" }))).toMatchObject({ ok: false, code: "denied_by_policy" });
    expect(bench.decides("reject", { text: "no" })).toMatchObject({ ok: true });
    expect(statuses()).toEqual(["rejected"]);
  });

  it("and asks for other people now: both must be met", () => {
    const stricter = current("ask", { policyVersion: "p2", approvers: { roles: ["finance"], quorum: 1, excludeRequester: true } });
    expect(bench.decides("approve", {}, stricter)).toMatchObject({ ok: false, code: "not_an_approver" });
    expect(bench.decides("approve", { principal: { ...ANNA, roles: ["finance"] } }, stricter)).toMatchObject({ ok: false, code: "not_an_approver" });
    expect(bench.decides("approve", { principal: { ...ANNA, roles: ["approver", "finance"] } }, stricter)).toMatchObject({ ok: true });
    expect(bench.call().permit).toMatchObject({ policyVersion: "p2" });
  });

  it("voids the signatures that were given before", () => {
    const two = { approvers: { roles: [], quorum: 2, excludeRequester: true } };
    waiting(two);
    bench.decides("approve", {}, current("ask", two));
    bench.decides("approve", { principal: BEN }, current("ask", { ...two, policyVersion: "p2" }));
    expect(bench.open.approvals[0]).toMatchObject({ policyVersion: "p2", signatures: [{ principalId: "ben" }] });
    bench.decides("approve", {}, current("ask", { ...two, policyVersion: "p2" }));
    expect(bench.types).toContain("ToolCallDispatched");
    foldIsState(bench);
  });

  it("and would allow it now changes nothing: what was asked is asked", () => {
    expect(bench.decides("approve", { principal: { ...ANNA, roles: ["viewer"] } }, current("allow", { policyVersion: "p2" }))).toMatchObject({ ok: false, code: "not_an_approver" });
  });
});

describe("a decision that comes at an odd time", () => {
  it("signed for a time that is over: refused by name and recorded with who it was", () => {
    expect(bench.decides("approve", {}, { ok: false, code: "expired" })).toMatchObject({ ok: false, code: "expired" });
    expect(bench.eventsOf("DecisionRefused")).toMatchObject([{ code: "expired", principal: { id: "anna" } }]);
  });

  it("with a bad signature: nobody is named", () => {
    bench.decides("approve", {}, { ok: false, code: "bad_signature" });
    expect(bench.eventsOf("DecisionRefused")[0]).not.toHaveProperty("principal");
  });

  it("for an approval of an older version of Docket, which knows none of the newer fields", () => {
    bench.decides("approve");
    expect(bench.eventsOf("ApprovalOpened")[0]!.record).not.toHaveProperty("chain");
    expect(bench.types).toContain("ToolCallDispatched");
  });
});

describe("a raise", () => {
  it.each([["too little", 4, "arguments_invalid"], ["the same", 8, "arguments_invalid"], ["more", 9, undefined]] as const)("of %s", (_, maxSteps, code) => {
    bench = new Bench({ ...bench.limits, maxSteps: 8, maxReflections: 99 });
    bench.receive(1);
    for (let step = 1; bench.open.status !== "ESCALATED"; step += 1) {
      bench.answer([callOf("allow", { step, effects: "none", args: `{"n":${String(step)}}` })]);
      bench.result();
    }
    expect(bench.decides("raise", { raise: { maxSteps } })).toMatchObject(code === undefined ? { ok: true } : { ok: false, code });
  });
});
