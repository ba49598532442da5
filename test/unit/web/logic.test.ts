/** What the pages decide without a browser: what changed, what is urgent, who may decide, what stays still, what belongs together. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ApprovalListItem, DeadLetterItem } from "../../../src/contracts/api.js";
import type { ApprovalRecord } from "../../../src/contracts/decisions.js";
import { diff } from "../../../src/contracts/json-diff.js";
import { numberIn, oddChoice, oddNumber } from "../../../web/src/lib/address.js";
import { heldOrder } from "../../../web/src/lib/held-order.js";
import { canonicalText, parseLossless } from "../../../web/src/lib/json.js";
import { groupLetters, sessionOf } from "../../../web/src/lib/letters.js";
import { storyOf } from "../../../web/src/lib/story.js";
import { bandOf, byUrgency, type Me } from "../../../web/src/lib/urgency.js";
import { PolicyRule } from "../../../src/session/core/policy/policy.js";
import { pastOf } from "../../../web/src/lib/past.js";
import { rowsOfRule, rowsOfVerdict } from "../../../web/src/lib/rule-words.js";
import { isMyTurn, isSnoozed, mayBeRemembered, obstacleOf, stepsOf, whyNotRemembered } from "../../../web/src/lib/who-may.js";
import { nextWords, plural, relative, span, titleOf } from "../../../web/src/lib/words.js";
import { entryOf, pendingOf, recordOf, START_MS, summaryOf } from "../../support/console-fakes.js";

const HOUR = 3_600_000;
const item = (overrides: Partial<ApprovalRecord>): ApprovalListItem => ({ pending: pendingOf(recordOf(overrides)), state: "open" });
const idsOf = (items: readonly ApprovalListItem[]): string[] => items.map((one) => one.pending.record.approvalId);

describe("a value in the address that a page does not know", () => {
  const query = (text: string): URLSearchParams => new URLSearchParams(text);
  const status = { expected: ["IDLE", "CLOSED"], shown: "sessions of every status" };
  const rev = { from: 1, to: 12, shown: "the state at revision 12, the latest" };
  it("is named with what was expected and what is shown instead", () => {
    expect(oddChoice(query("status=WRONG&q=x"), "status", status)).toBe("The address has status=WRONG, expected one of IDLE, CLOSED. Shown: sessions of every status.");
    expect(oddNumber(query("rev=999"), "rev", rev)).toBe("The address has rev=999, expected a whole number from 1 to 12. Shown: the state at revision 12, the latest.");
  });
  it.each(["", "status=", "status=IDLE", "status=CLOSED"])("is none in %j", (text) => { expect(oddChoice(query(text), "status", status)).toBeUndefined(); });
  it.each(["idle", "IDLE,CLOSED", "constructor", " "])("is one: status=%j", (value) => { expect(oddChoice(new URLSearchParams({ status: value }), "status", status)).toContain(`status=${value},`); });
  it.each([["", undefined], ["1", 1], ["12", 12], ["012", 12]])("as a number %j is %j, and fine", (value, read) => {
    expect(numberIn(query(`rev=${value}`), "rev", 1, 12)).toBe(read);
    expect(oddNumber(query(`rev=${value}`), "rev", rev)).toBeUndefined();
  });
  it.each(["0", "13", "999", "-1", "1.5", "1e1", "0x1", "x", "NaN", "99999999999999999999"])("as a number %j is odd", (value) => {
    expect(numberIn(query(`rev=${value}`), "rev", 1, 12)).toBeUndefined();
    expect(oddNumber(query(`rev=${value}`), "rev", rev)).toContain(`rev=${value}, expected a whole number from 1 to 12`);
  });
  it("is shortened, and hides nothing", () => {
    const said = oddChoice(new URLSearchParams({ status: `\u202e${"x".repeat(5_000)}` }), "status", status) ?? "";
    expect(said.length).toBeLessThan(200);
    expect(said).not.toContain("\u202e");
  });
});

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
    ["may", {}, {}, undefined], ["another role", { approvers: { ...approvers, roles: ["finance"] } }, {}, "only finance may decide, and you are approver"], ["in no group", { approvers: { ...approvers, groups: ["emea"] } }, {}, "only approver or admin, in group emea may decide, and you are approver, in no group"],
    ["brought in by a step", { approvers: { ...approvers, roles: ["finance"] }, chain: [{ atMs: 1, to: { roles: ["approver"], groups: [] } }], chainDone: 1 }, {}, undefined], ["before that step", { approvers: { ...approvers, roles: ["finance"] }, chain: [{ atMs: 1, to: { roles: ["approver"], groups: [] } }] }, {}, "only finance may decide, and you are approver"], ["own request", { requestedBy: "ann", approvers: { ...approvers, excludeRequester: true } }, {}, "you asked for this yourself, and rule money-moves wants somebody else to decide (separation of duties)"],
    ["own request, allowed", { requestedBy: "ann" }, {}, undefined], ["signed already", { approvers: { ...approvers, quorum: 2 }, signatures: [{ principalId: "ann", decisionId: "d", atMs: 1 }] }, {}, "you have approved it; 1 more person is needed, and nobody counts twice"],
    ["a machine", {}, { principal: { id: "bot", class: "machine", roles: ["approver"] } }, "a machine may not decide"], ["no right", {}, { rights: ["read"] }, "your key gives no right to decide"],
  ])("says why somebody may not decide: %s", (_name, record, who, expected) => { expect(obstacleOf(recordOf(record), { ...me, ...who })).toBe(expected); });

  it("is in a person's queue when it is nobody's turn, theirs, or one of their groups'; a snooze ends by itself", () => {
    const grouped: Me = { ...me, principal: { ...me.principal, groups: ["emea"] } };
    expect([{}, { assignedTo: "ann" }, { assignedTo: "emea" }, { assignedTo: "approver" }, { assignedTo: "ben" }].map((given) => isMyTurn(recordOf(given), grouped))).toEqual([true, true, true, true, false]);
    const snoozed = recordOf({ snoozedUntilMs: START_MS + 10 });
    expect([isSnoozed(recordOf(), START_MS), isSnoozed(snoozed, START_MS), isSnoozed(snoozed, START_MS + 10)]).toEqual([false, true, false]);
  });

  it("says what happens next, the steps that are over marked", () => {
    const chain = [{ atMs: START_MS + 1 }, { atMs: START_MS + 2, to: { roles: ["lead"], groups: ["emea"] } }];
    expect(stepsOf(item({ chain, chainDone: 1, onExpiry: "escalate", expiresAtMs: START_MS + 3 }))).toEqual([
      { atMs: START_MS + 1, done: true, words: "those who may decide are reminded" }, { atMs: START_MS + 2, done: false, words: "lead, in group emea may decide too, and is told" },
      { atMs: START_MS + 3, done: false, words: "nobody has decided: it is escalated to a person" },
    ]);
  });

  it("offers an approval for the session only where the session would take it", () => {
    const may: Partial<ApprovalRecord> = { allowSession: true, risk: "low" };
    expect([may, { ...may, risk: "high" as const }, { ...may, allowSession: false }, { ...may, approvers: { ...approvers, quorum: 2 } }, { ...may, kind: "escalation" as const }, { ...may, allowed: ["reject" as const] }].map((given) => mayBeRemembered(recordOf(given)))).toEqual([true, false, false, false, false, false]);
  });

  it("says why one may not, and nothing where nothing is approved", () => {
    const may: Partial<ApprovalRecord> = { allowSession: true, risk: "low" };
    expect([may, { ...may, risk: "high" as const }, { ...may, approvers: { ...approvers, quorum: 2 } }, { risk: "low" as const }, { ...may, kind: "escalation" as const }, { risk: "high" as const, allowed: ["reject" as const] }].map((given) => whyNotRemembered(recordOf(given)))).toEqual([
      undefined, "never for a high risk: each such call is decided by itself", "never where 2 people have to approve each call", "rule money-moves does not let it", undefined, undefined,
    ]);
  });
});

describe("what was decided before", () => {
  const decided = (more: Partial<ApprovalListItem>, signers: readonly string[] = ["ben"]): ApprovalListItem => ({ ...item({ signatures: signers.map((principalId, n) => ({ principalId, decisionId: `d${String(n)}`, atMs: n })) }), state: "decided", decidedBy: "ben", ...more });
  it.each<[string, ApprovalListItem, ReturnType<typeof pastOf>]>([
    ["approved: what was asked ran", decided({ decision: "approve" }), { verb: "approved", who: "ben", ran: '{"amount":50}' }],
    ["modified: what ran is not what was asked", decided({ decision: "modify", modifiedArgs: '{"amount":40}' }), { verb: "modified", who: "ben", ran: '{"amount":40}', asked: '{"amount":50}' }],
    ["modified by the first of two, and asked anew", decided({ decision: "approve", modifiedArgs: '{"amount":50}' }, ["ann", "ben"]), { verb: "approved", who: "ann and ben", ran: '{"amount":50}' }],
    ["modified, in a list that does not know how", decided({ decision: "modify" }), { verb: "modified", who: "ben", asked: '{"amount":50}', changed: true }],
    ["rejected: nothing ran", decided({ decision: "reject" }, ["ann"]), { verb: "rejected", who: "ben", asked: '{"amount":50}' }],
  ])("%s", (_name, one, past) => { expect(pastOf(one)).toEqual(past); });
});

describe("a rule", () => {
  const FULL = {
    match: { tools: ["pay*"], agents: ["desk"] }, when: "args.cents > 5", approvers: { roles: ["finance"], groups: ["emea"], quorum: 2, excludeRequester: true }, allowed: ["approve", "reject"], expiresIn: "24h", onExpiry: "escalate",
    chain: [{ after: "10m" }, { after: "30m", to: { roles: ["lead"] } }], consentFor: "15m", allowSession: false,
  } as const;
  const ruleWith = (more: object) => PolicyRule.parse({ id: "r", verdict: "ask", reason: "because", ...more });
  const rowsWith = (more: object): string[] => rowsOfRule(ruleWith(more)).map(({ name, words }) => `${name}: ${words}`);

  it("is shown with everything that it has", () => {
    expect(rowsWith(FULL)).toEqual([
      "tools: pay*", "agents: desk", "when: args.cents > 5", "may decide: finance, in group emea", "signatures: 2 people have to approve", "who asked: may not decide (separation of duties)", "answers: approve, reject",
      "expires: after 24h", "on expiry: escalate: it is escalated to a person", "chain: after 10m those who may decide are reminded", "chain: after 30m lead may decide too, and is told", "consent: an approval holds 15m until the call goes out",
      "for a session: never: more than one person has to approve each call",
    ]);
    expect(Object.keys(FULL).sort(), "a key that rules get is tried here too").toEqual(Object.keys(PolicyRule.shape).filter((key) => !["id", "verdict", "reason", "risk"].includes(key)).sort());
  });
  it.each(Object.entries(FULL))("with another %s is shown otherwise", (key, value) => { expect(rowsWith({ [key]: value })).not.toEqual(rowsWith({})); });
  it("says whether its tool may be allowed for a session", () => {
    expect([{}, { allowSession: false }, { risk: "high" }, { verdict: "allow" }].map((more) => rowsWith(more).join())).toEqual(["for a session: a person may allow the tool, where its risk is below high", "for a session: a person may not allow the tool", "for a session: never: its risk is high, and that is decided call by call", ""]);
  });
  it("and what all rules come to together says the same", () => {
    expect(rowsOfVerdict({ risk: "low", allowed: ["approve"], approvers: { roles: [], quorum: 1, excludeRequester: false }, onExpiry: "reject", expiresInMs: HOUR, chain: [{ afterMs: 60_000 }], consentForMs: 900_000, allowSession: true }).map(({ name, words }) => `${name}: ${words}`)).toEqual([
      "may decide: approver or admin", "signatures: 1 person has to approve", "who asked: may decide too", "answers: approve", "expires: after 1h", "on expiry: reject: the call is given up as expired and the agent told so",
      "chain: after 1m those who may decide are reminded", "consent: an approval holds 15m until the call goes out", "for a session: a person may allow the tool, where its risk is below high",
    ]);
  });
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
  it("one is not many", () => { expect([plural(0, "time"), plural(1, "time"), plural(2, "time"), plural(1_200, "try", "tries"), plural(1, "event waits", "events wait")]).toEqual(["0 times", "1 time", "2 times", "1,200 tries", "1 event waits"]); });
  it("no page puts a number before a plural by hand", () => {
    const web = join(import.meta.dirname, "../../../web/src");
    const faults = readdirSync(web, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file)).flatMap((file) => [...readFileSync(join(web, file), "utf8").matchAll(/=== 1 \? "[a-z ]+" : "[a-z ]+"|\$\{(String|count)\([^)]*\)\} [a-z]*(calls|times|tries|events|sessions|approvals|letters|steps|people|characters|revisions|entries)\b/g)].map(([found]) => `${file}: ${found}`));
    expect(faults).toEqual([]);
  });
  it("the window's title names what is looked at, and how many approvals wait", () => {
    expect([titleOf({ page: "Sessions", subject: "", waiting: 0 }), titleOf({ page: "Sessions", subject: "ord-1: Awaiting approval", waiting: 2 }), titleOf({ page: "Sessions", subject: "a\u202eb", waiting: 0 })]).toEqual(["Sessions · Docket", "(2) ord-1: Awaiting approval · Docket", "a\\u202eb · Docket"]);
  });
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
