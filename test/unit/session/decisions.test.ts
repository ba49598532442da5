import { beforeEach, describe, expect, it } from "vitest";
import { argsDigest } from "../../../src/contracts/ids.js";
import type { ProblemCode } from "../../../src/contracts/problems.js";
import { ANNA, Bench, BEN, callOf, verdict } from "./support.js";

let bench: Bench;
const ask = (about: Parameters<typeof verdict>[1] = {}) => {
  bench = new Bench();
  bench.receive(1);
  bench.answer([callOf("ask", { verdict: about })]);
};
beforeEach(() => ask());
const modified = (kind: "allow" | "ask" | "deny", about: Parameters<typeof verdict>[1] = {}) =>
  ({ ok: true, modified: { args: "{\"n\":7}", argsDigest: argsDigest("{\"n\":7}"), verdict: verdict(kind, about) } }) as const;
const results = () => bench.eventsOf("ToolResultRecorded").map((event) => [event.status, event.content.text]);

describe("an open approval", () => {
  it("is a row for the console until that acknowledges it, and then holds nothing but a slow guard (I8)", () => {
    expect(bench.open.outbox).toMatchObject([{ kind: "approval_pending", rev: 2 }]);
    bench.confirm();
    expect(bench.open.outbox).toHaveLength(1);
    bench.ask({ type: "AcknowledgeApproval", approvalId: bench.open.approvals[0]!.approvalId, version: 1 });
    expect(bench.open.outbox).toEqual([]);
    bench.later(1000).tick();
    expect(bench.types).toEqual(["GuardReleased"]);
    expect(bench.open.guard).toEqual({ generation: 2, armed: true, periodMs: 60_000, dueAtMs: 1_000_000 + 3_600_000 });
    bench.decides("approve");
    expect(bench.open.guard).toMatchObject({ generation: 3, armed: true, periodMs: 10_000 });
  });

  it("has a fast guard again as soon as the model is called, although no deadline comes sooner", () => {
    bench.ask({ type: "AcknowledgeApproval", approvalId: bench.open.approvals[0]!.approvalId, version: 1 });
    bench.later(1000).tick();
    bench.decides("reject");
    expect(bench.open.guard).toMatchObject({ generation: 3, armed: true, periodMs: 5000 });
  });

  it("never outlives the event", () => {
    const timed = new Bench();
    timed.receive(1, { expiresAtMs: timed.atMs + 60_000 });
    timed.answer([callOf("ask")]);
    expect(timed.open.approvals[0]!.expiresAtMs).toBe(timed.atMs + 60_000);
  });
});

describe("a decision", () => {
  it("approve sends exactly the shown arguments (I5)", () => {
    bench.decides("approve");
    expect(bench.types).toEqual(["DecisionRecorded", "ToolCallDispatched"]);
    expect(bench.open.outbox.map((row) => row.kind)).toEqual(["tool_request"]);
  });

  it("reject tells the model why, and the same call is rejected at once when proposed again", () => {
    bench.decides("reject", { text: "too much" });
    expect(results()).toEqual([["rejected", "rejected by a person: too much"]]);
    bench.answer([callOf("ask", { step: 2 })]);
    expect(results()[1]?.[0]).toBe("rejected");
    expect(bench.eventsOf("ApprovalOpened")).toHaveLength(1);
  });

  it("respond becomes the call's result", () => {
    bench.decides("respond", { text: "I did it by hand" });
    expect(results()).toEqual([["responded", "I did it by hand"]]);
  });

  it("modify runs the new arguments, which live in the decision's entry", () => {
    bench.decides("modify", {}, modified("ask"));
    expect(bench.types).toEqual(["DecisionRecorded", "ToolCallDispatched"]);
    expect(bench.call()).toMatchObject({ argsDigest: argsDigest("{\"n\":7}"), argsRev: 3 });
  });

  it.each<[string, ProblemCode, (bench: Bench) => unknown]>([
    ["with a bad signature", "bad_signature", (b) => b.decides("approve", {}, { ok: false, code: "bad_signature" })],
    ["for an unknown approval", "approval_not_found", (b) => b.decides("approve", { approvalId: "apr_nope" })],
    ["for another version", "version_mismatch", (b) => b.decides("approve", { version: 2 })],
    ["for other arguments", "digest_mismatch", (b) => b.decides("approve", { argsDigest: "sha256:other" })],
    ["of a kind that is not allowed", "decision_not_allowed", (b) => b.decides("give_up")],
    ["by someone without the role", "not_an_approver", (b) => b.decides("approve", { principal: { ...ANNA, roles: ["viewer"] } })],
    ["by an agent", "not_an_approver", (b) => b.decides("approve", { principal: { ...ANNA, class: "agent" } })],
    ["by the requester", "own_request", (b) => b.decides("approve", { principal: { ...ANNA, id: "requester" } })],
    ["that modifies without arguments", "arguments_invalid", (b) => b.decides("modify")],
    ["that modifies to what policy denies", "denied_by_policy", (b) => b.decides("modify", {}, modified("deny"))],
    ["that modifies to what this person may not approve", "not_an_approver", (b) => b.decides("modify", {}, modified("ask", { approvers: { roles: ["cfo"], quorum: 1, excludeRequester: true } }))],
    ["that comes too late", "approval_expired", (b) => b.later(3_600_000).decides("approve")],
  ])("%s changes nothing and is recorded as %s (I10)", (_, code, when) => {
    expect(when(bench)).toMatchObject({ ok: false, code });
    expect(bench.types).toEqual(["DecisionRefused"]);
    expect(bench.open).toMatchObject({ status: "AWAITING_APPROVAL", recentDecisions: [{ verdict: code }] });
  });

  it("that is refused keeps why, in the words that the person is told, within a bound", () => {
    bench.decides("approve", {}, { ok: false, code: "arguments_invalid", message: "/n: got 1 (a string), expected: it must be integer" });
    bench.decides("approve", {}, { ok: false, code: "arguments_invalid", message: "x".repeat(5_000) });
    expect(bench.eventsOf("DecisionRefused").map(({ message }) => [message?.slice(0, 20), message?.length])).toEqual([["/n: got 1 (a string)", 50], ["x".repeat(20), 2_000]]);
  });

  it("that arrives twice has effect once; another one for the same approval is refused", () => {
    const { approvalId, argsDigest: digest } = bench.open.approvals[0]!;
    const again = { approvalId, argsDigest: digest, version: 1 };
    bench.decides("approve", { jti: "click-1" });
    const asked = (jti: string) => bench.ask({ type: "Decide", judged: { ok: true }, reserveUsd: 0, claims: { iss: "docket/console", aud: "docket/sessions", sub: "a1", jti, kind: "approve", principal: ANNA, via: "web", iat: 0, exp: 0, ...again } });
    expect(asked("click-1")).toMatchObject({ ok: false, code: "duplicate", events: [] });
    expect(asked("click-2")).toMatchObject({ ok: false, code: "already_decided" });
  });

  it("after a withdrawal says so", () => {
    const { approvalId, argsDigest: digest } = bench.open.approvals[0]!;
    bench.ask({ type: "Cancel", key: "c", reason: "stop" });
    expect(bench.ask({ type: "Decide", judged: { ok: true }, reserveUsd: 0, claims: { iss: "docket/console", aud: "docket/sessions", sub: "a1", jti: "late", kind: "approve", principal: ANNA, via: "web", iat: 0, exp: 0, approvalId, argsDigest: digest, version: 1 } }))
      .toMatchObject({ ok: false, code: "approval_withdrawn" });
  });
});

