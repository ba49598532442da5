/**
 * A damaged database: entries of stored sessions are changed or lost while the product is stopped. After the start each of them is
 * quarantined with a reason that the CLI and the web console show, the others work on, and an administrator releases or deletes it.
 */
import Database from "better-sqlite3";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actorIdOf } from "../../src/contracts/ids.js";
import { launchChromium, openScreen, signIn } from "../support/browser.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { StoreView } from "../support/store-view.js";

let docket: Docket;
let browser: Browser;
beforeAll(async () => {
  docket = await startDocket();
  browser = await launchChromium();
});
afterAll(async () => {
  await browser.close();
  await docket.close();
});

const rest = (id: string) => eventually(`session ${id} is at rest`, () => {
  const state = new StoreView(docket.dataDir).session(id);
  return state?.status === "IDLE" && state.outbox.length === 0 && !state.guard.armed ? state : undefined;
}, 40_000);

describe("a session whose stored journal was damaged while everything was stopped", () => {
  it("is quarantined and shown; the others work on; events meanwhile are dead letters; it is released, closed and deleted", async () => {
    const [gap, changed, sound] = [freshSession("gap"), freshSession("changed"), freshSession("sound")];
    for (const id of [gap, changed, sound]) await docket.ended(await docket.prompt(id, "hello"));
    const states = await Promise.all([gap, changed, sound].map(rest));

    await docket.test.stack.killAll("SIGKILL");
    const db = new Database(join(docket.dataDir, "state/sessions.db"));
    const key = (id: string, rev: number): string => `journal:${actorIdOf("default", id)}:${String(rev).padStart(12, "0")}`;
    expect(db.prepare("DELETE FROM state WHERE key = ?").run(key(gap, (states[0]?.rev ?? 0) - 1)).changes).toBe(1);
    const last = key(changed, states[1]?.rev ?? 0);
    const { value } = db.prepare("SELECT value FROM state WHERE key = ?").get(last) as { value: string };
    expect(db.prepare("UPDATE state SET value = ? WHERE key = ?").run(JSON.stringify({ ...JSON.parse(value) as object, digest: "0".repeat(64) }), last).changes).toBe(1);
    db.close();
    await docket.test.stack.startAll();

    // Whatever comes meanwhile has one outcome: a dead letter that can be redriven.
    for (const id of [gap, changed]) {
      const outcome = await docket.ended(await docket.prompt(id, "are you well?"), 60_000);
      expect(outcome).toMatchObject({ outcome: "dead_lettered", code: "session_quarantined" });
    }
    expect((await docket.ended(await docket.prompt(sound, "and you?"), 60_000)).outcome).toBe("completed");
    expect((await docket.session(gap)).summary.quarantine).toMatchObject({ reason: "journal_gap" });
    expect((await docket.session(changed)).summary.quarantine).toMatchObject({ reason: "journal_digest" });

    const screen = await openScreen(browser, docket.test.stack.urls.console ?? "");
    const { page, wrongs } = screen;
    await signIn(page, docket.apiKey, `/sessions/${encodeURIComponent(gap)}`);
    await page.getByText("In quarantine (journal_gap).").waitFor();
    await page.getByRole("button", { name: "Release" }).click();
    const confirm = page.getByRole("button", { name: "Release the session" });
    expect(await confirm.isDisabled()).toBe(true);
    await page.getByLabel("Reason").fill("looked at: the entry was not needed");
    await confirm.click();
    await eventually("the session is released", async () => ((await docket.session(gap)).summary.quarantine === undefined ? true : undefined));
    expect((await docket.ended(await docket.prompt(gap, "again"), 60_000)).outcome).toBe("completed");
    expect(wrongs).toEqual([]);
    await screen.close();
    expect(eventsOf(await docket.journal(gap), "SessionReleased")).toMatchObject([{ reason: "looked at: the entry was not needed" }]);

    const order = async (what: string): Promise<number> => (await docket.console("POST", `/v1/sessions/${changed}/${what}`, { reason: "given up" })).status;
    expect(await order("delete")).toBe(409);
    expect(await order("close")).toBe(202);
    await eventually("the session is closed", async () => ((await docket.session(changed)).summary.status === "CLOSED" ? true : undefined), 30_000);
    expect(await order("delete")).toBe(202);
    await eventually("the session is deleted", () => (new StoreView(docket.dataDir).session(changed)?.status === "DELETED" ? true : undefined), 30_000);
    expect((await docket.console("GET", `/v1/sessions/${changed}`)).status).toBe(404);
  });
});
