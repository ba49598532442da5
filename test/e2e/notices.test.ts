/**
 * Notices on the real stack: an approval appears in (a stand-in for) Slack, Discord and at a webhook; a signed click approves it, its effect happens once, every copy
 * is locked; and the console is killed -9 in between, with nothing lost and nothing counted anew (I4, I5, I6, I10).
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actorIdOf } from "../../src/contracts/ids.js";
import { NoticeWebhook, type NoticeItem } from "../../src/contracts/notices.js";
import type { Browser } from "playwright-core";
import { axeFindings, launchChromium, openScreen } from "../support/browser.js";
import { foldCheck } from "../support/checks.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { buttonOf, noticesText, SLACK_SECRET, slackCall, slackPayload, startReceiver, WEBHOOK_SECRET, type Received, type Receiver } from "../support/notices.js";

let home: string;
let receiver: Receiver;
let docket: Docket;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "docket-notices-"));
  receiver = await startReceiver();
  writeFileSync(join(home, "notices.yaml"), noticesText());
  writeFileSync(join(home, "hook-secret"), `${WEBHOOK_SECRET}\n`);
  docket = await startDocket({ dataDir: join(home, "data"), extraEnv: { console: {
    DOCKET_NOTICES_FILE: join(home, "notices.yaml"), DOCKET_NOTICE_SECRET_SLACK_URL: `${receiver.url}/slack/services/T0/B0/secret-path`, DOCKET_NOTICE_SECRET_DISCORD_URL: `${receiver.url}/discord/api/webhooks/1/secret-path`,
    DOCKET_NOTICE_SECRET_HOOK_URL: `${receiver.url}/hook`, DOCKET_NOTICE_SECRET_HOOK_SECRET_FILE: join(home, "hook-secret"), DOCKET_NOTICE_SECRET_SLACK_SIGNING: SLACK_SECRET,
  } } });
});
afterAll(async () => {
  await docket.close();
  await receiver.close();
  rmSync(home, { recursive: true, force: true });
});

const console_ = (): string => docket.test.stack.urls.console ?? "";
const refundsOf = (sessionId: string): unknown[] => {
  try {
    return readFileSync(join(docket.dataDir, "workspaces", actorIdOf("default", sessionId), "refunds.jsonl"), "utf8").trim().split("\n");
  } catch {
    return [];
  }
};
const told = (what: string, path: string, words: string): Promise<Received> => receiver.until(what, (request) => request.path.startsWith(path) && request.text.includes(words), 60_000);
const noticesOf = async (approvalId: string): Promise<NoticeItem[]> => ((await docket.console("GET", `/v1/approvals/${approvalId}/notices`)).body as { items: NoticeItem[] }).items;
const click = async (card: Received, user: string): Promise<Response> => {
  const { text, headers } = slackCall(slackPayload({ user, action: "approve", value: buttonOf(card, "approve") ?? "", responseUrl: `${receiver.url}/slack/actions/secret` }));
  return fetch(`${console_()}/hooks/slack`, { method: "POST", headers, body: text });
};
/** The public port answers. */
const consoleUp = (): Promise<true> => eventually("the console is back", async () => ((await fetch(`${console_()}/healthz`)).ok ? true as const : undefined), 60_000);

