/** The actor's methods: an allow-list, a key for what changes state, an echoed token, and errors as values (DESIGN 7.3, 7.4, 7.10, 7.14). */
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { ACTOR, ACTOR_KEY, command, fakeTime, keyOf, pass, prompt, SESSION, World, type Host } from "./support.js";

let world: World;
let host: Host;
beforeEach(() => { fakeTime(); world = new World(); host = world.host(); });
afterEach(() => { vi.useRealTimers(); });

const call = (method: string, body: unknown): Promise<object> => host.methods[method]!(ACTOR, body);
const delivery = (about: object = {}): object => ({ key: ACTOR_KEY, token: "t-1", channel: "tasks", text: serializeEnvelope(prompt("a")), tenant: "default", sessionId: SESSION, ...about });

describe("actor methods", () => {
  it("are these and no others", () => {
    expect(Object.keys(host.methods).sort()).toEqual(["deliver", "ping", "readDecision", "readJournal", "readOutcome", "readSession"]);
    for (const name of ["constructor", "toString", "__proto__", "hasOwnProperty", "onReminder", "receiveReminder"]) expect(Object.hasOwn(host.methods, name)).toBe(false);
  });

  it.each([["no key", { key: undefined }], ["an empty key", { key: "" }], ["another key of the same length", { key: "x".repeat(ACTOR_KEY.length) }], ["a longer key", { key: `${ACTOR_KEY}x` }], ["a key that is no text", { key: [ACTOR_KEY] }]])("refuse a delivery with %s, and change nothing", async (_name, about) => {
    const answer = await call("deliver", delivery(about));
    expect(answer).toMatchObject({ ok: false, token: "t-1", retryable: false });
    expect(["forbidden", "validation_failed"]).toContain((answer as { code: string }).code);
    expect(world.store.journalOf(ACTOR)).toEqual([]);
    expect(JSON.stringify(answer)).not.toContain(ACTOR_KEY);
  });

  it.each([undefined, null, 7, "text", [], {}, { key: ACTOR_KEY, channel: "responses", text: "", tenant: "t", sessionId: "s" }])("answer a delivery of %j with a value", async (body) => {
    expect(await call("deliver", body)).toMatchObject({ ok: false, code: "validation_failed", retryable: false });
  });

  it("echo the caller's token, whatever comes of the call", async () => {
    for (const [method, body] of [
      ["ping", {}], ["deliver", delivery()], ["deliver", delivery({ key: "wrong" })], ["readSession", {}], ["readJournal", {}], ["readJournal", { limit: -1 }],
      ["readOutcome", { key: keyOf("a") }], ["readOutcome", {}], ["readDecision", { decisionId: "d" }], ["readDecision", {}],
    ] as const) {
      expect(await call(method, { ...body, token: "mine" }), method).toMatchObject({ token: "mine" });
      expect(await call(method, { ...body, token: 5 }), method).not.toHaveProperty("token");
    }
  });

  it("give failures of the way as values that may be repeated", async () => {
    world.store.down = true;
    expect(await call("deliver", delivery())).toMatchObject({ ok: false, code: "store_unavailable", retryable: true, token: "t-1" });
    expect(await call("readSession", { token: "t" })).toMatchObject({ ok: false, code: "store_unavailable", retryable: true, token: "t" });
    expect(await call("readDecision", { decisionId: "d" })).toMatchObject({ ok: false, code: "store_unavailable" });
  });

  it("give a fault of our own as a value that may be repeated", async () => {
    world.store.load = () => Promise.reject(new TypeError("a bug"));
    expect(await call("readSession", {})).toEqual({ ok: false, code: "internal", retryable: true, message: "a bug" });
  });

  it("deliver, and let read what became of it", async () => {
    expect(await call("readSession", {})).toEqual({ ok: true, view: null });
    expect(await call("readJournal", {})).toEqual({ ok: true, page: null });
    expect(await call("readOutcome", { key: keyOf("a") })).toEqual({ ok: true, outcome: { state: "unknown" } });
    expect(await call("deliver", delivery())).toEqual({ ok: true, token: "t-1", delivered: { ok: true, verdict: "accepted", rev: 1 } });
    await pass(1_000);
    expect(await call("readOutcome", { key: keyOf("a") })).toMatchObject({ ok: true, outcome: { state: "ended", outcome: "completed" } });
    expect(await call("readSession", {})).toMatchObject({ ok: true, view: { summary: { sessionId: SESSION, status: "IDLE" }, recentRuns: [{ outcome: "completed" }] } });
    const { page } = await call("readJournal", { afterRev: 1, limit: 1 }) as { page: { entries: { rev: number }[]; headRev: number } };
    expect(page.entries.map((entry) => entry.rev)).toEqual([2]);
    expect(page.headRev).toBe(world.state.rev);
    expect(await call("readJournal", { afterRev: 99 })).toMatchObject({ page: { entries: [] } });
    expect(await call("readDecision", { decisionId: "d" })).toEqual({ ok: true, outcome: { known: false } });
  });

  it("let an event be found that still waits, runs, or was refused by a rule", async () => {
    await host.take("tasks", prompt("run", "run", { agent: "hand" }));
    await host.take("tasks", prompt("wait", "wait", { agent: "hand" }));
    expect(await call("readOutcome", { key: keyOf("run") })).toMatchObject({ outcome: { state: "running" } });
    expect(await call("readOutcome", { key: keyOf("wait") })).toMatchObject({ outcome: { state: "accepted" } });
    await host.take("tasks", command("com.docket.session.close.v1", "c", { reason: "shut" }));
    for (let n = 0; n < 8; n += 1) await host.take("tasks", prompt(`late-${String(n)}`, "late", { agent: "hand" }));
    // Long out of the document: found by ledger and journal.
    expect(await call("readOutcome", { key: keyOf("wait") })).toMatchObject({ outcome: { state: "ended", outcome: "rejected", code: "session_closed" } });
    expect(await call("readOutcome", { key: keyOf("run") })).toMatchObject({ outcome: { state: "ended", outcome: "cancelled" } });
  });
});
