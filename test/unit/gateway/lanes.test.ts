/** One session's events reach the channel in the order of their 202s, whatever is lost on the way (I3); nobody else waits for it. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { actorIdOf } from "../../../src/contracts/ids.js";
import { EVENT_ACCEPTED, LIVE_ADVANCED } from "../../../src/contracts/messages.js";
import { Lanes } from "../../../src/gateway/lanes.js";
import { eventually } from "../../support/cluster.js";
import { post, startTestGateway, type TestGateway } from "../../support/gateway-fakes.js";

let gw: TestGateway;
beforeEach(async () => { gw = await startTestGateway({ config: { publishWaitMs: 50 } }); });
afterEach(async () => { await gw.close(); });

const send = async (id: string, sessionId = "s-1", to: TestGateway = gw): Promise<string> => {
  const { status, json } = await post(to, "/v1/prompts", { text: id, sessionId }, { "idempotency-key": id });
  expect(status).toBe(202);
  return json["eventKey"] as string;
};
const actorId = actorIdOf("acme", "s-1");
const message = (type: string, data: object): string => serializeEnvelope({ specversion: "1.0", id: "m", source: "urn:docket:sessions", type, data: JSON.stringify(data) });
const receipt = (key: string, to: TestGateway = gw): Promise<unknown> => to.gateway.handleResponse(message(EVENT_ACCEPTED, { tenant: "acme", sessionId: "s-1", actorId, key, rev: 1, verdict: "accepted" }));
const ids = (of: TestGateway = gw): string[] => of.publisher.published.map((one) => one.id);

describe("the events of one session", () => {
  it("go one at a time: the next when the one before has its receipt", async () => {
    const first = await send("e1");
    const second = await send("e2");
    await send("e3");
    expect(ids()).toEqual(["e1"]);
    await receipt(first);
    expect(ids()).toEqual(["e1", "e2"]);
    await receipt(second);
    expect(ids()).toEqual(["e1", "e2", "e3"]);
  });

  it("do not hold up those of another", async () => {
    await send("e1");
    await send("other", "s-2");
    expect(ids()).toEqual(["e1", "other"]);
  });

  it("stay in order when the first is lost, and when its publish failed", async () => {
    gw.publisher.down = true;
    const first = await send("e1");
    await send("e2");
    gw.publisher.down = false;
    await send("e3");
    expect(ids()).toEqual([]);
    // All three are due; only the eldest may go, as often as it takes.
    gw.clock.advance(10_000);
    expect(await gw.gateway.sweep()).toBe(1);
    gw.clock.advance(60_000);
    expect(await gw.gateway.sweep()).toBe(1);
    expect(ids()).toEqual(["e1", "e1"]);
    await receipt(first);
    expect(ids()).toEqual(["e1", "e1", "e2"]);
  });

  it("go on when the session is found to know the first, whose receipt was lost", async () => {
    const first = await send("e1");
    await send("e2");
    gw.clock.advance(10_000);
    await gw.gateway.sweep();
    gw.sessions.outcomes.set(`${actorId}/${first}`, { state: "ended" });
    gw.clock.advance(20_000);
    await gw.gateway.sweep();
    expect(ids()).toEqual(["e1", "e1", "e2"]);
  });

  it("keep their order over a restart", async () => {
    const first = await send("e1");
    gw.clock.advance(1);
    await send("e2");
    const { store, clock } = gw;
    await gw.close();
    gw = await startTestGateway({ store, clock });
    await gw.gateway.adopt();
    await send("e3");
    expect(ids()).toEqual([]);
    clock.advance(10_000);
    expect(await gw.gateway.sweep()).toBe(1);
    await receipt(first);
    expect(ids()).toEqual(["e1", "e2"]);
  });

  it("go on when another replica got the receipt: at the next hint that the session moved, or at the next sweep", async () => {
    const first = await send("e1");
    const second = await send("e2");
    await send("e3");
    const other = await startTestGateway({ store: gw.store, clock: gw.clock });
    try {
      const moved = message(LIVE_ADVANCED, { advanced: [{ actorId, rev: 1 }] });
      await gw.gateway.handleLive(moved);
      await receipt(first, other);
      expect(ids()).toEqual(["e1"]);
      await eventually("the second goes", async () => { await gw.gateway.handleLive(moved); return ids().join() === "e1,e2" ? true : undefined; });
      await receipt(second, other);
      // A removal waits for company: until it is made, a sweep repeats the second.
      await eventually("the third goes", async () => {
        gw.clock.advance(10_000);
        await gw.gateway.sweep();
        return ids().includes("e3") ? true : undefined;
      });
      expect([...new Set(ids())]).toEqual(["e1", "e2", "e3"]);
    } finally {
      await other.close();
    }
  });
});

describe("a lane", () => {
  it("is not held up for ever by an event that nobody ever takes (I14)", async () => {
    await send("e1");
    await send("e2");
    gw.clock.advance(600_000);
    await gw.gateway.sweep();
    expect(ids()).not.toContain("e2");
    gw.clock.advance(60_001);
    await gw.gateway.sweep();
    expect(ids()).toContain("e2");
  });

  it("forgets itself when it is empty, and survives a publish that fails after waiting", async () => {
    const failed: string[] = [];
    const lanes = new Lanes({ holds: () => Promise.resolve(true), clock: gw.clock, onFailure: (rowKey) => failed.push(rowKey) });
    await lanes.enter("a", "r1", () => Promise.resolve());
    await lanes.enter("a", "r2", () => Promise.reject(new Error("broker down")));
    lanes.leave("a", "r1");
    await eventually("the failure is told", () => (failed.join() === "r2" ? true : undefined));
    expect(await lanes.mayGo("a", "r2")).toBe(true);
    lanes.leave("a", "r2");
    lanes.leave("a", "r2");
    let published = false;
    await lanes.enter("a", "r3", () => { published = true; return Promise.resolve(); });
    expect(published).toBe(true);
  });

  it("lets go what it has never heard of", async () => {
    const lanes = new Lanes({ holds: () => Promise.resolve(true), clock: gw.clock, onFailure: () => undefined });
    expect(await lanes.mayGo("a", "unknown")).toBe(true);
    await lanes.enter("a", "r1", () => Promise.resolve());
    expect(await lanes.mayGo("a", "unknown")).toBe(true);
  });
});
