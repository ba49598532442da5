/**
 * What newer Dapr runtimes do and the pinned one does not, done by a proxy between the real sidecars and apps, and survived: a turn
 * that is cut and called again while it runs, reminders that are dropped after three failures, state calls that hang during a placement
 * change, deliveries that are acked after an error. Counted from the outside: 202s, stores, model calls, tools' books, streams, console.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { foldCheck } from "../support/checks.js";
import { REPO_ROOT } from "../support/cluster.js";
import { eventsOf, eventually, type Docket } from "../support/docket.js";
import { chaosAgents, effectProblems, letterProblems, Load, lostEvents, restProblem, shownProblems, streamProblems, type Sent } from "../support/kills.js";
import { setAll, startProxiedDocket, type ProxiedDocket } from "../support/proxied.js";

const HOSTS = ["sessions", "sessions-2"] as const;
const STATE = /^\/v1\.0\/state\//;
const COMMIT = /^\/v1\.0\/state\/session-store\/transaction/;
/** Reminders that newer runtimes would have given up. */
const FAILURES_UNTIL_DROPPED = 3;

let proxied: ProxiedDocket;
let docket: Docket;
let load: Load;
let approving: Promise<void>;
let home: string;

beforeAll(async () => {
  mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
  home = mkdtempSync(join(REPO_ROOT, ".docket/newer-"));
  const { agentsDir, scriptsDir } = await chaosAgents(home);
  proxied = await startProxiedDocket({ extraEnv: { all: { DOCKET_AGENTS_DIR: agentsDir, DOCKET_SCRIPTS_DIR: scriptsDir } } });
  docket = proxied.docket;
  load = new Load(docket, `n${String(Date.now() % 1_000_000)}`);
  approving = load.approveEverything();
});
afterEach(() => { proxied.calm(); });
afterAll(async () => {
  load.stop();
  await approving;
  await proxied.close();
  rmSync(home, { recursive: true, force: true });
});

/** Mixed work in sessions of its own, and one session whose events are sent one after the other. */
function work(name: string): { readonly mixed: Sent[]; readonly ordered: Sent[] } {
  const of = (kind: "plain" | "status" | "refund", text: string, count: number): Sent[] => Array.from({ length: count }, () => load.event(name, kind, text));
  return {
    mixed: [...of("plain", "hello", 3), ...of("status", "where is order 1001?", 3), ...of("refund", "refund 1000 cents of order 1001", 1), ...of("refund", "refund 1001 cents of order 1001", 1), load.order(name, "order")],
    ordered: Array.from({ length: 5 }, () => load.event(name, "plain", "hello", { sessionId: `${name}-ordered` })),
  };
}

async function send({ mixed, ordered }: ReturnType<typeof work>): Promise<Sent[]> {
  const watched = ordered[0]!.sessionId;
  load.watch(watched);
  const inOrder = async (): Promise<void> => { for (const sent of ordered) await load.send(sent); };
  await Promise.all([load.sendAll(mixed), inOrder()]);
  return [...mixed, ...ordered];
}

/** Everything has ended and is at rest, and nothing is lost, doubled or out of order. */
async function holds(sent: readonly Sent[]): Promise<void> {
  const sessions = [...new Set(sent.map(({ sessionId }) => sessionId))];
  const problems = (): string[] => [...sent.filter((one) => !load.isEnded(one)).map(({ id }) => `${id} has not ended`), ...sessions.flatMap((id) => restProblem(load.view, id) ?? [])];
  await eventually("every session is at rest", () => (problems().length === 0 ? true : undefined), 75_000).catch((error: unknown) => { throw new Error(`${String(error)}\n${problems().join("\n")}`); });
  const mine = (lines: readonly string[]): string[] => lines.filter((line) => sessions.some((id) => line.includes(id)));
  expect(mine(lostEvents(load))).toEqual([]);
  expect(mine(effectProblems(load))).toEqual([]);
  expect(mine(await letterProblems(load))).toEqual([]);
  for (const sessionId of sessions) {
    const inOrder = sent.filter((one) => one.sessionId === sessionId).map(({ id }) => id);
    expect(eventsOf(load.view.journal(sessionId), "EventReceived").map(({ id }) => id)).toEqual(inOrder);
  }
  await eventually("streams and console have caught up", () => (streamProblems(load).length === 0 && mine(shownProblems(load)).length === 0 ? true : undefined), 30_000).catch(() => undefined);
  expect(streamProblems(load)).toEqual([]);
  expect(mine(shownProblems(load))).toEqual([]);
  await eventually("no accepted event waits for a receipt", () => (load.view.inboxRows().length === 0 ? true : undefined), 30_000);
}

