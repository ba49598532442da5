/** Owns: what the Inbox must do over any KeyValue with fenced transactions; keys are kept apart, so that one store serves all tests. */
import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createInbox } from "../../src/gateway/inbox/inbox.js";
import type { InboxRow, KeyValue, KeyValueOperation } from "../../src/gateway/ports.js";
import { Problem } from "../../src/contracts/problems.js";
import { TestClock } from "./gateway-fakes.js";

const row = (key: string, acceptedAtMs: number): InboxRow => ({ key, envelopeText: `{"id":"${key}","n":9007199254740993}`, acceptedAtMs, publishedAtMs: acceptedAtMs, attempts: 1 });
const identity = (key: string, digest = "d") => ({ key: `i-${key}`, digest, answer: `{"answer":"${key}"}` });

/** A part of a store under a prefix of its own, which can be watched, stopped and raced. */
class WatchedKeyValue implements KeyValue {
  readonly #prefix = `${randomUUID()}/`;
  readonly #keys = new Set<string>();
  down = false;
  /** Runs between a reader's read and its write, to play another replica. */
  beforeTransact: (() => Promise<void>) | undefined;
  reads = 0;
  transactions = 0;
  conflicts = 0;

  constructor(private readonly store: KeyValue) {}

  async get(key: string) { this.#assertUp(); return this.store.get(this.#prefix + key); }

  async bulkGet(keys: readonly string[]) {
    this.#assertUp();
    this.reads += 1;
    const found = await this.store.bulkGet(keys.map((key) => this.#prefix + key));
    return new Map([...found].map(([key, item]) => [key.slice(this.#prefix.length), item] as const));
  }

  async transact(operations: readonly KeyValueOperation[]): Promise<"committed" | "conflict"> {
    this.#assertUp();
    await this.beforeTransact?.();
    this.transactions += 1;
    for (const operation of operations) if (operation.op === "put") this.#keys.add(operation.key);
    const verdict = await this.store.transact(operations.map((operation) => ({ ...operation, key: this.#prefix + operation.key })));
    if (verdict === "conflict") this.conflicts += 1;
    return verdict;
  }

  /** What is stored now, of all that was ever put. */
  async items(): Promise<Map<string, string>> {
    return new Map([...await this.bulkGet([...this.#keys])].map(([key, item]) => [key, item.value]));
  }

  #assertUp(): void { if (this.down) throw new Problem("store_unavailable", "the store is down (test)"); }
}

const rowsOf = async (store: WatchedKeyValue): Promise<string[]> => [...(await store.items()).keys()].filter((key) => key.startsWith("inbox:")).map((key) => key.slice(6)).sort();
const indexOf = async (store: WatchedKeyValue): Promise<string[]> => [...await store.items()].filter(([key]) => key.startsWith("inbox-bucket:")).flatMap(([, text]) => Object.keys((JSON.parse(text) as { rows: object }).rows)).sort();

/** `open` gives a store; `scale` makes less of the tests that only repeat, where every call crosses two processes. */
export function describeInboxContract(name: string, open: () => KeyValue, scale: { readonly keys: number } = { keys: 60 }): void {
  function make(options: { store?: WatchedKeyValue; clock?: TestClock; buckets?: number; bucketRows?: number } = {}) {
    const clock = options.clock ?? new TestClock(1_000_000);
    const store = options.store ?? new WatchedKeyValue(open());
    const inbox = createInbox(store, { clock, receiptWaitMs: 10_000, idempotencyMs: 86_400_000, ...(options.buckets === undefined ? {} : { buckets: options.buckets }), ...(options.bucketRows === undefined ? {} : { bucketRows: options.bucketRows }) });
    return { clock, store, inbox };
  }

  describe(`inbox contract: ${name}`, () => {
    it("keeps a row until its receipt, and finds it when it is due", async () => {
      const { clock, inbox } = make();
      expect(await inbox.add(row("a", clock.nowMs()), identity("a"))).toEqual({ status: "added" });
      expect(await inbox.due(clock.nowMs() + 9_999, 10)).toEqual([]);
      expect(await inbox.due(clock.nowMs() + 10_000, 10)).toEqual([row("a", clock.nowMs())]);
      await inbox.remove("a");
      await inbox.remove("a");
      expect(await inbox.due(clock.nowMs() + 99_999, 10)).toEqual([]);
    });

    it("tells what waits, what is dead, and nothing of what its session has", async () => {
      const { clock, inbox } = make();
      for (const key of ["a", "b"]) await inbox.add(row(key, clock.nowMs()), identity(key));
      expect(await inbox.find("a")).toBe("waiting");
      await inbox.remove("a");
      await inbox.bury("a", { code: "late", deadLetterId: "dl_late" });
      expect(await inbox.find("a")).toBeUndefined();
      await inbox.bury("b", { code: "mailbox_full", deadLetterId: "dl_b" });
      await inbox.bury("b", { code: "other", deadLetterId: "dl_other" });
      expect(await inbox.find("b")).toEqual({ code: "mailbox_full", deadLetterId: "dl_b" });
      expect(await inbox.due(clock.nowMs() + 99_999, 10)).toEqual([]);
    });

    it("remembers the answer after the receipt, for as long as the key lives, by its own clock", async () => {
      const { clock, store, inbox } = make();
      await inbox.add(row("a", clock.nowMs()), identity("a"));
      await inbox.remove("a");
      const before = store.transactions;
      expect(await inbox.add(row("a", clock.nowMs()), identity("a", "other"))).toMatchObject({ status: "exists", remembered: { digest: "d", answer: '{"answer":"a"}' } });
      expect(store.transactions).toBe(before);
      clock.advance(86_400_001);
      expect(await inbox.add(row("a", clock.nowMs()), identity("a", "other"))).toEqual({ status: "added" });
    });

    it("knows an event that still waits, though its idempotency key was forgotten", async () => {
      const { clock, inbox } = make();
      await inbox.add(row("a", clock.nowMs()), identity("a"));
      clock.advance(86_400_001);
      expect(await inbox.add(row("a", clock.nowMs()), identity("a"))).toMatchObject({ status: "exists" });
    });

    it("is found again by a new instance on the same store (restart)", async () => {
      const { clock, store, inbox } = make();
      for (let n = 0; n < scale.keys; n += 1) await inbox.add(row(`k${String(n)}`, clock.nowMs()), identity(`k${String(n)}`));
      const reborn = make({ store, clock }).inbox;
      expect((await reborn.due(clock.nowMs() + 10_000, 100)).map((one) => one.key).sort()).toEqual(await rowsOf(store));
      expect(await rowsOf(store)).toHaveLength(scale.keys);
    });

    it("gives the oldest due first, and no more than asked", async () => {
      const { clock, inbox } = make();
      for (let n = 0; n < 20; n += 1) await inbox.add(row(`k${String(n)}`, clock.nowMs() - n), identity(`k${String(n)}`));
      expect((await inbox.due(clock.nowMs() + 10_000, 3)).map((one) => one.key)).toEqual(["k19", "k18", "k17"]);
    });

    it("lets one of two replicas claim a publication, and never brings back a removed row (N2)", async () => {
      const { clock, store, inbox } = make();
      const other = make({ store, clock }).inbox;
      await inbox.add(row("a", clock.nowMs()), identity("a"));
      const [found] = await inbox.due(clock.nowMs() + 10_000, 1);
      const next = { publishedAtMs: clock.nowMs(), dueAtMs: clock.nowMs() + 20_000 };
      const claims = await Promise.all([inbox.postpone(found!, next), other.postpone(found!, next)]);
      expect(claims.filter(Boolean)).toHaveLength(1);
      const [claimed] = await inbox.due(next.dueAtMs, 1);
      expect(claimed?.attempts).toBe(2);
      let raced = false;
      store.beforeTransact = async () => { if (!raced) { raced = true; await other.remove("a"); } };
      expect(await inbox.postpone(claimed!, next)).toBe(false);
      expect(await rowsOf(store)).toEqual([]);
      expect(await inbox.due(Infinity, 10)).toEqual([]);
      expect(await indexOf(store)).toEqual([]);
    });

    it("keeps index and rows the same under four replicas that add, remove and add again at once (N1)", async () => {
      const clock = new TestClock(1_000_000);
      const store = new WatchedKeyValue(open());
      const replicas = Array.from({ length: 4 }, () => make({ store, clock, buckets: 3 }).inbox);
      const keys = Array.from({ length: scale.keys }, (_, n) => `k${String(n)}`);
      const results = await Promise.all(keys.flatMap((key) => replicas.map((inbox) => inbox.add(row(key, clock.nowMs()), identity(key)))));
      expect(results.filter((one) => one.status === "added")).toHaveLength(keys.length);
      expect(store.conflicts).toBeGreaterThan(0);
      const half = keys.length / 2;
      await Promise.all(keys.slice(0, half).flatMap((key, n) => [replicas[n % 4]!.remove(key), replicas[(n + 1) % 4]!.remove(key)]));
      expect(await rowsOf(store)).toEqual(keys.slice(half).sort());
      expect((await indexOf(store)).filter((key) => keys.slice(half).includes(key)), "no row without its entry").toEqual(keys.slice(half).sort());
      expect((await replicas[0]!.due(Infinity, 5)).length).toBe(Math.min(5, half));
      await replicas[1]!.due(Infinity, 1_000);
      expect(await rowsOf(store)).toEqual(await indexOf(store));
    });

    it("goes on in the next bucket when one is full, and refuses when all are (N3)", async () => {
      const { clock, store, inbox } = make({ buckets: 2, bucketRows: 3 });
      for (let n = 0; n < 6; n += 1) await inbox.add(row(`k${String(n)}`, clock.nowMs()), identity(`k${String(n)}`));
      await expect(inbox.add(row("k6", clock.nowMs()), identity("k6"))).rejects.toMatchObject({ code: "store_unavailable" });
      for (let n = 0; n < 6; n += 1) await inbox.remove(`k${String(n)}`);
      expect(await rowsOf(store)).toEqual([]);
      expect(await inbox.add(row("k6", clock.nowMs()), identity("k6"))).toEqual({ status: "added" });
      const other = make({ store, clock, buckets: 2, bucketRows: 3 }).inbox;
      for (let n = 7; n < 12; n += 1) expect(await other.add(row(`k${String(n)}`, clock.nowMs()), identity(`k${String(n)}`)), "entries of rows that are gone count for nobody").toEqual({ status: "added" });
      expect(await indexOf(store)).toEqual(await rowsOf(store));
    });

    it("takes an entry that leads nowhere out of its bucket, and not one whose row is just being added", async () => {
      const { clock, store, inbox } = make({ buckets: 1 });
      const other = make({ store, clock, buckets: 1 }).inbox;
      await inbox.add(row("a", clock.nowMs()), identity("a"));
      await inbox.remove("a");
      clock.advance(86_400_001);
      let raced = false;
      store.beforeTransact = async () => { if (!raced) { raced = true; await inbox.add(row("a", clock.nowMs()), identity("a")); } };
      await other.due(Infinity, 10);
      expect(raced).toBe(true);
      expect((await other.due(Infinity, 10)).map(({ key }) => key)).toEqual(["a"]);
    });

    it("needs one write for a receipt, none for its repetition, and no read for either", async () => {
      const { clock, store, inbox } = make();
      await inbox.add(row("a", clock.nowMs()), identity("a"));
      const [reads, writes] = [store.reads, store.transactions];
      await inbox.remove("a");
      await inbox.remove("a");
      expect([store.reads - reads, store.transactions - writes]).toEqual([0, 1]);
    });

    it("never overwrites an index document that it cannot read", async () => {
      const { clock, store, inbox } = make({ buckets: 2 });
      await store.transact([{ op: "put", key: "inbox-bucket:0", value: '"broken"' }]);
      for (let n = 0; n < 8; n += 1) await inbox.add(row(`k${String(n)}`, clock.nowMs()), identity(`k${String(n)}`));
      expect((await store.get("inbox-bucket:0"))?.value).toBe('"broken"');
      expect(await inbox.due(clock.nowMs() + 10_000, 100)).toHaveLength(8);
    });

    it("says store_unavailable when the store is down", async () => {
      const { clock, store, inbox } = make();
      store.down = true;
      await expect(inbox.add(row("a", clock.nowMs()), identity("a"))).rejects.toMatchObject({ code: "store_unavailable" });
    });
  });
}
