/**
 * The short form of the kill matrix (I1-I3, I6-I8, I14): each process of a running Docket is killed -9 with work in flight, a
 * session host stands still until the other one has taken over, a model call and a tool die half-way; then everything
 * is counted from the outside. `DOCKET_KILLS_SEED` repeats a run, `DOCKET_KILLS_ONLY=broker,tools` a part of it,
 * `DOCKET_KILLS_FREEZE=machine` freezes the host's sidecar with it.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { foldCheck } from "../support/checks.js";
import { REPO_ROOT } from "../support/cluster.js";
import { eventsOf, eventually, startDocket, type Docket } from "../support/docket.js";
import { chaosAgents, effectProblems, letterProblems, Load, lostEvents, randomFrom, reminderProblems, restProblem, shownProblems, shuffled, streamProblems, workspaceLines, type Kind, type Sent } from "../support/kills.js";

const SEED = Number(process.env["DOCKET_KILLS_SEED"] ?? Date.now() % 1_000_000);
const ONLY = process.env["DOCKET_KILLS_ONLY"]?.split(",");
/** Each with the kind of work that shows that it is back. */
const KILLED: readonly (readonly [process: string, kind: Kind])[] = [
  ["tools", "status"], ["sessions", "plain"], ["sessions-daprd", "plain"], ["gateway", "plain"], ["gateway-daprd", "plain"], ["tools-daprd", "status"], ["console", "refund"],
  ["console-daprd", "refund"], ["broker", "status"], ["placement", "plain"], ["scheduler", "plain"],
];
const REST_MS = 60_000;
/** A released guard's reminder goes with its next tick (10 s); a scheduler that was killed ticks again after 20 s. */
const REMINDERS_MS = 60_000;
const FROZEN_WITH_SIDECAR = process.env["DOCKET_KILLS_FREEZE"] === "machine";

let docket: Docket;
let load: Load;
let approving: Promise<void>;
let home: string;
const random = randomFrom(SEED);
const table: Record<string, unknown>[] = [];

beforeAll(async () => {
  console.log(`kills: seed ${String(SEED)}`);
  mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
  home = mkdtempSync(join(REPO_ROOT, ".docket/kills-"));
  const { agentsDir, scriptsDir } = await chaosAgents(home);
  docket = await startDocket({ sessionsReplicas: 2, extraEnv: { all: { DOCKET_AGENTS_DIR: agentsDir, DOCKET_SCRIPTS_DIR: scriptsDir } } });
  load = new Load(docket, `k${String(SEED)}`);
  approving = load.approveEverything();
});

afterAll(async () => {
  load.stop();
  await approving;
  const [lost, doubled] = [lostEvents(load), effectProblems(load)];
  for (const row of table) {
    const mine = load.sent.filter((sent) => sent.burst === row["killed"]).map((sent) => sent.sessionId);
    const count = (problems: readonly string[]): number => problems.filter((problem) => mine.some((id) => problem.includes(id))).length;
    Object.assign(row, { lost: count(lost), "wrong effects": count(doubled) });
  }
  console.table(table);
  console.log(`kills: RSS in MB at the end: ${["gateway", "sessions", "sessions-2", "tools", "console"].map((name) => `${name} ${String(memoryOf(name))}`).join(", ")}`);
  await docket.close();
  rmSync(home, { recursive: true, force: true });
});

/** Sends a burst and kills in the middle of it; resolves with how long it took until work of the process's own kind was done again. */
async function killDuringBurst(name: string, kind: Kind): Promise<void> {
  const { stack } = docket.test;
  const burst = shuffled(load.burst(name), random);
  const parallel = burst.find((sent) => sent.kind === "parallel");
  if (parallel !== undefined) load.watch(parallel.sessionId);
  const killAt = 5 + Math.floor(random() * 12);
  let killed: Promise<number> | undefined;
  const sending = load.sendAll(burst, (count) => { if (count >= killAt) killed ??= stack.restart(name).then(() => Date.now()); });
  const restartedAtMs = await eventually(`${name} was killed and started`, async () => await killed, 60_000);
  const probe = load.event(name, kind, kind === "plain" ? "are you back?" : kind === "status" ? "where is order 1002?" : "refund 2000 cents of order 1002");
  await load.send(probe);
  await eventually(`${name}: work is done again`, () => (load.isEnded(probe) ? true : undefined), 60_000).catch((error: unknown) => { throw new Error(`${String(error)}\n${String(restProblem(load.view, probe.sessionId))}`); });
  const recoveredMs = Date.now() - restartedAtMs;
  await sending;
  table.push({ killed: name, "recovered ms": recoveredMs, events: burst.length + 1 });
}

