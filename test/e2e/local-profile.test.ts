/** The main job on the `local` profile: Redis Streams and SQLite, what `dapr init` leaves on a laptop. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { foldCheck, outcomeProblems, overlapProblems } from "../support/checks.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { startRedis, type TestRedis } from "../support/redis.js";

let redis: TestRedis;
let docket: Docket;
beforeAll(async () => {
  redis = await startRedis();
  docket = await startDocket({ profile: "local", env: { ...process.env, DOCKET_REDIS_HOST: redis.host } });
});
afterAll(async () => {
  await docket.close();
  await redis.stop();
});

describe("on Redis Streams", () => {
  it("an approved call runs once, and the answer comes back", async () => {
    const session = freshSession("refund");
    const accepted = await docket.prompt(session, "refund 1200 cents of order 1001");
    const item = await docket.openApproval(session);
    expect(await docket.decide(item, "approve")).toMatchObject({ status: 200 });
    expect((await docket.ended(accepted)).outcome).toBe("completed");
    expect(eventsOf(await docket.journal(session), "ToolCallDispatched")).toHaveLength(1);
  });

  it("a burst to one session is handled one at a time, each event once", async () => {
    const session = freshSession("burst");
    const accepted = await Promise.all(Array.from({ length: 30 }, (_, n) => docket.prompt(session, `question ${String(n)}`)));
    for (const answer of accepted) await docket.ended(answer, 60_000);
    const journal = await docket.journal(session);
    expect(outcomeProblems(journal)).toEqual([]);
    expect(overlapProblems(journal)).toEqual([]);
    expect(docket.modelCalls(session)).toHaveLength(30);
  });

  it("a killed session host comes back to its waiting session", async () => {
    const session = freshSession("killed");
    const accepted = await docket.prompt(session, "refund 300 cents of order 1001");
    const item = await docket.openApproval(session);
    await docket.test.stack.kill("sessions");
    await docket.test.stack.restart("sessions");
    const reply = await eventually("a verdict", async () => {
      const answer = await docket.decide(item, "approve", { decisionId: "the-same-click" });
      return answer.status === 200 ? answer : undefined;
    }, 60_000);
    expect(reply.body).toMatchObject({ verdict: "approved" });
    expect((await docket.ended(accepted, 60_000)).outcome).toBe("completed");
    expect(foldCheck(docket).problems).toEqual([]);
  });
});
