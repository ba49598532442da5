/**
 * Owns: the invariants as a client, a tool, a model and a reader of the stores can see them. Pure: evidence in, breaches out; each
 * check has a test that shows it a breach (test/unit/chaos/checks.test.ts).
 */
import type { JournalEntry } from "../../src/contracts/journal.js";
import { outcomeProblems, overlapProblems } from "../support/checks.js";
import { restProblemOf } from "../support/kills.js";
import { eventsOf } from "../support/docket.js";
import type { BookRow, Evidence, SentEvent, Struck } from "./evidence.js";
import { argsOf, TOOLS, type PlannedCall, type ToolName } from "./stories.js";

export interface Breach { readonly check: string; readonly sessionId: string | undefined; readonly text: string }
type Check = (evidence: Evidence) => { readonly sessionId?: string; readonly text: string }[];

/** I1: an accepted event without exactly one outcome, or with one that it may not have. */
const lost: Check = ({ sent, journals, letters: dead }) => bySession(sent).flatMap(([sessionId, events]) => {
  const journal = journals.get(sessionId) ?? [];
  const received = new Set(eventsOf(journal, "EventReceived").map((event) => event.key));
  const ended = new Map(eventsOf(journal, "RunEnded").map((event) => [event.key, event]));
  // What expires before a session gets to see it ends as a dead letter.
  const isDead = (event: SentEvent): boolean => event.planned.outcomes.includes("expired") && dead.some((letter) => letter.sessionId === sessionId && letter.reason === "expired");
  const missing = events.flatMap((event) => event.accepted !== undefined && !received.has(event.accepted.eventKey) && !isDead(event) ? [`accepted event ${event.planned.token} was never received`] : []);
  const wrong = events.flatMap(({ accepted, planned }) => {
    const end = accepted === undefined ? undefined : ended.get(accepted.eventKey);
    return end === undefined || planned.outcomes.includes(end.outcome) ? [] : [`event ${planned.token} ended ${end.outcome} (${end.code ?? ""}: ${end.text.slice(0, 200)}), expected ${planned.outcomes.join(" or ")}`];
  });
  return [...missing, ...outcomeProblems(journal), ...wrong].map((text) => ({ sessionId, text }));
});

/** I2, I6: an effect twice, one that nobody asked for, or none where success was reported. */
const doubled: Check = ({ sent, journals, book }) => {
  const effects = groupBy(book.filter((row) => row.phase === "effect" && row.tool !== "look"), (row) => row.key);
  const twice = [...effects].filter(([, rows]) => rows.length > 1).map(([key, rows]) => ({ sessionId: rows[0]!.session, text: `${rows[0]!.tool} ${key} took effect ${String(rows.length)} times` }));
  const tooMany = [...groupBy(book.filter((row) => row.phase === "effect" && row.tool !== "look"), (row) => `${row.token} ${row.tool}`)].flatMap(([, rows]) => {
    const [{ token, tool, session }] = rows as [BookRow];
    const planned = plannedCalls(sent, token).filter((call) => call.tool === tool).length;
    const keys = new Set(rows.map((row) => row.key)).size;
    return keys > planned ? [{ sessionId: session, text: `event ${token} has ${String(keys)} ${tool} with keys of their own, planned were ${String(planned)}` }] : [];
  });
  const missing = [...journals].flatMap(([sessionId, journal]) => succeeded(journal).filter(({ tool, callId }) => tool !== "look" && !effects.has(callId)).map(({ tool, callId }) => ({ sessionId, text: `${tool} ${callId} is said to have succeeded and left nothing in the book` })));
  return [...twice, ...tooMany, ...missing];
};

/** I3: events of one client in one session out of the order of their 202s; runs that overlap. */
const order: Check = ({ sent, journals }) => bySession(sent).flatMap(([sessionId, events]) => {
  const journal = journals.get(sessionId) ?? [];
  const wanted = events.flatMap(({ accepted }) => (accepted === undefined ? [] : [accepted.eventId]));
  const received = eventsOf(journal, "EventReceived").map((event) => event.id).filter((id) => wanted.includes(id));
  const expected = wanted.filter((id) => received.includes(id));
  return [...(received.join() === expected.join() ? [] : [`sent were ${expected.join(" ")}, received ${received.join(" ")}`]), ...overlapProblems(journal)].map((text) => ({ sessionId, text }));
});

/** I4, I5: what ran is, byte for byte, what was proposed, or decided where a person had to; what was rejected or expired did not run. */
const args: Check = ({ sent, book, decided }) => book.flatMap((row) => {
  const event = sent.find(({ planned }) => planned.token === row.token);
  const needed = TOOLS[row.tool as ToolName] === "once";
  const proposed = plannedCalls(sent, row.token).filter((call) => call.tool === row.tool).map((call) => argsOf(row.token, call));
  const decision = decided.get(row.token);
  const allowed = !needed ? proposed : decision?.kind === "approve" || decision?.kind === "modify" ? [decision.args] : [];
  return event !== undefined && allowed.includes(row.args) ? [] : [{ sessionId: row.session, text: `${row.tool} ran with ${row.args}; allowed was ${allowed.join(" or ") || "nothing"} (decision ${decision?.kind ?? "none"})` }];
});

