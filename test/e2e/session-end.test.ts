/** The end of a session's data on the real runtime: deleted by an administrator, gone for readers, opened anew behind its tombstone. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/cluster.js";
import { eventsOf, freshSession, startDocket, type Docket } from "../support/docket.js";
import { StoreView } from "../support/store-view.js";

let docket: Docket;
beforeAll(async () => { docket = await startDocket(); });
afterAll(async () => { await docket.close(); });

describe("a deleted session", () => {
  it("is gone for operators at once; a new event opens it without memory", async () => {
    const id = freshSession("deleted");
    await docket.ended(await docket.prompt(id, "hello"));
    const store = new StoreView(docket.dataDir);
    const stored = await eventually("the session is at rest", () => {
      const state = store.session(id);
      return Promise.resolve(state?.status === "IDLE" && state.outbox.length === 0 ? state : undefined);
    });
    expect((await docket.console("POST", `/v1/sessions/${id}/delete`, { reason: "asked for" })).status).toBe(202);
    await eventually("the session is a tombstone", () => Promise.resolve(store.session(id)?.status === "DELETED" ? true : undefined));
    expect(store.session(id)?.rev).toBeGreaterThan(stored.rev);
    expect((await docket.console("GET", `/v1/sessions/${id}`)).status).toBe(404);

    expect((await docket.ended(await docket.prompt(id, "and again"))).outcome).toBe("completed");
    expect(docket.modelCalls(id)).toHaveLength(2);
    expect(eventsOf(await docket.journal(id), "RunStarted").map((event) => event.input)).toEqual([expect.stringContaining("and again")]);
    expect(store.session(id)?.baseRev).toBeGreaterThan(stored.rev);
  });
});