function memoryOf(name: string): number {
  const pid = docket.test.stack.processes.get(name)?.pid;
  const line = pid === undefined ? "" : readFileSync(`/proc/${String(pid)}/status`, "utf8").split("\n").find((text) => text.startsWith("VmRSS")) ?? "";
  return Math.round(Number(/\d+/.exec(line)?.[0] ?? 0) / 1024);
}

async function rested(sent: readonly Sent[]): Promise<number> {
  const startedAtMs = Date.now();
  const sessions = [...new Set(sent.map(({ sessionId }) => sessionId))];
  await eventually("every session is at rest", () => (sessions.every((id) => restProblem(load.view, id) === undefined) ? true : undefined), REST_MS).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${sessions.map((id) => restProblem(load.view, id)).filter((problem) => problem !== undefined).join("\n")}`);
  });
  return Date.now() - startedAtMs;
}

describe("kill -9 with work in flight", () => {
  it("a host that stands still commits nothing more of what another one took over (I3, I7)", async () => {
    const { stack } = docket.test;
    const thinking = await Promise.all(Array.from({ length: 4 }, () => load.send(load.event("freeze", "think", "think for long", { agent: "chaos" }))));
    const hostOf = (sent: Sent): string | undefined => eventsOf(load.view.journal(sent.sessionId), "ModelCallStarted")[0]?.host;
    await eventually("every model call runs", () => (thinking.every((sent) => hostOf(sent) !== undefined) ? true : undefined));
    const pidOfSecond = String(stack.processes.get("sessions-2")?.pid);
    const onSecond = thinking.filter((sent) => hostOf(sent)?.includes(`-${pidOfSecond}-`));
    const frozen = onSecond.length > 0 ? "sessions-2" : "sessions";
    const victims = onSecond.length > 0 ? onSecond : thinking;
    const hasMoved = (sent: Sent): boolean => new Set(eventsOf(load.view.journal(sent.sessionId), "ModelCallStarted").map((call) => call.host)).size > 1;
    const frozenAtMs = Date.now();
    for (const name of FROZEN_WITH_SIDECAR ? [frozen, `${frozen}-daprd`] : [frozen]) stack.freeze(name);
    try {
      await eventually("the other host has taken a session over", () => (victims.some((sent) => hasMoved(sent)) ? true : undefined), 60_000)
        .catch((error: unknown) => { throw new Error(`${String(error)}\n${victims.map((sent) => String(restProblem(load.view, sent.sessionId))).join("\n")}`); });
    } finally {
      stack.thaw(`${frozen}-daprd`);
      stack.thaw(frozen);
    }
    const takenOverMs = Date.now() - frozenAtMs;
    await eventually("every run has ended", () => (thinking.every((sent) => load.isEnded(sent)) ? true : undefined), 60_000);
    for (const sent of thinking) {
      const journal = load.view.journal(sent.sessionId);
      expect(eventsOf(journal, "ModelAnswered")).toHaveLength(1);
      expect(eventsOf(journal, "RunEnded")).toMatchObject([{ outcome: "completed" }]);
    }
    // The zombie's answer was too late for these: it was only paid for.
    for (const sent of victims.filter(hasMoved)) {
      expect(docket.modelCalls(sent.sessionId).map(({ step, attempt }) => [step, attempt])).toEqual([[1, 1], [1, 2]]);
      expect(eventsOf(load.view.journal(sent.sessionId), "ModelAnswered")).toMatchObject([{ attempt: 2 }]);
      expect(eventsOf(load.view.journal(sent.sessionId), "ModelCallFailed")).toMatchObject([{ kind: "lost", attempt: 1 }]);
    }
    table.push({ killed: `${frozen} (frozen)`, "recovered ms": takenOverMs, events: thinking.length });
  });

  it("a model call whose host dies is started again as a new attempt, once", async () => {
    const thinking = await Promise.all(Array.from({ length: 3 }, () => load.send(load.event("model", "think", "think for long", { agent: "chaos" }))));
    await eventually("every model call runs", () => (thinking.every((sent) => docket.modelCalls(sent.sessionId).length > 0) ? true : undefined));
    const killedAtMs = Date.now();
    await Promise.all(["sessions", "sessions-2"].map((name) => docket.test.stack.restart(name)));
    await eventually("every run has ended", () => (thinking.every((sent) => load.isEnded(sent)) ? true : undefined), 60_000);
    table.push({ killed: "both hosts, model call open", "recovered ms": Date.now() - killedAtMs, events: thinking.length });
    for (const sent of thinking) {
      expect(docket.modelCalls(sent.sessionId).map(({ step, attempt }) => [step, attempt])).toEqual([[1, 1], [1, 2]]);
      expect(eventsOf(load.view.journal(sent.sessionId), "RunEnded")).toMatchObject([{ outcome: "completed" }]);
    }
  });

  it("loses and doubles nothing, whichever process is killed in a burst", async () => {
    const { stack } = docket.test;
    // Two calls of a `once` tool: one dies before its effect, one after it and before its result (I6).
    const before = await load.send(load.event("once", "effect", "effect, hold before", { agent: "chaos" }));
    const after = await load.send(load.event("once", "effect", "effect, hold after", { agent: "chaos" }));
    const phases = (sent: Sent): unknown[] => workspaceLines(docket.dataDir, sent.sessionId, "effects.jsonl").map((line) => line.phase);
    await eventually("one call stands before its effect, one after it", () => (phases(before).join() === "started" && phases(after).join() === "started,effect" ? true : undefined), 60_000);
    expect(await reminderProblems(load), "guards of open calls are seen by the check that later must see none").not.toEqual([]);
    const onceKilledAtMs = Date.now();
    await stack.restart("tools");
    const onceBack = eventually("both calls have their result", () => (load.isEnded(before) && load.isEnded(after) ? Date.now() - onceKilledAtMs : undefined), 150_000);
    onceBack.catch(() => undefined);

    for (const [name, kind] of KILLED) {
      if (ONLY !== undefined && !ONLY.includes(name)) continue;
      await killDuringBurst(name, kind);
    }
    const lastFaultAtMs = Date.now();
    table.push({ killed: "tools, once call open", "recovered ms": await onceBack.catch((error: unknown) => { throw new Error(`${String(error)}\n${String(restProblem(load.view, before.sessionId))}\n${String(restProblem(load.view, after.sessionId))}`); }), events: 2 });
    await rested(load.sent);
    await eventually("no accepted event waits for a receipt", () => (load.view.inboxRows().length === 0 ? true : undefined), REST_MS);
    const restMs = Date.now() - lastFaultAtMs;

    console.log(`kills: at rest ${String(restMs)} ms after the last fault`);
    const lost = lostEvents(load);
    const doubled = effectProblems(load);
    expect(lost).toEqual([]);
    expect(doubled).toEqual([]);
    expect(await letterProblems(load)).toEqual([]);
    expect(eventsOf(load.view.journal(before.sessionId), "ToolOutcomeUnknown")).toEqual([]);
    expect(eventsOf(load.view.journal(after.sessionId), "ToolOutcomeUnknown")).toEqual([]);
    await eventually("every stream has caught up", () => (streamProblems(load).length === 0 ? true : undefined), 30_000).catch(() => undefined);
    expect(streamProblems(load)).toEqual([]);
    await eventually("the console shows what is", () => (shownProblems(load).length === 0 ? true : undefined), 30_000).catch(() => undefined);
    expect(shownProblems(load)).toEqual([]);
    await eventually("no reminder is left", async () => ((await reminderProblems(load)).length === 0 ? true : undefined), REMINDERS_MS).catch(() => undefined);
    expect(await reminderProblems(load)).toEqual([]);
    expect(foldCheck(docket).problems).toEqual([]);
  });

  // `live` was a memory stream once: nothing made it anew when the broker came back, and deltas stayed away for good.
  it("streams deltas again after the broker was killed", async () => {
    // Others than this test's own would use up the streams that one principal may hold.
    for (const { client } of load.streams.splice(0)) client.close();
    await docket.test.stack.restart("broker");
    // Deltas are lossy: those of an answer that comes while the broker's readers are not back are gone. The model thinks first, so the stream has caught up.
    await eventually("an answer that streams", async () => {
      const sent = load.event("deltas", "think", "think for long", { agent: "chaos" });
      load.watch(sent.sessionId);
      const stream = load.streams.at(-1)!.client;
      await load.send(sent);
      await eventually("the run has ended", () => (load.isEnded(sent) ? true : undefined), 60_000);
      await eventually("the stream has seen the end", () => {
        if (streamProblems(load).length > 0) throw new Error(streamProblems(load).join("; "));
        return true;
      }, 60_000);
      // Each attempt gives its stream back, or the principal has none left.
      for (const { client } of load.streams.splice(0)) client.close();
      return stream.events.some((event) => event.event === "delta") ? true : undefined;
    }, 200_000);
  });
});
