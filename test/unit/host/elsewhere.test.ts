/** What hurts people with other systems' approvals, as tests of the real session host. The whole list, with the tests of those that are not here: docs/policies.md. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SESSION_CANCEL } from "../../../src/contracts/messages.js";
import { argsDigest } from "../../../src/contracts/ids.js";
import { compilePolicy } from "../../../src/session/core/policy/compile.js";
import { ACTOR, command, decisionOn, fakeTime, pass, prompt, quiet, resultOf, until, World, type Host } from "./support.js";

let world: World;
let host: Host;
/** Answers that the model has given. */
let answered = 0;
beforeEach(() => {
  fakeTime();
  answered = 0;
  world = new World();
  host = world.host();
});
afterEach(() => { world.checkFold(); vi.useRealTimers(); });

const refund = (order: string) => ({ id: `p-${order}`, name: "refund", args: JSON.stringify({ order }) });
/** The model proposes, and as many questions as that makes are put. */
async function proposes(...orders: string[]): Promise<void> {
  await until("the model is called", () => world.hand.calls.length > answered);
  answered = world.hand.calls.length;
  const before = world.bus.pending.length;
  world.hand.last.answer({ text: "", stop: "tool_use", calls: orders.map(refund) });
  await pass(1_000);
  expect(world.bus.pending.length - before).toBe(orders.length);
}
const verdictOf = async (decisionId: string, on = host): Promise<unknown> => (await on.service.reads.decision(ACTOR, decisionId)).verdict;
const pendingOf = (order: string) => world.bus.pending.findLast(({ args }) => args === JSON.stringify({ order }))!;
const ANY_REFUND_MAY_RUN = compilePolicy([{ file: "p.yaml", text: "version: 1\nrules:\n  - { id: all, match: { tools: [refund] }, verdict: allow, reason: now it may }\n" }]);

describe("a stale click", () => {
  it("approves nothing that its card did not show: not the next call of the same session, not by its id, and not by its digest", async () => {
    await host.take("tasks", prompt("1", "refund o1", { agent: "hand" }));
    await proposes("o1");
    const shown = pendingOf("o1");
    await host.take("tasks", command(SESSION_CANCEL, "c1", { reason: "wrong" }));
    await pass(1_000);
    await host.take("tasks", prompt("2", "refund o2", { agent: "hand" }));
    await proposes("o2");
    const next = pendingOf("o2");
    await host.take("approvalsResolved", decisionOn(shown, "late"));
    await host.take("approvalsResolved", decisionOn({ ...shown, record: next.record }, "other-digest", { argsDigest: shown.record.argsDigest }));
    await quiet();
    expect([await verdictOf("late"), await verdictOf("other-digest")]).toEqual(["approval_withdrawn", "digest_mismatch"]);
    expect(world.events("ToolCallDispatched")).toEqual([]);
    await host.take("approvalsResolved", decisionOn(next, "seen"));
    await quiet();
    expect(await verdictOf("seen")).toBe("approved");
  });
});

