/** The ways in, over real HTTP: prompts, CloudEvents in three modes, cancel; keys, sizes, limits, hostile ids. */
import { request } from "node:http";
import { connect } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { MAX_EVENT_BYTES, parseEnvelope } from "../../../src/contracts/cloudevent.js";
import { actorIdOf, eventKeyOf, runIdOf } from "../../../src/contracts/ids.js";
import { Problem } from "../../../src/contracts/problems.js";
import { post, startTestGateway, type TestGateway } from "../../support/gateway-fakes.js";

let gw: TestGateway;
beforeEach(async () => { gw = await startTestGateway(); });
afterEach(async () => { await gw.close(); });

const event = (over: Record<string, unknown> = {}) => ({ specversion: "1.0", id: "e1", source: "/shop", type: "shop.order.created", subject: "ord-1", data: { total: 1 }, ...over });
const structured = { "content-type": "application/cloudevents+json" };
const accepted = (json: Record<string, unknown>) => json as unknown as { sessionId: string; runId: string; eventKey: string; eventId: string; eventSource: string; agent: string; links: { outcome: string; stream: string; session: string } };

describe("prompts", () => {
  it("answers 202 with ids that follow from the event, a Location, and an envelope stamped by the edge", async () => {
    const { status, json, headers } = await post(gw, "/v1/prompts", { text: "hello", sessionId: "ord-7", mode: "steer" });
    expect(status).toBe(202);
    const answer = accepted(json);
    const actorId = actorIdOf("acme", "ord-7");
    expect(answer.runId).toBe(runIdOf(actorId, eventKeyOf(answer.eventSource, answer.eventId)));
    expect(headers.get("location")).toBe(answer.links.outcome);
    const [envelope] = gw.publisher.published;
    expect(envelope).toMatchObject({ tenant: "acme", subject: "ord-7", partitionkey: actorId, correlationid: answer.runId, busymode: "steer", agent: "order-triage", type: "com.docket.prompt.received.v1" });
    expect(JSON.parse(envelope!.principal!)).toEqual({ id: "ann@example.com", class: "person", roles: ["operator"] });
    expect(Date.parse(envelope!.expirytime!) - gw.clock.nowMs()).toBe(7 * 86_400_000);
    expect(envelope!.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    expect(await gw.inbox.due(gw.clock.nowMs() + 10_000, 10)).toHaveLength(1);
  });

  it("gives the same 202 for the same Idempotency-Key and body, publishes once, and refuses another body", async () => {
    const key = { "idempotency-key": '"order 1"'.replace(" ", "-") };
    const first = await post(gw, "/v1/prompts", { text: "hello" }, key);
    const again = await post(gw, "/v1/prompts", '{ "text":"hello" }', { "idempotency-key": "order-1" });
    expect(again.json).toEqual(first.json);
    expect(again.status).toBe(202);
    expect(gw.publisher.published).toHaveLength(1);
    expect(gw.publisher.published[0]).toMatchObject({ id: "order-1", idempotencykey: "order-1" });
    const other = await post(gw, "/v1/prompts", { text: "something else" }, key);
    expect(other).toMatchObject({ status: 422, json: { code: "idempotency_key_reused" } });
    expect((await post(gw, "/v1/prompts", { text: "hello", sessionId: "elsewhere" }, key)).status).toBe(422);
    const stranger = await post(gw, "/v1/prompts", { text: "something else" }, { ...key, authorization: `Bearer ${gw.keys.other}` });
    expect(stranger.status).toBe(202);
    expect(gw.publisher.published.map((one) => [one.tenant, JSON.parse(one.principal!) as unknown])).toEqual([
      ["acme", { id: "ann@example.com", class: "person", roles: ["operator"] }], ["umbra", { id: "bob", class: "machine", roles: [] }],
    ]);
  });

  it("publishes an event whose first try was stored and got no answer when its sender repeats it, so that the next one does not overtake it (I3)", async () => {
    const transact = gw.store.transact.bind(gw.store);
    gw.store.transact = async (operations) => {
      gw.store.transact = transact;
      await transact(operations);
      throw new Problem("store_unavailable", "the answer was lost (test)");
    };
    const send = (text: string) => post(gw, "/v1/prompts", { text, sessionId: "ord-7" }, { "idempotency-key": text });
    expect((await send("first")).status).toBe(503);
    expect(gw.publisher.published).toEqual([]);
    expect((await send("first")).status).toBe(202);
    expect((await send("second")).status).toBe(202);
    expect((await send("first")).status).toBe(202);
    expect(gw.publisher.published.map(({ id }) => id)).toEqual(["first"]); // the second waits for the first one's receipt
  });

  it("keeps one answer when 50 copies arrive at once", async () => {
    const all = await Promise.all(Array.from({ length: 50 }, () => post(gw, "/v1/prompts", { text: "hello" }, { "idempotency-key": "k" })));
    expect(new Set(all.map((one) => JSON.stringify(one.json))).size).toBe(1);
    expect(gw.publisher.published).toHaveLength(1);
  });

  it("sends a prompt without agent to the agent of the session that exists, also when the key is repeated later", async () => {
    const key = { "idempotency-key": "k" };
    const first = await post(gw, "/v1/sessions/ord-1/events", { text: "hi" }, key);
    gw.sessions.append("acme", "ord-1", { type: "SessionOpened", tenant: "acme", sessionId: "ord-1", actorId: "a", agent: "order-triage", agentVersion: "1" });
    expect((await post(gw, "/v1/sessions/ord-1/events", { text: "hi" }, key)).json).toEqual(first.json);
  });

  it("is still 202 when the broker is down or hangs, and the sweeper publishes the same id later", async () => {
    gw.publisher.down = true;
    const answer = await post(gw, "/v1/prompts", { text: "hello" });
    expect(answer.status).toBe(202);
    gw.publisher.down = false;
    gw.clock.advance(10_000);
    expect(await gw.gateway.sweep()).toBe(1);
    expect(gw.publisher.published[0]?.id).toBe(answer.json["eventId"]);
  });

  it("is 503 and publishes nothing when the store is down", async () => {
    gw.store.down = true;
    const { status, json, headers } = await post(gw, "/v1/prompts", { text: "hello" });
    expect(status).toBe(503);
    expect(json).toMatchObject({ code: "store_unavailable", retryable: true });
    expect(headers.get("retry-after")).toBe("1");
    expect(gw.publisher.published).toEqual([]);
  });

  it.each([
    ["no JSON", "{", 400, "not_json"], ["an array", "[]", 422, "validation_failed"], ["empty", "", 422, "validation_failed"], ["unknown field", '{"text":"a","admin":true}', 422, "validation_failed"],
    ["a bomb", "[".repeat(100_000), 400, "not_json"], ["proto", '{"__proto__":{"text":"a"}}', 422, "validation_failed"], ["repeated key", '{"text":"a","text":"b"}', 400, "not_json"],
    ["number for text", '{"text":1}', 422, "validation_failed"], ["past expiry", '{"text":"a","expiresAt":"2020-01-01T00:00:00Z"}', 410, "expired"], ["unknown agent", '{"text":"a","agent":"nobody"}', 422, "agent_unknown"],
    ["bad mode", '{"text":"a","mode":"rush"}', 422, "validation_failed"], ["dots for a session", '{"text":"a","sessionId":".."}', 422, "validation_failed"], ["a dot for a session", '{"text":"a","sessionId":"."}', 422, "validation_failed"], ["a number that no sidecar reads", '{"text":"a","attributes":{"n":1e400}}', 400, "not_json"],
    ["NUL in session", '{"text":"a","sessionId":"a\\u0000"}', 422, "validation_failed"],
  ])("refuses a body that is %s", async (_name, body, status, code) => {
    expect(await post(gw, "/v1/prompts", body)).toMatchObject({ status, json: { code } });
    expect(gw.publisher.published).toEqual([]);
  });

  it("refuses a body that is not UTF-8", async () => {
    const res = await fetch(`${gw.url}/v1/prompts`, { method: "POST", body: Buffer.from([0x7b, 0xff, 0x7d]), headers: { authorization: `Bearer ${gw.keys.all}` } });
    expect(res.status).toBe(400);
  });
});

describe("CloudEvents", () => {
  const big = '{"specversion":"1.0","id":"e1","source":"/shop","type":"shop.order.created","subject":"ord-1","data":{"id":9007199254740993,"price":1.10}}';

  it("keeps the digits of structured data to the wire", async () => {
    expect((await post(gw, "/v1/events", big, structured)).status).toBe(202);
    const wire = gw.publisher.texts()[0]!;
    expect(wire).toContain('"id":9007199254740993,"price":1.10');
    expect(parseEnvelope(wire).data).toBe('{"id":9007199254740993,"price":1.10}');
    const [row] = await gw.inbox.due(gw.clock.nowMs() + 10_000, 1);
    expect(row?.envelopeText).toContain("9007199254740993");
  });

  it("keeps them in binary mode, decodes percent escapes, and takes both modes for the same event", async () => {
    const headers = { "ce-specversion": "1.0", "ce-id": "e1", "ce-source": "/shop", "ce-type": "shop.order.created", "ce-subject": "ord-%E2%82%AC", "ce-busymode": "reject", "content-type": "application/json; charset=utf-8" };
    expect((await post(gw, "/v1/events", '{"id": 9007199254740993}', headers)).status).toBe(202);
    expect(gw.publisher.published[0]).toMatchObject({ subject: "ord-€", data: '{"id": 9007199254740993}', busymode: "reject" });
    const again = await post(gw, "/v1/events", JSON.stringify(event({ subject: "ord-€", data: 0, busymode: "reject" })).replace('"data":0', '"data":{"id":9007199254740993}'), structured);
    expect(again.status).toBe(202);
    expect(gw.publisher.published).toHaveLength(1);
  });

  it.each([
    ["time nobody can read", { "ce-time": "yesterday" }, 400], ["no type", { "ce-type": "" }, 400], ["wrong version", { "ce-specversion": "0.3" }, 400], ["broken escape", { "ce-subject": "%zz" }, 400],
    ["data that is no JSON", { "content-type": "application/json" }, 400, "not json"], ["image data", { "content-type": "image/png" }, 422, "x"],
  ])("refuses binary mode with %s", async (_name, over, status, body = "{}") => {
    const headers = { "ce-specversion": "1.0", "ce-id": "e1", "ce-source": "/shop", "ce-type": "shop.order.created", "ce-subject": "s", ...over };
    expect((await post(gw, "/v1/events", body, headers)).status).toBe(status);
  });

  it("judges each event of a batch on its own, in order", async () => {
    const batch = [event({ id: "a" }), event({ id: "b", type: "com.docket.session.close.v1" }), { nonsense: 1 }, event({ id: "c", type: "nobody.wants.this" }), event({ id: "d", subject: "ord-2" })];
    const { status, json } = await post(gw, "/v1/events", batch, { "content-type": "application/cloudevents-batch+json" });
    expect(status).toBe(207);
    expect((json as unknown as { status: number }[]).map((item) => item.status)).toEqual([202, 403, 400, 422, 202]);
    expect(gw.publisher.published.map((one) => one.id)).toEqual(["a", "d"]);
  });

  it("refuses a batch that is no batch, or too large", async () => {
    const batched = { "content-type": "application/cloudevents-batch+json" };
    expect((await post(gw, "/v1/events", event(), batched)).status).toBe(400);
    expect((await post(gw, "/v1/events", Array.from({ length: 101 }, () => 1), batched)).status).toBe(413);
    expect((await post(gw, "/v1/events", "[]", batched)).status).toBe(202);
  });

  it("overwrites what a sender may not say, and drops a broken trace", async () => {
    await post(gw, "/v1/events", event({ tenant: "umbra", principal: '{"id":"root","class":"person","roles":["admin"]}', correlationid: "x", partitionkey: "y", traceparent: "junk" }), structured);
    const [envelope] = gw.publisher.published;
    expect(envelope).toMatchObject({ tenant: "acme", partitionkey: actorIdOf("acme", "ord-1") });
    expect(envelope!.principal).toContain("ann@example.com");
    expect(envelope!.correlationid).toMatch(/^run_/);
    expect(envelope!.traceparent).toMatch(/^00-/);
  });

  it("keeps a valid trace and replaces one of zeros", async () => {
    const valid = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
    await post(gw, "/v1/events", event({ id: "1", traceparent: valid }), structured);
    await post(gw, "/v1/events", event({ id: "2", subject: "ord-2" }), { ...structured, traceparent: valid });
    await post(gw, "/v1/events", event({ id: "3", subject: "ord-3", traceparent: `00-${"0".repeat(32)}-${"b".repeat(16)}-01` }), structured);
    expect(gw.publisher.published.map((one) => one.traceparent === valid)).toEqual([true, true, false]);
  });

  it("sends an event for a session that exists to its agent, and keeps the path's session", async () => {
    gw.sessions.append("acme", "cus_1", { type: "GuardArmed", generation: 1, periodMs: 1 });
    expect((await post(gw, "/v1/sessions/cus_1/events", event({ subject: undefined, type: "com.stripe.invoice.paid" }), structured)).status).toBe(202);
    expect(gw.publisher.published[0]).toMatchObject({ agent: "order-triage", subject: "cus_1" });
  });

  it("answers HEAD on a stream without opening one", async () => {
    expect((await fetch(`${gw.url}/v1/sessions/s/stream`, { method: "HEAD", headers: { authorization: `Bearer ${gw.keys.all}` } })).status).toBe(204);
  });

  it("refuses reserved types, another principal's source, an expired event, and two different sessions", async () => {
    expect(await post(gw, "/v1/events", event({ type: "com.docket.session.cancel.v1" }), structured)).toMatchObject({ status: 403, json: { code: "reserved_type" } });
    expect(await post(gw, "/v1/events", event({ source: "urn:docket:principal:acme:bob" }), structured)).toMatchObject({ status: 403 });
    expect(await post(gw, "/v1/events", event({ expirytime: "2020-01-01T00:00:00Z" }), structured)).toMatchObject({ status: 410 });
    expect(await post(gw, "/v1/sessions/other/events", event(), structured)).toMatchObject({ status: 422 });
    expect(gw.publisher.published).toEqual([]);
  });

  it("takes a prompt type with prompt data only", async () => {
    const prompt = event({ type: "com.docket.prompt.received.v1", data: { text: "hi" } });
    expect((await post(gw, "/v1/sessions/ord-1/events", prompt, structured)).status).toBe(202);
    expect((await post(gw, "/v1/sessions/ord-1/events", { ...prompt, id: "e2", data: { text: 1 } }, structured)).status).toBe(422);
  });
});

describe("hostile ids", () => {
  it.each(["a/b", "a?b", "a#b", "a%b", "a||b", "...", "a b", "ünïcode", "a'b\"c", "x".repeat(200), "__proto__", "constructor"])("takes the session id %s as data", async (id) => {
    const { status, json } = await post(gw, "/v1/prompts", { text: "hi", sessionId: id });
    expect(status).toBe(202);
    expect(gw.publisher.published[0]).toMatchObject({ subject: id, partitionkey: actorIdOf("acme", id) });
    gw.sessions.append("acme", id, { type: "GuardArmed", generation: 1, periodMs: 1 });
    expect(accepted(json).links.session).toBe(`/v1/sessions/${encodeURIComponent(id)}`);
    expect(await rawGet(accepted(json).links.session)).toContain("200 OK");
  });

  it.each([["x".repeat(300), 422], ["a\u0000b", 422], ["a\nb", 422], ["\u202eabc", 422]])("refuses the session id %j", async (id, status) => {
    expect((await post(gw, "/v1/prompts", { text: "hi", sessionId: id })).status).toBe(status);
    expect((await fetch(`${gw.url}/v1/sessions/${encodeURIComponent(id)}`, { headers: { authorization: `Bearer ${gw.keys.all}` } })).status).toBe(status);
  });

  it("answers broken escapes and traversal with a problem, not a crash", async () => {
    expect(await rawGet("/v1/sessions/%zz")).toContain("400 Bad Request");
    expect(await rawGet("/v1/sessions/..%2f..%2fetc")).toContain("404 Not Found");
    expect(await rawGet("/v1/sessions/%00")).toContain("422");
  });

  /** Sends a path as it is: fetch would normalise it. */
  function rawGet(path: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const { port } = new URL(gw.url);
      const socket = connect(Number(port), "127.0.0.1", () => socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${gw.keys.all}\r\nConnection: close\r\n\r\n`));
      let text = "";
      socket.on("data", (chunk) => { text += chunk.toString(); }).on("end", () => { resolve(text); }).on("error", reject);
    });
  }
});

describe("rights, sizes, rates", () => {
  it.each([["no key", undefined], ["not a key", "Bearer nonsense"], ["an unknown key", `Bearer dk_abcdef123456_${"x".repeat(43)}`]])("refuses %s the same way", async (_name, authorization) => {
    const res = await fetch(`${gw.url}/v1/prompts`, { method: "POST", body: "{}", headers: authorization === undefined ? {} : { authorization } });
    expect(res.status).toBe(401);
    expect(res.headers.get("content-type")).toContain("application/problem+json");
    expect(res.headers.get("www-authenticate")).toContain("Bearer");
  });

  it("refuses an expired key, a changed secret and a missing scope", async () => {
    expect((await post(gw, "/v1/prompts", { text: "a" }, { authorization: `Bearer ${gw.keys.old}` })).status).toBe(401);
    expect((await post(gw, "/v1/prompts", { text: "a" }, { authorization: `Bearer ${gw.keys.all.slice(0, -1)}` })).status).toBe(401);
    expect((await post(gw, "/v1/prompts", { text: "a" }, { authorization: `Bearer ${gw.keys.reader}` })).status).toBe(403);
    expect((await post(gw, "/v1/sessions/s/cancel", {}, { authorization: `Bearer ${gw.keys.reader}` })).status).toBe(403);
  });

  it("answers 413 before the body was sent, by length and by counting", async () => {
    const early = await new Promise<number>((resolve) => {
      const req = request(`${gw.url}/v1/prompts`, { method: "POST", headers: { authorization: `Bearer ${gw.keys.all}`, "content-length": 300_000 } }, (res) => { resolve(res.statusCode ?? 0); req.destroy(); });
      req.on("error", () => undefined);
      req.write("{");
    });
    expect(early).toBe(413);
    const counted = await new Promise<number>((resolve) => {
      const req = request(`${gw.url}/v1/prompts`, { method: "POST", headers: { authorization: `Bearer ${gw.keys.all}` } }, (res) => { resolve(res.statusCode ?? 0); req.destroy(); });
      req.on("error", () => undefined);
      for (let n = 0; n < 6; n += 1) req.write("x".repeat(50_000)); // never ends
    });
    expect(counted).toBe(413);
    expect((await post(gw, "/v1/prompts", { text: "still here" })).status).toBe(202);
  });

  it("refuses an event that only fits without its attributes", async () => {
    const body = JSON.stringify(event({ data: "x".repeat(MAX_EVENT_BYTES - 130) }));
    expect(Buffer.byteLength(body)).toBeLessThanOrEqual(MAX_EVENT_BYTES);
    expect(await post(gw, "/v1/events", body, structured)).toMatchObject({ status: 413, json: { code: "payload_too_large" } });
  });

  it("refuses compressed bodies", async () => {
    expect((await post(gw, "/v1/prompts", "x", { "content-encoding": "gzip" })).status).toBe(400);
  });

  it("limits each principal for itself, with RateLimit headers and a problem", async () => {
    await gw.close();
    gw = await startTestGateway({ config: { rateLimit: { perPrincipal: 3, perAddress: 2 } } });
    const statuses = [];
    for (let n = 0; n < 4; n += 1) statuses.push((await post(gw, "/v1/prompts", { text: "a" })).status);
    expect(statuses).toEqual([202, 202, 202, 429]);
    const last = await post(gw, "/v1/prompts", { text: "a" });
    expect(last.json).toMatchObject({ code: "rate_limited", retryable: true });
    expect(last.headers.get("ratelimit")).toContain("r=0");
    expect(Number(last.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await post(gw, "/v1/prompts", { text: "a" }, { authorization: `Bearer ${gw.keys.other}` })).status).toBe(202);
    const guesses = [];
    for (let n = 0; n < 3; n += 1) guesses.push((await post(gw, "/v1/prompts", { text: "a" }, { authorization: "Bearer dk_aaaa_guess" })).status);
    expect(guesses).toEqual([401, 401, 429]);
    expect((await fetch(`${gw.url}/v1/sessions/x`, { headers: { authorization: `Bearer ${gw.keys.other}` } })).status).toBe(404);
  });

  it("has health, index, problem 404, security headers, no CORS", async () => {
    expect(await (await fetch(`${gw.url}/healthz`)).json()).toEqual({ status: "ok" });
    expect((await (await fetch(gw.url)).json() as { routes: string[] }).routes).toContain("POST /v1/prompts");
    const missing = await fetch(`${gw.url}/nope`, { headers: { origin: "https://evil.example", "x-request-id": "abc" } });
    expect(missing.status).toBe(404);
    expect(missing.headers.get("access-control-allow-origin")).toBeNull();
    expect(missing.headers.get("x-content-type-options")).toBe("nosniff");
    expect(missing.headers.get("x-powered-by")).toBeNull();
    expect(await missing.json()).toMatchObject({ code: "not_found", instance: "urn:docket:request:abc" });
  });

  it("never tells what went wrong inside", async () => {
    gw.sessions.readSession = async () => { throw new Error("password=hunter2 at /srv/secret"); };
    const res = await fetch(`${gw.url}/v1/sessions/s`, { headers: { authorization: `Bearer ${gw.keys.all}` } });
    expect(res.status).toBe(500);
    expect(await res.text()).not.toContain("hunter2");
  });
});

describe("reads and cancel", () => {
  const get = (path: string, key = gw.keys.all) => fetch(gw.url + path, { headers: { authorization: `Bearer ${key}` } });

  it("shows a session to its own tenant only", async () => {
    gw.sessions.append("acme", "ord-1", { type: "GuardArmed", generation: 1, periodMs: 1 });
    expect((await get("/v1/sessions/ord-1")).status).toBe(200);
    expect((await get("/v1/sessions/ord-1", gw.keys.other)).status).toBe(404);
    gw.sessions.down = true;
    expect((await get("/v1/sessions/ord-1")).status).toBe(503);
  });

  it("tells an event's outcome", async () => {
    const { json } = await post(gw, "/v1/prompts", { text: "a", sessionId: "ord-1" });
    const { runId } = json;
    expect(await (await get(accepted(json).links.outcome)).json()).toEqual({ state: "accepted", runId });
    gw.sessions.outcomes.set(`${actorIdOf("acme", "ord-1")}/${accepted(json).eventKey}`, { state: "ended", outcome: "completed" });
    expect(await (await get(accepted(json).links.outcome)).json()).toMatchObject({ outcome: "completed" });
    expect(await (await get(`/v1/sessions/ord-1/events/${"0".repeat(32)}`)).json()).toEqual({ state: "unknown" });
    expect((await get("/v1/sessions/ord-1/events/nonsense")).status).toBe(422);
  });

  it("sends a cancel through inbox and channel; 404 for no session; taken when the actor does not answer", async () => {
    expect((await post(gw, "/v1/sessions/ord-1/cancel", { reason: "wrong order" })).status).toBe(404);
    gw.sessions.append("acme", "ord-1", { type: "GuardArmed", generation: 1, periodMs: 1 });
    expect((await post(gw, "/v1/sessions/ord-1/cancel", { reason: "wrong order", runId: "run_1" })).status).toBe(202);
    expect(gw.publisher.published[0]).toMatchObject({ type: "com.docket.session.cancel.v1", subject: "ord-1", data: '{"runId":"run_1","reason":"wrong order"}' });
    gw.sessions.down = true;
    expect((await post(gw, "/v1/sessions/ord-2/cancel", "")).status).toBe(202);
    expect(await gw.inbox.due(gw.clock.nowMs() + 10_000, 10)).toHaveLength(2);
  });
});
