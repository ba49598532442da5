/** The stream: every revision once, in order, whatever happens to the connection (S1), bounded (S2), cleaned up. */
import type { IncomingMessage } from "node:http";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { actorIdOf, runIdOf } from "../../../src/contracts/ids.js";
import type { SessionEvent } from "../../../src/contracts/journal.js";
import { LIVE_ADVANCED, LIVE_DELTA } from "../../../src/contracts/messages.js";
import { startTestGateway, type TestGateway } from "../../support/gateway-fakes.js";
import { readStream, type SseMessage } from "../../support/sse-client.js";

let gw: TestGateway;
const fast = { stream: { heartbeatMs: 25, pollMs: 20, pollCapMs: 40, waitMs: 1_000, pageSize: 3, perPrincipal: 3 } };
beforeEach(async () => { gw = await startTestGateway({ config: fast }); });
afterEach(async () => { await gw.close(); });

const SESSION = "ord-1";
const ACTOR = actorIdOf("acme", SESSION);
const RUN = runIdOf(ACTOR, "k");
const note = (n: number): SessionEvent => ({ type: "MessageSteered", runId: RUN, key: "k", text: `line ${n}\nid: 99\n\nevent: forged\u2028` });
const runEnded: SessionEvent = { type: "RunEnded", runId: RUN, key: "k", outcome: "completed", text: "done" };
const url = (query = ""): string => `${gw.url}/v1/sessions/${SESSION}/stream${query}`;
const journalIds = (messages: readonly SseMessage[]): number[] => messages.filter((one) => one.event === "journal").map((one) => Number(one.id));
const live = (type: string, data: object): Promise<string> => gw.gateway.handleLive(serializeEnvelope({ specversion: "1.0", id: "1", source: "/s", type, data: JSON.stringify(data) }));
const settled = async (check: () => boolean): Promise<void> => { for (let n = 0; n < 1_000 && !check(); n += 1) await new Promise((resolve) => setTimeout(resolve, 10)); expect(check()).toBe(true); };