describe("an approval that is told outside", () => {
  it("outlives a receiver that is down and a console that is killed, is approved by a signed click, has its effect once, and locks every copy", async () => {
    const session = freshSession("notice");
    receiver.answer = ({ path }) => (path.startsWith("/hook") ? { status: 503 } : { status: 200, text: path.startsWith("/discord") ? '{"id":"424242"}' : "ok" });
    const accepted = await docket.prompt(session, "refund 1200 cents of order 1001");
    const { pending: { record } } = await docket.openApproval(session);
    const card = await told("the card in Slack", "/slack/services", record.approvalId);
    expect(card.text).toContain("1200");
    await told("the card in Discord", "/discord", record.approvalId);
    const failed = await eventually("attempts at the webhook", async () => { const found = (await noticesOf(record.approvalId)).find(({ channel, attempts }) => channel === "hook" && attempts >= 2); return found; }, 60_000);

    await docket.test.stack.restart("console");
    await consoleUp();
    const after = (await noticesOf(record.approvalId)).find(({ channel }) => channel === "hook");
    expect(after?.state).toBe("waiting");
    expect(after?.attempts, "attempts go on where they were").toBeGreaterThanOrEqual(failed.attempts);
    expect(receiver.received.filter(({ path, text }) => path.startsWith("/slack/services") && text.includes(record.approvalId)), "what was sent is not sent again").toHaveLength(1);

    expect(await (await click(card, "U0NOBODY")).json()).toEqual({ verdict: "not_an_approver" });
    expect((await click({ ...card, body: { blocks: [] } }, "U0ANN")).status).toBe(401);
    expect(refundsOf(session)).toEqual([]);
    const [reply] = await Promise.all([click(card, "U0ANN"), click(card, "U0ANN")]);
    expect(reply.status).toBe(200);
    // Killed while copies are to be locked.
    await docket.test.stack.restart("console");
    expect((await docket.ended(accepted, 60_000)).outcome).toBe("completed");
    await consoleUp();
    receiver.answer = ({ path, method }) => ({ status: 200, text: path.startsWith("/discord") && method === "POST" ? '{"id":"424243"}' : "ok" });

    await told("Slack is told", "/slack/services", "approved by ann");
    expect(await told("the clicked copy is replaced", "/slack/actions", "approved by ann")).toMatchObject({ body: { replace_original: true } });
    expect((await told("Discord's copy is locked", "/discord/api/webhooks/1/secret-path/messages/424242", "approved by ann")).method).toBe("PATCH");
    const settled = await told("the webhook is told", "/hook", '"approval.settled"');
    expect(NoticeWebhook.parse(new Webhook(WEBHOOK_SECRET).verify(settled.text, { ...settled.headers })).data).toMatchObject({ approvalId: record.approvalId, state: "decided", decidedBy: "ann", decision: "approve" });
    expect(refundsOf(session)).toHaveLength(1);
    expect(eventsOf(await docket.journal(session), "DecisionRecorded")).toMatchObject([{ approvalId: record.approvalId, via: "slack", principal: { id: "ann" }, final: true }]);
    expect((await noticesOf(record.approvalId)).filter(({ channel }) => channel === "hook").map(({ event, state }) => `${event} ${state}`)).toEqual(["opened overtaken", "settled sent"]);
    const late = await click(card, "U0ANN");
    expect([late.status, await late.json()]).toEqual([200, { verdict: "already_decided" }]);
    expect(refundsOf(session)).toHaveLength(1);
  });

  it("by a one-time link: fetching it decides nothing; in a browser two presses decide, once", async () => {
    const browser: Browser = await launchChromium();
    try {
      const session = freshSession("link");
      const accepted = await docket.prompt(session, "refund 700 cents of order 1002");
      const { pending: { record } } = await docket.openApproval(session);
      const { links: [link] } = NoticeWebhook.parse((await told("the webhook", "/hook", record.approvalId)).body).data;
      expect((await fetch(link!.url, { headers: { accept: "text/html" } })).status).toBe(200);
      const screen = await openScreen(browser, console_(), { width: 390, height: 844 });
      const { page, wrongs } = screen;
      await page.goto(`${new URL(link!.url).pathname}${new URL(link!.url).hash}`);
      await page.getByText("Sent to ann").waitFor();
      expect(page.url()).toBe(`${console_()}/confirm`);
      await expect(page.locator(".json").innerText()).resolves.toContain('"amountCents": 700');
      expect(await axeFindings(page)).toEqual([]);
      expect(await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")).toBe(true);
      await page.getByRole("button", { name: "Approve" }).click();
      expect(refundsOf(session)).toEqual([]);
      // Presses that are close together are one double click, and do nothing.
      await eventually("the second press", async () => {
        const again = page.getByRole("button", { name: "Press again to approve" });
        if (await again.count() > 0) await again.click();
        return await page.getByText("It is approved").count() > 0 ? true : undefined;
      }, 30_000);
      expect((await docket.ended(accepted)).outcome).toBe("completed");
      expect(refundsOf(session)).toHaveLength(1);
      const token = new URL(link!.url).hash.slice(1);
      const again = await fetch(`${console_()}/v1/links/decisions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ token, approvalId: record.approvalId, kind: "approve", version: record.version, argsDigest: record.argsDigest }) });
      expect([again.status, ((await again.json()) as { code: string }).code]).toEqual([409, "link_used"]);
      expect(eventsOf(await docket.journal(session), "DecisionRecorded")).toMatchObject([{ via: "link", principal: { id: "ann" } }]);
      expect(wrongs).toEqual([]);
      await screen.close();
    } finally {
      await browser.close();
    }
  });

  it("leaves no secret in logs, and journals that fold to their states", () => {
    const log = readFileSync(join(docket.dataDir, "logs", "console.log"), "utf8");
    expect(log).toContain("a notice could not be delivered yet");
    for (const secret of ["secret-path", SLACK_SECRET, WEBHOOK_SECRET]) expect(log).not.toContain(secret);
    expect(foldCheck(docket).problems).toEqual([]);
  });
});
