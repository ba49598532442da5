/**
 * I14: whatever comes on whatever subscription, it is recorded once, with reason, tries and its bytes, and acked; it is never
 * repeated for ever and never swallowed. One table: every subscription that may not lose anything, every way to be wrong.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CHANNELS, type ChannelName } from "../../src/contracts/channels.js";
import { serializeEnvelope, type Envelope } from "../../src/contracts/cloudevent.js";
import { APPROVAL_PENDING, DECISION_MADE } from "../../src/contracts/decisions.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import { JOURNAL_APPENDED } from "../../src/contracts/journal.js";
import { DEAD_LETTERED, EVENT_ACCEPTED, PROMPT_RECEIVED, SESSION_CANCEL, type DeadLetter, type DeliveryStatus } from "../../src/contracts/messages.js";
import { TOOL_CLAIMED, TOOL_COMPLETED, TOOL_REQUESTED } from "../../src/contracts/tools.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../src/platform/keys.js";
import { packed, unpacked } from "../../src/platform/letter-parcel.js";
import { entryOf, pendingOf, startConsole, summaryOf } from "../support/console-fakes.js";
import { startTestGateway } from "../support/gateway-fakes.js";
import { countingTool, harness, requestFor } from "../support/tools/harness.js";
import { World } from "./host/support.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "docket-poison-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => rm(dir, { recursive: true }));

/** A subscription: taking a delivery, and the letters that came of it. */
interface Subscriber { take(text: string): Promise<DeliveryStatus>; letters(): Promise<readonly DeadLetter[]>; end?(): Promise<void> }

function session(channel: "tasks" | "toolResults" | "approvalsResolved"): () => Promise<Subscriber> {
  return async () => {
    const world = new World();
    const host = world.host();
    return { take: (text) => host.take(channel, text), letters: async () => world.bus.letters };
  };
}
async function worker(): Promise<Subscriber> {
  const h = harness([countingTool().tool]);
  const tools = h.worker();
  return { take: (text) => tools.handleRequest(text), letters: async () => h.letters };
}
async function gateway(): Promise<Subscriber> {
  const gw = await startTestGateway();
  return { take: (text) => gw.gateway.handleResponse(text), letters: async () => gw.deadLetters.letters, end: () => gw.close() };
}
function console_(take: "handleJournal" | "handleApprovalPending" | "handleDeadLetter"): () => Promise<Subscriber> {
  return async () => {
    const world = await startConsole(keys);
    const key = world.key(["admin"]);
    return {
      take: (text) => world.console[take](text), end: () => world.close(),
      letters: async () => ((await world.call("GET", "/v1/dead-letters", { key })).body["items"] as { letter: DeadLetter }[]).map((item) => item.letter),
    };
  };
}

const ADDRESS = { tenant: "default", sessionId: "nobody", actorId: actorIdOf("default", "nobody") };
const CLOCK = { nowMs: () => Date.now() };
const result = { ...ADDRESS, runId: "r", callId: "c", tool: "refund", try: 1, outcome: "succeeded", output: "", truncated: false, worker: "w", startedAtMs: 1, endedAtMs: 1, proof: "x" };