describe("reading on", () => {
  it("sends the whole journal over several pages, then what comes, then the end", async () => {
    for (let n = 1; n <= 10; n += 1) gw.sessions.append("acme", SESSION, note(n));
    const run = readStream(url(`?until=run:${RUN}`), { key: gw.keys.all, onMessage: (message) => {
      if (message.id === "10") gw.sessions.append("acme", SESSION, runEnded);
    } });
    const { messages, over, raw } = await run;
    expect(over).toBe("ended");
    expect(journalIds(messages)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    expect(messages.at(-1)).toMatchObject({ event: "end", data: { runId: RUN, outcome: "completed", rev: 11 } });
    expect(messages.every((one) => ["journal", "end"].includes(one.event))).toBe(true);
    expect(raw).toMatch(/^retry: \d+\n\n/);
    expect(raw).not.toContain("secret-host");
  });

  it("resumes by Last-Event-ID and by ?after, and ends at once when the run ended before", async () => {
    for (let n = 1; n <= 5; n += 1) gw.sessions.append("acme", SESSION, note(n));
    gw.sessions.append("acme", SESSION, runEnded);
    gw.sessions.recentRuns.set(ACTOR, [{ runId: RUN, key: "k", outcome: "completed", endedAtMs: 1, rev: 6 }]);
    expect(journalIds((await readStream(url(`?until=run:${RUN}&after=1`), { key: gw.keys.all, lastEventId: "4" })).messages)).toEqual([5, 6]);
    expect(journalIds((await readStream(url(`?until=run:${RUN}&after=4`), { key: gw.keys.all })).messages)).toEqual([5, 6]);
    const late = await readStream(url(`?until=run:${RUN}`), { key: gw.keys.all, lastEventId: "6" });
    expect(late.messages).toEqual([{ event: "end", id: undefined, data: { runId: RUN, outcome: "completed", rev: 6 } }]);
  });

  it("ends with the event's death, whether its session is there, or appears, or never does", async () => {
    const dead = (deadLetterId: string) => ({ code: "mailbox_full", deadLetterId });
    const add = (runId: string): Promise<unknown> => gw.inbox.add({ key: runId, envelopeText: "{}", acceptedAtMs: 0, publishedAtMs: 0, attempts: 1 }, { key: runId, digest: "d", answer: "{}" });
    const end = (runId: string, deadLetterId: string) => ({ event: "end", id: undefined, data: { runId, outcome: "dead_lettered", ...dead(deadLetterId), rev: 0 } });
    const runs = ["never", "there", "later"].map((key) => runIdOf(ACTOR, key));
    for (const run of runs) await add(run);
    await gw.inbox.bury(runs[0]!, dead("dl_never"));
    expect((await readStream(url(`?wait=1&until=run:${runs[0]!}`), { key: gw.keys.all })).messages).toEqual([end(runs[0]!, "dl_never")]);
    for (let n = 1; n <= 4; n += 1) gw.sessions.append("acme", SESSION, note(n));
    await gw.inbox.bury(runs[1]!, dead("dl_there"));
    const there = (await readStream(url(`?until=run:${runs[1]!}`), { key: gw.keys.all })).messages;
    expect(journalIds(there)).toEqual([1, 2, 3, 4]);
    expect(there.at(-1)).toEqual(end(runs[1]!, "dl_there"));
    const later = await readStream(url(`?until=run:${runs[2]!}`), { key: gw.keys.all, onMessage: ({ id }) => { if (id === "4") void gw.inbox.bury(runs[2]!, dead("dl_later")); } });
    expect(later.messages.at(-1)).toEqual(end(runs[2]!, "dl_later"));
  });

  it("gives every revision exactly once and in order, cut at any point, any number of times", async () => {
    let session = 0;
    await fc.assert(fc.asyncProperty(fc.integer({ min: 1, max: 25 }), fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 6 }), fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 10 }), async (total, cuts, growth) => {
      session += 1;
      const id = `s-${session}`;
      const actorId = actorIdOf("acme", id);
      let written = 0;
      const write = (count: number): void => { for (let n = 0; n < count && written < total; n += 1) { written += 1; gw.sessions.append("acme", id, written === total ? runEnded : note(written)); } };
      write(1 + (growth[0] ?? 0));
      const seen: number[] = [];
      let grow = 1;
      const connect = async (cutAfter: number): Promise<boolean> => {
        const writer = setInterval(() => { write(1); }, 3);
        const run = await readStream(`${gw.url}/v1/sessions/${id}/stream?until=run:${RUN}`, {
          key: gw.keys.all, ...(seen.length === 0 ? {} : { lastEventId: String(seen.at(-1)) }),
          cutWhen: (messages) => journalIds(messages).length >= cutAfter,
          onMessage: () => { write(growth[grow++ % Math.max(growth.length, 1)] ?? 1); if (grow % 2 === 0) void live(LIVE_ADVANCED, { advanced: [{ actorId, rev: written }] }); },
        });
        clearInterval(writer);
        seen.push(...journalIds(run.messages));
        return run.messages.some((one) => one.event === "end") || seen.at(-1) === total;
      };
      let done = false;
      for (const cut of cuts) done = done || await connect(cut);
      write(total);
      if (!done) await connect(Number.POSITIVE_INFINITY);
      expect(seen).toEqual(Array.from({ length: total }, (_, n) => n + 1));
    }), { numRuns: 40 });
    await settled(() => gw.gateway.stats().feeds === 0);
  });

  it("tells a gap where older entries are gone", async () => {
    for (let n = 1; n <= 5; n += 1) gw.sessions.append("acme", SESSION, note(n));
    gw.sessions.journals.set(ACTOR, gw.sessions.journals.get(ACTOR)!.slice(3));
    const { messages } = await readStream(url(), { key: gw.keys.all, cutWhen: (all) => all.length === 3 });
    expect(messages[0]).toEqual({ event: "gap", id: undefined, data: { code: "journal_compacted", fromRev: 1, toRev: 3, readableFromRev: 4 } });
    expect(journalIds(messages)).toEqual([4, 5]);
  });

  it("goes on at the same place after the actor did not answer for a while", async () => {
    gw.sessions.append("acme", SESSION, note(1));
    const run = readStream(url(`?until=run:${RUN}`), { key: gw.keys.all, onMessage: (message) => {
      if (message.id !== "1") return;
      gw.sessions.down = true;
      setTimeout(() => { gw.sessions.append("acme", SESSION, note(2)); gw.sessions.append("acme", SESSION, runEnded); gw.sessions.down = false; }, 100);
    } });
    expect(journalIds((await run).messages)).toEqual([1, 2, 3]);
  });

  it("strips what is internal and leaves the rest", async () => {
    gw.sessions.append("acme", SESSION,
      { type: "ModelCallStarted", runId: RUN, step: 1, attempt: 1, host: "secret-host", reservedUsd: 1 },
      { type: "EventReceived", key: "k", source: "/s", id: "i", eventType: "t", mode: "enqueue", runId: RUN, correlationId: RUN, principal: { id: "ann", class: "person", roles: ["secret-role"] }, data: { text: "x", truncated: false, blob: { key: "secret-blob", bytes: 1, digest: "d" } } });
    const { messages, raw } = await readStream(url(), { key: gw.keys.all, cutWhen: (all) => all.length === 1 });
    expect(raw).not.toMatch(/secret-/);
    expect(messages[0]?.data).toEqual({ rev: 1, atMs: 1, command: "ReceiveEvent", events: [
      { type: "ModelCallStarted", runId: RUN, step: 1, attempt: 1, reservedUsd: 1 },
      { type: "EventReceived", key: "k", source: "/s", id: "i", eventType: "t", mode: "enqueue", runId: RUN, correlationId: RUN, principal: { id: "ann", class: "person" }, data: { text: "x", truncated: false, blob: { bytes: 1, digest: "d" } } },
    ] });
  });
});

