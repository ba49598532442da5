/** Owns: the modes `activation`, `approvals` and `idle`: what a session costs that nobody has looked at for long. Each prints a table of its own. */
import { ApprovalPage, type ApprovalListItem } from "../src/contracts/api.js";
import { eventually } from "../test/support/cluster.js";
import { Users, type Sent } from "./client.js";
import type { BenchOptions } from "./options.js";
import { quantile } from "./load.js";
import { textOf } from "./outside.js";
import { usageOf } from "./processes.js";
import type { Rig } from "./rig.js";
import { seedCopies, seedLongSession } from "./seed.js";

export interface TableResult { readonly table: readonly Record<string, string | number>[]; readonly sent: readonly Sent[]; readonly failures: readonly string[] }

const DECIDE_AGAIN_MS = 5_000;
const GIVE_UP_MS = 60_000;

const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);
const round = (value: number): number => Math.round(value * 10) / 10;

/** From sending an event to a session that no host holds in memory, to the model's first call for it. */
export async function measureActivation(rig: Rig, options: BenchOptions): Promise<TableResult> {
  const failures: string[] = [];
  const users = new Users(rig.gateway, rig.keys, (error) => { failures.push(error.message); });
  const table: Record<string, string | number>[] = [];
  for (const length of options.lengths) {
    const tookMs: number[] = [];
    for (let n = 0; n < options.repeat; n += 1) {
      const sessionId = `long-${String(length)}-${String(n)}`;
      await seedLongSession(rig, sessionId, length);
      const session = users.open(sessionId);
      const turn = `${sessionId}.next`;
      const sentMs = performance.now();
      const { ended } = await session.say(turn, textOf(turn));
      if ((await ended) !== "completed") failures.push(`${turn} did not complete`);
      tookMs.push((rig.outside.modelCallsMs.get(turn)?.[0] ?? NaN) - sentMs);
      session.close();
    }
    const times = sorted(tookMs);
    table.push({ "events in the session": length, "p50 ms": round(quantile(times, 0.5)), "max ms": round(times.at(-1) ?? 0) });
  }
  await users.close();
  return { table, sent: [], failures };
}

/** Sessions wait for a person; the host is killed and started, so that all are cold; then everything is approved. */
export async function measureApprovals(rig: Rig, options: BenchOptions): Promise<TableResult> {
  const count = options.count ?? 500;
  const failures: string[] = [];
  const users = new Users(rig.gateway, rig.keys, (error) => { failures.push(error.message); });
  const said: { sent: Sent; ended: Promise<string> }[] = [];
  const names = Array.from({ length: count }, (_, n) => `parked-${String(n)}`);
  await inParallel(16, names, async (name) => { said.push(await users.open(name).say(name, textOf(name, "record_decided_effect"))); });
  const items = await eventually(`${String(count)} approvals in the console`, async () => {
    const open = await openApprovals(rig);
    return open.length >= count ? open : undefined;
  }, 300_000);
  await rig.test.stack.restart("sessions");
  await rig.test.stack.waitReady();
  const startedMs = performance.now();
  const tookMs: number[] = [];
  await inParallel(16, items, async (item) => {
    const decidedMs = performance.now();
    const atMs = await eventually(`the effect of ${item.pending.sessionId}`, async () => {
      const known = rig.outside.effects.get(item.pending.sessionId)?.atMs;
      if (known === undefined) await approve(rig, item);
      return await Promise.race([rig.outside.effectOf(item.pending.sessionId), later(DECIDE_AGAIN_MS)]);
    }, GIVE_UP_MS).catch((error: unknown) => { failures.push(String(error)); });
    if (atMs !== undefined) tookMs.push(atMs - decidedMs);
  });
  const seconds = (performance.now() - startedMs) / 1000;
  for (const { sent, ended } of said) {
    const outcome = await Promise.race([ended, later(GIVE_UP_MS)]);
    if (outcome !== "completed") failures.push(`${sent.turn} ended ${outcome ?? "not at all"}`);
  }
  await users.close();
  const times = sorted(tookMs);
  return {
    table: [{ "parked sessions": count, "resumed per second": round(times.length / seconds), "decision to effect p50 ms": round(quantile(times, 0.5)), "p99 ms": round(quantile(times, 0.99)), "max ms": round(times.at(-1) ?? 0) }],
    sent: said.map(({ sent }) => sent), failures,
  };
}

/** Memory of every process while the store holds nothing, many parked sessions, and after some of them were looked at. */
export async function measureIdle(rig: Rig, options: BenchOptions): Promise<TableResult> {
  const count = options.count ?? 100_000;
  const failures: string[] = [];
  const users = new Users(rig.gateway, rig.keys, (error) => { failures.push(error.message); });
  await users.open("idle").say("idle", textOf("idle", "record_decided_effect"));
  await eventually("the session waits for a person", async () => ((await openApprovals(rig)).length > 0 ? true : undefined), 60_000);
  const memory = (when: string): Record<string, string | number> => ({ when, ...Object.fromEntries([...usageOf(rig.processes())].map(([name, used]) => [name, Math.round(used.rssMb)])) });
  const table = [memory("one parked session")];
  await seedCopies(rig, "idle", count);
  table.push(memory(`${String(count)} parked sessions`));
  await later(60_000);
  table.push(memory("a minute later"));
  await users.close();
  return { table, sent: [], failures };
}

/** As a person would: whatever the console answers, whoever sees nothing happen clicks again. */
async function approve(rig: Rig, { pending: { record } }: ApprovalListItem): Promise<void> {
  const reply = await fetch(`${rig.console}/v1/approvals/${record.approvalId}/decisions`, {
    method: "POST", headers: { authorization: `Bearer ${rig.test.stack.apiKey}`, "content-type": "application/json" },
    body: JSON.stringify({ kind: "approve", version: record.version, argsDigest: record.argsDigest }),
  });
  await reply.arrayBuffer();
}

async function openApprovals(rig: Rig): Promise<ApprovalListItem[]> {
  const items: ApprovalListItem[] = [];
  for (let cursor: string | undefined = ""; cursor !== undefined;) {
    const reply = await fetch(`${rig.console}/v1/approvals?state=open&limit=200${cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`}`, { headers: { authorization: `Bearer ${rig.test.stack.apiKey}` } });
    const page = ApprovalPage.parse(await reply.json());
    items.push(...page.items);
    cursor = page.nextCursor;
  }
  return items;
}

async function inParallel<T>(width: number, items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  await Promise.all(Array.from({ length: width }, async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next);
  }));
}

function later(ms: number): Promise<undefined> { return new Promise((resolve) => { setTimeout(() => { resolve(undefined); }, ms); }); }
