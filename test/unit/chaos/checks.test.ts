/** Each check of a chaos run is shown what it exists for, and says so; a run in which all went well breaches nothing. */
import { describe, expect, it } from "vitest";
import type { JournalEntry, SessionEvent } from "../../../src/contracts/journal.js";
import type { OpenSession } from "../../../src/session/core/state.js";
import { breachesIn, CHECKS, restsSince, sharedSessions, type CheckName } from "../../chaos/checks.js";
import type { BookRow, Evidence, SentEvent, Struck } from "../../chaos/evidence.js";
import { render, reportOf } from "../../chaos/report.js";
import { argsOf, planBurst, planProbe, type PlannedCall, type PlannedEvent } from "../../chaos/stories.js";

const SESSION = "s1";
const PAY: PlannedCall = { tool: "pay", amount: 100, ms: 0 };
const FIRE: PlannedCall = { tool: "fire", amount: 100, ms: 0 };
const planned = (token: string, more: Partial<PlannedEvent> = {}): PlannedEvent => ({ token, thinkMs: 0, rounds: [], outcomes: ["completed"], letters: [], ...more });
const accepted = (token: string): NonNullable<SentEvent["accepted"]> => ({ sessionId: SESSION, tenant: "default", runId: `run-${token}`, eventId: token, eventSource: "x", eventKey: `key-${token}`, agent: "mixed", links: { session: "", stream: "" } });
const sent = (token: string, more: Partial<PlannedEvent> = {}): SentEvent => ({ round: 1, sessionId: SESSION, story: "test", planned: planned(token, more), accepted: accepted(token), acceptedAtMs: 100 });

type Loose = { readonly type: SessionEvent["type"] } & Record<string, unknown>;
const entries = (...commits: Loose[][]): JournalEntry[] => commits.map((events, index) => ({ v: 1, actorId: "a", rev: index + 1, commitId: String(index), atMs: 200 + index, command: "", host: "", digest: "", events: events as unknown as SessionEvent[] }));
const received = (token: string): Loose => ({ type: "EventReceived", key: `key-${token}`, id: token });
const started = (token: string): Loose => ({ type: "RunStarted", runId: `run-${token}`, key: `key-${token}` });
const asked = (token: string, step = 1): Loose => ({ type: "ModelCallStarted", runId: `run-${token}`, step, attempt: 1 });
const answered = (token: string, step = 1, calls: object[] = []): Loose => ({ type: "ModelAnswered", runId: `run-${token}`, step, attempt: 1, calls });
const ended = (token: string, outcome = "completed"): Loose => ({ type: "RunEnded", runId: `run-${token}`, key: `key-${token}`, outcome, text: "" });
const row = (token: string, call: PlannedCall, phase: BookRow["phase"] = "effect", more: Partial<BookRow> = {}): BookRow => ({ key: `call-${token}`, tool: call.tool, session: SESSION, token, args: argsOf(token, call), phase, worker: "1", atMs: 150, ...more });
const state = (more: object = {}): OpenSession => ({ sessionId: SESSION, rev: 2, status: "IDLE", mailbox: [], outbox: [], guard: { armed: false, generation: 1, periodMs: 1 }, updatedAtMs: 0, ...more }) as unknown as OpenSession;
const fault = (more: Partial<Struck> = {}): Struck => ({ round: 1, fault: "kill:worker", hits: 1, fromMs: 140, untilMs: 160, touchesWorkers: true, recoveredMs: 1000, ...more });

/** One event that asked the model, paid what was approved, and ended. */
const whole = entries([received("e1"), started("e1"), asked("e1")], [answered("e1", 1, [{ callId: "call-e1", tool: "pay" }]), { type: "ToolResultRecorded", callId: "call-e1", tool: "pay", status: "succeeded" }, ended("e1")]);
const good: Evidence = {
  sent: [sent("e1", { rounds: [[PAY]], decision: "approve" })], struck: [fault()], states: new Map([[SESSION, state()]]), journals: new Map([[SESSION, whole]]), inboxRows: [],
  shown: new Map([[SESSION, { rev: 2, status: "IDLE" }]]), letters: [], book: [row("e1", PAY, "start"), row("e1", PAY)], modelCalls: [{ token: "e1", step: 1 }],
  decided: new Map([["e1", { kind: "approve", args: argsOf("e1", PAY) }]]), asked: new Set(), streams: [{ sessionId: SESSION, revs: [1, 2] }], reminders: [], folds: [], restMs: 1000,
};
const journal = (...commits: Loose[][]): Pick<Evidence, "journals"> => ({ journals: new Map([[SESSION, entries(...commits)]]) });
const found = (more: Partial<Evidence>, check: CheckName): string[] => breachesIn({ ...good, ...more }).filter((breach) => breach.check === check).map((breach) => breach.text);
const unknownOf = (tool: string): Pick<Evidence, "journals"> => journal([received("e1"), started("e1"), asked("e1")], [answered("e1", 1, [{ callId: "call-e1", tool }]), { type: "ToolOutcomeUnknown", callId: "call-e1", reason: "died" }, ended("e1")]);

