/**
 * The shipped exactly-once tool (examples/ledger-tool) on a real PostgreSQL (I6): an effect happens once and its outcome can be told,
 * though its worker is doubled, killed, frozen inside or outside its transaction, or never hears of its commit.
 */
import { readFileSync } from "node:fs";
import { createServer, connect as dial, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { happened, once } from "../../../examples/ledger-tool/tools/_once.js";
import { postEntry } from "../../../examples/ledger-tool/tools/post-entry.js";
import type { Tool, ToolContext } from "../../../src/agent/definition.js";
import { ToolFailure } from "../../../src/agent/tool-failure.js";
import { createDatabase, type TestDatabase } from "../../support/database.js";
import { flush } from "../../support/tools/clock.js";
import { toolContext } from "../../support/tools/context.js";
import { deliver, harness, requestFor, type Harness } from "../../support/tools/harness.js";
import { hasPostgres } from "../../support/tools/postgres.js";

const ROOT = join(import.meta.dirname, "../../..");
let serial = 0;

describe.skipIf(!hasPostgres())("an effect in PostgreSQL", () => {
  let database: TestDatabase;
  let admin: pg.Client;
  beforeAll(async () => {
    database = await createDatabase();
    admin = new pg.Client(database.address);
    await admin.connect();
    await admin.query(readFileSync(join(ROOT, "examples/ledger-tool/schema.sql"), "utf8"));
  });
  afterAll(async () => { await admin.end(); await database.drop(); });

  const fresh = (more: Partial<ToolContext> = {}): ToolContext => { serial += 1; return toolContext({ idempotencyKey: `key-${String(serial)}`, ...more }); };
  const entries = async (key: string): Promise<number> => Number((await admin.query<{ n: string }>("select count(*) as n from ledger_entries where memo = $1", [key])).rows[0]?.n);
  const post = (context: ToolContext, address = database.address, before: () => Promise<void> = async () => undefined, after: () => Promise<void> = async () => undefined) => once(address, context, async (tx) => {
    await before();
    await tx.query("insert into ledger_entries (account, amount_cents, memo) values ('a', 1, $1)", [context.idempotencyKey]);
    await after();
    return { posted: context.idempotencyKey };
  });
  const failure = (run: Promise<unknown>): Promise<unknown> => run.then(() => "no failure", (error: unknown) => (ToolFailure.is(error) ? error.reason : "unexplained"));

  it("happens once, however many run it at once, and each gets its answer", async () => {
    const context = fresh();
    const answers = await Promise.all(Array.from({ length: 12 }, () => post(context)));
    expect(new Set(answers.map((answer) => JSON.stringify(answer)))).toEqual(new Set([JSON.stringify({ posted: context.idempotencyKey })]));
    expect(await entries(context.idempotencyKey)).toBe(1);
    expect(await happened(database.address, context)).toEqual({ happened: true, output: { posted: context.idempotencyKey } });
  });

  it("that fails has not happened, may be tried again, and is told so", async () => {
    const context = fresh();
    expect(await failure(post(context, database.address, undefined, () => Promise.reject(ToolFailure.business("no money"))))).toBe("business");
    expect(await failure(post(context, database.address, undefined, () => Promise.reject(new Error("bug"))))).toBe("transient");
    expect(await happened(database.address, context)).toEqual({ happened: false });
    await post({ ...context, fence: 2 });
    expect(await entries(context.idempotencyKey)).toBe(1);
  });

  it.each([["nothing", undefined], ["null", null], ["false", false]])("that answers %s has happened all the same: asked, or run again, it does not happen twice", async (_name, answer) => {
    const context = fresh();
    const run = (): Promise<unknown> => once(database.address, context, async (tx) => {
      await tx.query("insert into ledger_entries (account, amount_cents, memo) values ('a', 1, $1)", [context.idempotencyKey]);
      return answer;
    });
    expect(await run()).toBe(answer);
    expect(await happened(database.address, context)).toEqual({ happened: true, output: answer ?? null });
    expect(await run()).toBe(answer ?? null);
    expect(await entries(context.idempotencyKey)).toBe(1);
  });

  it("is refused under an older fence, once a newer one has asked or run", async () => {
    const context = fresh();
    expect(await happened(database.address, { ...context, fence: 2 })).toEqual({ happened: false });
    expect(await failure(post(context))).toBe("not_started");
    expect(await happened(database.address, context)).toEqual({ happened: "unknown" });
    await post({ ...context, fence: 2 });
    expect(await failure(post(context))).toBe("not_started");
    expect(await entries(context.idempotencyKey)).toBe(1);
  });

  it("that stands still inside its transaction is ended by the server: the question gets its answer, and the frozen run commits nothing", async () => {
    const context = fresh();
    let thaw: () => void = () => undefined;
    let inside: () => void = () => undefined;
    const isInside = new Promise<void>((resolve) => { inside = resolve; });
    const frozen = failure(post(context, database.address, undefined, () => new Promise((resolve) => { inside(); thaw = resolve; })));
    await isInside;
    const asked = Date.now();
    expect(await happened(database.address, { ...context, fence: 2 })).toEqual({ happened: false });
    expect(Date.now() - asked).toBeLessThan(9_000);
    await post({ ...context, fence: 2 });
    thaw();
    expect(await frozen).toBe("transient");
    expect(await entries(context.idempotencyKey)).toBe(1);
  });

  it("whose commit was never answered is not guessed: the question finds it", async () => {
    const proxy = await losingCommits(database.address);
    const context = fresh();
    expect(await failure(post(context, proxy.address))).toBe("unexplained");
    expect(proxy.lost()).toBe(1);
    expect(await happened(database.address, { ...context, fence: 2 })).toMatchObject({ happened: true });
    expect(await entries(context.idempotencyKey)).toBe(1);
    await proxy.close();
  });

  it("on a server that is not there has not started", async () => {
    expect(await failure(post(fresh(), "postgres://nobody@127.0.0.1:1/none"))).toBe("not_started");
  });

  describe("by a worker", () => {
    /** The tool as shipped; `hold` is awaited where it is told, by the first run alone, and `over` resolves when that has ended. */
    function held(where: "before" | "after", hold: Promise<void>): { tool: Tool; over: Promise<void> } {
      let first = true;
      let end: () => void = () => undefined;
      const over = new Promise<void>((resolve) => { end = resolve; });
      const run: Tool["run"] = async (args, context) => {
        const mine = first;
        first = false;
        try {
          if (mine && where === "before") await hold;
          const answer = await postEntry.run(args, context);
          if (mine && where === "after") await hold;
          return answer;
        } finally {
          if (mine) end();
        }
      };
      return { tool: { ...postEntry, run }, over };
    }
    const request = (h: Harness, callId: string) => requestFor(h.clock, { request: { callId, idempotencyKey: callId, tool: "post_entry", args: `{"account":"w","amountCents":9007199254740993,"memo":"${callId}"}`, deadlineAtMs: h.clock.nowMs() + 600_000 } });
    const settled = async (h: Harness, count: number): Promise<void> => {
      for (const deadline = Date.now() + 20_000; h.results.length < count;) {
        if (Date.now() > deadline) throw new Error(`${String(h.results.length)} of ${String(count)} results; ${JSON.stringify(h.logs.slice(-5))}`);
        await new Promise((resolve) => { setTimeout(resolve, 20); });
      }
    };

    it.each(["before", "after"] as const)("frozen %s the effect for longer than its lock: another finds out and goes on; thawed, it changes nothing", async (where) => {
      let thaw: () => void = () => undefined;
      const { tool, over } = held(where, new Promise((resolve) => { thaw = resolve; }));
      const callId = `call_frozen_${where}_${String(Date.now())}`;
      const secrets = { LEDGER_URL: database.address };
      const old = harness([tool], { secrets });
      await deliver(old.worker("frozen"), request(old, callId));
      if (where === "after") await eventuallyEntries(callId, 1);
      // Its timers stand still with it; the others' go on.
      const h = harness([tool], { secrets, store: old.store });
      await h.clock.advance(61_000);
      await deliver(h.worker("other"), request(h, callId));
      await settled(h, 1);
      expect(h.results).toMatchObject([{ outcome: "succeeded", worker: "other" }]);
      expect(h.results[0]?.output).toContain('"balanceCents"');
      thaw();
      await over;
      await flush();
      expect(await entries(callId)).toBe(1);
      expect(old.results.every((result) => result.outcome === "succeeded")).toBe(true);
    });

    it("that never hears of its commit asks at once, and reports the success", async () => {
      const proxy = await losingCommits(database.address);
      const h = harness([postEntry], { secrets: { LEDGER_URL: proxy.address } });
      const callId = `call_unheard_${String(Date.now())}`;
      await deliver(h.worker("w"), request(h, callId));
      await settled(h, 1);
      expect(proxy.lost()).toBe(1);
      expect(h.results).toMatchObject([{ outcome: "succeeded" }]);
      expect(await entries(callId)).toBe(1);
      await proxy.close();
    });

    async function eventuallyEntries(key: string, count: number): Promise<void> {
      for (const deadline = Date.now() + 20_000; await entries(key) !== count;) {
        if (Date.now() > deadline) throw new Error(`${key} has ${String(await entries(key))} entries, expected ${String(count)}`);
      }
    }
  });
});

/** A way to the server that lets the first commit through and its answer not back. */
async function losingCommits(address: string): Promise<{ address: string; lost: () => number; close: () => Promise<void> }> {
  const target = new URL(address);
  let lost = 0;
  const server: Server = createServer((client) => {
    const upstream = dial(Number(target.port || 5432), target.hostname);
    let cut = false;
    client.on("data", (chunk: Buffer) => {
      if (lost === 0 && chunk.toString("latin1").includes("commit")) { cut = true; lost += 1; }
      upstream.write(chunk);
    });
    // The server has committed once it answers.
    upstream.on("data", (chunk: Buffer) => { if (cut) { client.destroy(); upstream.destroy(); } else client.write(chunk); });
    for (const [one, other] of [[client, upstream], [upstream, client]] as const) one.on("close", () => { other.destroy(); }).on("error", () => { other.destroy(); });
  });
  await new Promise<void>((resolve) => { server.listen(0, "127.0.0.1", resolve); });
  const through = new URL(address);
  through.hostname = "127.0.0.1";
  through.port = String((server.address() as AddressInfo).port);
  return { address: through.href, lost: () => lost, close: () => new Promise((resolve) => { server.close(() => { resolve(); }); }) };
}