/** I6: only a tool that can neither repeat nor look may end unknown, only under a fault that met it in between, and a person is asked. */
const unknown: Check = ({ sent, journals, book, struck, asked }) => [...journals].flatMap(([sessionId, journal]) => journal.flatMap((entry) => entry.events.flatMap((event) => {
  if (event.type !== "ToolOutcomeUnknown") return [];
  const tool = toolOf(journal, event.callId);
  if (tool !== "fire") return [{ sessionId, text: `the outcome of ${tool ?? "?"} ${event.callId} is unknown: ${event.reason}` }];
  // A worker that died between its claim and the tool's start has written nothing: then the call's dispatch counts.
  const inBook = book.filter((row) => row.key === event.callId && row.phase === "start").map((row) => row.atMs);
  const started = inBook.length > 0 ? inBook : journal.flatMap(({ atMs, events }) => (events.some((other) => other.type === "ToolCallDispatched" && other.callId === event.callId) ? [atMs] : []));
  const met = struck.some((fault) => fault.touchesWorkers && started.some((atMs) => atMs <= fault.untilMs) && fault.fromMs <= entry.atMs);
  const token = tokenOf(sent, book, event.callId, sessionId);
  return [
    ...(met ? [] : [{ sessionId, text: `the outcome of fire ${event.callId} is unknown and no fault met it: ${event.reason}` }]),
    ...(token !== undefined && asked.has(token) ? [] : [{ sessionId, text: `the outcome of fire ${event.callId} is unknown and nobody was asked` }]),
  ];
})));

/** Good events and calls among the dead letters, and failed calls that are not. */
const letters: Check = ({ sent, letters: dead }) => {
  const bad = dead.filter((letter) => !sent.some((event) => event.sessionId === letter.sessionId && event.planned.letters.includes(letter.reason)));
  const missing = bySession(sent).filter(([sessionId, events]) => events.some((event) => event.planned.letters.length > 0 && event.accepted !== undefined) && !dead.some((letter) => letter.sessionId === sessionId));
  return [
    ...bad.map(({ sessionId, kind, reason, message }) => ({ ...(sessionId === undefined ? {} : { sessionId }), text: `a good ${kind} is a dead letter: ${reason}: ${message.slice(0, 300)}` })),
    ...missing.map(([sessionId]) => ({ sessionId, text: "its failure left no dead letter" })),
  ];
};

/** I2, I11: a model request that no journal entry paid for, or a step that was answered twice. */
const model: Check = ({ sent, journals, modelCalls }) => {
  const runs = new Map(sent.flatMap(({ accepted, planned, sessionId }) => (accepted === undefined ? [] : [[planned.token, { runId: accepted.runId, sessionId }]])));
  const asked = groupBy(modelCalls, (call) => `${call.token} ${String(call.step)}`);
  const tooOften = [...asked.values()].flatMap((calls) => {
    const [{ token, step }] = calls as [{ token: string; step: number }];
    const run = runs.get(token);
    const starts = run === undefined ? 0 : eventsOf(journals.get(run.sessionId) ?? [], "ModelCallStarted").filter((start) => start.runId === run.runId && start.step === step).length;
    return calls.length > starts ? [{ ...(run === undefined ? {} : { sessionId: run.sessionId }), text: `step ${String(step)} of event ${token} was asked ${String(calls.length)} times, started ${String(starts)} times` }] : [];
  });
  const twice = [...journals].flatMap(([sessionId, journal]) => repeated(eventsOf(journal, "ModelAnswered").map((answer) => `${answer.runId} step ${String(answer.step)}`)).map((step) => ({ sessionId, text: `${step} was answered twice` })));
  return [...tooOften, ...twice];
};

/** A client's stream that left something out, repeated it, or changed its order. */
const streams: Check = ({ streams: watched, journals }) => watched.flatMap(({ sessionId, revs }) => {
  const wanted = (journals.get(sessionId) ?? []).map((entry) => entry.rev);
  return revs.join() === wanted.join() ? [] : [{ sessionId, text: `the stream had ${revs.join()}, the journal has ${String(wanted.length)} entries` }];
});

/** The console shows another session than there is. */
const shown: Check = ({ states, shown: seen }) => [...states].flatMap(([sessionId, { rev, status }]) => {
  const row = seen.get(sessionId);
  return row?.rev === rev && row.status === status ? [] : [{ sessionId, text: `is ${status} at ${String(rev)}, shown is ${row === undefined ? "nothing" : `${row.status} at ${String(row.rev)}`}` }];
});

/** I7. */
const fold: Check = ({ folds }) => folds.map((text) => ({ text }));

