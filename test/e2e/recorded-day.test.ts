/**
 * The recorded day: three agents behind one queue, seven deliveries, six ledger rows. Every row, try and call is counted from
 * the outside: the outside systems' own log, the model's call log, the journals, the dead letters.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Accepted } from "../../src/contracts/api.js";
import { foldCheck, outcomeProblems } from "../support/checks.js";
import { eventsOf, eventually, startDocket, type Docket } from "../support/docket.js";
// @ts-expect-error plain JavaScript, so that the example runs without a build
import { deliveries, modelFails } from "../../examples/recorded-day/day.mjs";

interface Delivery { readonly id: string; readonly type: string }

let docket: Docket;
let accepted: Accepted[];

beforeAll(async () => {
  docket = await startDocket();
  accepted = [];
  for (const delivery of deliveries as Delivery[]) accepted.push(await docket.cloudEvent(delivery));
  for (const answer of accepted) await docket.ended(answer, 60_000);
}, 180_000);
afterAll(async () => { await docket.close(); });

const requestsFor = (path: string): number => docket.acme.calls().filter((call) => call.path === path).length;
const journalOf = (id: string) => docket.journal(id);

describe("seven deliveries", () => {
  it("end in exactly six ledger rows: the duplicate is the first one again", async () => {
    expect(accepted).toHaveLength(7);
    expect(new Set(accepted.map((answer) => answer.eventKey)).size).toBe(6);
    const received = (await Promise.all([...docket.used].map(journalOf))).flatMap((entries) => eventsOf(entries, "EventReceived"));
    expect(received.map((event) => event.id).sort()).toEqual(["eml-2001", "eml-2002", "fil-3001", "ord-1001", "ord-1002", "ord-1003"]);
  });

  it("ord-1001, delivered twice: one run, two model calls, one effect", async () => {
    const journal = await journalOf("ord-1001");
    expect(eventsOf(journal, "RunEnded")).toMatchObject([{ outcome: "completed" }]);
    expect(docket.modelCalls("ord-1001")).toHaveLength(2);
    expect(requestsFor("/orders/ord-1001/route")).toBe(1);
    expect(docket.acme.effects("/orders/ord-1001/route")).toBe(1);
  });

  it("ord-1002: three tries with growing pauses, then a dead letter with payload and last error, and the model is told", async () => {
    const journal = await journalOf("ord-1002");
    expect(requestsFor("/orders/ord-1002/route")).toBe(3);
    expect(new Set(docket.acme.calls().filter((call) => call.path === "/orders/ord-1002/route").map((call) => call.key)).size).toBe(1);
    expect(eventsOf(journal, "ToolTryFailed").map((event) => event.try)).toEqual([1, 2, 3]);
    expect(eventsOf(journal, "ToolTryFailed").map((event) => event.retryAtMs !== undefined)).toEqual([true, true, false]);
    const result = eventsOf(journal, "ToolResultRecorded");
    expect(result).toMatchObject([{ status: "failed" }]);
    expect(result[0]?.content.text).toContain("503");
    const letter = await eventually("the dead letter of ord-1002", async () => (await docket.deadLetters()).find((item) => item.letter.sessionId === "ord-1002"));
    expect(letter.letter).toMatchObject({ kind: "tool_request", tries: 3, tool: "route_order" });
    expect(letter.letter.message).toContain("503");
    expect(letter.letter.payload).toContain("ord-1002");
    expect(eventsOf(journal, "RunEnded")).toMatchObject([{ outcome: "completed" }]);
  });

  it("ord-1003, total 0: a business rejection, recorded, without model call, retry or dead letter", async () => {
    const journal = await journalOf("ord-1003");
    expect(eventsOf(journal, "RunEnded")).toMatchObject([{ outcome: "rejected", code: "order_without_total" }]);
    expect(docket.modelCalls("ord-1003")).toHaveLength(0);
    expect(eventsOf(journal, "ToolCallDispatched")).toHaveLength(0);
    expect((await docket.deadLetters()).filter((item) => item.letter.sessionId === "ord-1003")).toEqual([]);
  });

  it("eml-2001: classified as a complaint and drafted at the first try", async () => {
    expect(requestsFor("/mails/eml-2001/draft")).toBe(1);
    expect(docket.acme.calls().find((call) => call.path === "/mails/eml-2001/draft")?.body).toContain("complaint");
    expect(docket.modelCalls("eml-2001")).toHaveLength(2);
  });

  it("eml-2002: the mail system answers 503 twice, the third try succeeds, no dead letter", async () => {
    const calls = docket.acme.calls().filter((call) => call.path === "/mails/eml-2002/draft");
    expect(calls.map((call) => call.status)).toEqual([503, 503, 200]);
    expect(docket.acme.effects("/mails/eml-2002/draft")).toBe(1);
    expect(docket.modelCalls("eml-2002")).toHaveLength(2);
    expect(eventsOf(await journalOf("eml-2002"), "RunEnded")).toMatchObject([{ outcome: "completed" }]);
    expect((await docket.deadLetters()).filter((item) => item.letter.sessionId === "eml-2002")).toEqual([]);
  });

  it("eml-2003, the second case: the model answers 529 twice, the third attempt succeeds", async () => {
    const answer = await docket.cloudEvent(modelFails as object);
    expect((await docket.ended(answer, 60_000)).outcome).toBe("completed");
    expect(docket.modelCalls("eml-2003").map(({ step, attempt }) => [step, attempt])).toEqual([[1, 1], [1, 2], [1, 3], [2, 1]]);
    expect(docket.acme.effects("/mails/eml-2003/draft")).toBe(1);
  });

  it("fil-3001: summarised and filed among the invoices", async () => {
    expect(requestsFor("/files/fil-3001/route")).toBe(1);
    expect(docket.acme.calls().find((call) => call.path === "/files/fil-3001/route")?.body).toContain("invoices");
    expect(docket.modelCalls("fil-3001")).toHaveLength(2);
  });

  it("leave journals with one outcome for each event, which fold to their states", async () => {
    for (const session of docket.used) expect(outcomeProblems(await journalOf(session))).toEqual([]);
    expect(foldCheck(docket).problems).toEqual([]);
  });
});
