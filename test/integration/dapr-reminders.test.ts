/** The facts about reminders that the code relies on (docs/dapr-facts.md), each on a real daprd and scheduler. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SESSION_ACTOR_TYPE } from "../../src/contracts/channels.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import { DaprReminders } from "../../src/dapr/reminders.js";
import { callSession } from "../../src/dapr/sessions-client.js";
import { Sidecar } from "../../src/dapr/sidecar.js";
import { eventually, startTestStack, type TestStack } from "../support/cluster.js";
import { freshSession } from "../support/docket.js";

interface Call { readonly method: string; readonly path: string; readonly body: string; readonly atMs: number }

let cluster: TestStack;
let sidecar: Sidecar;
let reminders: DaprReminders;

beforeAll(async () => {
  cluster = await startTestStack({ probeApps: true, only: ["sessions"] });
  const env = cluster.stack.envOf("sessions");
  sidecar = new Sidecar({ baseUrl: `http://127.0.0.1:${String(env["DAPR_HTTP_PORT"])}`, apiToken: env["DAPR_API_TOKEN"] });
  reminders = new DaprReminders(sidecar);
});
afterAll(async () => {
  await sidecar.close();
  await cluster.close();
});

const pathOf = (actorId: string, method: string): string => `/actors/${SESSION_ACTOR_TYPE}/${actorId}/method/${method}`;
const calls = async (): Promise<Call[]> => await (await cluster.callApp("sessions", "/calls")).json() as Call[];
const ticks = async (actorId: string, name: string): Promise<Call[]> => (await calls()).filter(({ path }) => path === pathOf(actorId, `remind/${name}`));
const ticked = (actorId: string, name: string, times = 1): Promise<Call[]> => eventually(`reminder ${name} of ${actorId} has fired ${String(times)} times`, async () => {
  const got = await ticks(actorId, name);
  return got.length >= times ? got : undefined;
}, 30_000);
const behave = async (path: string, answer: { code?: number; delayMs?: number }): Promise<void> => { await cluster.callApp("sessions", "/behave", { method: "POST", body: JSON.stringify({ channel: path, ...answer }) }); };
const SOON = { dueMs: 1_000, periodMs: 2_000 };
const LATER = { dueMs: 3_600_000, periodMs: 3_600_000 };

describe("a reminder", () => {
  it.each([{ name: "an id as short as one letter", actorId: "Q" }, { name: "a hashed id", actorId: actorIdOf("default", "order/ü 1") }, { name: "an id of 64 letters of all kinds", actorId: "A_b-9".padEnd(64, "x") }])(
    "7.5: of $name fires again and again, its name in the path and its data as it was, JSON text", async ({ actorId }) => {
      const data = JSON.stringify({ purpose: "guard", generation: 7, name: "guard-7", text: "ü \"quoted\" <&>" });
      await reminders.set(actorId, "guard-7", { ...SOON, data });
      for (const { body } of await ticked(actorId, "guard-7", 2)) expect((JSON.parse(body) as { data: unknown }).data).toBe(data);
      await reminders.remove(actorId, "guard-7");
    });

  it("goes on after a callback that failed: 1.14 drops none", async () => {
    const actorId = freshSession("failing");
    await behave(pathOf(actorId, "remind/r"), { code: 500 });
    await reminders.set(actorId, "r", { dueMs: 1_000, periodMs: 1_000, data: "{}" });
    await ticked(actorId, "r", 5);
    await reminders.remove(actorId, "r");
  });

  it("that is removed fires no more; removing one that is not there is fine", async () => {
    const [gone, marker] = [freshSession("gone"), freshSession("marker")];
    await reminders.set(gone, "r", { dueMs: 2_000, periodMs: 1_000, data: "{}" });
    await reminders.remove(gone, "r");
    await reminders.remove(gone, "r");
    await reminders.set(marker, "r", { dueMs: 2_000, periodMs: 1_000, data: "{}" });
    await ticked(marker, "r", 2);
    expect(await ticks(gone, "r")).toEqual([]);
    await reminders.remove(marker, "r");
  });

  it("cannot be removed from inside its own callback: the removal waits for the callback", async () => {
    const actorId = freshSession("inside");
    await behave(pathOf(actorId, "remind/r"), { delayMs: 4_000 });
    // Not due again meanwhile: a removal at that very moment can lock the scheduler of 1.14 for good.
    await reminders.set(actorId, "r", { dueMs: 1_000, periodMs: LATER.periodMs, data: "{}" });
    const [first] = await ticked(actorId, "r");
    await reminders.remove(actorId, "r");
    expect(Date.now() - first!.atMs).toBeGreaterThan(3_500);
  });

  it("that is set again while its callback runs stops every other reminder until the callback has returned", async () => {
    const [changed, other] = [freshSession("changed"), freshSession("other")];
    await behave(pathOf(changed, "remind/r"), { delayMs: 8_000 });
    await reminders.set(changed, "r", { dueMs: 1_000, periodMs: 3_600_000, data: "{}" });
    const [first] = await ticked(changed, "r");
    await reminders.set(changed, "r", { ...LATER, data: "{}" });
    await reminders.set(other, "r", { ...SOON, data: "{}" });
    const [late] = await ticked(other, "r");
    expect(late!.atMs - first!.atMs).toBeGreaterThan(7_000);
    for (const actorId of [changed, other]) await reminders.remove(actorId, "r");
  });
});

describe("an actor call", () => {
  it("7.3: that fails in the app reaches its caller as an error, never as an answer", async () => {
    const actorId = freshSession("throws");
    await behave(pathOf(actorId, "ping"), { code: 500 });
    await expect(callSession(sidecar, actorId, "ping", {})).rejects.toMatchObject({ code: "actor_unavailable", retryable: true });
    await behave(pathOf(actorId, "ping"), {});
    // The probe app answers without the token: for the caller that is no answer either (7.10).
    await expect(callSession(sidecar, actorId, "ping", {})).rejects.toMatchObject({ code: "actor_unavailable" });
  });
});