/** A good message of each channel, as far as its shape goes. */
const GOOD: Readonly<Record<Exclude<ChannelName, "live" | "deadLetters">, { open: () => Promise<Subscriber>; type: string; data: object; kind: DeadLetter["kind"]; /** It names a session that is not there. */ lost?: { type: string; data: object } }>> = {
  tasks: { open: session("tasks"), type: PROMPT_RECEIVED, data: { text: "hi" }, kind: "event", lost: { type: SESSION_CANCEL, data: {} } },
  toolResults: { open: session("toolResults"), type: TOOL_COMPLETED, data: result, kind: "tool_result", lost: { type: TOOL_CLAIMED, data: { ...ADDRESS, runId: "r", callId: "c", try: 1, worker: "w", claimedAtMs: 1 } } },
  approvalsResolved: { open: session("approvalsResolved"), type: DECISION_MADE, data: { ...ADDRESS, approvalId: "apr_1", decision: "x" }, kind: "decision", lost: { type: DECISION_MADE, data: { ...ADDRESS, approvalId: "apr_1", decision: `signed.${Buffer.from(JSON.stringify({ sub: ADDRESS.actorId, approvalId: "apr_1", jti: "d1" })).toString("base64url")}` } } },
  toolRequests: { open: worker, type: TOOL_REQUESTED, data: requestFor(CLOCK as never), kind: "tool_request" },
  responses: { open: gateway, type: EVENT_ACCEPTED, data: { ...ADDRESS, key: "k", rev: 1, verdict: "accepted" }, kind: "unreadable" },
  journal: { open: console_("handleJournal"), type: JOURNAL_APPENDED, data: { appended: [{ entry: entryOf(1, []), summary: summaryOf() }] }, kind: "journal" },
  approvalsPending: { open: console_("handleApprovalPending"), type: APPROVAL_PENDING, data: pendingOf(), kind: "approval" },
};

const envelope = (type: string, data: unknown, more: Partial<Envelope> = {}): string => serializeEnvelope({ specversion: "1.0", id: "m-1", source: "/poison", type, subject: "nobody", data: JSON.stringify(data), ...(type === PROMPT_RECEIVED ? { agent: "echo" } : {}), ...more });

const cases = Object.entries(GOOD).flatMap(([channel, { open, type, data, kind, lost }]) => {
  const of = (name: string, text: string, reason: string, as: DeadLetter["kind"] = kind) => ({ name: `${channel}: ${name}`, channel: channel as keyof typeof GOOD, open, text, reason, kind: as });
  // Console and gateway know what each subscription is for; the others cannot say what an unreadable thing was.
  const unread: DeadLetter["kind"] = kind === "journal" || kind === "approval" ? kind : "unreadable";
  return [
    of("nothing", "", "not_json", unread),
    of("not JSON", "\u0001 not json {", "not_json", unread),
    of("a bomb of brackets", "[".repeat(100_000), "not_json", unread),
    of("not a CloudEvent", JSON.stringify(data), "not_a_cloudevent", unread),
    of("a CloudEvent of another version", envelope(type, data, { specversion: "2.0" as "1.0" }), "not_a_cloudevent", unread),
    of("too large", envelope(type, { ...data, filler: "x".repeat(kind === "tool_result" ? 1_100_000 : 300_000) }), "payload_too_large", kind === "event" || kind === "decision" ? kind : unread),
    of("far too large", envelope(type, { ...data, filler: "\"".repeat(1_200_000) }), "payload_too_large", unread),
    of("data of another shape", envelope(type, { text: 7, tenant: "default", sessionId: "nobody", actorId: ADDRESS.actorId }), "validation_failed"),
    of("no data", envelope(type, null), "validation_failed"),
    of("a later version", envelope(type.replace(/\.v1$/, ".v99"), data), "unknown_type"),
    ...(lost === undefined ? [] : [of("an unknown session", envelope(lost.type, lost.data), "session_not_found")]),
  ];
});