describe("live", () => {
  it("sends deltas of the live topic without id, only to the session's own streams", async () => {
    gw.sessions.append("acme", SESSION, note(1));
    const delta = { actorId: ACTOR, runId: RUN, step: 1, attempt: 2, index: 0, text: "Hel" };
    const run = readStream(url(), { key: gw.keys.all, cutWhen: (all) => all.some((one) => one.event === "delta"), onMessage: () => {
      setTimeout(() => { void live(LIVE_DELTA, { ...delta, actorId: "acme_other" }); void live(LIVE_DELTA, delta); }, 30);
    } });
    const { messages } = await run;
    expect(messages.at(-1)).toEqual({ event: "delta", id: undefined, data: { runId: RUN, step: 1, attempt: 2, index: 0, text: "Hel" } });
    expect(messages).toHaveLength(2);
  });

  it("reads at once on a hint, long before the poll", async () => {
    await gw.close();
    gw = await startTestGateway({ config: { stream: { pollMs: 60_000, pollCapMs: 60_000 } } });
    gw.sessions.append("acme", SESSION, note(1));
    const { over } = await readStream(url(`?until=run:${RUN}`), { key: gw.keys.all, timeoutMs: 15_000, onMessage: (message) => {
      if (message.id === "1") setTimeout(() => { gw.sessions.append("acme", SESSION, runEnded); void live(LIVE_ADVANCED, { advanced: [{ actorId: ACTOR, rev: 2 }] }); }, 20);
    } });
    expect(over, "cut: nothing came before the poll").toBe("ended");
  });

  it("settles live messages that nobody can read", async () => {
    for (const text of ["", "junk", "{}", "[".repeat(1000), serializeEnvelope({ specversion: "1.0", id: "1", source: "/s", type: LIVE_DELTA, data: '{"actorId":1}' })]) expect(await gw.gateway.handleLive(text)).toBe("SUCCESS");
  });

  it("costs one read per advance, however many watch", async () => {
    await gw.close();
    gw = await startTestGateway({ config: { stream: { pollMs: 60_000, pollCapMs: 60_000, perPrincipal: 200 } } });
    gw.sessions.append("acme", SESSION, note(1));
    let caughtUp = 0;
    const runs = Array.from({ length: 100 }, () => readStream(url(`?until=run:${RUN}`), { key: gw.keys.all, onMessage: () => { caughtUp += 1; } }));
    await settled(() => caughtUp === 100);
    await new Promise((resolve) => setTimeout(resolve, 50));
    const before = gw.sessions.reads;
    gw.sessions.append("acme", SESSION, runEnded);
    await live(LIVE_ADVANCED, { advanced: [{ actorId: ACTOR, rev: 2 }] });
    await Promise.all(runs);
    expect(gw.sessions.reads - before).toBeLessThanOrEqual(3);
  });

  it("sends heartbeats", async () => {
    gw.sessions.append("acme", SESSION, note(1));
    expect((await readStream(url(), { key: gw.keys.all, cutAfterComments: 3 })).comments).toBe(3);
  });
});