describe("a declined call", () => {
  it("does not run where policy would allow it when the session resumes, elsewhere, nor when the model proposes it again", async () => {
    await host.take("tasks", prompt("1", "refund o1", { agent: "hand" }));
    await proposes("o1");
    (world.catalog as { policy: unknown }).policy = ANY_REFUND_MAY_RUN;
    const resumed = world.host("host-2");
    await resumed.take("approvalsResolved", decisionOn(pendingOf("o1"), "no", { kind: "reject", text: "not this one" }));
    await pass(1_000);
    expect(await verdictOf("no", resumed)).toBe("rejected");
    await until("the model reads why", () => world.hand.calls.length === 2);
    expect(JSON.stringify(world.hand.last.request.messages)).toContain("not this one");
    world.hand.last.answer({ text: "again", stop: "tool_use", calls: [refund("o1")] });
    await pass(1_000);
    expect(world.events("ToolResultRecorded").map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    expect(world.events("ToolCallDispatched")).toEqual([]);
    expect(world.bus.requests).toEqual([]);
  });
});

describe("mixed decisions on parallel calls", () => {
  it("give each call exactly one result, and the conversation goes on", async () => {
    await host.take("tasks", prompt("1", "refund five", { agent: "hand" }));
    const orders = ["approved", "modified", "rejected", "responded", "expired"];
    await proposes(...orders);
    await host.take("approvalsResolved", decisionOn(pendingOf("rejected"), "d-rejected", { kind: "reject", text: "no" }));
    await host.take("approvalsResolved", decisionOn(pendingOf("modified"), "d-modified", { kind: "modify", args: '{"order":"changed"}' }));
    await host.take("approvalsResolved", decisionOn(pendingOf("responded"), "d-responded", { kind: "respond", text: "done by hand" }));
    await host.take("approvalsResolved", decisionOn(pendingOf("approved"), "d-approved"));
    await until("two calls are out", () => world.bus.requests.length === 2);
    for (const request of world.bus.requests) await host.take("toolResults", resultOf(request, { output: `paid ${request.args}` }));
    await quiet();
    expect(world.hand.calls, "one is still open").toHaveLength(1);
    await pass(25 * 3_600_000);
    await host.service.tick(ACTOR);
    await until("the model has them all", () => world.hand.calls.length === 2);
    const results = world.events("ToolResultRecorded");
    expect(results.map(({ status }) => status).sort()).toEqual(["expired", "rejected", "responded", "succeeded", "succeeded"]);
    expect(new Set(results.map(({ callId }) => callId)).size).toBe(5);
    const told = JSON.stringify(world.hand.last.request.messages);
    for (const order of orders) expect(told.split(`p-${order}`).length - 1, `call and result of ${order}`).toBeGreaterThanOrEqual(2);
    world.hand.last.answer({ text: "all said" });
    await until("the run ends", () => world.bus.ended.length === 1);
    await host.take("tasks", prompt("2", "and now?", { agent: "hand" }));
    await until("the next question reaches the model", () => world.hand.calls.length === 3);
  });
});

describe("two approvers at once", () => {
  it("on two hosts: one of them wins and the other is told so, whoever is first", async () => {
    await host.take("tasks", prompt("1", "refund o1", { agent: "hand" }));
    await proposes("o1");
    const other = world.host("host-2");
    const [shown] = world.bus.pending;
    await Promise.all([
      host.take("approvalsResolved", decisionOn(shown!, "anna")),
      other.take("approvalsResolved", decisionOn(shown!, "ben", { kind: "modify", args: '{"order":"o2"}', principal: { id: "ben", class: "person", roles: ["approver"] } })),
    ]);
    await pass(1_000);
    const verdicts = [await verdictOf("anna"), await verdictOf("ben", other)];
    expect([["approved", "already_decided"], ["already_decided", "modified"]]).toContainEqual(verdicts);
    expect(world.bus.requests.map(({ args, argsDigest: digest }) => [args, digest])).toEqual([verdicts[0] === "approved" ? ['{"order":"o1"}', argsDigest('{"order":"o1"}')] : ['{"order":"o2"}', argsDigest('{"order":"o2"}')]]);
    expect(world.events("DecisionRefused")).toMatchObject([{ code: "already_decided" }]);
  });
});

describe("a card", () => {
  it("has all arguments, whatever their size: what is published to be shown is what the digest is of", async () => {
    const args = JSON.stringify({ order: `o${"1".repeat(30_000)}\u202e` });
    await host.take("tasks", prompt("1", "refund much", { agent: "hand" }));
    await until("the model is called", () => world.hand.calls.length === 1);
    world.hand.last.answer({ text: "", stop: "tool_use", calls: [{ id: "p-1", name: "refund", args }] });
    await pass(1_000);
    const [shown] = world.bus.pending;
    expect(shown!.args).toBe(args);
    expect(shown!.record.argsDigest).toBe(argsDigest(shown!.args));
  });
});
