/**
 * The short form of `npm run chaos`: one round each of a few faults that the kill matrix (kills.test.ts) does not know, judged by
 * the same checks. `DOCKET_CHAOS_SEED` repeats a run.
 */
import { afterAll, beforeAll, expect, it } from "vitest";
import { planOf } from "../chaos/plan.js";
import { render, reportOf } from "../chaos/report.js";
import { runPlan } from "../chaos/run.js";
import { World } from "../chaos/world.js";

const SEED = Number(process.env["DOCKET_CHAOS_SEED"] ?? Date.now() % 1_000_000);
const FAULTS = ["boundary:worker.after-effect", "boundary:gateway.after-inbox-row", "duplicate:tasks", "drop:tasks", "drop:tools", "clock:host"];
/** Just enough for each of them once, by the plan's own reckoning. */
const MINUTES = 0.9;

let world: World | undefined;
beforeAll(async () => { world = await World.start({ profile: "embedded", keep: process.env["DOCKET_KEEP_TEST_DATA"] === "1", clocks: true, disk: false, say: (line) => { console.log(line); } }); });
afterAll(async () => { await world?.close(); });

it("nothing is lost, doubled or out of order, whatever happens at the seams", async () => {
  console.log(`chaos: seed ${String(SEED)}`);
  const plan = planOf({ seed: SEED, minutes: MINUTES, profile: "embedded", only: FAULTS });
  expect(plan.rounds.map((round) => round.fault.name).sort()).toEqual([...FAULTS].sort());
  const { evidence, breaches } = await runPlan(world!, plan, { say: (line) => { console.log(line); }, stopped: () => false });
  const report = reportOf(evidence, breaches, { command: `DOCKET_CHAOS_SEED=${String(SEED)} npx vitest run --project e2e test/e2e/chaos.test.ts`, seed: SEED, profile: "embedded", skipped: [] });
  console.log(render(report));
  expect(report.breaches).toEqual([]);
  expect(report.onTwoWorkers).toBeGreaterThan(0);
});
