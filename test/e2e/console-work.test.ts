/** A team's work in the web console, on the real stack and in a real browser: whose turn it is, two signatures, allowing a tool for a session, limits, many letters at once, and what is wrong with the installation (I4, I10). */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { anthropicReply } from "../contract/model/anthropic-wire.js";
import { axeFindings, type ScreenOptions } from "../support/browser.js";
import { REPO_ROOT } from "../support/cluster.js";
import { approveByKeys, goAndSettle, openCard, PHONE, pressTwice, pressUntil, sidewaysOf, startConsoleInBrowser, type ConsoleInBrowser } from "../support/console-browser.js";
import { eventsOf, eventually, freshSession, type Docket } from "../support/docket.js";

const XSS = "<img src=x onerror=\"window.hacked=1\">";

let world: ConsoleInBrowser;
let docket: Docket;
/** A model that costs something. */
let model: Server;

beforeAll(async () => {
  model = createServer((request, response) => {
    request.resume().on("end", () => {
      const { status, body } = anthropicReply({ kind: "answer", text: "Read, and paid for." }, "claude-sonnet-5-5");
      response.writeHead(status, { "content-type": "text/event-stream" }).end(body);
    });
  }).listen(0, "127.0.0.1");
  await once(model, "listening");
  world = await startConsoleInBrowser({
    fixtures: [{ folder: "desk-agent", name: "desk" }, { folder: "spender-agent", name: "spender" }], people: { ann: ["approver", "operator"], ben: ["approver"], vic: ["viewer"] },
    env: { all: { DOCKET_POLICIES_DIR: join(REPO_ROOT, "test/fixtures/desk-agent/policies") }, sessions: { ANTHROPIC_API_KEY: "test-key", ANTHROPIC_BASE_URL: `http://127.0.0.1:${String((model.address() as AddressInfo).port)}` } },
  });
  ({ docket } = world);
});
afterAll(async () => {
  await world.close();
  model.close();
  model.closeAllConnections();
});
afterEach(async () => { expect(await world.endTest()).toEqual([]); });

const screen = (who: string, options?: ScreenOptions, path?: string): Promise<Page> => world.screen(who, options, path);
const waiting = (text: string) => world.waiting(text, "desk");
const row = (page: Page, sessionId: string) => page.locator(".queue .row", { hasText: sessionId });
const runsEnded = async (sessionId: string) => eventsOf(await docket.journal(sessionId), "RunEnded");