/** Twelve sessions with two calls each. */
const manySessions = (workerOf: (n: number) => string): BookRow[] => Array.from({ length: 24 }, (_, n) => row(`e${String(n)}`, PAY, "start", { session: `s${String(n % 12)}`, worker: workerOf(n) }));

const BREACHES: Readonly<Record<CheckName, readonly (readonly [what: string, evidence: Partial<Evidence>])[]>> = {
  lost: [
    ["an accepted event that no journal has", journal([])],
    ["an event without an outcome", journal([received("e1"), started("e1")])],
    ["an event with two outcomes", journal([received("e1"), ended("e1"), ended("e1")])],
    ["an event that was received twice", journal([received("e1"), received("e1"), ended("e1")])],
    ["an end that it may not have", journal([received("e1"), started("e1"), ended("e1", "failed")])],
  ],
  doubled: [
    ["two effects with one key", { book: [...good.book, row("e1", PAY)] }],
    ["one planned call with two keys", { book: [...good.book, row("e1", PAY, "effect", { key: "another" })] }],
    ["a success that left nothing", { book: [] }],
  ],
  order: [
    ["events in another order than they were sent in", { sent: [sent("e1"), sent("e2")], ...journal([received("e2"), received("e1"), ended("e1"), ended("e2")]) }],
    ["runs that overlap", journal([received("e1"), started("e1"), { type: "RunStarted", runId: "run-2", key: "k" }, ended("e1")])],
  ],
  args: [
    ["other arguments than were approved", { book: [row("e1", { ...PAY, amount: 101 })] }],
    ["an effect of what was rejected", { decided: new Map([["e1", { kind: "reject", args: argsOf("e1", PAY) }]]) }],
    ["an effect that nobody decided", { decided: new Map() }],
    ["the proposed arguments where others were decided", { decided: new Map([["e1", { kind: "modify", args: argsOf("e1", { ...PAY, amount: 7 }) }]]) }],
    ["an effect that nobody sent for", { book: [row("e9", { ...PAY, tool: "put" })] }],
  ],
  unknown: [
    ["an unknown outcome of a tool that can look", { ...unknownOf("pay"), asked: new Set(["e1"]) }],
    ["one that no fault met", { ...unknownOf("fire"), book: [row("e1", FIRE, "start")], asked: new Set(["e1"]), struck: [fault({ touchesWorkers: false })] }],
    ["one that began after the fault", { ...unknownOf("fire"), book: [row("e1", FIRE, "start", { atMs: 170 })], asked: new Set(["e1"]) }],
    ["one that nobody was asked about", { ...unknownOf("fire"), book: [row("e1", FIRE, "start")] }],
  ],
  letters: [
    ["a good event among the dead letters", { letters: [{ sessionId: SESSION, kind: "event", reason: "expired", message: "" }] }],
    ["a letter of nobody", { letters: [{ sessionId: undefined, kind: "unreadable", reason: "not_json", message: "" }] }],
    ["a failure without a letter", { sent: [sent("e1", { letters: ["transient"] })] }],
  ],
  model: [
    ["a request that the journal did not start", { modelCalls: [...good.modelCalls, { token: "e1", step: 1 }] }],
    ["a step that was answered twice", journal([received("e1"), asked("e1"), answered("e1")], [answered("e1"), ended("e1")])],
  ],
  streams: [
    ["a stream with a gap", { streams: [{ sessionId: SESSION, revs: [2] }] }],
    ["a stream that repeats", { streams: [{ sessionId: SESSION, revs: [1, 2, 2] }] }],
    ["a stream out of order", { streams: [{ sessionId: SESSION, revs: [2, 1] }] }],
  ],
  shown: [
    ["a session that the console does not know", { shown: new Map() }],
    ["one that it shows as it was before", { shown: new Map([[SESSION, { rev: 1, status: "IDLE" }]]) }],
  ],
  fold: [["a journal that does not fold to its state", { folds: ["a: fold(journal) is not the stored state"] }]],
  rest: [
    ["no rest in time", { restMs: undefined }],
    ["a session that still works", { states: new Map([[SESSION, state({ status: "PLANNING" })]]) }],
    ["an outbox that is not empty", { states: new Map([[SESSION, state({ outbox: [{ rowId: "r", publication: 1 }] })]]) }],
    ["a guard that nothing needs", { states: new Map([[SESSION, state({ guard: { armed: true } })]]) }],
    ["an accepted event without receipt", { inboxRows: ["inbox:x"] }],
    ["a reminder", { reminders: ["a/reminders/guard-1"] }],
  ],
  quarantined: [["a session that has stopped itself", { states: new Map([[SESSION, state({ quarantine: { reason: "journal_gap", message: "entry 2 is missing", sinceMs: 0 } })]]) }]],
  workers: [["a worker that did nothing", { book: manySessions(() => "1") }]],
  hits: [["a fault that met nothing", { struck: [fault({ hits: 0 })] }]],
};

