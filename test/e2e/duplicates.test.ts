/** I2, I3: fifty deliveries of one event, two hundred events of one session: half over HTTP, half on the topic, two session hosts. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { foldCheck, outcomeProblems, overlapProblems } from "../support/checks.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";

let docket: Docket;
beforeAll(async () => { docket = await startDocket({ sessionsReplicas: 2 }); });
afterAll(async () => { await docket.close(); });

const eventOf = (session: string, id: string, text: string) => ({
  specversion: "1.0", id, source: "https://shop.acme.example/chat", type: "com.docket.prompt.received.v1", subject: session,
  datacontenttype: "application/json", agent: "assistant", data: { text },
});

async function overHttp(event: object): Promise<void> {
  const reply = await docket.gateway("POST", "/v1/events", event, { "content-type": "application/cloudevents+json" });
  if (reply.status !== 202 && reply.status !== 200) throw new Error(`gateway answered ${String(reply.status)} ${JSON.stringify(reply.body)}`);
}

async function onTopic(event: object): Promise<void> {
  const reply = await docket.test.callSidecar("gateway", "/v1.0/publish/tasks/agent.tasks.incoming", { method: "POST", body: JSON.stringify(event), headers: { "content-type": "application/cloudevents+json" } });
  if (reply.status !== 204) throw new Error(`publish answered ${String(reply.status)} ${await reply.text()}`);
}

describe("two session hosts", () => {
  it("run one event once, however often and on whatever way it is delivered", async () => {
    const session = freshSession("fifty");
    const event = eventOf(session, "evt-1", "hello");
    await Promise.all(Array.from({ length: 50 }, (_, n) => (n % 2 === 0 ? overHttp(event) : onTopic(event))));
    const journal = await eventually("the run's end", async () => {
      const entries = await docket.journal(session);
      return eventsOf(entries, "RunEnded").length > 0 ? entries : undefined;
    }, 60_000);
    expect(eventsOf(journal, "RunStarted")).toHaveLength(1);
    expect(docket.modelCalls(session)).toHaveLength(1);
    // What is still on its way changes nothing: a marker event behind all copies has been handled, and there is still one run of the first.
    await onTopic(eventOf(session, "evt-2", "hello again"));
    const later = await eventually("the marker's end", async () => {
      const entries = await docket.journal(session);
      return eventsOf(entries, "RunEnded").length > 1 ? entries : undefined;
    }, 60_000);
    expect(eventsOf(later, "EventReceived").map((received) => received.id)).toEqual(["evt-1", "evt-2"]);
    expect(docket.modelCalls(session)).toHaveLength(2);
  });

  it("handle two hundred events of one session one at a time, and record them all", async () => {
    const session = freshSession("two-hundred");
    const ids = Array.from({ length: 200 }, (_, n) => `evt-${String(n)}`);
    for (let at = 0; at < ids.length; at += 20) {
      await Promise.all(ids.slice(at, at + 20).map((id, n) => (n % 2 === 0 ? overHttp(eventOf(session, id, `question ${id}`)) : onTopic(eventOf(session, id, `question ${id}`)))));
    }
    const journal = await eventually("two hundred ends", async () => {
      const { summary } = await docket.session(session);
      if (summary.mailboxLength > 0 || summary.status !== "IDLE") return undefined;
      const entries = await docket.journal(session);
      return eventsOf(entries, "RunEnded").length === 200 ? entries : undefined;
    }, 180_000);
    expect(new Set(eventsOf(journal, "EventReceived").map((received) => received.id))).toEqual(new Set(ids));
    expect(outcomeProblems(journal)).toEqual([]);
    expect(overlapProblems(journal)).toEqual([]);
    expect(docket.modelCalls(session)).toHaveLength(200);
    // In the order the channel gave: runs start in the order of acceptance.
    expect(eventsOf(journal, "RunStarted").map((run) => run.key)).toEqual(eventsOf(journal, "EventReceived").map((received) => received.key));
  });

  it("leave journals that fold to their states", () => {
    expect(foldCheck(docket).problems).toEqual([]);
  });
});
