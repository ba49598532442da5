/** Owns: a chaos run from start to verdict: each round sends its work, strikes in the middle of it, waits until work is done again; then everything comes to rest and is counted. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { SESSION_ACTOR_TYPE } from "../../src/contracts/channels.js";
import { eventually, REPO_ROOT } from "../support/cluster.js";
import { restProblemOf } from "../support/kills.js";
import type { Area } from "./catalog.js";
import { breachesIn, restsSince, type Breach } from "./checks.js";
import type { Evidence, SentEvent, Struck } from "./evidence.js";
import { strike } from "./faults.js";
import type { ChaosPlan, PlannedRound } from "./plan.js";
import { bookIn, lettersIn, shownIn } from "./stores.js";
import type { World } from "./world.js";

export const REST_MS = 60_000;
const RECOVER_MS = 90_000;
const CATCH_UP_MS = 30_000;

export interface ChaosResult { readonly evidence: Evidence; readonly breaches: readonly Breach[] }

/** Runs the plan. `stopped` ends it early. */
export async function runPlan(world: World, plan: ChaosPlan, at: { readonly say: (line: string) => void; readonly stopped: () => boolean }): Promise<ChaosResult> {
  const struck: Struck[] = [];
  const failures: Breach[] = [];
  const startedAtMs = Date.now();
  world.calm();
  for (const round of plan.rounds) {
    if (at.stopped()) break;
    const before = struck.length;
    try {
      struck.push(await playRound(world, round, plan.inFlight));
    } catch (error) {
      failures.push({ check: "recovery", sessionId: round.probe.sessionId, text: `${round.fault.name} (round ${String(round.round)}): ${error instanceof Error ? error.message : String(error)}` });
    } finally {
      world.calm();
    }
    const last = struck[before];
    at.say(`${clock(Date.now() - startedAtMs)} round ${String(round.round)}/${String(plan.rounds.length)} ${round.fault.name}: ${last === undefined ? "NOT RECOVERED" : `${String(last.hits)} in flight, back after ${seconds(last.recoveredMs ?? 0)}`}; ${String(world.load.sent.length)} events in ${String(new Set(world.load.sent.map((event) => event.sessionId)).size)} sessions`);
  }
  const restMs = await comesToRest(world, restsSince(struck, world.load.sent));
  at.say(restMs === undefined ? `not everything came to rest within ${seconds(REST_MS)}` : `everything is at rest ${seconds(restMs)} after the last fault; counting`);
  const evidence = await collect(world, struck, restMs);
  return { evidence, breaches: [...failures, ...breachesIn(evidence)] };
}

async function playRound(world: World, round: PlannedRound, wanted: number | undefined): Promise<Struck> {
  const { load } = world;
  const watched = round.sessions.find((session) => session.story === "parallel")?.sessionId;
  if (watched !== undefined) load.watch(watched);
  const mine = (): SentEvent[] => load.sent.filter((event) => event.round === round.round);
  const sending = load.send(round.round, round.sessions, wanted);
  sending.catch(() => undefined);
  await eventually(`${String(round.afterEvents)} events are accepted`, () => (mine().filter((event) => event.accepted !== undefined).length >= round.afterEvents ? true : undefined), RECOVER_MS);
  const met = await strike(world, round, (area) => (wanted === undefined ? inFlight(world, mine(), area) : outstanding(world, mine(), wanted)));
  await load.send(round.round, [round.probe]);
  const probe = mine().find((event) => event.sessionId === round.probe.sessionId)!;
  await eventually("work is done again", async () => ((await load.isEnded(probe)) ? true : undefined), RECOVER_MS)
    .catch(async (error: unknown) => { throw new Error(`${String(error)}: ${String(restProblemOf(await world.stores.session(probe.sessionId), probe.sessionId))}`); });
  const recoveredMs = Date.now() - met.untilMs;
  await sending;
  await closeStreams(world, watched);
  return { round: round.round, fault: round.fault.name, ...met, recoveredMs };
}

/** The streams of earlier rounds are closed when they have all that there is; the current one stays open over the next fault. */
async function closeStreams(world: World, except: string | undefined): Promise<void> {
  for (const { sessionId, revs } of world.load.watched()) {
    // A session may be at rest between two events.
    const isOver = await Promise.all(world.load.sent.filter((event) => event.sessionId === sessionId).map((event) => world.load.isEnded(event)));
    if (sessionId === except || isOver.includes(false)) continue;
    // In this order: a session that is found at rest adds nothing.
    const state = await world.stores.session(sessionId);
    const journal = await world.stores.journal(sessionId);
    if (restProblemOf(state, sessionId) === undefined && revs.length >= journal.length) world.load.unwatch(sessionId);
  }
}