describe("whose turn it is, and when to look again", () => {
  it("by keys: mine, given back, somebody's; their queue has it and the others' do not; texts stay texts", async () => {
    const { sessionId, approvalId } = await waiting("note carl hello");
    const [ann, ben] = [await screen("ann"), await screen("ben")];
    await row(ben, sessionId).waitFor();
    await openCard(ann, approvalId);
    await ann.keyboard.press("i");
    await ann.getByText("Turn of ann (you).").waitFor();
    await row(ben, sessionId).waitFor({ state: "detached" });
    await ben.goto("/approvals?view=all");
    await row(ben, sessionId).locator(".mark", { hasText: "ann" }).waitFor();
    await ann.keyboard.press("t");
    await ann.getByRole("dialog").getByLabel("Person, group or role").fill(`${XSS} team`);
    await ann.getByRole("dialog").getByRole("button", { name: "Assign", exact: true }).click();
    await ann.locator(".tending", { hasText: `Turn of ${XSS} team` }).waitFor();
    expect(await ann.evaluate("globalThis.hacked")).toBeUndefined();
    await ann.keyboard.press("t");
    await ann.getByRole("dialog").getByRole("button", { name: "approver" }).click();
    await ann.getByRole("dialog").getByLabel("Reason").fill("holiday");
    await ann.getByRole("dialog").getByRole("button", { name: "Assign", exact: true }).click();
    await ann.getByText("Turn of approver.").waitFor();
    await ben.goto("/approvals");
    await row(ben, sessionId).waitFor();
    await ann.getByText(/What happened so far/).click();
    await ann.getByText("ann assigned it to approver").waitFor();
    expect(eventsOf(await docket.journal(sessionId), "ApprovalAssigned").map(({ to, principal }) => `${String(to)} by ${principal?.id ?? ""}`)).toEqual(["ann by ann", `${XSS} team by ann`, "approver by ann"]);
    await ann.keyboard.press("x");
    await ann.getByLabel("Reason").fill("enough");
    await ann.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
    await ann.getByText("Rejected. The session has confirmed it").waitFor();
  });

  it("a snooze takes it out of the queue, and it comes back by itself, without a reload; a viewer can do neither", async () => {
    const { sessionId, approvalId } = await waiting("note dora hello");
    const page = await screen("ann");
    await openCard(page, approvalId);
    await page.keyboard.press("s");
    await page.getByRole("dialog").getByRole("button", { name: "1 hour" }).click();
    await page.getByText(/Snoozed: back in/).waitFor();
    await page.getByRole("link", { name: /^Snoozed/ }).click();
    await row(page, sessionId).waitFor();
    await openCard(page, approvalId);
    await row(page, sessionId).waitFor({ state: "detached" });
    await page.keyboard.press("s");
    await row(page, sessionId).waitFor();
    expect((await docket.console("POST", `/v1/approvals/${approvalId}/snooze`, { untilMs: Date.now() + 6_000 })).status).toBe(200);
    await row(page, sessionId).waitFor({ state: "detached", timeout: 6_000 });
    await row(page, sessionId).waitFor({ timeout: 20_000 });
    const vic = await screen("vic");
    await openCard(vic, approvalId);
    expect(await vic.locator(".tending button").count()).toBe(0);
    for (const key of ["i", "t", "s"]) await vic.keyboard.press(key);
    expect(await vic.getByRole("dialog").count()).toBe(0);
    expect(eventsOf(await docket.journal(sessionId), "ApprovalAssigned")).toEqual([]);
  });

  it("the list of keys names them all", async () => {
    const page = await screen("ann");
    await page.keyboard.press("?");
    const told = await page.getByRole("dialog").locator("dt").allInnerTexts();
    for (const key of ["o", "i", "t", "s", "a a", "m", "x", "r"]) expect(told).toContain(key);
  });
});

describe("two signatures", () => {
  it("who asked may not sign and is told why; the first is told who is missing, the second carries it out", async () => {
    const { sessionId, approvalId, argsDigest } = await waiting("move 1200");
    const dev = await screen("dev");
    await openCard(dev, approvalId);
    await dev.getByText("You cannot decide this: you asked for this yourself").waitFor();
    const [ann, ben] = [await screen("ann"), await screen("ben")];
    await openCard(ann, approvalId);
    expect(await ann.locator("button[data-kind]").allInnerTexts()).toEqual([expect.stringContaining("Approve"), expect.stringContaining("Reject")]);
    expect(await ann.getByText("Approve for this session").count()).toBe(0);
    await ann.getByText("Allowing the tool for the session: never for a high risk").waitFor();
    await ann.getByText("0 of 2 so far; 2 more are needed").waitFor();
    await ann.locator(".course", { hasText: "those who may decide are reminded (done)" }).waitFor();
    await ann.locator(".course .next-step", { hasText: "lead may decide too" }).waitFor();
    await ann.locator(".course", { hasText: "it is escalated to a person" }).waitFor();
    await approveByKeys(ann);
    await ann.getByText("More signatures are needed").waitFor();
    await ann.getByText("1 of 2 so far; 1 more is needed").waitFor();
    await ann.getByText("You cannot decide this: you have approved it; 1 more person is needed").waitFor();
    expect(eventsOf(await docket.journal(sessionId), "ToolCallDispatched")).toEqual([]);
    const again = await ann.evaluate(`fetch("/v1/approvals/${approvalId}/decisions", { method: "POST", headers: { "content-type": "application/json" }, body: '${JSON.stringify({ kind: "approve", version: 1, argsDigest })}' }).then((answer) => answer.json())`);
    expect(again).toMatchObject({ code: "already_decided", detail: expect.stringContaining("you have already signed (ann); 1 more person has to") as string });
    await openCard(ben, approvalId);
    await ben.locator(".quorum li", { hasText: "ann approved" }).waitFor();
    await row(ben, sessionId).locator(".mark", { hasText: "1 of 2" }).waitFor();
    await approveByKeys(ben);
    await ben.getByText("Approved. The session has confirmed it").waitFor();
    await eventually("the end", async () => (await runsEnded(sessionId))[0], 20_000);
    expect(eventsOf(await docket.journal(sessionId), "DecisionRecorded").map(({ principal, final }) => [principal.id, final])).toEqual([["ann", false], ["ben", true]]);
  });
});

