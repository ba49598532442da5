/** Receipts drop rows; what has none is published again; nothing on a channel can stop the gateway. */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { actorIdOf } from "../../../src/contracts/ids.js";
import { EVENT_ACCEPTED, RUN_ENDED } from "../../../src/contracts/messages.js";
import { pauseMs } from "../../../src/gateway/sweeper.js";
import { post, startTestGateway, type TestGateway } from "../../support/gateway-fakes.js";

let gw: TestGateway;
beforeEach(async () => { gw = await startTestGateway({ config: { publishWaitMs: 50, sweep: { everyMs: 20, batch: 5 } } }); });
afterEach(async () => { await gw.close(); });

const ACTOR = actorIdOf("acme", "ord-1");
const prompt = async (text = "hi", sessionId = "ord-1"): Promise<{ eventKey: string; runId: string; eventId: string }> => (await post(gw, "/v1/prompts", { text, sessionId })).json as { eventKey: string; runId: string; eventId: string };
const message = (type: string, data: object): string => serializeEnvelope({ specversion: "1.0", id: "r", source: "urn:docket:sessions", type, data: JSON.stringify(data) });
const receipt = (key: string, verdict = "accepted"): string => message(EVENT_ACCEPTED, { tenant: "acme", sessionId: "ord-1", actorId: ACTOR, key, rev: 1, verdict });
const waiting = async (): Promise<number> => (await gw.inbox.due(gw.clock.nowMs() + 1e9, 100)).length;

describe("responses", () => {
  it.each(["accepted", "duplicate", "expired"])("drops the row on a receipt with verdict %s", async (verdict) => {
    const { eventKey } = await prompt();
    expect(await gw.gateway.handleResponse(receipt(eventKey, verdict))).toBe("SUCCESS");
    expect(await gw.gateway.handleResponse(receipt(eventKey, verdict))).toBe("SUCCESS");
    expect(await waiting()).toBe(0);
  });

  it("remembers that an event is dead, which its sender then reads, also while no actor answers", async () => {
    const { eventKey, runId } = await prompt();
    const dead = message(EVENT_ACCEPTED, { tenant: "acme", sessionId: "ord-1", actorId: ACTOR, key: eventKey, rev: 0, verdict: "mailbox_full", deadLetterId: "dl_1" });
    for (let n = 0; n < 2; n += 1) expect(await gw.gateway.handleResponse(dead)).toBe("SUCCESS");
    expect(await waiting()).toBe(0);
    const outcome = async (): Promise<unknown> => (await fetch(`${gw.url}/v1/sessions/ord-1/events/${eventKey}`, { headers: { authorization: `Bearer ${gw.keys.all}` } })).json();
    const expected = { state: "ended", runId, outcome: "dead_lettered", code: "mailbox_full", deadLetterId: "dl_1" };
    expect(await outcome()).toEqual(expected);
    gw.sessions.down = true;
    expect(await outcome()).toEqual(expected);
  });

  it("drops it on the run's end too, when the receipt was lost", async () => {
    const { eventKey, runId } = await prompt();
    await gw.gateway.handleResponse(message(RUN_ENDED, { tenant: "acme", sessionId: "ord-1", actorId: ACTOR, agent: "a", runId, key: eventKey, outcome: "completed", text: "", rev: 9, endedAtMs: 1 }));
    expect(await waiting()).toBe(0);
  });

  it("keeps other rows, and takes receipts of events that it never had", async () => {
    await prompt();
    expect(await gw.gateway.handleResponse(receipt("0".repeat(32)))).toBe("SUCCESS");
    expect(await gw.gateway.handleResponse(message("com.docket.something.new.v1", {}))).toBe("SUCCESS");
    expect(gw.deadLetters.letters).toMatchObject([{ reason: "unknown_type" }]);
    expect(await waiting()).toBe(1);
  });

  it("dead-letters what nobody can read, byte for byte, the same letter each time", async () => {
    const bad = ["", "junk", "{}", "[".repeat(500), receipt("k").replace('"rev":1', '"rev":"x"'), message(EVENT_ACCEPTED, {}), "x".repeat(300_000)];
    for (const text of bad) expect(await gw.gateway.handleResponse(text)).toBe("SUCCESS");
    expect(gw.deadLetters.letters.map((letter) => letter.payload)).toEqual(bad);
    expect(new Set(gw.deadLetters.letters.map((letter) => letter.deadLetterId)).size).toBe(bad.length);
    await gw.gateway.handleResponse("junk");
    expect(gw.deadLetters.letters.at(-1)?.deadLetterId).toBe(gw.deadLetters.letters[1]?.deadLetterId);
  });

  it("asks for the delivery again when store or dead letters are down", async () => {
    const { eventKey } = await prompt();
    gw.store.down = true;
    await expect(gw.gateway.handleResponse(receipt(eventKey))).rejects.toMatchObject({ retryable: true });
    gw.deadLetters.down = true;
    await expect(gw.gateway.handleResponse("junk")).rejects.toMatchObject({ retryable: true });
  });
});