/** Events that are sent and not ended; 0 while there are fewer than wanted. */
async function outstanding(world: World, sent: readonly SentEvent[], wanted: number): Promise<number> {
  const ended = await Promise.all(sent.map((event) => world.load.isEnded(event)));
  const count = ended.filter((isOver) => !isOver).length;
  return count < wanted ? 0 : count;
}

async function inFlight(world: World, sent: readonly SentEvent[], area: Area): Promise<number> {
  if (area === "gateway") return sent.filter((event) => event.accepted === undefined).length + (await world.stores.inboxRows()).length;
  const states = await Promise.all([...new Set(sent.map((event) => event.sessionId))].map((id) => world.stores.session(id)));
  return states.filter((state) => {
    if (state === undefined) return false;
    if (area === "console") return state.status === "AWAITING_APPROVAL";
    if (area === "worker") return "run" in state && state.run.calls.some((call) => call.life.phase === "dispatched");
    return state.status !== "IDLE" && state.status !== "AWAITING_APPROVAL";
  }).length;
}

async function comesToRest(world: World, sinceMs: number): Promise<number | undefined> {
  const isDone = async (): Promise<true | undefined> => {
    const states = await world.stores.sessions();
    return states.every((state) => restProblemOf(state, state.sessionId) === undefined) && (await world.stores.inboxRows()).length === 0 ? true : undefined;
  };
  // What the wait for the last round's work took counts as well.
  const restMs = await eventually("everything is at rest", isDone, Math.max(0, sinceMs + REST_MS - Date.now())).then(() => Date.now() - sinceMs, () => undefined);
  return restMs !== undefined && restMs <= REST_MS ? restMs : undefined;
}

async function collect(world: World, struck: readonly Struck[], restMs: number | undefined): Promise<Evidence> {
  const { load, stores, dataDir } = world;
  const states = new Map((await stores.sessions()).map((state) => [state.sessionId, state]));
  const journals = new Map<string, Awaited<ReturnType<typeof stores.journal>>>();
  for (const sessionId of new Set([...states.keys(), ...load.sent.map((event) => event.sessionId)])) journals.set(sessionId, await stores.journal(sessionId));
  // Readers may be a moment behind.
  await eventually("the console has caught up", () => ([...states].every(([id, { rev }]) => shownIn(dataDir).get(id)?.rev === rev) ? true : undefined), CATCH_UP_MS).catch(() => undefined);
  await eventually("the streams have caught up", () => (load.watched().every(({ sessionId, revs }) => revs.length >= (journals.get(sessionId)?.length ?? 0)) ? true : undefined), CATCH_UP_MS).catch(() => undefined);
  for (const { sessionId } of load.watched()) load.unwatch(sessionId);
  return {
    sent: load.sent, struck, states, journals, restMs, decided: load.decided, asked: load.asked, streams: load.streams, modelCalls: world.model.calls,
    inboxRows: await stores.inboxRows(), shown: shownIn(dataDir), letters: lettersIn(dataDir), book: bookIn(world.bookFile), reminders: await remindersOf(world, states), folds: folds(stores.foldAddress),
  };
}

function folds(address: string): string[] {
  const output = execFileSync(process.execPath, [join(REPO_ROOT, "test/support/fold-check.mjs"), address], { encoding: "utf8", maxBuffer: 256 * 1024 * 1024 });
  return (JSON.parse(output) as { problems: string[] }).problems;
}

/** Reminders that outlived their guard. */
async function remindersOf(world: World, states: Evidence["states"]): Promise<string[]> {
  const wanted = (): string[] => [...states.values()].flatMap(({ actorId, guard }) => Array.from({ length: guard.generation }, (_, n) => `${actorId}/reminders/guard-${String(n + 1)}`));
  const left = await stillThere(world, wanted());
  if (left.length === 0) return left;
  // A guard is removed a moment after its release.
  let rest = left;
  await eventually("no reminder is left", async () => { rest = await stillThere(world, rest); return rest.length === 0 ? true : undefined; }, CATCH_UP_MS).catch(() => undefined);
  return rest;
}

async function stillThere(world: World, names: readonly string[]): Promise<string[]> {
  const queue = [...names];
  const left: string[] = [];
  await Promise.all(Array.from({ length: 8 }, async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const reply = await world.docket.test.callSidecar("sessions", `/v1.0/actors/${SESSION_ACTOR_TYPE}/${next}`);
      const text = await reply.text();
      // What is not there is answered with an error too; a scheduler that takes nothing any more proves nothing.
      if (reply.ok ? text !== "" : text.includes("cron is closed")) left.push(next);
    }
  }));
  return left;
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
const clock = (ms: number): string => `${String(Math.floor(ms / 60_000)).padStart(2, "0")}:${String(Math.floor(ms / 1000) % 60).padStart(2, "0")}`;