describe("a quorum of two", () => {
  const two = { approvers: { roles: [], quorum: 2, excludeRequester: true } };
  beforeEach(() => ask(two));

  it("wants two different people", () => {
    bench.decides("approve");
    expect(bench.open).toMatchObject({ status: "AWAITING_APPROVAL", approvals: [{ signatures: [{ principalId: "anna" }] }] });
    expect(bench.decides("approve")).toMatchObject({ ok: false, code: "already_decided", message: "you have already signed (anna); 1 more person has to, and nobody counts twice" });
    bench.decides("approve", { principal: BEN });
    expect(bench.types).toEqual(["DecisionRecorded", "ToolCallDispatched"]);
  });

  it("any reject is final", () => {
    bench.decides("approve");
    bench.decides("reject", { principal: BEN });
    expect(results()[0]?.[0]).toBe("rejected");
  });

  it("new arguments are a new question: version up, earlier signatures void", () => {
    bench.decides("approve");
    bench.decides("modify", { principal: BEN }, modified("allow"));
    expect(bench.open.approvals[0]).toMatchObject({ version: 2, argsDigest: argsDigest("{\"n\":7}"), signatures: [{ principalId: "ben" }] });
    expect(bench.open.outbox.map((row) => row.rowId)).toEqual([`approval:${bench.open.approvals[0]!.approvalId}:2`]);
    bench.decides("approve");
    expect(bench.call()).toMatchObject({ argsDigest: argsDigest("{\"n\":7}"), life: { phase: "dispatched" } });
  });

  it("is also asked where one was enough for the old arguments", () => {
    ask();
    bench.decides("modify", {}, modified("ask", two));
    expect(bench.open.approvals[0]).toMatchObject({ version: 2, approvers: { quorum: 2 } });
  });
});

describe("an approval nobody decides", () => {
  it.each([
    ["reject", ["ApprovalExpired", "ToolResultRecorded", "ModelCallStarted", "PublicationRepeated"]],
    ["escalate", ["ApprovalExpired", "Escalated"]],
  ] as const)("%s", (onExpiry, types) => {
    ask({ onExpiry });
    bench.later(3_600_000).tick();
    expect(bench.types.slice(0, 2)).toEqual(types.slice(0, 2));
  });

  it("escalated, is shown with the same digest and can still be approved, by an administrator too", () => {
    ask({ onExpiry: "escalate", approvers: { roles: ["finance"], quorum: 1, excludeRequester: false } });
    const { argsDigest: digest } = bench.open.approvals[0]!;
    bench.later(3_600_000).tick();
    expect(bench.open).toMatchObject({ status: "ESCALATED", approvals: [{ argsDigest: digest, approvers: { roles: ["finance", "admin"] } }] });
    bench.decides("approve", { principal: { ...ANNA, roles: ["admin"] } });
    expect(bench.types).toEqual(["DecisionRecorded", "ToolCallDispatched"]);
  });

  it("that is to be kept stays open and decidable", () => {
    ask({ onExpiry: "keep" });
    bench.later(4_000_000).tick();
    expect(bench.open.status).toBe("AWAITING_APPROVAL");
    expect(bench.decides("approve").ok).toBe(true);
  });

  it("expires with its run, and the call's result says expired", () => {
    bench.later(90_000_000).tick();
    expect(results()).toMatchObject([["expired", /expired/]]);
    expect(bench.open.recentRuns).toMatchObject([{ outcome: "expired" }]);
  });
});
