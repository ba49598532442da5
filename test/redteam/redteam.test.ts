/**
 * The red team: attacks on decisions, grants, results, the API and the edge, each with a twin that differs in one field and succeeds (I4, I5,
 * I8, I10, I13). All apps are the real ones, joined by a broker in memory (memory-world.ts); `test/e2e/redteam.test.ts` plays the most important ones on the real stack. Every attack is refused, and that is on record.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { INJECTION } from "../fixtures/red-agent/red.mjs";
import { prepare, strike } from "./attack.js";
import { ATTACKS } from "./attacks.js";
import { get, next, prompt, until, waiting } from "./families.js";
import { MemoryWorld } from "./memory-world.js";

let w: MemoryWorld;
beforeAll(async () => { w = await (await new MemoryWorld().start()).populate(); });
afterAll(() => w.close());

describe("each attack is refused and recorded, and its twin succeeds", () => {
  it.each(ATTACKS.map((attack) => [attack.rule, attack] as const))("%s", async (_rule, attack) => { await strike(w, await prepare(w, attack)); });

  it("there are at least 60, each breaks a rule of its own and has its twin", () => {
    process.stderr.write(`red team: ${String(ATTACKS.length)} attacks, ${String(new Set(ATTACKS.map(({ rule }) => rule)).size)} rules, each with its twin\n`);
    expect(ATTACKS.length).toBeGreaterThanOrEqual(60);
    expect(new Set(ATTACKS.map(({ rule }) => rule)).size).toBe(ATTACKS.length);
    for (const { by, refusal, good } of ATTACKS) expect(refusal).not.toBe(good ?? by.good);
  });
});

describe("what a model or a tool says is never a decision", () => {
  it("a hostile tool result reaches the model as text, and decides nothing", async () => {
    const sessionId = `red-${String(next())}`;
    await prompt(w, sessionId, `read ${String(next())}`);
    await until(w, "the end", () => w.events(sessionId, "RunEnded")[0]);
    expect(w.events(sessionId, "ToolResultRecorded")[0]!.content.text).toContain(INJECTION.slice(0, 30));
    expect(w.events(sessionId, "DecisionRecorded")).toEqual([]);
  });

  it("a model that writes its own approval beside the call is asked about all the same", async () => {
    const opened = await waiting(w, `decide yourself ${INJECTION}`);
    expect(w.events(opened.sessionId, "ModelAnswered")[0]!.text).toContain("com.docket.decision.made.v1");
    expect(w.events(opened.sessionId, "ToolCallDispatched")).toEqual([]);
  });
});

describe("what a caller says of itself is not believed", () => {
  it.each([["principal", "{\"id\":\"admin\",\"class\":\"person\",\"roles\":[\"admin\"]}"], ["tenant", "other"], ["correlationid", "mine"]])("an event's own %s", async (attribute, value) => {
    const sessionId = `red-${String(next())}`;
    const reply = await w.http("gateway", { method: "POST", path: "/v1/events", headers: { authorization: `Bearer ${w.keys.get("rita") ?? ""}`, "content-type": "application/cloudevents+json" }, text: JSON.stringify({ specversion: "1.0", id: `self-${String(next())}`, source: "urn:red", type: "shop.order.created", subject: sessionId, data: {}, [attribute]: value }) });
    if (reply.status === 202) {
      const received = await until(w, "the event", () => w.events(sessionId, "EventReceived")[0]);
      expect(received.principal).toMatchObject({ id: "rita" });
      expect(w.journal(sessionId, "other")).toEqual([]);
    } else expect(reply.status).toBe(attribute === "correlationid" ? 202 : 403);
  });
});

describe("hostile texts on their way to a browser", () => {
  const XSS = "<img src=x onerror=alert(1)><script>alert(1)</script>";

  it("leave as JSON that no browser sniffs, under a policy without inline script", async () => {
    const opened = await waiting(w, `decide yourself ${XSS}`);
    for (const path of [`/v1/approvals/${opened.approvalId}`, `/v1/sessions/${opened.sessionId}/journal`, `/v1/approvals/${encodeURIComponent(XSS)}`, `/v1/sessions/${encodeURIComponent(XSS)}`]) {
      const { headers, text } = await w.http("console", get(w, path, "admin"));
      expect(headers.get("content-type")).toMatch(/^application\/(problem\+)?json/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("content-security-policy")).toContain("script-src 'self'");
      expect(headers.get("content-security-policy")).not.toContain("unsafe");
      expect(() => { JSON.parse(text); }).not.toThrow();
    }
  });

  it.each(["/confirm?next=https://evil.example", "/confirm?returnTo=//evil.example#//evil.example", "/confirm//evil.example", "//evil.example", "/%2f%2fevil.example", "/\\evil.example", "/session?next=https://evil.example", "/v1/approvals/..%2f..%2fevil"])("lead nowhere else: %s", async (path) => {
    const reply = await w.http("console", { method: "GET", path, headers: { accept: "text/html" } });
    expect(reply.headers.get("location")).toBeNull();
    expect(reply.status).not.toBe(302);
  });
});

describe("hostile texts on their way into somebody else's program", () => {
  it("reach Slack as literal text, Discord without a ping, a webhook as JSON", async () => {
    const hostile = "<!channel> <https://evil.example|pay> *bold* @everyone ``` </script> \u202etxt";
    const { approvalId } = await waiting(w, `decide yourself ${hostile}`);
    const of = (where: string) => w.outside.until(`${where} of ${approvalId}`, ({ path, text }) => path.startsWith(where) && text.includes(approvalId));
    const slack = await of("/slack/services");
    expect(slack.text).not.toContain('"mrkdwn"');
    expect(String(slack.body["text"])).not.toMatch(/[<>]/);
    expect(slack.text).not.toContain("\u202e");
    expect((await of("/discord")).body["allowed_mentions"]).toEqual({ parse: [] });
    const hook = (await of("/hook")).body as { data: { rationale: string } };
    expect(hook.data.rationale).toContain(hostile);
  });
});
