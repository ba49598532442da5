/** What the pages decide without a browser: what changed, what is urgent, who may decide, what stays still, what belongs together. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ApprovalListItem, DeadLetterItem } from "../../../src/contracts/api.js";
import type { ApprovalRecord } from "../../../src/contracts/decisions.js";
import { diff } from "../../../web/src/lib/diff.js";
import { heldOrder } from "../../../web/src/lib/held-order.js";
import { canonicalText, parseLossless } from "../../../web/src/lib/json.js";
import { groupLetters, sessionOf } from "../../../web/src/lib/letters.js";
import { storyOf } from "../../../web/src/lib/story.js";
import { bandOf, byUrgency, obstacleOf, type Me } from "../../../web/src/lib/urgency.js";
import { nextWords, relative, span } from "../../../web/src/lib/words.js";
import { entryOf, pendingOf, recordOf, START_MS, summaryOf } from "../../support/console-fakes.js";

const HOUR = 3_600_000;
const item = (overrides: Partial<ApprovalRecord>): ApprovalListItem => ({ pending: pendingOf(recordOf(overrides)), state: "open" });
const idsOf = (items: readonly ApprovalListItem[]): string[] => items.map((one) => one.pending.record.approvalId);

describe("a diff", () => {
  const changes = (before: string, after: string) => diff(parseLossless(before), parseLossless(after));
  it("names each place with both sides, digits kept", () => {
    expect(changes('{"a":{"b":[1,9007199254740993]},"c":"x","d":1}', '{"a":{"b":[1,9007199254740992,3]},"c":"x","e":null}')).toEqual([
      { path: "a.b[1]", kind: "changed", before: "9007199254740993", after: "9007199254740992" }, { path: "a.b[2]", kind: "added", after: "3" },
      { path: "d", kind: "removed", before: "1" }, { path: "e", kind: "added", after: "null" },
    ]);
  });
  it("says when the type changed", () => { expect(changes('{"a":40}', '{"a":"40"}')).toEqual([{ path: "a", kind: "changed", before: "40", after: '"40"', retyped: { from: "number", to: "string" } }]); });
  it("is empty exactly where both sides are the same arguments", () => {
    fc.assert(fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const [before, after] = [parseLossless(JSON.stringify(a)), parseLossless(JSON.stringify(b))];
      return (diff(before, after).length === 0) === (canonicalText(before) === canonicalText(after)) && diff(before, before).length === 0;
    }));
  });
});

describe("urgency", () => {
  const now = START_MS;
  it.each([[undefined, 0, "none"], [HOUR * 10, 0, "calm"], [HOUR * 10, 6 * HOUR, "soon"], [HOUR * 10, 8 * HOUR, "urgent"], [HOUR, HOUR - 10 * 60_000, "urgent"], [HOUR, HOUR, "over"]])("of %s ms, %s ms gone, is %s", (ttl, gone, band) => {
    expect(bandOf({ openedAtMs: now, ...(ttl === undefined ? {} : { expiresAtMs: now + ttl }) }, now + gone)).toBe(band);
  });
  it("puts pressing time first, then risk, then the deadline", () => {
    const open = { openedAtMs: now - HOUR };
    const items = [item({ ...open, approvalId: "low-late", risk: "low", expiresAtMs: now + 20 * HOUR }), item({ ...open, approvalId: "high-late", risk: "high", expiresAtMs: now + 20 * HOUR }), item({ ...open, approvalId: "high-sooner", risk: "high", expiresAtMs: now + 10 * HOUR }), item({ ...open, approvalId: "low-urgent", risk: "low", expiresAtMs: now + 5 * 60_000 })];
    for (const order of [items, [...items].reverse()]) expect(idsOf(byUrgency(order, now))).toEqual(["low-urgent", "high-sooner", "high-late", "low-late"]);
  });

  const me: Me = { principal: { id: "ann", class: "person", roles: ["approver"] }, tenant: "default", keyId: "k", rights: ["read", "decide"] };
  const approvers = { roles: [] as string[], quorum: 1, excludeRequester: false };
  it.each<[string, Partial<ApprovalRecord>, Partial<Me>, string | undefined]>([
    ["may", {}, {}, undefined], ["another role", { approvers: { ...approvers, roles: ["finance"] } }, {}, "only finance may decide"], ["own request", { requestedBy: "ann", approvers: { ...approvers, excludeRequester: true } }, {}, "you asked for this yourself"],
    ["own request, allowed", { requestedBy: "ann" }, {}, undefined], ["signed already", { signatures: [{ principalId: "ann", decisionId: "d", atMs: 1 }] }, {}, "you have signed; others are needed"],
    ["a machine", {}, { principal: { id: "bot", class: "machine", roles: ["approver"] } }, "a machine may not decide"], ["no right", {}, { rights: ["read"] }, "your key gives no right to decide"],
  ])("says why somebody may not decide: %s", (_name, record, who, expected) => { expect(obstacleOf(recordOf(record), { ...me, ...who })).toBe(expected); });
});

describe("a held list", () => {
  const row = (id: string, n = 0) => ({ id, n });
  it("keeps rows in place, with new content, and counts what waits", () => {
    expect(heldOrder([row("a"), row("b")], [row("c"), row("b", 1), row("a", 1)], (one) => one.id, true)).toEqual({ rows: [row("a", 1), row("b", 1)], waiting: 1 });
    expect(heldOrder([row("a"), row("b")], [row("b")], (one) => one.id, true)).toEqual({ rows: [row("a"), row("b")], waiting: 0 });
  });
  it("takes the new order when it is let go, or when it was empty", () => {
    expect(heldOrder([row("a")], [row("b"), row("a")], (one) => one.id, false).rows.map((one) => one.id)).toEqual(["b", "a"]);
    expect(heldOrder([], [row("b")], (one) => one.id, true)).toEqual({ rows: [row("b")], waiting: 0 });
  });
});

describe("dead letters", () => {
  const letter = (id: string, fingerprint: string, receivedAtMs = START_MS): DeadLetterItem => ({
    letter: { deadLetterId: id, kind: "event", reason: "expired", message: "m", topic: "t", app: "sessions", tries: 1, envelope: { subject: `s-${id}` }, payload: "{}", payloadEncoding: "utf8", firstFailedAtMs: 1, lastFailedAtMs: 1 }, state: "dead", receivedAtMs, redriveCount: 0, fingerprint,
  });
  it("of one fingerprint are one group, the group with the newest letter first", () => {
    const groups = groupLetters([letter("3", "b"), letter("1", "a", START_MS + 5), letter("2", "a", START_MS + 9)]);
    expect(groups.map((group) => [group.fingerprint, group.items.map((one) => one.letter.deadLetterId), group.newestAtMs])).toEqual([["a", ["1", "2"], START_MS + 9], ["b", ["3"], START_MS]]);
  });
  it("belong to the session that the event was addressed to, where the host named none", () => { expect(sessionOf(letter("1", "a"))).toBe("s-1"); });
});

describe("words", () => {
  it.each([[0, "0s"], [59_999, "59s"], [61_000, "1m"], [2 * HOUR + 300_000, "2h 5m"], [50 * HOUR, "2d 2h"]])("%s ms is %s", (ms, text) => { expect(span(ms)).toBe(text); });
  it("times are relative", () => { expect(relative(START_MS + HOUR, START_MS)).toBe("in 1h"); expect(relative(START_MS - 5_000, START_MS)).toBe("5s ago"); expect(relative(START_MS, START_MS)).toBe("now"); });
  it("what happens next names the deadline and what it does", () => {
    expect(nextWords({ summary: summaryOf(), approvals: [recordOf({ onExpiry: "escalate" })] }, START_MS)).toMatch(/If nobody does by .* \(in 1h\), it is escalated to a person/);
    expect(nextWords({ summary: summaryOf({ status: "IDLE" }), approvals: [] }, START_MS)).toContain("next event");
  });
  it("a story has a line for what people care about, and none for an event of a newer server", () => {
    const lines = storyOf([entryOf(3, [
      { type: "RunStarted", runId: "r", key: "k", eventRev: 1, input: "hi", requestedBy: "ann", correlationId: "c" }, { type: "GuardArmed", generation: 1, periodMs: 1 },
      { type: "ApprovalOpened", record: recordOf() }, { type: "FromTheFuture" } as never, { type: "RunEnded", runId: "r", key: "k", outcome: "completed", text: "done" },
    ])]);
    expect(lines.map(({ key, tone, who, text, approvalId }) => [key, tone, who, text, approvalId])).toEqual([
      ["3.0.0", "person", "ann", "hi", undefined], ["3.2.0", "approval", "approval", "needed for refund: moves money", "apr_1"], ["3.4.0", "good", "completed", "done", undefined],
    ]);
  });
});