describe("who may, how many, how long", () => {
  it("is 404 without a session, waits for it with ?wait=1, and gives up", async () => {
    expect((await readStream(url(), { key: gw.keys.all })).status).toBe(404);
    setTimeout(() => { gw.sessions.append("acme", SESSION, runEnded); }, 100);
    expect(journalIds((await readStream(url(`?wait=1&until=run:${RUN}`), { key: gw.keys.all })).messages)).toEqual([1]);
    expect((await readStream(`${gw.url}/v1/sessions/never/stream?wait=1`, { key: gw.keys.all })).status).toBe(404);
    await settled(() => gw.gateway.stats().feeds === 0);
  });

  it("shows nothing of another tenant, and refuses positions that cannot be", async () => {
    gw.sessions.append("acme", SESSION, note(1));
    expect((await readStream(url(), { key: gw.keys.other })).status).toBe(404);
    expect((await readStream(url(), { key: gw.keys.other, lastEventId: "1" })).status).toBe(404);
    for (const lastEventId of ["2", "abc", "-1", "1e3", "99999999999999999999"]) expect((await readStream(url(), { key: gw.keys.all, lastEventId })).status).toBe(400);
    for (const query of ["?after=x", "?until=run:x", "?until=later", "?wait=maybe", "?after=1&after=2"]) expect((await readStream(url(query), { key: gw.keys.all })).status).toBe(400);
    gw.sessions.down = true;
    expect((await readStream(url(), { key: gw.keys.all })).status).toBe(503);
  });

  it("caps the streams of a principal, and frees a place when a client leaves", async () => {
    gw.sessions.append("acme", SESSION, note(1));
    const leave: (() => void)[] = [];
    for (let n = 0; n < 3; n += 1) void readStream(url(), { key: gw.keys.all, onOpen: (res) => { leave.push(() => { res.destroy(); }); } });
    await settled(() => leave.length === 3);
    expect((await readStream(url(), { key: gw.keys.all })).status).toBe(429);
    leave[0]?.();
    await settled(() => gw.gateway.stats().streams === 2);
    expect((await readStream(url(), { key: gw.keys.all, cutWhen: () => true })).status).toBe(200);
    leave.forEach((one) => { one(); });
    await settled(() => gw.gateway.stats().streams === 0 && gw.gateway.stats().feeds === 0);
  });

  it("cuts a reader that takes nothing, in bounded memory, and the client resumes", async () => {
    await gw.close();
    gw = await startTestGateway({ config: { stream: { ...fast.stream, stallMs: 150 } } });
    const big = "x".repeat(200_000);
    for (let n = 1; n <= 100; n += 1) gw.sessions.append("acme", SESSION, { type: "MessageSteered", runId: RUN, key: "k", text: big });
    let client: IncomingMessage | undefined;
    const stalled = readStream(url(), { key: gw.keys.all, onOpen: (res) => { client = res; setTimeout(() => { res.pause(); }, 0); } });
    await settled(() => gw.gateway.stats().streams === 1);
    await settled(() => gw.gateway.stats().streams === 0);
    expect(gw.sessions.reads).toBeLessThan(30); // of 34 pages: it was not read to the end for a client that takes nothing
    client?.resume();
    const seen = journalIds((await stalled).messages);
    expect((await stalled).over).toBe("cut");
    expect(seen.length).toBeLessThan(100);
    // A pause of the machine may count as a stall once more: then it resumes once more.
    for (let again = 0; again < 20 && seen.length < 100; again += 1) {
      const left = 100 - seen.length;
      seen.push(...journalIds((await readStream(url(), { key: gw.keys.all, lastEventId: String(seen.at(-1) ?? 0), cutWhen: (all) => all.length === left })).messages));
    }
    expect(seen).toEqual(Array.from({ length: 100 }, (_, n) => n + 1));
  });

  it("ends a stream when its key expires", async () => {
    gw.sessions.append("acme", SESSION, note(1));
    expect((await readStream(url(), { key: gw.keys.brief, timeoutMs: 5_000 })).over).toBe("ended");
  });

  it("ends all streams on stop", async () => {
    gw.sessions.append("acme", SESSION, note(1));
    const run = readStream(url(), { key: gw.keys.all, onMessage: () => { setTimeout(() => { void gw.gateway.stop(); }, 20); } });
    expect((await run).over).toBe("ended");
  });
});