describe("sweep", () => {
  it("publishes an event without receipt again, same bytes of data and same id, and not before its time", async () => {
    const { eventId } = await prompt();
    gw.clock.advance(9_999);
    expect(await gw.gateway.sweep()).toBe(0);
    gw.clock.advance(1);
    expect(await gw.gateway.sweep()).toBe(1);
    expect(gw.publisher.published.map((one) => one.id)).toEqual([eventId, eventId]);
    expect(gw.publisher.published[1]).toEqual(gw.publisher.published[0]);
    expect(await gw.gateway.sweep()).toBe(0);
  });

  it("grows the pause up to its cap", () => {
    expect([1, 2, 3, 4, 50].map((attempts) => pauseMs(attempts, { receiptWaitMs: 10_000, backoffCapMs: 60_000 }))).toEqual([10_000, 20_000, 40_000, 60_000, 60_000]);
  });

  it("answers 202 though the publish hangs, and repeats it", async () => {
    gw.publisher.hangs = true;
    const { eventId } = await prompt();
    gw.publisher.hangs = false;
    gw.clock.advance(10_000);
    expect(await gw.gateway.sweep()).toBe(1);
    expect(gw.publisher.published.map((one) => one.id)).toEqual([eventId]);
  });

  it("is bounded per sweep, starves nobody, and goes on past one that fails", async () => {
    for (let n = 0; n < 12; n += 1) await prompt("hi", `ord-${n}`);
    gw.publisher.published.length = 0;
    gw.clock.advance(10_000);
    const counts = [await gw.gateway.sweep(), await gw.gateway.sweep(), await gw.gateway.sweep(), await gw.gateway.sweep()];
    expect(counts).toEqual([5, 5, 2, 0]);
    expect(new Set(gw.publisher.published.map((one) => one.id)).size).toBe(12);
    gw.publisher.down = true;
    gw.clock.advance(20_000);
    expect(await gw.gateway.sweep()).toBe(0);
    gw.publisher.down = false;
    gw.clock.advance(60_000);
    expect(await gw.gateway.sweep()).toBe(5);
  });

  it("finds the rows after a restart, by its own timer", async () => {
    await prompt();
    const { store, clock } = gw;
    await gw.close();
    clock.advance(10_000);
    gw = await startTestGateway({ store, clock, config: { sweep: { everyMs: 10 } } });
    gw.gateway.start();
    await vi.waitFor(() => { expect(gw.publisher.published).toHaveLength(1); }, 5_000);
  });

  it("is survived by a store that is down", async () => {
    await prompt();
    gw.store.down = true;
    gw.gateway.start();
    await vi.waitFor(() => { expect(gw.store.refused).toBeGreaterThan(0); }, 5_000);
    gw.store.down = false;
    gw.clock.advance(10_000);
    await vi.waitFor(() => { expect(gw.publisher.published).toHaveLength(2); }, 5_000);
  });

  it("asks the session before a later publication, and drops a row whose receipt was lost", async () => {
    const { eventKey } = await prompt();
    gw.clock.advance(10_000);
    await gw.gateway.sweep();
    gw.sessions.outcomes.set(`${ACTOR}/${eventKey}`, { state: "running" });
    gw.clock.advance(20_000);
    expect(await gw.gateway.sweep()).toBe(0);
    expect(await waiting()).toBe(0);
    expect(gw.publisher.published).toHaveLength(2);
  });

  it("ends an event that no session ever took in one dead letter, long after its expiry", async () => {
    const { eventId } = await prompt();
    gw.clock.advance(7 * 24 * 3_600_000 + 1_000);
    expect(await gw.gateway.sweep()).toBe(1); // the session dead-letters what is expired; the gateway still asks it to
    gw.clock.advance(3_600_000);
    gw.deadLetters.down = true;
    expect(await gw.gateway.sweep()).toBe(0);
    expect(await waiting()).toBe(1);
    gw.deadLetters.down = false;
    gw.clock.advance(60_000);
    expect(await gw.gateway.sweep()).toBe(0);
    expect(await waiting()).toBe(0);
    expect(gw.deadLetters.letters).toMatchObject([{ kind: "event", reason: "expired", tenant: "acme", sessionId: "ord-1", envelope: { id: eventId } }]);
  });

  it("two replicas on one store publish a due event once", async () => {
    await prompt();
    const { store, clock } = gw;
    const other = await startTestGateway({ store, clock });
    try {
      gw.clock.advance(10_000);
      const counts = await Promise.all([gw.gateway.sweep(), other.gateway.sweep()]);
      expect(counts.sort()).toEqual([0, 1]);
    } finally {
      await other.close();
    }
  });
});