describe("a run in which all went well", () => {
  it("breaches nothing", () => {
    expect(breachesIn(good)).toEqual([]);
  });

  it("may end a call unknown that can neither repeat nor look, once a fault met it and a person was asked", () => {
    const evidence = { ...good, ...unknownOf("fire"), sent: [sent("e1", { rounds: [[FIRE]], decision: "approve" as const })], decided: new Map([["e1", { kind: "approve", args: argsOf("e1", FIRE) }]]), book: [row("e1", FIRE, "start")], asked: new Set(["e1"]) };
    expect(breachesIn(evidence)).toEqual([]);
  });

  it("may let an event expire before a session sees it, where a dead letter says so", () => {
    expect(breachesIn({ ...good, sent: [...good.sent, sent("e2", { outcomes: ["expired"], letters: ["expired"] })], letters: [{ sessionId: SESSION, kind: "event", reason: "expired", message: "" }] })).toEqual([]);
  });
});

describe("every check", () => {
  for (const [check, cases] of Object.entries(BREACHES) as [CheckName, (typeof BREACHES)[CheckName]][]) {
    for (const [what, evidence] of cases) it(`${check}: finds ${what}`, () => { expect(found(evidence, check)).not.toEqual([]); });
  }

  it("has a case here", () => {
    expect(Object.keys(BREACHES).sort()).toEqual(Object.keys(CHECKS).sort());
  });
});

describe("the report", () => {
  it("has a row per fault with what it met and broke, and says BROKEN with the command to repeat it", () => {
    const evidence = { ...good, book: [...good.book, row("e1", PAY)] };
    const report = reportOf(evidence, breachesIn(evidence), { command: "npm run chaos -- --seed 7", seed: 7, profile: "embedded", skipped: [] });
    expect(report).toMatchObject({ ok: false, rows: [{ fault: "kill:worker", rounds: 1, hits: 1, events: 1, lost: 0, doubled: 1, outOfOrder: 0 }] });
    expect(render(report)).toContain("BROKEN: 1 breaches. Again: npm run chaos -- --seed 7");
  });

  it("says HELD where nothing was breached, and never for a run without faults", () => {
    const about = { command: "", seed: 7, profile: "embedded", skipped: [] };
    expect(render(reportOf(good, [], about))).toContain("HELD");
    expect(reportOf({ ...good, struck: [] }, [], about).ok).toBe(false);
  });

  it("counts the way to rest from the end of the last fault, or from the last event that was accepted after it", () => {
    expect(restsSince([{ untilMs: 160 }, { untilMs: 900 }], [{ acceptedAtMs: 100 }, {}])).toBe(900);
    expect(restsSince([{ untilMs: 160 }], [{ acceptedAtMs: 1_000 }])).toBe(1_000);
  });

  it("counts the sessions whose calls ran on both workers", () => {
    expect(sharedSessions([row("e1", PAY), row("e2", PAY, "effect", { worker: "2" })])).toBe(1);
    expect(sharedSessions([row("e1", PAY), row("e2", PAY)])).toBe(0);
    expect(found({ book: manySessions((n) => (n < 12 ? "1" : "2")) }, "workers")).toEqual([]);
    expect(found({ book: manySessions(() => "1").slice(0, 22) }, "workers")).toEqual([]);
  });
});

describe("the work", () => {
  it("is the same for the same random numbers, and every session's events have ids of their own", () => {
    const numbers = (): (() => number) => { let n = 0; return () => { n = (n + 0.37) % 1; return n; }; };
    expect(planBurst("b", numbers())).toEqual(planBurst("b", numbers()));
    const tokens = planBurst("b", numbers()).flatMap((session) => session.events.map((event) => event.token));
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(planProbe("p", "approve").events[0]).toMatchObject({ decision: "approve", outcomes: ["completed"] });
  });
});
