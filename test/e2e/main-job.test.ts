/** The main job on the real runtime: prompt, tool, approval, answer. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventsOf, freshSession, startDocket, type Docket } from "../support/docket.js";

let docket: Docket;
beforeAll(async () => { docket = await startDocket(); });
afterAll(async () => { await docket.close(); });

describe("a session", () => {
  it("answers a prompt without tools", async () => {
    const session = freshSession("plain");
    const outcome = await docket.ended(await docket.prompt(session, "hello"));
    expect(outcome.outcome).toBe("completed");
    expect(docket.modelCalls(session)).toHaveLength(1);
  });

  it("lets an allowed tool run and gives its result to the model", async () => {
    const session = freshSession("status");
    const outcome = await docket.ended(await docket.prompt(session, "where is order 1001?"));
    expect(outcome.outcome).toBe("completed");
    const journal = await docket.journal(session);
    expect(eventsOf(journal, "RunEnded").map((event) => event.text)).toEqual(["Order 1001 is the espresso machine, 24900 cents, delivered."]);
  });

  it("stops a risky call in AWAITING_APPROVAL and runs it once after the approval", async () => {
    const session = freshSession("refund");
    const accepted = await docket.prompt(session, "refund 1200 cents of order 1001");
    const item = await docket.openApproval(session);
    expect((await docket.session(session)).summary.status).toBe("AWAITING_APPROVAL");
    expect(JSON.parse(item.pending.args)).toEqual({ orderId: "1001", amountCents: 1200, reason: "asked for by the support desk" });
    expect((await docket.decide(item, "approve")).status).toBe(200);
    expect((await docket.ended(accepted)).outcome).toBe("completed");
    expect(eventsOf(await docket.journal(session), "ToolCallDispatched")).toHaveLength(1);
  });
});
