/** Owns: what every CallStore must do, whatever it is made of (DESIGN 6: create-only, fenced by version). */
import { describe, expect, it } from "vitest";
import type { CallStore } from "../../../src/tools/ports.js";
import { withTry, type CallRecord } from "../../../src/tools/record.js";

const TTL = { ttlSeconds: 3600 };
let serial = 0;

function record(callId = `call_contract_${String(process.pid)}_${String(Date.now())}_${String((serial += 1))}`): CallRecord {
  return { v: 1, callId, actorId: "default_s1", tool: "refund", argsDigest: "sha256:00", effects: "once", claims: 1, tries: [] };
}

const claimed = (worker: string): CallRecord["tries"][number] =>
  ({ state: "claimed", try: 1, worker, claimId: `claim-${worker}`, claimedAtMs: 1, lockUntilMs: 2, runs: 1, fence: 1 });

/** `open` gives two connections to one store; they may be the same object where the store is in memory. */
export function describeCallStoreContract(name: string, open: () => Promise<{ first: CallStore; second: CallStore; close?: () => Promise<void> }>): void {
  describe(`CallStore contract: ${name}`, () => {
    const withStores = (test: (first: CallStore, second: CallStore) => Promise<void>) => async (): Promise<void> => {
      const { first, second, close } = await open();
      try { await test(first, second); } finally { await close?.(); }
    };

    it("knows nothing of a call that was never written", withStores(async (first) => {
      expect(await first.read(record().callId)).toBeUndefined();
    }));

    it("gives back exactly what was created, also to another connection", withStores(async (first, second) => {
      const one = withTry({ ...record(), actorId: "h-00" }, { state: "done", try: 1, result: {
        sessionId: "Zoë \u{1F600} \"quoted\" \\ \n", tenant: "default", actorId: "h-00", runId: "run_1", callId: "c", tool: "refund", try: 1,
        outcome: "succeeded", output: "{\"id\":9007199254740993}", truncated: false, worker: "w", startedAtMs: 1, endedAtMs: 2 } });
      expect(await first.create(one, TTL)).toBe("created");
      expect((await second.read(one.callId))?.record).toEqual(one);
    }));

    it("creates once only", withStores(async (first, second) => {
      const one = record();
      expect(await first.create(one, TTL)).toBe("created");
      expect(await second.create({ ...one, tool: "other" }, TTL)).toBe("exists");
      expect((await first.read(one.callId))?.record.tool).toBe("refund");
    }));

    it("lets one of twenty concurrent creations win", withStores(async (first, second) => {
      const one = record();
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? first : second).create(withTry(one, claimed(`w${String(i)}`)), TTL)));
      expect(answers.filter((answer) => answer === "created")).toHaveLength(1);
      const winner = answers.indexOf("created");
      expect((await second.read(one.callId))?.record.tries[0]).toMatchObject({ worker: `w${String(winner)}` });
    }));

    it("replaces the version that was read, and changes its etag", withStores(async (first, second) => {
      const one = record();
      await first.create(one, TTL);
      const before = await first.read(one.callId);
      expect(await second.replace(withTry(one, claimed("w1")), before!.etag, TTL)).toBe("replaced");
      const after = await first.read(one.callId);
      expect(after?.etag).not.toBe(before?.etag);
      expect(after?.record.tries).toHaveLength(1);
    }));

    it("refuses to replace an older version", withStores(async (first, second) => {
      const one = record();
      await first.create(one, TTL);
      const old = await first.read(one.callId);
      await second.replace(withTry(one, claimed("w1")), old!.etag, TTL);
      expect(await first.replace(withTry(one, claimed("w2")), old!.etag, TTL)).toBe("conflict");
      expect((await first.read(one.callId))?.record.tries[0]).toMatchObject({ worker: "w1" });
    }));

    it("refuses to replace what does not exist", withStores(async (first) => {
      const one = record();
      expect(await first.replace(one, "1", TTL)).toBe("conflict");
      expect(await first.read(one.callId)).toBeUndefined();
    }));

    it("lets one of twenty concurrent replacements of a version win", withStores(async (first, second) => {
      const one = record();
      await first.create(one, TTL);
      const etag = (await first.read(one.callId))!.etag;
      const answers = await Promise.all(Array.from({ length: 20 }, (_, i) => (i % 2 === 0 ? first : second).replace(withTry(one, claimed(`w${String(i)}`)), etag, TTL)));
      expect(answers.filter((answer) => answer === "replaced")).toHaveLength(1);
    }));

    it("keeps calls apart", withStores(async (first) => {
      const [one, other] = [record(), record()];
      await first.create(one, TTL);
      expect(await first.read(other.callId)).toBeUndefined();
      expect(await first.create(other, TTL)).toBe("created");
    }));
  });
}
