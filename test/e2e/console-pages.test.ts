/** Pages in Chromium on a console whose sessions are fakes: what a page says of an address that it does not understand, and of a redrive that somebody else made first. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serializeEnvelope } from "../../src/contracts/cloudevent.js";
import { JOURNAL_APPENDED } from "../../src/contracts/journal.js";
import { DEAD_LETTERED, type DeadLetter } from "../../src/contracts/messages.js";
import { ensureDevKeys, loadSigner, loadTrust } from "../../src/platform/keys.js";
import { launchChromium, signIn } from "../support/browser.js";
import { REPO_ROOT } from "../support/cluster.js";
import { ACTOR, entryOf, messageOf, START_MS, startConsole, summaryOf, viewOf, type ConsoleWorld } from "../support/console-fakes.js";

let dir: string;
let world: ConsoleWorld;
let browser: Browser;
let page: Page;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-pages-"));
  await ensureDevKeys(dir);
  world = await startConsole({ signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) }, { webDir: join(REPO_ROOT, "dist", "web"), rateLimitPerMinute: 100_000 });
  const entries = [1, 2, 3].map((rev) => entryOf(rev, []));
  for (const entry of entries) expect(await world.console.handleJournal(messageOf(JOURNAL_APPENDED, { appended: [{ entry, summary: summaryOf({ rev: entry.rev }) }] }))).toBe("SUCCESS");
  world.sessions.journals.set(ACTOR, entries);
  world.sessions.views.set(ACTOR, { ...viewOf([]), summary: summaryOf({ rev: 3 }) });
  browser = await launchChromium();
  page = await (await browser.newContext({ baseURL: world.http.url })).newPage();
  await signIn(page, world.key(["admin"], { id: "ann" }));
});
afterAll(async () => {
  await browser.close();
  await world.close();
  rmSync(dir, { recursive: true });
});

describe("an address with a value that the page does not know", () => {
  const alert = () => page.locator("main [role=alert]").filter({ hasText: "The address has" });
  it.each([
    ["/sessions?status=WRONG", "status=WRONG, expected one of IDLE, ", "Shown: sessions of every status.", "/sessions?status=AWAITING_APPROVAL", "table.list tbody tr"],
    ["/sessions/ord-1?tab=state&rev=999", "rev=999, expected a whole number from 1 to 3", "Shown: the state at revision 3, the latest.", "/sessions/ord-1?tab=state&rev=2", ".state-at"],
    ["/sessions/ord-1?rev=x", "rev=x, expected a whole number from 1 to 3", "Shown: the whole story.", "/sessions/ord-1?rev=1", ".session-head"],
    ["/sessions/ord-1?tab=wrong", "tab=wrong, expected one of story, waterfall, journal, state", "Shown: the story.", "/sessions/ord-1?tab=journal", ".session-head"],
    ["/dead-letters?state=gone", "state=gone, expected one of dead, redriven, discarded", "Shown: letters that are dead.", "/dead-letters?state=discarded", "h1"],
    ["/costs?days=31", "days=31, expected one of 7, 30, 90", "Shown: the last 30 days.", "/costs?days=90", ".numbers"],
    ["/approvals?view=theirs", "view=theirs, expected one of mine, all, snoozed, decided", "Shown: what waits for you.", "/approvals?view=all", "h1"],
  ])("%s says so beside what it shows; with a right value it says nothing", async (odd, what, shown, right, there) => {
    await page.goto(odd);
    await page.locator(there).first().waitFor();
    await alert().waitFor();
    expect(await alert().textContent()).toContain(what);
    expect(await alert().textContent()).toContain(shown);
    await page.goto(right);
    await page.locator(there).first().waitFor();
    expect(await alert().count()).toBe(0);
  });
});

it("an edited redrive that comes second is told who was first, and keeps what was written", async () => {
  const event = serializeEnvelope({ specversion: "1.0", id: "e1", source: "/shop", type: "com.shop.order.placed", subject: "ord-1", tenant: "default", data: '{"total":1}' });
  const letter: DeadLetter = { deadLetterId: "dl_1", kind: "event", reason: "mailbox_full", message: "no room", topic: "agent.tasks.incoming", app: "sessions", tries: 1, tenant: "default", sessionId: "ord-1", payload: event, payloadEncoding: "utf8", firstFailedAtMs: START_MS, lastFailedAtMs: START_MS };
  expect(await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, letter))).toBe("SUCCESS");
  await page.goto("/dead-letters/dl_1");
  await page.locator(".detail").getByRole("button", { name: "Redrive" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Edit it first").click();
  await dialog.getByLabel("The event as it is sent, in your name").fill(event.replace('"total":1', '"total":2'));
  await dialog.getByLabel("Reason").fill("wrong total");
  expect(await world.call("POST", "/v1/dead-letters/dl_1/redrive", { key: world.key(["operator"], { id: "otto" }), body: { reason: "again" } })).toMatchObject({ status: 202 });
  // The page has seen it by now; the dialog still means the redrive that it was opened for.
  await page.locator(".detail .badge", { hasText: "redriven" }).waitFor();
  await dialog.getByRole("button", { name: "Redrive as edited" }).click();
  const alert = dialog.getByRole("alert");
  await alert.waitFor();
  expect(await alert.textContent()).toMatch(/redrive 1 of dead letter dl_1 was made by otto at .*nothing was sent.*Next: .*redrive 2/);
  expect(await dialog.getByLabel("Reason").inputValue()).toBe("wrong total");
  expect(world.tasks.sent).toHaveLength(1);
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.locator(".detail").getByRole("button", { name: "Redrive" }).click();
  await page.getByRole("dialog").getByText("It was redriven 1 time already; this is redrive 2, another event.").waitFor();
  await page.getByRole("dialog").getByLabel("Reason").fill("wrong total");
  await page.getByRole("dialog").getByRole("button", { name: "Redrive", exact: true }).click();
  await page.getByText("Redriven: the session gets it").waitFor();
  expect(world.tasks.sent.map(({ id }) => id)).toEqual(["redrive:dl_1:1", "redrive:dl_1:2"]);
});
