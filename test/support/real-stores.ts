/**
 * Owns: one cluster whose state stores are the real components, each behind the sidecar of its owner, and all store contracts on
 * them. Two session hosts, so that "two connections" are two sidecars.
 */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { STATE_STORES } from "../../src/contracts/channels.js";
import { DaprCallStore } from "../../src/dapr/call-store.js";
import { probeFencing } from "../../src/dapr/fencing.js";
import { DaprSessionStore } from "../../src/dapr/session-store.js";
import { Sidecar } from "../../src/dapr/sidecar.js";
import { DaprState } from "../../src/dapr/state.js";
import type { SessionState } from "../../src/session/core/state.js";
import { CallRecord } from "../../src/tools/record.js";
import { eventually, startTestStack, type TestStack } from "./cluster.js";
import { describeInboxContract } from "./inbox-contract.js";
import { describeSessionStoreContract } from "./session-store-contract.js";
import { describeCallStoreContract } from "./tools/call-store-contract.js";

export interface RealStores {
  /** Component files; default the embedded profile's. */
  readonly resources?: string;
  /** Whether the session store's table still has the row of a key, expired or not. */
  rowExists(key: string, dataDir: string): Promise<boolean>;
  drop?(): Promise<void>;
}

export function describeRealStores(name: string, prepare: () => Promise<RealStores>): void {
  describe(name, () => {
    let stores: RealStores;
    let test: TestStack;
    const sidecars: Sidecar[] = [];
    const states = new Map<string, DaprState>();
    const stateOf = (instance: string): DaprState => {
      const state = states.get(instance);
      if (state === undefined) throw new Error(`there is no state store of ${instance}`);
      return state;
    };

    beforeAll(async () => {
      stores = await prepare();
      test = await startTestStack({ probeApps: true, only: ["gateway", "sessions", "tools"], sessionsReplicas: 2, ...(stores.resources === undefined ? {} : { resources: stores.resources }) });
      for (const [instance, store] of [["sessions", STATE_STORES.sessions], ["sessions-2", STATE_STORES.sessions], ["gateway", STATE_STORES.inbox], ["tools", STATE_STORES.tools]] as const) {
        const env = test.stack.envOf(instance);
        const sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${env["DAPR_HTTP_PORT"] ?? ""}`, apiToken: env["DAPR_API_TOKEN"] });
        sidecars.push(sidecar);
        states.set(instance, new DaprState(sidecar, store));
      }
    });
    afterAll(async () => {
      for (const sidecar of sidecars) await sidecar.close();
      await test.close();
      await stores.drop?.();
    });

    const sessionStore = (instance: string) => new DaprSessionStore<SessionState>(stateOf(instance), (document) => document as SessionState);
    describeSessionStoreContract(name, () => Promise.resolve({ first: sessionStore("sessions"), second: sessionStore("sessions-2") }));
    const callStore = () => new DaprCallStore(stateOf("tools"), (document) => CallRecord.parse(document));
    describeCallStoreContract(name, () => Promise.resolve({ first: callStore(), second: callStore() }));
    describeInboxContract(name, () => stateOf("gateway"), { keys: 12 });

    describe("what the contracts rely on", () => {
      it("is found able to fence at start, by either host", async () => {
        await expect(probeFencing(stateOf("sessions"), STATE_STORES.sessions, false)).resolves.toBeUndefined();
        await expect(probeFencing(stateOf("sessions-2"), STATE_STORES.sessions, false)).resolves.toBeUndefined();
      });

      it("creates over a row that has expired and was not cleaned up yet, once", async () => {
        const state = stateOf("sessions");
        const key = `t:${randomUUID()}`;
        expect(await state.transact([{ op: "put", key, value: '"old"', createOnly: true, ttlSeconds: 1 }])).toBe("committed");
        expect(await state.transact([{ op: "put", key, value: '"early"', createOnly: true }])).toBe("conflict");
        await eventually("the row expires", async () => (await state.get(key) === undefined ? true : undefined));
        expect(await stores.rowExists(key, test.dataDir)).toBe(true);
        expect((await state.bulkGet([key])).size).toBe(0);
        const verdicts = await Promise.all(["sessions", "sessions-2"].map((instance) => stateOf(instance).transact([{ op: "put", key, value: JSON.stringify(instance), createOnly: true }])));
        expect([...verdicts].sort()).toEqual(["committed", "conflict"]);
        expect((await state.get(key))?.value).toBe(verdicts[0] === "committed" ? '"sessions"' : '"sessions-2"');
      });

      it("says conflict, and nothing else, to an etag of a row that was deleted, has expired, or never was", async () => {
        const state = stateOf("sessions");
        const [deleted, expired, never] = [`t:${randomUUID()}`, `t:${randomUUID()}`, `t:${randomUUID()}`];
        await state.transact([{ op: "put", key: deleted, value: "1" }, { op: "put", key: expired, value: "1", ttlSeconds: 1 }]);
        const etags = await state.bulkGet([deleted, expired]);
        await state.transact([{ op: "delete", key: deleted }]);
        await eventually("the row expires", async () => (await state.get(expired) === undefined ? true : undefined));
        const beside = `t:${randomUUID()}`;
        for (const [key, etag] of [[deleted, etags.get(deleted)!.etag], [expired, etags.get(expired)!.etag], [never, etags.get(deleted)!.etag], [never, "12345"]] as const) {
          expect(await state.transact([{ op: "put", key: beside, value: "2" }, { op: "put", key, value: "2", etag }]), `key ${key}, etag ${etag}`).toBe("conflict");
        }
        expect((await state.bulkGet([beside, deleted, expired, never])).size).toBe(0);
      });
    });
  });
}