describe("a runtime that", () => {
  it("cuts a turn after two seconds and calls it again, on another host too, while the first still runs", async () => {
    // Turns take milliseconds, so commits are made slow; the sidecar gives up on the call, the app goes on with it.
    setAll(proxied.outbound, HOSTS, { path: COMMIT, do: "delay", ms: 3_000, times: 5 });
    for (const [at, name] of HOSTS.entries()) {
      proxied.inbound.get(name)?.set({ path: /^\/(actors\/[^/]+\/[^/]+\/method\/(?!remind)|channels\/tasks)/, do: "cut-and-repeat", ms: 2_000, elsewhere: proxied.behind(HOSTS[1 - at]!) });
    }
    const sent = await send(work("cut"));
    await eventually("turns were cut", () => (HOSTS.reduce((sum, name) => sum + (proxied.inbound.get(name)?.hits ?? 0), 0) >= 2 ? true : undefined), 60_000);
    await holds(sent);
    expect(proxied.calm()).toBeGreaterThan(0);
  });

  it("drops reminders after three failed callbacks: a dead host's model calls are taken up all the same", async () => {
    setAll(proxied.inbound, HOSTS, { path: /\/method\/remind\//, do: "refuse" });
    const thinking = await Promise.all(Array.from({ length: 4 }, () => load.send(load.event("dropped", "think", "think for long", { agent: "chaos" }))));
    await eventually("every model call runs", () => (thinking.every((one) => docket.modelCalls(one.sessionId).length > 0) ? true : undefined), 30_000);
    const sending = send(work("dropped"));
    const hostOf = (one: Sent): string => eventsOf(load.view.journal(one.sessionId), "ModelCallStarted")[0]?.host ?? "";
    const pidOfSecond = `-${String(docket.test.stack.processes.get("sessions-2")?.pid)}-`;
    await docket.test.stack.restart(thinking.some((one) => hostOf(one).includes(pidOfSecond)) ? "sessions-2" : "sessions");
    const dropped = new Set<string>();
    const droppingUntil = Date.now() + 8_000;
    while (Date.now() < droppingUntil) {
      const failures = new Map<string, number>();
      for (const name of HOSTS) for (const { path } of proxied.inbound.get(name)?.log ?? []) failures.set(path, (failures.get(path) ?? 0) + 1);
      for (const [path, count] of failures) if (count >= FAILURES_UNTIL_DROPPED && !dropped.has(path)) await drop(path).then((done) => { if (done) dropped.add(path); });
      await pause(250);
    }
    await holds([...thinking, ...await sending]);
    expect(thinking.some((one) => eventsOf(load.view.journal(one.sessionId), "ModelCallFailed").some(({ kind }) => kind === "lost"))).toBe(true);
    expect(proxied.calm()).toBeGreaterThan(0);
  });

  it("blocks state and actor calls while placement changes, longer than the broker waits for an ack, and then refuses some", async () => {
    const sending = send(work("blocked"));
    await eventually("some of it is in", () => (load.sent.filter(({ burst, accepted }) => burst === "blocked" && accepted !== undefined).length >= 4 ? true : undefined), 30_000);
    setAll(proxied.outbound, HOSTS, { path: /^\/v1\.0\/(state|actors)\//, do: "hold" });
    await docket.test.stack.kill("sessions-2");
    await pause(12_000);
    let hits = proxied.calm();
    // A host that starts asks its store whether it can fence, and does not start without an answer: only the one that stayed is refused.
    setAll(proxied.outbound, ["sessions"], { path: /^\/v1\.0\/(state|actors)\//, do: "refuse", times: 8 });
    await docket.test.stack.startAll();
    const sent = await sending;
    await holds(sent);
    hits += proxied.calm();
    expect(hits).toBeGreaterThan(2);
  });

  it("acks a delivery after an error, without a dead-letter topic", async () => {
    // Sessions: the store fails in the middle of turns. The others: the delivery does not get through at all.
    setAll(proxied.outbound, HOSTS, { path: STATE, do: "refuse", times: 6 });
    setAll(proxied.inbound, HOSTS, { path: /^\/channels\//, do: "ack-errors" });
    setAll(proxied.inbound, ["tools", "console", "gateway"], { path: /^\/channels\/(?!dead-letters)/, do: "drop", times: 4 });
    const sent = await send(work("acked"));
    await eventually("errors of each app were acked", () => (["tools", "console", "gateway"].every((name) => (proxied.inbound.get(name)?.hits ?? 0) > 0) && HOSTS.some((name) => (proxied.inbound.get(name)?.hits ?? 0) > 0) ? true : undefined), 30_000);
    await holds(sent);
    expect(proxied.calm()).toBeGreaterThan(4);
  });

  it("leaves journals that fold to their states", () => {
    expect(foldCheck(docket).problems).toEqual([]);
  });
});

/** As the runtime would: the reminder is gone. True when it is. */
async function drop(path: string): Promise<boolean> {
  const [, , type, id, , , name] = path.split("/");
  const reply = await docket.test.callSidecar("gateway", `/v1.0/actors/${String(type)}/${String(id)}/reminders/${String(name)}`, { method: "DELETE", signal: AbortSignal.timeout(5_000) }).catch(() => undefined);
  return reply?.ok === true;
}
