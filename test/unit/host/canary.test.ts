/** A scheduler that takes reminders and fires none is noticed; one that is away, slow, or whose ticks come to another host is not taken for one. */
import { Writable } from "node:stream";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { SCHEDULER_SILENT } from "../../../src/contracts/operations.js";
import { Canary } from "../../../src/session/host/canary.js";
import { FakeReminders, fakeTime, pass } from "./support.js";

let reminders: FakeReminders;
let said: { code?: string; msg: string }[];
let canary: Canary;
let other: Canary;
/** What the hosts leave for one another. */
let echoes: Map<string, number>;
/** Whom the scheduler gives the ticks to. */
let ticksTo: Canary | undefined;

const logger = () => pino({ level: "info" }, new Writable({ write: (chunk: Buffer, _encoding, done) => { said.push(JSON.parse(chunk.toString()) as { msg: string }); done(); } }));
const canaryOf = (host: string): Canary => new Canary({
  host, reminders, logger: logger(),
  echoes: { say: (to, serial) => { echoes.set(to, serial); return Promise.resolve(); }, heard: (of) => Promise.resolve(echoes.get(of) ?? 0) },
});
/** The clock runs, and a scheduler fires what is due. */
async function live(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    await pass(1_000);
    for (const [key, { data }] of [...reminders.registered]) {
      if (ticksTo === undefined) continue;
      await ticksTo.heard(data);
      reminders.registered.delete(key);
    }
  }
}
const silences = (): number => said.filter(({ code }) => code === SCHEDULER_SILENT).length;

beforeEach(() => {
  fakeTime();
  said = [];
  echoes = new Map();
  reminders = new FakeReminders();
  canary = canaryOf("host-a");
  other = canaryOf("host-b");
  ticksTo = canary;
  canary.start();
});
afterEach(async () => {
  await canary.stop();
  vi.useRealTimers();
});

describe("a host's canary", () => {
  it("is silent about a scheduler that fires, here or at another host", async () => {
    await live(120);
    ticksTo = other;
    await live(120);
    expect(reminders.history.length).toBeGreaterThan(10);
    expect(said).toEqual([]);
  });

  it("says within a minute that nothing fires, says it again, and that it is over", async () => {
    await live(30);
    ticksTo = undefined;
    await live(60);
    expect(silences()).toBe(1);
    await live(30);
    expect(silences()).toBe(3);
    ticksTo = canary;
    await live(30);
    expect(silences()).toBe(3);
    expect(said.at(-1)?.msg).toBe("the scheduler fires reminders again");
  });

  it("does not count what a scheduler does not take, nor two that got lost", async () => {
    reminders.failing = true;
    await live(180);
    reminders.failing = false;
    ticksTo = undefined;
    await live(40);
    ticksTo = canary;
    await live(60);
    expect(said).toEqual([]);
  });

  it("sets nothing after a stop, and leaves other reminders' data to others", async () => {
    await canary.stop();
    await live(60);
    expect(reminders.history).toEqual([]);
    expect(await canary.heard(JSON.stringify({ purpose: "guard", generation: 1, name: "guard-1" }))).toBe(false);
    expect(await canary.heard("no JSON")).toBe(false);
  });
});
