/**
 * The cost of a turn does not grow with the session (DESIGN 3): bytes written per turn from turn 10 to turn 2,000, and the
 * store time of taking up such a session again. The session host runs in this process, on the real sidecar's state store, so
 * that every byte it writes and every read can be counted.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Envelope } from "../../src/contracts/cloudevent.js";
import { Sidecar } from "../../src/dapr/sidecar.js";
import { DaprState, type StateOperation } from "../../src/dapr/state.js";
import { transcriptOf } from "../../src/session/core/transcript.js";
import { receiveEvent } from "../../src/session/host/intake.js";
import { echoHost } from "../support/echo-host.js";
import { startTestStack, type TestStack } from "../support/cluster.js";

const TURNS = 2_000;

class CountingState extends DaprState {
  readonly bytes: number[] = [];
  readMs = 0;
  override async transact(operations: readonly StateOperation[]): Promise<"committed" | "conflict"> {
    this.bytes.push(operations.reduce((sum, operation) => sum + (operation.op === "put" ? Buffer.byteLength(operation.value) : 0), 0));
    return await super.transact(operations);
  }
  override async get(key: string) { return await this.#timed(() => super.get(key)); }
  override async bulkGet(keys: readonly string[]) { return await this.#timed(() => super.bulkGet(keys)); }
  async #timed<T>(read: () => Promise<T>): Promise<T> {
    const started = performance.now();
    try { return await read(); } finally { this.readMs += performance.now() - started; }
  }
}

let test: TestStack;
let sidecar: Sidecar;

beforeAll(async () => {
  test = await startTestStack({ probeApps: true, only: ["sessions"] });
  const env = test.stack.envOf("sessions");
  sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${env["DAPR_HTTP_PORT"] ?? ""}`, apiToken: env["DAPR_API_TOKEN"] });
});
afterAll(async () => {
  await sidecar.close();
  await test.close();
});

const target = { tenant: "default", sessionId: "long", actorId: "default_long", agent: "echo" };

function prompt(n: number): Envelope {
  return { specversion: "1.0", id: `evt-${String(n)}`, source: "test", type: "com.docket.prompt.received.v1", subject: "long", data: JSON.stringify({ text: `question number ${String(n).padStart(6, "0")} ${"x".repeat(200)}` }) };
}

const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;

describe("a session of two thousand turns", () => {
  it("writes as many bytes per turn at the end as at the start, and is taken up again in under 50 ms of store time", async () => {
    const state = new CountingState(sidecar, "session-store");
    let onEnded: () => void = () => undefined;
    const { service } = echoHost(state, { onEnded: () => { onEnded(); } });
    for (let n = 0; state.bytes.length < TURNS; n += 1) {
      const ended = new Promise<void>((resolve) => { onEnded = resolve; });
      const outcome = await service.run(target.actorId, receiveEvent(service.source, target, prompt(n)));
      if (!outcome.decision.ok) throw new Error(`event ${String(n)} was refused: ${outcome.decision.code} ${outcome.decision.message}`);
      await ended;
    }
    await service.stop();
    // A run of this session is three turns of different weight, so whole runs are compared. The short rings (six ended
    // runs, twelve rounds of the window) are full by turn 40; revisions and counters gain digits, nothing else grows.
    const early = median(state.bytes.slice(10, 70));
    const late = median(state.bytes.slice(-60));
    process.stderr.write(`[cost] bytes per turn, median: turns 10-70 ${String(early)}, turns 500-560 ${String(median(state.bytes.slice(500, 560)))}, last 60 of ${String(state.bytes.length)} ${String(late)}; largest ${String(Math.max(...state.bytes))}\n`);
    expect(late).toBeLessThan(early * 1.15);
    expect(Math.max(...state.bytes)).toBeLessThan(16 * 1024);

    const times: number[] = [];
    for (let again = 0; again < 5; again += 1) {
      const cold = new CountingState(sidecar, "session-store");
      const { service: fresh } = echoHost(cold);
      const loaded = await fresh.turns.read(target.actorId);
      if (loaded.status === "NEW") throw new Error("the session is gone");
      const entries = await fresh.turns.readEntries(target.actorId, loaded.window.fromRev, loaded.rev);
      expect(transcriptOf(entries, loaded.window.fromRev).length).toBeGreaterThan(0);
      times.push(cold.readMs);
    }
    process.stderr.write(`[cost] store time of taking the session up again, ms: ${times.map((ms) => ms.toFixed(1)).join(", ")}\n`);
    expect(median(times)).toBeLessThan(50);
  });
});
