/**
 * I8, I5, I6: a session that waits for a person holds nothing in memory. Every process is killed, everything starts
 * again on the same folder, the approval is given, the tool runs once with the approved arguments, and the stream that
 * was open goes on where it was.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actorIdOf } from "../../src/contracts/ids.js";
import { foldCheck, outcomeProblems } from "../support/checks.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { StreamClient } from "../support/sse.js";

let docket: Docket;
beforeAll(async () => { docket = await startDocket(); });
afterAll(async () => { await docket.close(); });

async function refundsOf(sessionId: string): Promise<{ orderId: string; amountCents: number }[]> {
  const text = await readFile(join(docket.dataDir, "workspaces", actorIdOf("default", sessionId), "refunds.jsonl"), "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as { orderId: string; amountCents: number });
}

describe("while a session waits for approval", () => {
  it("survives kill -9 of every process: the tool runs once, with the approved arguments, and the open stream resumes", async () => {
    const session = freshSession("kill-all");
    const accepted = await docket.prompt(session, "refund 1200 cents of order 1001");
    await docket.openApproval(session);
    const stream = new StreamClient(`${docket.test.stack.urls.gateway ?? ""}/v1/sessions/${session}/stream`, docket.apiKey);
    stream.start();
    await eventually("the stream has the open approval", () => (stream.events.some((event) => JSON.stringify(event.data).includes("ApprovalOpened")) ? true : undefined));
    const before = stream.revs().length;

    await docket.test.stack.killAll("SIGKILL");
    await docket.test.stack.startAll();

    const item = await docket.openApproval(session);
    expect(await refundsOf(session)).toEqual([]);
    const answer = await docket.decide(item, "approve");
    expect(answer).toMatchObject({ status: 200 });
    expect((await docket.ended(accepted)).outcome).toBe("completed");
    expect(await refundsOf(session)).toMatchObject([{ orderId: "1001", amountCents: 1200 }]);

    await eventually("the stream has seen the end", () => (stream.events.some((event) => JSON.stringify(event.data).includes("RunEnded")) ? true : undefined));
    stream.close();
    const head = stream.revs().at(-1) ?? 0;
    const journal = await docket.journal(session);
    expect(stream.connections).toBeGreaterThan(1);
    expect(head).toBeGreaterThan(before);
    expect(stream.revs()).toEqual(journal.map((entry) => entry.rev).filter((rev) => rev <= head));
    expect(outcomeProblems(journal)).toEqual([]);
  });

  it("takes a modified decision: what runs is byte for byte what was decided", async () => {
    const session = freshSession("modify");
    const accepted = await docket.prompt(session, "refund 9900 cents of order 1001");
    const item = await docket.openApproval(session);
    const args = JSON.stringify({ amountCents: 500, orderId: "1001", reason: "half is enough" });
    expect(await docket.decide(item, "modify", { args })).toMatchObject({ status: 200 });
    await docket.ended(accepted);
    expect(await refundsOf(session)).toMatchObject([{ orderId: "1001", amountCents: 500, reason: "half is enough" }]);
  });

  it("tells the model when a person says no, and runs nothing", async () => {
    const session = freshSession("reject");
    const accepted = await docket.prompt(session, "refund 9900 cents of order 1001");
    const item = await docket.openApproval(session);
    expect(await docket.decide(item, "reject", { text: "not ours" })).toMatchObject({ status: 200 });
    expect((await docket.ended(accepted)).outcome).toBe("completed");
    expect(await refundsOf(session)).toEqual([]);
    expect(eventsOf(await docket.journal(session), "ToolResultRecorded").map((event) => event.status)).toEqual(["rejected"]);
  });

  it("refuses a decision for other arguments, an older version, or a second one, and records it (I10)", async () => {
    const session = freshSession("refuse");
    await docket.prompt(session, "refund 9900 cents of order 1001");
    const item = await docket.openApproval(session);
    expect(await docket.decide(item, "approve", { argsDigest: `sha256:${"0".repeat(64)}` })).toMatchObject({ status: 409, body: { code: "digest_mismatch" } });
    expect(await docket.decide(item, "approve", { version: item.pending.record.version + 1 })).toMatchObject({ status: 409 });
    expect(await refundsOf(session)).toEqual([]);
    expect(await docket.decide(item, "approve")).toMatchObject({ status: 200 });
    expect(await docket.decide(item, "approve")).toMatchObject({ status: 409, body: { code: "already_decided" } });
    await eventually("the refund", async () => ((await refundsOf(session)).length === 1 ? true : undefined));
    expect(eventsOf(await docket.journal(session), "ToolCallDispatched")).toHaveLength(1);
  });

  it("has a journal that folds to its state, for every session of this file", async () => {
    const report = foldCheck(docket);
    expect(report.problems).toEqual([]);
    expect(report.sessions).toBeGreaterThanOrEqual(docket.used.size);
  });
});
