/** I14, I1: what can never be handled is recorded with its reason and its bytes, acked, and never loops; a redrive is a new event, once. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHANNELS } from "../../src/contracts/channels.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";

let docket: Docket;
beforeAll(async () => { docket = await startDocket(); });
afterAll(async () => { await docket.close(); });

async function publish(body: string, contentType = "application/cloudevents+json"): Promise<void> {
  const reply = await docket.test.callSidecar("gateway", "/v1.0/publish/tasks/agent.tasks.incoming", { method: "POST", body, headers: { "content-type": contentType } });
  expect(reply.status).toBe(204);
}

const letterWith = (text: string) => eventually(`a dead letter that holds ${text}`, async () => (await docket.deadLetters()).find((item) => item.letter.payload.includes(text)), 30_000);

describe("poison on the tasks topic", () => {
  it("is recorded with reason and bytes and does not hold up what comes behind it", async () => {
    const mark = freshSession("poison");
    await publish(JSON.stringify({ specversion: "1.0", id: `${mark}-1`, source: "test", type: "com.nobody.wants.this", subject: mark, data: { n: 1 } }));
    await publish(JSON.stringify({ specversion: "1.0", id: `${mark}-2`, source: "test", type: "com.docket.prompt.received.v1", agent: "nobody", subject: mark, data: { text: "hi" } }));
    await publish(JSON.stringify({ specversion: "1.0", id: `${mark}-3`, source: "test", type: "com.docket.session.cancel.v1", data: {} }));
    await publish(JSON.stringify({ specversion: "1.0", id: `${mark}-4`, source: "test", type: "com.docket.prompt.received.v1", agent: "assistant", time: "2020-01-01T00:00:00Z", subject: mark, data: { text: "hi" } }));
    const session = freshSession("behind");
    const outcome = await docket.ended(await docket.prompt(session, "hello"));
    expect(outcome.outcome).toBe("completed");
    expect((await letterWith(`${mark}-1`)).letter).toMatchObject({ kind: "event", reason: "agent_unknown" });
    expect((await letterWith(`${mark}-2`)).letter).toMatchObject({ kind: "event", reason: "agent_unknown" });
    expect((await letterWith(`${mark}-3`)).letter).toMatchObject({ kind: "event", reason: "session_id_missing" });
    expect((await letterWith(`${mark}-4`)).letter).toMatchObject({ kind: "event", reason: "too_old" });
  });

  it("keeps what is not a CloudEvent at all", async () => {
    const mark = freshSession("raw");
    await publish(`this is not json: ${mark}`, "text/plain");
    // daprd wraps it into an event of its own type; no agent wants that.
    expect((await letterWith(mark)).letter.reason).toBe("agent_unknown");
  });

  it("keeps what the sidecar itself cannot read, and the dead letters go on", async () => {
    const mark = freshSession("huge");
    for (let n = 0; n < 70; n += 1) await publish(`{"specversion":"1.0","id":"${mark}-${String(n)}","source":"test","type":"com.x","subject":"${mark}","data":{"n":1e400}}`);
    expect((await letterWith(`${mark}-0`)).letter).toMatchObject({ kind: "unreadable" });
    expect((await letterWith(`${mark}-69`)).letter).toMatchObject({ kind: "unreadable" });
    await publish(JSON.stringify({ specversion: "1.0", id: `${mark}-after`, source: "test", type: "com.nobody.wants.this", subject: mark, data: {} }));
    expect((await letterWith(`${mark}-after`)).letter).toMatchObject({ reason: "agent_unknown" });
    const refused = await docket.gateway("POST", "/v1/events", `{"specversion":"1.0","id":"${mark}-edge","source":"test","type":"com.x","subject":"${mark}","agent":"assistant","data":{"n":1e400}}`, { "content-type": "application/cloudevents+json" });
    expect(refused).toMatchObject({ status: 400, body: { code: "not_json" } });
  });

  it("rejects an event for a session that belongs to another agent, where its sender looks for the outcome", async () => {
    const session = freshSession("taken");
    await docket.ended(await docket.prompt(session, "hello"));
    await publish(JSON.stringify({ specversion: "1.0", id: `${session}-other`, source: "test", type: "com.docket.prompt.received.v1", agent: "mail", subject: session, data: { text: "hi" } }));
    const rejected = await eventually("the rejection", async () => eventsOf(await docket.journal(session), "EventRejected")[0]);
    expect(rejected).toMatchObject({ code: "agent_mismatch" });
  });

  it("drops an expired event to the dead letters before any model is called", async () => {
    const session = freshSession("late");
    await publish(JSON.stringify({ specversion: "1.0", id: `${session}-late`, source: "test", type: "com.docket.prompt.received.v1", agent: "assistant", subject: session, expirytime: "2026-01-01T00:00:00Z", data: { text: "hi" } }));
    expect((await letterWith(`${session}-late`)).letter).toMatchObject({ kind: "event", reason: "expired", sessionId: session });
    expect(docket.modelCalls(session)).toHaveLength(0);
  });
});

describe("poison on every topic that may not lose anything", () => {
  const channels = Object.entries(CHANNELS).filter(([name]) => name !== "live" && name !== "deadLetters");
  const bad: readonly [string, (mark: string, channel: string) => { body: string; contentType?: string }, readonly string[]][] = [
    ["not JSON", (mark) => ({ body: `{ not json ${mark}`, contentType: "text/plain" }), ["agent_unknown", "validation_failed", "unknown_type"]],
    ["wrong schema", (mark) => ({ body: event(mark, { data: { mark } }) }), ["agent_unknown", "validation_failed", "unknown_type"]],
    ["unknown version", (mark) => ({ body: event(mark, { type: "com.docket.prompt.received.v99", agent: "assistant", data: { tenant: "default", sessionId: mark, actorId: `default_${mark}` } }) }), ["unknown_type"]],
    ["too large", (mark) => ({ body: event(mark, { data: { tenant: "default", sessionId: mark, actorId: `default_${mark}`, filler: "\"".repeat(700_000) } }) }), ["payload_too_large"]],
  ];
  const event = (mark: string, more: object): string => JSON.stringify({ specversion: "1.0", id: mark, source: "test", type: "com.nobody.wants.this", subject: mark, ...more });

  it.each(channels)("%s: each is one letter with reason, tries and bytes, and nothing is repeated", async (name, channel) => {
    const marks: [string, string, readonly string[]][] = [];
    for (const [what, make, reasons] of bad) {
      const mark = freshSession(`p-${channel.component}`);
      const { body, contentType = "application/cloudevents+json" } = make(mark, name);
      const reply = await docket.test.callSidecar(channel.publishers[0]!, `/v1.0/publish/${channel.component}/${channel.topic}`, { method: "POST", body, headers: { "content-type": contentType } });
      expect(reply.status, `${what} on ${channel.topic}`).toBe(204);
      marks.push([what, mark, reasons]);
    }
    for (const [what, mark, reasons] of marks) {
      const { letter } = await letterWith(mark);
      expect(reasons, `${what} on ${channel.topic}: ${letter.reason}, ${letter.message}`).toContain(letter.reason);
      expect(letter, what).toMatchObject({ tries: 1, topic: channel.topic });
      expect((await docket.deadLetters()).filter((item) => item.letter.payload.includes(mark)), what).toHaveLength(1);
    }
  });

  it("and what comes behind all of it is handled", async () => {
    expect(await docket.ended(await docket.prompt(freshSession("behind-all"), "hello"))).toMatchObject({ outcome: "completed" });
  });
});

describe("a redrive", () => {
  it("delivers the event behind a dead tool call as a new event with a causation link, once", async () => {
    const answer = await docket.cloudEvent({ specversion: "1.0", id: "ord-1002", type: "com.acme.order.created", source: "https://shop.acme.example/orders", data: { orderId: "ord-1002", customer: "C", totalCents: 100 } });
    await docket.ended(answer, 60_000);
    const item = await letterWith("ord-1002");
    const redrive = (): Promise<{ status: number; body: unknown }> => docket.console("POST", `/v1/dead-letters/${item.letter.deadLetterId}/redrive`, { reason: "the order system is back" });
    const replies = await Promise.all([redrive(), redrive(), redrive()]);
    expect(replies.some((reply) => reply.status === 202 || reply.status === 200)).toBe(true);
    const journal = await eventually("the redriven run's end", async () => {
      const entries = await docket.journal("ord-1002");
      return eventsOf(entries, "RunEnded").length === 2 ? entries : undefined;
    }, 60_000);
    const received = eventsOf(journal, "EventReceived");
    expect(received.map((event) => event.id)).toEqual(["ord-1002", "ord-1002#redrive-1"]);
    expect(received[1]?.causationId).toBe(item.letter.deadLetterId);
    expect(eventsOf(journal, "RunStarted")).toHaveLength(2);
  });
});
