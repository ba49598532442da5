/** A decision at an odd time, or for a session that has moved or was upgraded, has one outcome, and the person can read it (I8, I10, I12). */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { APPROVAL_TEND } from "../../../src/contracts/decisions.js";
import { compilePolicy } from "../../../src/session/core/policy/compile.js";
import { ACTOR, command, decisionOn, fakeTime, pass, prompt, quiet, World, type Host } from "./support.js";

let world: World;
let host: Host;
beforeEach(async () => {
  fakeTime();
  world = new World();
  host = world.host();
  await host.take("tasks", prompt("1", "refund o1", { agent: "clerk" }));
  await pass(1_000);
  expect(world.bus.pending).toHaveLength(1);
});
afterEach(() => { world.checkFold(); vi.useRealTimers(); });

const decide = async (id: string, about: Parameters<typeof decisionOn>[2] = {}, on = host): Promise<unknown> => {
  await on.take("approvalsResolved", decisionOn(world.bus.pending[0]!, id, about));
  await quiet();
  return (await on.service.reads.decision(ACTOR, id)).verdict;
};
const newPolicy = (rules: string): void => { (world.catalog as { policy: unknown }).policy = compilePolicy([{ file: "p.yaml", text: `version: 1\nrules:\n${rules}` }]); };

describe("a decision", () => {
  it("twice has one effect and the first verdict both times; another one is told that it came second", async () => {
    expect(await decide("d1")).toBe("approved");
    expect(await decide("d1")).toBe("approved");
    expect(await decide("d2")).toBe("already_decided");
    expect(world.events("ToolCallDispatched")).toHaveLength(1);
  });

  it("for an approval that is not there (yet) is refused, and the real one is open as before", async () => {
    expect(await decide("d1", { approvalId: "apr_invented" })).toBeUndefined(); // its message names another approval: never signed for this one
    expect(world.bus.letters.at(-1)).toMatchObject({ kind: "decision", reason: "bad_signature" });
    expect(await decide("d2")).toBe("approved");
  });

  it("rightly signed, for the very approval that comes later: refused by name, once and for all, and the approval waits for another one", async () => {
    // What an approval is called follows from the event, so that it can be known beforehand.
    const elsewhere = world.bus.pending[0]!;
    world = new World();
    host = world.host();
    await host.take("tasks", prompt("0", "hello", { agent: "clerk" }));
    await pass(1_000);
    const early = decisionOn(elsewhere, "early");
    await host.take("approvalsResolved", early);
    await quiet();
    expect((await host.service.reads.decision(ACTOR, "early")).verdict).toBe("approval_not_found");
    await host.take("tasks", prompt("1", "refund o1", { agent: "clerk" }));
    await pass(1_000);
    expect(world.bus.pending[0]!.record.approvalId).toBe(elsewhere.record.approvalId);
    await host.take("approvalsResolved", early);
    await quiet();
    expect((await host.service.reads.decision(ACTOR, "early")).verdict).toBe("approval_not_found");
    expect(world.events("ToolCallDispatched")).toEqual([]);
    expect(await decide("in-time")).toBe("approved");
  });

  it("for a session that no event has opened is a dead letter", async () => {
    const pending = { ...world.bus.pending[0]!, sessionId: "nobody", actorId: "default_nobody" };
    await host.take("approvalsResolved", decisionOn(pending, "d1"));
    expect(world.bus.letters.at(-1)).toMatchObject({ kind: "decision", reason: "session_not_found" });
  });

  it("that was on its way for too long is refused by name, and the person decides anew", async () => {
    expect(await decide("d1", { exp: Math.floor(Date.now() / 1000) - 60 })).toBe("expired");
    expect(world.events("DecisionRefused")).toMatchObject([{ code: "expired", principal: { id: "anna" } }]);
    expect(await decide("d2")).toBe("approved");
  });

  it("after expiry says that it has expired", async () => {
    await pass(25 * 3_600_000);
    await host.service.tick(ACTOR);
    expect(await decide("d1")).toBe("approval_expired");
    expect(world.events("ToolResultRecorded")).toMatchObject([{ status: "expired" }]);
  });

  it("counts on another host than the one that asked, which knows the session only from the store", async () => {
    const other = world.host("host-2");
    expect(await decide("d1", {}, other)).toBe("approved");
    await pass(1_000);
    expect(world.bus.requests).toHaveLength(1);
  });

  it("counts after an upgrade of agent and policy that asks the same, and is recorded with the policy it was checked against", async () => {
    newPolicy("  - { id: ask, match: { tools: [refund] }, verdict: ask, reason: asks }\n");
    const agents = world.catalog.agents as Map<string, unknown>;
    agents.set("clerk", { ...(agents.get("clerk") as object), version: "2" });
    expect(await decide("d1", {}, world.host("host-2"))).toBe("approved");
    expect(world.events("DecisionRecorded")).toMatchObject([{ policyVersion: world.catalog.policy.version }]);
  });

  it.each([["denies the call now", "deny", "denied_by_policy"], ["wants another role now", "ask, approvers: { roles: [finance] }", "not_an_approver"]])("is refused where policy %s, and a rejection still counts", async (_, verdict, code) => {
    newPolicy(`  - { id: now, match: { tools: [refund] }, verdict: ${verdict}, reason: stricter }\n`);
    expect(await decide("d1", {}, world.host("host-2"))).toBe(code);
    expect(await decide("d2", { kind: "reject", text: "no" }, world.host("host-2"))).toBe("rejected");
    expect(world.events("ToolCallDispatched")).toEqual([]);
  });

  it("is refused for a tool that is no longer installed", async () => {
    (world.catalog.manifests as Map<string, unknown>).delete("refund");
    expect(await decide("d1")).toBe("denied_by_policy");
  });
});

describe("assignment and snooze", () => {
  it("reach the session as commands, once each, and say what became of them", async () => {
    const { approvalId } = world.bus.pending[0]!.record;
    const assign = command(APPROVAL_TEND, "a1", { approvalId, assignTo: "ben" });
    await host.take("tasks", assign);
    await host.take("tasks", assign);
    expect(world.events("ApprovalAssigned")).toHaveLength(1);
    expect((await host.service.reads.session(ACTOR))?.approvals[0]).toMatchObject({ assignedTo: "ben" });
    await host.take("tasks", command(APPROVAL_TEND, "a2", { approvalId: "apr_other", assignTo: "ben" }));
    expect(world.events("ApprovalAssigned")).toHaveLength(1);
  });
});