/** I8, I9: whoever is done holds nothing: no reminder, outbox row or inbox row; and all are done in time. */
const rest: Check = ({ states, inboxRows, reminders, restMs }) => [
  ...(restMs === undefined ? [{ text: "not everything was at rest in time after the last fault" }] : []),
  ...[...states].flatMap(([sessionId, state]) => { const problem = restProblemOf(state, sessionId); return problem === undefined ? [] : [{ sessionId, text: problem }]; }),
  ...inboxRows.map((row) => ({ text: `an accepted event waits for its receipt: ${row}` })),
  ...reminders.map((reminder) => ({ text: `a reminder is left: ${reminder}` })),
];

/** No fault of the way may damage a session so that it stops itself. */
const quarantined: Check = ({ states }) => [...states].flatMap(([sessionId, { quarantine }]) => (quarantine === undefined ? [] : [{ sessionId, text: `is quarantined: ${quarantine.reason}: ${quarantine.message}` }]));

/** Two workers take calls of one session by turns. Where many sessions had several calls and none met both, one worker did nothing. */
const workers: Check = ({ book }) => {
  const several = [...groupBy(book, (row) => row.session).values()].filter((rows) => new Set(rows.map((row) => row.key)).size > 1).length;
  return several >= MANY_SESSIONS && sharedSessions(book) === 0 ? [{ text: `of ${String(several)} sessions with several calls none had them on both workers` }] : [];
};

const MANY_SESSIONS = 12;

/** A run that tried nothing proves nothing. */
const hits: Check = ({ struck }) => struck.filter((fault) => fault.hits === 0).map((fault) => ({ text: `${fault.fault} (round ${String(fault.round)}) met no work in flight` }));

export const CHECKS = { lost, doubled, order, args, unknown, letters, model, streams, shown, fold, rest, quarantined, workers, hits } as const satisfies Record<string, Check>;
export type CheckName = keyof typeof CHECKS;

/** Everything that does not hold. */
export function breachesIn(evidence: Evidence): Breach[] {
  return Object.entries(CHECKS).flatMap(([check, run]: [string, Check]) => run(evidence).map(({ sessionId, text }) => ({ check, sessionId, text: sessionId === undefined ? text : `${sessionId}: ${text.replace(`${sessionId}: `, "")}` })));
}

/** The end of the last fault, or the last 202 where that came later: from then on there is nothing new. */
export function restsSince(struck: readonly Pick<Struck, "untilMs">[], sent: readonly Pick<SentEvent, "acceptedAtMs">[]): number {
  return Math.max(0, ...struck.map(({ untilMs }) => untilMs), ...sent.map(({ acceptedAtMs }) => acceptedAtMs ?? 0));
}

/** Sessions whose calls ran on more than one worker. */
export function sharedSessions(book: readonly BookRow[]): number {
  return [...groupBy(book, (row) => row.session).values()].filter((rows) => new Set(rows.map((row) => row.worker)).size > 1).length;
}

export function unknownsIn(journal: readonly JournalEntry[]): number { return eventsOf(journal, "ToolOutcomeUnknown").length; }

/** From the end of the fault to the end of the slowest event that was in flight then. People and expiry are not waited for. */
export function slowestMs(evidence: Evidence, fault: Struck): number {
  const waits = evidence.sent.filter((event) => event.round === fault.round && event.planned.decision === undefined && event.planned.expiresInMs === undefined);
  return Math.max(0, ...waits.flatMap(({ sessionId, accepted, acceptedAtMs }) => {
    const end = (evidence.journals.get(sessionId) ?? []).find((entry) => entry.events.some((event) => event.type === "RunEnded" && event.key === accepted?.eventKey));
    return end === undefined || acceptedAtMs === undefined || end.atMs < fault.untilMs || acceptedAtMs > fault.untilMs ? [] : [end.atMs - fault.untilMs];
  }));
}

function plannedCalls(sent: readonly SentEvent[], token: string): PlannedCall[] {
  return sent.find(({ planned }) => planned.token === token)?.planned.rounds.flat() ?? [];
}

function succeeded(journal: readonly JournalEntry[]): { callId: string; tool: string }[] {
  return eventsOf(journal, "ToolResultRecorded").filter((result) => result.status === "succeeded").map(({ callId, tool }) => ({ callId, tool }));
}

function toolOf(journal: readonly JournalEntry[], callId: string): string | undefined {
  return eventsOf(journal, "ModelAnswered").flatMap((answer) => answer.calls).find((proposed) => proposed.callId === callId)?.tool;
}

function tokenOf(sent: readonly SentEvent[], book: readonly BookRow[], callId: string, sessionId: string): string | undefined {
  return book.find((row) => row.key === callId)?.token ?? sent.find((event) => event.sessionId === sessionId)?.planned.token;
}

function bySession(sent: readonly SentEvent[]): [string, SentEvent[]][] { return [...groupBy(sent, (event) => event.sessionId)]; }

function groupBy<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const group = groups.get(keyOf(item));
    if (group === undefined) groups.set(keyOf(item), [item]);
    else group.push(item);
  }
  return groups;
}

function repeated(items: readonly string[]): string[] { return items.filter((item, index) => items.indexOf(item) !== index); }