describe("a tool allowed for a session", () => {
  it("is granted for what was ticked, lets like calls run, is listed with scope and end, and is revoked", async () => {
    const { sessionId, approvalId } = await waiting("note carl first");
    const page = await screen("ann");
    await openCard(page, approvalId);
    await page.keyboard.press("o");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("9007199254740993").first().waitFor();
    await dialog.locator(".tick", { hasText: "text" }).last().click();
    await dialog.getByLabel("For how many calls").fill("0");
    await dialog.getByText("is not a whole number").waitFor();
    await dialog.getByLabel("For how many calls").fill("3");
    await pressTwice(page, /Approve and allow/, /Approved\. The session has confirmed it/);
    await eventually("the end", async () => (await runsEnded(sessionId))[0], 20_000);
    await docket.ended(await docket.prompt(sessionId, "note carl second", { agent: "desk" }));
    expect(eventsOf(await docket.journal(sessionId), "ApprovalOpened")).toHaveLength(1);
    await page.goto(`/sessions/${sessionId}`);
    const listed = page.getByRole("region", { name: "Allowed for this session" });
    await listed.getByText('{"ticket":9007199254740993,"to":"carl"}').waitFor();
    await listed.getByText("2 calls left").waitFor();
    await docket.prompt(sessionId, "note dora third", { agent: "desk" });
    const other = await docket.openApproval(sessionId);
    expect(other.pending.args).toContain("dora");
    expect((await docket.decide(other, "reject", { text: "no" })).status).toBe(200);
    await listed.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("not any more");
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByText("Revoked: send_note asks again.").waitFor();
    await docket.prompt(sessionId, "note carl fourth", { agent: "desk" });
    expect((await docket.openApproval(sessionId)).pending.args).toContain("fourth");
    expect(eventsOf(await docket.journal(sessionId), "AllowanceEnded")).toMatchObject([{ reason: "revoked", note: "not any more", principal: { id: "ann" } }]);
  });
});