describe("poison", () => {
  it.each(cases)("$name", async ({ channel, open, text, reason, kind }) => {
    const subscriber = await open();
    try {
      for (let n = 0; n < 3; n += 1) expect(await subscriber.take(text)).toBe("SUCCESS");
      const letters = (await subscriber.letters()).map(unpacked);
      expect(new Set(letters.map((letter) => letter.deadLetterId)).size).toBe(1);
      const [letter] = letters;
      expect(letter).toMatchObject({ kind, reason, tries: 1, topic: CHANNELS[channel].topic, payloadEncoding: "utf8" });
      expect(letter?.payload === text, "the payload is what arrived").toBe(true);
      expect(letter?.message).not.toBe("");
    } finally {
      await subscriber.end?.();
    }
  });

  it.each([
    ["not JSON", "\u0001 not json {", "not_json"], ["not a CloudEvent", "{}", "not_a_cloudevent"], ["too large", `"${"x".repeat(3_000_000)}"`, "payload_too_large"],
    ["a dead letter of another shape", envelope(DEAD_LETTERED, { deadLetterId: 7 }), "unreadable"],
  ])("deadLetters: %s is kept, and the topic goes on", async (_name, text, reason) => {
    const subscriber = await console_("handleDeadLetter")();
    for (let n = 0; n < 3; n += 1) expect(await subscriber.take(text)).toBe("SUCCESS");
    const letters = await subscriber.letters();
    expect(letters).toMatchObject([{ kind: "unreadable", reason }]);
    expect(letters[0]?.payload === text).toBe(true);
    await subscriber.end?.();
  });

  it("deadLetters: bytes that are no text are kept as they are", async () => {
    const world = await startConsole(keys);
    const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x41]);
    for (let n = 0; n < 2; n += 1) expect(await world.console.handleDeadLetter(bytes.toString("utf8"), bytes)).toBe("SUCCESS");
    const [item, ...more] = (await world.call("GET", "/v1/dead-letters", { key: world.key(["admin"]) })).body["items"] as { letter: DeadLetter }[];
    expect(more).toEqual([]);
    expect(item?.letter).toMatchObject({ kind: "unreadable", payloadEncoding: "base64", payload: bytes.toString("base64") });
    await world.close();
  });

  it("the good message of each channel is no poison", async () => {
    for (const [channel, { open, type, data }] of Object.entries(GOOD)) {
      if (channel === "toolResults" || channel === "approvalsResolved") continue; // signed: see deliveries.test.ts
      const subscriber = await open();
      expect(await subscriber.take(envelope(type, data)), channel).toBe("SUCCESS");
      expect(await subscriber.letters(), channel).toEqual([]);
      await subscriber.end?.();
    }
  });
});

describe("a letter on its way", () => {
  const letter = (payload: string, more: Partial<DeadLetter> = {}): DeadLetter => ({ deadLetterId: "dl_1", kind: "event", reason: "payload_too_large", message: "m", topic: "t", app: "sessions", tries: 1, payload, payloadEncoding: "utf8", firstFailedAtMs: 1, lastFailedAtMs: 1, ...more });
  const MAX = 900 * 1024;

  it.each([["small", "{}"], ["of many quotes", "\"".repeat(800_000)], ["of megabytes", "payload ".repeat(500_000)], ["of odd characters", "\u2028\u{1F600}\\".repeat(200_000)]])("%s: fits, and is unpacked as it was", (_name, payload) => {
    const parcel = packed(letter(payload));
    expect(Buffer.byteLength(JSON.stringify(parcel))).toBeLessThanOrEqual(MAX);
    expect(unpacked(parcel)).toEqual(letter(payload));
  });

  it("that cannot be made to fit is cut, and says so", () => {
    const noise = randomBytes(3_000_000).toString("base64");
    const parcel = packed(letter(noise));
    expect(Buffer.byteLength(JSON.stringify(parcel))).toBeLessThanOrEqual(MAX);
    const kept = unpacked(parcel);
    expect(noise.startsWith(kept.payload)).toBe(true);
    expect(kept.message).toMatch(/cut to \d+ of \d+ bytes, sha256 [0-9a-f]{64}/);
  });

  it("that is a bomb, or no parcel at all, is kept as it came", () => {
    const bomb = letter(gzipSync(Buffer.alloc(80 * 1024 * 1024)).toString("base64"), { payloadEncoding: "gzip" });
    expect(unpacked(bomb)).toEqual({ ...bomb, payloadEncoding: "base64" });
    expect(unpacked(letter("no gzip", { payloadEncoding: "gzip" }))).toMatchObject({ payloadEncoding: "base64", payload: "no gzip" });
  });
});
