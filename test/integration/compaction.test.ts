/**
 * A long session is shortened on the real state store: killed between checkpoint and deletes, finished by another host, checked by
 * another process, and used on. The session hosts run in this process, on the real sidecar's store, so that weeks can pass in it.
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Envelope } from "../../src/contracts/cloudevent.js";
import { Sidecar } from "../../src/dapr/sidecar.js";
import { DaprState, type StateOperation } from "../../src/dapr/state.js";
import type { OpenSession, SessionState } from "../../src/session/core/state.js";
import { receiveEvent } from "../../src/session/host/intake.js";
import { echoHost } from "../support/echo-host.js";
import { eventually, REPO_ROOT, startTestStack, type TestStack } from "../support/cluster.js";

const DAY_MS = 86_400_000;
const RUNS = 150;
const ASK = { projectedRev: 1_000_000, keepEntries: 60, olderThanMs: 30 * DAY_MS };
const target = { tenant: "default", sessionId: "long", actorId: "default_long", agent: "echo" };

/** Dies in the middle of an erasing: what comes after its second deleting transaction never reaches the store. */
class DyingState extends DaprState {
  #deletes = 0;
  override async transact(operations: readonly StateOperation[]): Promise<"committed" | "conflict"> {
    if (operations.some(({ op }) => op === "delete")) this.#deletes += 1;
    if (this.#deletes > 1) throw new Error("the host is dead");
    return await super.transact(operations);
  }
}

let test: TestStack;
let sidecar: Sidecar;
let offsetMs = 0;
const LONG_LIVED = { clock: { nowMs: () => Date.now() + offsetMs }, windowRounds: 3 };
beforeAll(async () => {
  test = await startTestStack({ probeApps: true, only: ["sessions"] });
  const env = test.stack.envOf("sessions");
  sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${env["DAPR_HTTP_PORT"] ?? ""}`, apiToken: env["DAPR_API_TOKEN"] });
});
afterAll(async () => {
  await sidecar.close();
  await test.close();
});

function prompt(n: number): Envelope {
  return { specversion: "1.0", id: `evt-${String(n)}`, source: "test", type: "com.docket.prompt.received.v1", subject: "long", data: JSON.stringify({ text: `question ${String(n)}` }) };
}

const opened = (state: SessionState): OpenSession => {
  if (state.status === "NEW") throw new Error("the session is gone");
  return state;
};

/** Another process folds what the store holds. */
function foldProblems(): string[] {
  const output = execFileSync(process.execPath, [join(REPO_ROOT, "test/support/fold-check.mjs"), join(test.dataDir, "state/sessions.db")], { encoding: "utf8" });
  return (JSON.parse(output) as { problems: string[] }).problems;
}

describe("a session of many runs, a month later", () => {
  it("is shortened, also where the host dies between checkpoint and deletes; folds to its state for another process, and goes on", async () => {
    let onEnded: () => void = () => undefined;
    const { service, store } = echoHost(new DyingState(sidecar, "session-store"), { ...LONG_LIVED, onEnded: () => { onEnded(); } });
    for (let n = 0; n < RUNS; n += 1) {
      const ended = new Promise<void>((resolve) => { onEnded = resolve; });
      await service.run(target.actorId, receiveEvent(service.source, target, prompt(n)));
      await ended;
    }
    const rested = await eventually("the session is at rest", async () => {
      const state = opened(await service.tick(target.actorId));
      return state.status === "IDLE" && state.outbox.length === 0 ? state : undefined;
    });
    offsetMs = 31 * DAY_MS;
    await service.compact(target.actorId, ASK);
    const dying = await eventually("the journal is compacted, and a part of it is erased", async () => {
      const state = opened(await service.turns.read(target.actorId));
      return state.erase !== undefined && (await store.readEntries(target.actorId, 2, 2)).length === 0 ? state : undefined;
    });
    await service.stop();
    const keptFromRev = dying.keptFromRev ?? 0;
    expect(keptFromRev).toBeGreaterThan(rested.rev - 100);
    expect((await store.readEntries(target.actorId, 102, keptFromRev - 1)).length, "the host died before it had erased all").toBeGreaterThan(0);
    expect(foldProblems()).toEqual([]);

    const other = echoHost(new DaprState(sidecar, "session-store"), { ...LONG_LIVED, onEnded: () => { onEnded(); } });
    await eventually("another host finishes the erasing", async () => (opened(await other.service.tick(target.actorId)).erase === undefined ? true : undefined));
    expect((await other.store.readEntries(target.actorId, 1, keptFromRev)).map(({ rev }) => rev)).toEqual([1, keptFromRev]);
    expect(foldProblems()).toEqual([]);

    // Old events are still known, readers are told, and the session takes new ones.
    const { decision } = await other.service.run(target.actorId, receiveEvent(other.service.source, target, prompt(0)));
    expect(decision).toMatchObject({ ok: false, code: "duplicate" });
    expect(await other.service.reads.journal(target.actorId, 0, 5)).toMatchObject({ fromRev: keptFromRev });
    const ended = new Promise<void>((resolve) => { onEnded = resolve; });
    await other.service.run(target.actorId, receiveEvent(other.service.source, target, prompt(RUNS)));
    await ended;
    expect(opened(await other.service.turns.read(target.actorId))).toMatchObject({ keptFromRev, totals: { modelCalls: RUNS + 1 } });
    expect(foldProblems()).toEqual([]);
    await other.service.stop();
  });
});