describe("a run that has used up its steps", () => {
  it("says so on its session's page, where it is raised or given up", async () => {
    const sessionId = freshSession("steps");
    await docket.prompt(sessionId, "read", { agent: "desk" });
    await docket.openApproval(sessionId);
    const page = await screen("ann", {}, `/sessions/${sessionId}`);
    const panel = page.getByRole("region", { name: "The run stands still" });
    await panel.getByText("The step limit is reached").waitFor();
    await panel.getByRole("button", { name: "Raise limits" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Raise and go on" }).click();
    await page.getByText("The steps are used up: give a new number.").waitFor();
    await page.getByRole("dialog").getByLabel("New number of steps").fill("2");
    await page.getByRole("dialog").getByRole("button", { name: "Raise and go on" }).click();
    await panel.getByText("changed nothing").waitFor();
    await panel.getByRole("button", { name: "Raise limits" }).click();
    await page.getByRole("dialog").getByLabel("New number of steps").fill("6");
    await page.getByRole("dialog").getByRole("button", { name: "Raise and go on" }).click();
    await eventually("the limit to be reached again", async () => eventsOf(await docket.journal(sessionId), "Escalated").length === 2 || undefined, 20_000);
    expect(eventsOf(await docket.journal(sessionId), "LimitsRaised")).toMatchObject([{ maxSteps: 6 }]);
    await eventually("the second question", async () => ((await docket.openApproval(sessionId)).pending.record.escalation === "step_limit" ? true : undefined), 20_000);
    await panel.getByRole("button", { name: "Give up" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("it reads for ever");
    await page.getByRole("dialog").getByRole("button", { name: "Give up" }).click();
    await panel.waitFor({ state: "detached" });
    expect((await runsEnded(sessionId)).map(({ outcome }) => outcome)).toEqual(["escalated"]);
  });
});

describe("a run that would cost more than its budget", () => {
  it("costs nothing while it stands still; it is raised on its session's page, reached again, raised to enough, and goes on to its end", async () => {
    const sessionId = freshSession("spender");
    await docket.prompt(sessionId, "read the book", { agent: "spender" });
    await docket.openApproval(sessionId);
    const page = await screen("ann", {}, `/sessions/${sessionId}`);
    const panel = page.getByRole("region", { name: "The run stands still" });
    await panel.getByText("The budget is used up").waitFor();
    await eventually("the window's title to say it", async () => (await page.title()).includes(`${sessionId}: Escalated`) || undefined);
    const raise = async (usd: string): Promise<void> => {
      await panel.getByRole("button", { name: "Raise limits" }).click();
      await page.getByRole("dialog").getByLabel("New budget of the run").fill(usd);
      await page.getByRole("dialog").getByLabel("Why (optional)").fill(`to ${usd}`);
      await page.getByRole("dialog").getByRole("button", { name: "Raise and go on" }).click();
    };
    await raise("0.00005");
    await panel.getByText("the budget is 0.0001 USD; raise it to more").waitFor();
    await raise("0.0002");
    await eventually("the budget to be reached again", async () => eventsOf(await docket.journal(sessionId), "Escalated").length === 2 || undefined, 60_000);
    expect((await docket.session(sessionId)).summary).toMatchObject({ costUsd: 0, modelCalls: 0 });
    await panel.getByText("of 0.0002 USD are spent").waitFor({ timeout: 60_000 });
    await raise("5");
    await panel.waitFor({ state: "detached", timeout: 60_000 });
    await page.locator(".line-good", { hasText: "Read, and paid for." }).waitFor({ timeout: 60_000 });
    expect(eventsOf(await docket.journal(sessionId), "LimitsRaised").map(({ budgetUsd }) => budgetUsd)).toEqual([0.0002, 5]);
    expect(eventsOf(await docket.journal(sessionId), "DecisionRecorded").map(({ kind, text }) => `${kind} ${text ?? ""}`)).toEqual(["raise to 0.0002", "raise to 5"]);
    expect((await runsEnded(sessionId)).map(({ outcome }) => outcome)).toEqual(["completed"]);
  });

  it("is stopped on its card, with a reason: the run ends, and no model was called", async () => {
    const { sessionId, approvalId } = await world.waiting("read another book", "spender");
    const page = await screen("ann");
    await page.goto(`/approvals/${approvalId}`);
    await page.getByRole("button", { name: "Give up" }).click();
    await page.getByRole("dialog").getByLabel("Reason").fill("not worth it");
    await page.getByRole("dialog").getByRole("button", { name: "Give up" }).click();
    await page.getByText("Given up. The session has confirmed it").waitFor();
    expect((await runsEnded(sessionId)).map(({ outcome, code, text }) => [outcome, code, text])).toEqual([["escalated", "budget", "not worth it"]]);
    expect((await docket.session(sessionId)).summary).toMatchObject({ costUsd: 0, modelCalls: 0 });
  });
});

describe("a rule", () => {
  it("is shown with everything that it has", async () => {
    const page = await screen("vic", {}, "/policies");
    const rule = page.locator(".rule", { hasText: "two-people" });
    for (const words of ["2 people have to approve", "may not decide (separation of duties)", "after 24h", "escalate: it is escalated to a person", "after 3s those who may decide are reminded", "after 6h lead may decide too, and is told", "never: its risk is high, and that is decided call by call"]) await rule.getByText(words).waitFor();
    await page.locator(".rule", { hasText: "notes-go-out" }).getByText("a person may allow the tool, where its risk is below high").waitFor();
  });
});

describe("many at once", () => {
  it("alike approvals are decided together: only what is ticked, two presses, each with its own verdict", async () => {
    const three = [await waiting("note erik one"), await waiting("note fay two"), await waiting("note gus three")];
    const [first, second, third] = three;
    const page = await screen("ann");
    await openCard(page, first?.approvalId ?? "");
    await page.getByRole("button", { name: /more approvals? of the same tool and rule/ }).click();
    const dialog = page.getByRole("dialog");
    const tick = (sessionId: string | undefined) => dialog.locator("li", { hasText: sessionId ?? "" }).getByRole("checkbox");
    await expect(dialog.getByRole("button", { name: "Approve 0" }).isDisabled()).resolves.toBe(true);
    await dialog.getByText("9007199254740993").first().waitFor();
    await tick(first?.sessionId).check();
    await tick(second?.sessionId).check();
    await dialog.getByRole("button", { name: "Approve 2" }).dblclick();
    await dialog.getByRole("button", { name: "Press again to approve 2" }).waitFor();
    for (const { sessionId } of three) expect(eventsOf(await docket.journal(sessionId), "DecisionRecorded")).toEqual([]);
    await pressUntil(dialog.getByRole("button", { name: /approve 2$/i }), dialog.locator(".verdict-word"), 2);
    await page.locator(".card .badge", { hasText: "decided" }).waitFor();
    expect(await dialog.locator(".verdict-word").allInnerTexts(), "they stay to be read when the card behind them is decided").toEqual(["approved", "approved"]);
    for (const { sessionId } of [first, second].flatMap((one) => one ?? [])) await eventually("its end", async () => (await runsEnded(sessionId))[0], 20_000);
    expect(eventsOf(await docket.journal(third?.sessionId ?? ""), "DecisionRecorded")).toEqual([]);
  });

  it("dead letters of one cause are counted, then discarded with a reason, or redriven", async () => {
    const letters = ["one", "two", "three"].map((word) => `${word}-${freshSession("x")}`);
    const die = async (type: string): Promise<void> => { for (const id of letters) await docket.test.callSidecar("gateway", "/v1.0/publish/tasks/agent.tasks.incoming", { method: "POST", body: JSON.stringify({ specversion: "1.0", id: `${type}-${id}`, source: "test", type, subject: id, data: {} }), headers: { "content-type": "application/cloudevents+json" } }); };
    await die("com.nobody.wants.this");
    const page = await screen("ann", {}, "/dead-letters");
    for (const id of letters) await row(page, id).waitFor();
    const group = page.locator(".group", { hasText: letters[0] ?? "" });
    await group.getByRole("button", { name: "Redrive all like these…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Reason").fill("once more");
    await dialog.getByRole("button", { name: "Count only" }).click();
    await dialog.getByText("3 dead letters of this kind").waitFor();
    await dialog.getByText("Nothing was sent.").waitFor();
    await dialog.getByRole("button", { name: "Redrive 3" }).click();
    await dialog.getByText("3 letters redriven").waitFor();
    await dialog.getByRole("button", { name: "Close" }).last().click();
    // What was redriven is as dead as the first time: letters of their own.
    await eventually("the redriven ones to die", async () => (await docket.deadLetters()).filter((item) => item.state === "dead" && letters.includes(item.letter.envelope?.subject ?? "")).length === 3 || undefined, 30_000);
    await group.getByRole("button", { name: "Discard all…" }).click();
    await expect(dialog.getByRole("button", { name: "Discard all", exact: true }).isDisabled()).resolves.toBe(true);
    await dialog.getByRole("button", { name: "Count only" }).click();
    await dialog.getByText("Nothing was discarded.").waitFor();
    await dialog.getByLabel("Reason").fill("a test");
    await dialog.getByRole("button", { name: /^Discard \d+$/ }).click();
    await dialog.getByText(/letters discarded/).waitFor();
    await dialog.getByRole("button", { name: "Close" }).last().click();
    for (const id of letters) await row(page, id).waitFor({ state: "detached" });
    const { body } = await docket.console("GET", "/v1/audit?limit=200");
    expect((body as { items: { action: string; outcome: string; reason: string }[] }).items.filter(({ action, outcome, reason }) => action === "dead-letter.discard" && outcome === "discarded" && reason === "a test").length).toBeGreaterThanOrEqual(3);
  });
});

describe("what runs, and what is wrong", () => {
  it("agents show the versions that live sessions run and who offers them; the System page has every process with its sidecar", async () => {
    const page = await screen("vic", {}, "/agents");
    const desk = page.getByRole("region", { name: "desk", exact: true });
    await desk.locator(".versions tr", { hasText: "installed" }).getByText("1 host").waitFor();
    await page.getByRole("region", { name: "Hosts" }).locator("tr", { hasText: "worker" }).getByText("send_note").waitFor();
    await page.goto("/system");
    const apps = page.getByRole("region", { name: "Apps" });
    for (const app of ["gateway", "sessions", "tools"]) await apps.locator("tr", { has: page.locator("b", { hasText: new RegExp(`^${app}$`) }) }).getByText("✓ well").waitFor();
    await page.locator(".checks li", { hasText: "subscriptions" }).first().waitFor();
    await page.getByText("Everything that the console can see answers").waitFor();
  });

  it("refusals of the gateway are in the audit", async () => {
    const refused = await fetch(`${docket.test.stack.urls.gateway ?? ""}/v1/prompts`, { method: "POST", body: "{}", headers: { authorization: "Bearer dk_0000_00000000000000000000", "content-type": "application/json" } });
    expect(refused.status).toBe(401);
    const page = await screen("dev", {}, "/audit");
    await page.locator("tbody tr", { hasText: "gateway POST" }).getByText("unauthenticated").first().waitFor({ timeout: 20_000 });
  });

  it("no worker is listening: said above every page with what to do, and no longer when one is back; calls wait and none is lost", async () => {
    const { sessionId, approvalId } = await waiting("note hal hello");
    const page = await screen("ann");
    await docket.test.stack.kill("tools");
    await openCard(page, approvalId);
    await approveByKeys(page);
    await page.getByText("Approved. The session has confirmed it").waitFor();
    const line = page.getByRole("link", { name: /No worker is listening/ });
    await line.waitFor({ timeout: 90_000 });
    await line.click();
    await page.locator(".notice", { hasText: "No worker is listening" }).getByText("Start the tools app").waitFor();
    await page.locator(".notice", { hasText: /waits? for a worker/ }).getByText("send_note: 1").waitFor();
    await docket.test.stack.start("tools");
    await page.getByText("Everything that the console can see answers").waitFor({ timeout: 90_000 });
    await eventually("the call to run", async () => (await runsEnded(sessionId))[0], 60_000);
  });
});

describe("what is new here", () => {
  it("the first list is asked for once, announced with the page", async () => {
    const page = await screen("ann", {}, "/sessions");
    await page.locator("table.list tbody tr").first().waitFor();
    const asked: string[] = [];
    page.on("request", (request) => { const { pathname } = new URL(request.url()); if (pathname.startsWith("/v1/sessions") || pathname === "/session") asked.push(pathname); });
    const [answer] = await Promise.all([page.waitForResponse((response) => new URL(response.url()).pathname === "/sessions"), page.goto("/sessions")]);
    expect(answer.headers()["link"]).toContain("rel=preload");
    await page.locator("table.list tbody tr").first().waitFor();
    expect(asked.slice(0, 2).sort()).toEqual(["/session", "/v1/sessions"]);
    // Two for who is signed in would be one announced and one asked.
    expect(asked.filter((path) => path === "/session")).toHaveLength(1);
  });

  it.each(["light", "dark"] as const)("axe has no serious finding, %s, and approvals fit a phone", async (colorScheme) => {
    const note = await waiting("note ida hello");
    const money = await waiting("move 7");
    const stuck = freshSession("steps");
    await docket.prompt(stuck, "read", { agent: "desk" });
    await docket.openApproval(stuck);
    const page = await screen("ann", { colorScheme });
    const findings: Record<string, string[]> = {};
    const check = async (name: string): Promise<void> => { const found = await axeFindings(page); if (found.length > 0) findings[name] = found; };
    await openCard(page, money.approvalId);
    await page.getByText("0 of 2 so far").waitFor();
    await check("quorum");
    await openCard(page, note.approvalId);
    for (const key of ["o", "t", "s"]) {
      await page.keyboard.press(key);
      await page.getByRole("dialog").waitFor();
      await check(`dialog ${key}`);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    for (const path of [`/sessions/${stuck}`, "/agents", "/system", "/approvals?view=snoozed"]) {
      await goAndSettle(page, path);
      await check(path);
    }
    await page.setViewportSize(PHONE);
    for (const approvalId of [note.approvalId, money.approvalId]) {
      await openCard(page, approvalId);
      expect(await sidewaysOf(page)).toEqual([]);
      await check(`phone ${approvalId}`);
    }
    await openCard(page, note.approvalId);
    await page.getByRole("button", { name: "Approve for this session…" }).click();
    await page.getByRole("dialog").waitFor();
    expect(await page.evaluate("document.querySelector('dialog').scrollWidth <= innerWidth")).toBe(true);
    await check("phone dialog");
    expect(findings).toEqual({});
  });
});
