/**
 * A model behind HTTP on the real stack: the anthropic provider against a local server that speaks its wire. The answer
 * streams out while it is made; usage and cost are what the provider reports; the request rate is one for all hosts.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { anthropicReply } from "../contract/model/anthropic-wire.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { StreamClient } from "../support/sse.js";

const PER_MINUTE = 30;
const ANSWER = "The espresso machine was delivered on Monday; the customer has it, and nothing else is open.";

let server: Server;
let requests: { atMs: number; body: string }[] = [];
let docket: Docket;

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => { body += chunk.toString("utf8"); });
    request.on("end", () => {
      requests.push({ atMs: Date.now(), body });
      const reply = body.includes("tool_result") || !body.includes("order 1001")
        ? anthropicReply({ kind: "answer", text: ANSWER, usage: { inputTokens: 1000, outputTokens: 100, cacheReadTokens: 500, cacheWriteTokens: 0 } }, "claude-sonnet-5-5")
        : anthropicReply({ kind: "answer", text: "Let me look.", calls: [{ name: "order_status", args: '{"orderId": "1001"}' }] }, "claude-sonnet-5-5");
      response.writeHead(reply.status, { "content-type": "text/event-stream" });
      const events = reply.body.split(/(?<=\n\n)/);
      const next = (): void => {
        const event = events.shift();
        if (event === undefined) { response.end(); return; }
        response.write(event, () => setTimeout(next, 15));
      };
      next();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  docket = await startDocket({
    sessionsReplicas: 2,
    extraEnv: { sessions: { ANTHROPIC_API_KEY: "test-key", ANTHROPIC_BASE_URL: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`, DOCKET_DEFAULT_MODEL: "anthropic:claude-sonnet-5-5", DOCKET_MODEL_REQUESTS_PER_MINUTE: String(PER_MINUTE) } },
  });
});
afterAll(async () => {
  await docket.close();
  await new Promise((resolve) => { server.close(resolve); server.closeAllConnections(); });
});

describe("a model behind HTTP", () => {
  it("plans, calls the tool and answers; the answer streams out in pieces, and cost is what was reported", async () => {
    const session = freshSession("http-model");
    const stream = new StreamClient(`${docket.test.stack.urls.gateway ?? ""}/v1/sessions/${session}/stream?wait=1`, docket.apiKey);
    stream.start();
    const accepted = await docket.prompt(session, "where is order 1001?");
    expect((await docket.ended(accepted)).outcome).toBe("completed");
    await eventually("the end on the stream", () => (stream.events.some((event) => JSON.stringify(event.data).includes("RunEnded")) ? true : undefined));
    stream.close();
    const deltas = stream.events.filter((event) => event.event === "delta").map((event) => event.data as { step: number; text: string });
    expect(deltas.length).toBeGreaterThan(3);
    // Deltas are lossy by contract; what came is in order and part of the answer.
    const streamed = deltas.filter((delta) => delta.step === 2).map((delta) => delta.text);
    let at = 0;
    for (const text of streamed) {
      const found = ANSWER.indexOf(text, at);
      expect(found).toBeGreaterThanOrEqual(at);
      at = found + text.length;
    }
    const { summary } = await docket.session(session);
    expect(summary).toMatchObject({ modelCalls: 2, toolCalls: 1, outputTokens: 130 });
    expect(summary.costUsd).toBeGreaterThan(0);
    expect(eventsOf(await docket.journal(session), "RunEnded").map((event) => event.text)).toEqual([ANSWER]);
    // The second request pairs the call with its result.
    expect(requests.at(-1)?.body).toContain("tool_result");
  });

  it("is asked no faster than the limit, by both hosts together, and every question is answered in the end", async () => {
    requests = [];
    const started = Date.now();
    const accepted = await Promise.all(Array.from({ length: PER_MINUTE + 4 }, () => docket.prompt(freshSession("rate"), "hello")));
    for (const answer of accepted) expect((await docket.ended(answer, 90_000)).outcome).toBe("completed");
    for (const [index, request] of requests.entries()) {
      const allowed = PER_MINUTE + ((request.atMs - started) / 60_000) * PER_MINUTE + 1;
      expect(index + 1).toBeLessThanOrEqual(Math.ceil(allowed));
    }
    const waited = (await Promise.all(accepted.map((answer) => docket.journal(answer.sessionId)))).flatMap((entries) => eventsOf(entries, "ModelCallFailed"));
    expect(waited.some((event) => event.message.includes("rate limit"))).toBe(true);
  });
});
