/** Three session hosts: one joins, one leaves, one dies, and both come back, while clients go on. Order, outcomes and journals stay as they must be (I1, I2, I3, I7). */
import { afterAll, beforeAll, expect, it } from "vitest";
import { foldCheck } from "../support/checks.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { Load, lostEvents } from "../support/kills.js";

const CLIENTS = 6;
/** Sent without waiting for an answer, so that they queue in the channel and in the session. */
const BURST = 3;

let docket: Docket;
let load: Load;
beforeAll(async () => {
  docket = await startDocket({ sessionsReplicas: 3 });
  load = new Load(docket, freshSession("three"));
});
afterAll(async () => {
  load.stop();
  await docket.close();
});

const both = (host: string): string[] => [`${host}-daprd`, host];
async function gone(host: string, signal: "SIGTERM" | "SIGKILL"): Promise<void> { await Promise.all(both(host).map((name) => docket.test.stack.kill(name, signal))); }
async function started(host: string): Promise<void> { await Promise.all(both(host).map((name) => docket.test.stack.start(name))); }

it("keep each session's order and lose nothing while hosts join, leave and die", async () => {
  const { stack } = docket.test;
  await gone("sessions-3", "SIGTERM");
  let [rounds, working] = [0, true];
  const clients = Promise.all(Array.from({ length: CLIENTS }, async (_, n) => {
    const own = freshSession(`client-${String(n)}`);
    for (let round = 0; working; round += 1) {
      // A session that is new is placed anew: the host that joined gets its share.
      const sessionId = round % 2 === 0 ? own : freshSession(`new-${String(n)}`);
      const burst = Array.from({ length: BURST }, () => load.event("three", "plain", "hello", { sessionId }));
      for (const sent of burst) await load.send(sent);
      await eventually(`client ${String(n)} has its answers`, () => (burst.every((sent) => load.isEnded(sent)) ? true : undefined), 120_000);
      rounds += 1;
    }
  }));
  let failure: unknown;
  clients.catch((error: unknown) => { failure = error; working = false; });
  const until = (what: string, done: () => boolean): Promise<true> => eventually(what, () => (failure !== undefined || done() ? true : undefined), 180_000);
  const goOn = async (): Promise<void> => {
    const wanted = rounds + 2 * CLIENTS;
    await until("the clients go on", () => rounds >= wanted);
  };
  const works = (host: string): Promise<true> => until(`${host} calls the model`, () => {
    const mark = `-${String(stack.processes.get(host)?.pid)}-`;
    return load.sent.slice(-BURST * CLIENTS).some(({ sessionId }) => eventsOf(load.view.journal(sessionId), "ModelCallStarted").some((call) => call.host.includes(mark)));
  });

  await goOn();
  await started("sessions-3");
  await works("sessions-3");
  await gone("sessions", "SIGTERM");
  await goOn();
  await gone("sessions-2", "SIGKILL");
  await goOn();
  await Promise.all(["sessions", "sessions-2"].map(started));
  await Promise.all(["sessions", "sessions-2"].map(works));
  working = false;
  await clients;

  for (const sessionId of new Set(load.sent.map((sent) => sent.sessionId))) {
    const wanted = load.sent.filter((sent) => sent.sessionId === sessionId).map(({ id }) => id);
    expect(eventsOf(load.view.journal(sessionId), "EventReceived").map(({ id }) => id), sessionId).toEqual(wanted);
  }
  expect(lostEvents(load)).toEqual([]);
  expect(await docket.deadLetters()).toEqual([]);
  expect(foldCheck(docket).problems).toEqual([]);
});
