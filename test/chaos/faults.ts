/** Owns: doing one fault of the catalog to a running world, and what it met. Every fault is undone when its function resolves. */
import { writeFileSync, readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { CHANNELS, type ChannelName } from "../../src/contracts/channels.js";
import { eventually } from "../support/cluster.js";
import type { ProxyRule } from "../support/fault-proxy.js";
import { APP_COPIES, type Area, type FaultAction } from "./catalog.js";
import type { PlannedRound } from "./plan.js";
import type { World } from "./world.js";

export interface Met { readonly hits: number; readonly fromMs: number; readonly untilMs: number; readonly touchesWorkers: boolean }

/** How long a fault waits for work to meet. */
const PATIENCE_MS = 60_000;
const ENOUGH = 3;
const CHOOSY_MS = 2_000;
/** Longer than the worker's lock (12 s), the broker's ack window (10 s), a host's heartbeat (8 s), the scheduler's lease (20 s) and placement's patience. */
const FREEZE_MS = 26_000;
const PULSES = { count: 12, stillMs: 500, aliveMs: 150 } as const;
/** Within what the signatures of two machines may differ (30 s), more than a heartbeat may be old (8 s). */
const JUMP_MS = 25_000;
const HOLD_MS = { delay: 11_500, reorder: 1_500, duplicate: 40 } as const;
const DELIVERIES_MS = 5_000;
const MODEL_MS = { away: 4_000, slow: 8_000, garbage: 4_000 } as const;
const NETWORK_MS = { cut: 5_000, hang: 12_000, delay: 8_000 } as const;
const DISK_MS = 6_000;

/** Pieces of this round's work that are in flight in an area right now. */
export type InFlight = (area: Area) => Promise<number>;

export async function strike(world: World, round: PlannedRound, inFlight: InFlight): Promise<Met> {
  const { fault, dice } = round;
  const { action } = fault;
  switch (action.do) {
    case "boundary": return boundary(world, action);
    case "deliveries": return deliveries(world, action);
    case "model": return model(world, action);
    case "roll": return roll(world, round);
    case "kill": case "freeze": case "pulse": case "clock": case "network": case "disk": {
      // Not earlier than there is something to break: several pieces of work if they come soon, else one.
      const waitsSinceMs = Date.now();
      const hits = await eventually(`work is in flight for ${fault.name}`, async () => {
        const count = await inFlight(fault.area);
        return count >= (Date.now() - waitsSinceMs < CHOOSY_MS ? ENOUGH : 1) ? count : undefined;
      }, PATIENCE_MS).catch(() => 0);
      const fromMs = Date.now();
      await breakIt(world, action, dice);
      return { hits, fromMs, untilMs: Date.now(), touchesWorkers: fault.area === "worker" || fault.area === "any" };
    }
  }
}

async function breakIt(world: World, action: Exclude<FaultAction, { do: "boundary" | "deliveries" | "model" | "roll" }>, dice: number): Promise<void> {
  switch (action.do) {
    case "kill": return world.killAndStart(world.processOf(action.target, dice));
    case "freeze": return frozen(world, namesOf(world, action, dice), FREEZE_MS);
    case "pulse":
      for (let n = 0; n < PULSES.count; n += 1) {
        await frozen(world, namesOf(world, action, dice), PULSES.stillMs);
        await pause(PULSES.aliveMs);
      }
      return;
    case "clock": return jump(world, world.copiesOf(action.area), dice);
    case "network": return network(world, action);
    case "disk": {
      const empty = world.fillDisk();
      await pause(DISK_MS);
      empty();
    }
  }
}

function namesOf(world: World, action: FaultAction & { do: "freeze" | "pulse" }, dice: number): string[] {
  const name = world.processOf(action.target, dice);
  return action.do === "freeze" && action.machine === true ? [name, `${name}-daprd`] : [name];
}

async function frozen(world: World, names: readonly string[], ms: number): Promise<void> {
  for (const name of names) world.freeze(name);
  await pause(ms);
  for (const name of [...names].reverse()) world.thaw(name);
}

/** The clock of one copy is off for a while, then right again: two jumps. */
async function jump(world: World, copies: readonly string[], dice: number): Promise<void> {
  const file = world.clockFile(copies[Math.floor(dice * copies.length)] ?? "");
  writeFileSync(file, String((dice * 10) % 1 < 0.5 ? JUMP_MS : -JUMP_MS));
  await pause(8_000);
  writeFileSync(file, "");
}

async function network(world: World, action: FaultAction & { do: "network" }): Promise<void> {
  world.servers?.network(action.target, action.how === "delay" ? { do: "delay", ms: 150 } : { do: action.how });
  await pause(NETWORK_MS[action.how]);
  world.servers?.network(action.target, { do: "pass" });
}

/** Arms a point in every copy; the first that gets there dies there and is started again. */
async function boundary(world: World, { area, point }: FaultAction & { do: "boundary" }): Promise<Met> {
  const copies = world.copiesOf(area);
  const fromMs = Date.now();
  for (const name of copies) writeFileSync(world.armFile(name), `${point}:2`);
  // Who gets there empties its file and dies.
  const isSpent = (name: string): boolean => readFileSync(world.armFile(name), "utf8") === "";
  const fired = await eventually(`${area} gets to ${point}`, () => copies.find((name) => isSpent(name) && !world.isRunning(name)), PATIENCE_MS).catch(() => undefined);
  const dying = copies.filter(isSpent);
  for (const name of copies) writeFileSync(world.armFile(name), "");
  for (const name of dying) await eventually(`${name} is dead`, () => (world.isRunning(name) ? undefined : true));
  const dead = copies.filter((name) => !world.isRunning(name));
  for (const name of dead) await world.docket.test.stack.start(name);
  return { hits: fired === undefined ? 0 : dead.length, fromMs, untilMs: Date.now(), touchesWorkers: area === "worker" };
}

/** Every delivery of the channels is mistreated for a while; each held one has been let go when this resolves. */
async function deliveries(world: World, { how, channels }: FaultAction & { do: "deliveries" }): Promise<Met> {
  const fromMs = Date.now();
  const proxies = channels.flatMap((channel) => world.proxiesOf(channel).map((proxy) => ({ proxy, channel })));
  // A proxy has one rule: channels that one app reads share it.
  const rules = new Map(proxies.map(({ proxy }) => [proxy, pathOf(proxies.filter((other) => other.proxy === proxy).map(({ channel }) => channel))]));
  for (const [proxy, path] of rules) proxy.set(ruleOf(how, path));
  const hits = (): number => [...rules.keys()].reduce((sum, proxy) => sum + proxy.hits, 0);
  await eventually(`deliveries of ${channels.join(" and ")} to ${how}`, () => (hits() > 0 ? true : undefined), PATIENCE_MS).catch(() => undefined);
  await pause(DELIVERIES_MS);
  const met = hits();
  for (const proxy of rules.keys()) proxy.set(undefined);
  if (how === "delay" && met > 0) await pause(HOLD_MS.delay);
  return { hits: met, fromMs, untilMs: Date.now(), touchesWorkers: true };
}

function pathOf(channels: readonly ChannelName[]): RegExp {
  return new RegExp(`^/channels/(${channels.map((channel) => CHANNELS[channel].component).join("|")})$`);
}

/** Few of what holds a channel up, all of what does not. */
function ruleOf(how: (FaultAction & { do: "deliveries" })["how"], path: RegExp): ProxyRule {
  switch (how) {
    case "delay": return { path, do: how, ms: HOLD_MS.delay, times: 2 };
    case "reorder": return { path, do: how, ms: HOLD_MS.reorder, times: 6 };
    case "duplicate": return { path, do: how, ms: HOLD_MS.duplicate };
    case "drop": case "lose-answer": return { path, do: how, times: 4 };
  }
}

/** Each copy has work of its own in flight when it goes: the least of them counts. A call that runs is waited for, so none may end unknown. */
async function roll(world: World, { round, waves }: PlannedRound): Promise<Met> {
  const fromMs = Date.now();
  const met: number[] = [];
  const sending: Promise<void>[] = [];
  for (const [index, name] of APP_COPIES.entries()) {
    const wave = world.load.send(round, waves[index] ?? []);
    wave.catch(() => undefined);
    sending.push(wave);
    met.push(await eventually(`events are under way when ${name} goes`, async () => { const count = await underWay(world, round); return count > 0 ? count : undefined; }, PATIENCE_MS).catch(() => 0));
    await world.replace(name);
  }
  const untilMs = Date.now();
  await Promise.all(sending);
  return { hits: Math.min(...met), fromMs, untilMs, touchesWorkers: false };
}

/** Events of a round that were accepted and have not ended. */
async function underWay({ load }: World, round: number): Promise<number> {
  const accepted = load.sent.filter((event) => event.round === round && event.accepted !== undefined);
  return (await Promise.all(accepted.map((event) => load.isEnded(event)))).filter((isEnded) => !isEnded).length;
}

async function model(world: World, { how }: FaultAction & { do: "model" }): Promise<Met> {
  const fromMs = Date.now();
  world.model.set(how);
  await eventually("a request meets the model's fault", () => (world.model.hits > 0 ? true : undefined), PATIENCE_MS).catch(() => undefined);
  await pause(MODEL_MS[how]);
  const { hits } = world.model;
  world.model.set(undefined);
  return { hits, fromMs, untilMs: Date.now(), touchesWorkers: false };
}
