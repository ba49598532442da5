/** The web console on the real stack, in a real browser: careful decisions are quick, careless ones do not happen, and what is shown is what is so (I4, I5, I10). */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { actorIdOf, argsDigest } from "../../src/contracts/ids.js";
import { createApiKey, writeApiKeyFile } from "../../src/platform/apikeys.js";
import { axeFindings, launchChromium, openScreen, signIn, type Screen, type ScreenOptions } from "../support/browser.js";
import { REPO_ROOT } from "../support/cluster.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { agentsWith } from "../support/fixture-agents.js";

const PHONE = { width: 390, height: 844 };
const INTRUDERS = '({ hacked: globalThis.hacked, made: document.querySelectorAll("main img, main script, main iframe, main [onerror]").length })';
const XSS = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";

let home: string;
let docket: Docket;
let browser: Browser;
const keys: Record<string, string> = {};
const screens: Screen[] = [];

beforeAll(async () => {
  mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
  home = mkdtempSync(join(REPO_ROOT, ".docket/web-"));
  const { agentsDir, scriptsDir } = await agentsWith(home, { folder: "parcel-agent", name: "parcels" }, ["assistant", "order-triage"]);
  const dataDir = join(home, "data");
  mkdirSync(join(dataDir, "keys"), { recursive: true });
  const people = { ann: ["approver"], ben: ["approver"], vic: ["viewer"] };
  const records = Object.entries(people).map(([principalId, roles]) => {
    const { key, record } = createApiKey({ tenant: "default", principalId, class: "person", roles, scopes: ["*"] });
    keys[principalId] = key;
    return record;
  });
  await writeApiKeyFile(join(dataDir, "keys", "api-keys.json"), records);
  docket = await startDocket({ dataDir, extraEnv: { all: { DOCKET_AGENTS_DIR: agentsDir, DOCKET_SCRIPTS_DIR: scriptsDir } } });
  keys["dev"] = docket.apiKey;
  browser = await launchChromium();
});
afterAll(async () => {
  await browser.close();
  await docket.close();
  rmSync(home, { recursive: true, force: true });
});
afterEach(async () => {
  const wrongs = screens.flatMap((screen) => screen.wrongs);
  for (const screen of screens.splice(0)) await screen.close();
  expect(wrongs).toEqual([]);
});

const url = (): string => docket.test.stack.urls.console ?? "";
async function screen(who: string, options: ScreenOptions = {}, path = "/approvals"): Promise<Page> {
  const opened = await openScreen(browser, url(), options);
  screens.push(opened);
  await signIn(opened.page, keys[who] ?? "", path);
  return opened.page;
}

/** A session whose parcel waits for a decision, and its approval. */
async function waitingParcel(id = "9007199254740993", street = "Hafenstr. 1"): Promise<{ sessionId: string; approvalId: string; argsDigest: string }> {
  const sessionId = freshSession("parcel");
  await docket.prompt(sessionId, `ship ${id} to ${street}`, { agent: "parcels" });
  const { pending: { record } } = await docket.openApproval(sessionId);
  return { sessionId, approvalId: record.approvalId, argsDigest: record.argsDigest };
}

const shipped = (sessionId: string): string[] => readFileSync(join(docket.dataDir, "workspaces", actorIdOf("default", sessionId), "shipped.jsonl"), "utf8").trim().split("\n");
const decisions = async (sessionId: string) => eventsOf(await docket.journal(sessionId), "DecisionRecorded");
const resultOf = (sessionId: string) => eventually(`a tool result of ${sessionId}`, async () => eventsOf(await docket.journal(sessionId), "ToolResultRecorded")[0], 30_000);
const openCard = async (page: Page, approvalId: string): Promise<void> => {
  await page.goto(`/approvals/${approvalId}`);
  await page.getByText("this browser has checked it").waitFor();
};

describe("from a risky call to its approved effect", () => {
  it("by keyboard: one press arms, held keys, Enter and a moved selection do nothing, two presses approve exactly what was shown", async () => {
    const parcel = await waitingParcel();
    const page = await screen("ann");
    await openCard(page, parcel.approvalId);
    const card = page.locator(".card");
    await expect(card.locator(".json").first().innerText()).resolves.toContain('"id": 9007199254740993');
    for (const words of ["▲ high risk", parcel.sessionId, "Parcel 9007199254740993 goes to", "untrusted", "effects-once", "ship 9007199254740993 to Hafenstr. 1"]) await card.getByText(words).first().waitFor();
    await page.keyboard.press("Enter");
    for (const key of ["g", "a"]) await page.keyboard.press(key);
    await page.waitForURL(/\/approvals/);
    expect(await page.getByText("Press again to approve").count()).toBe(0);
    await openCard(page, parcel.approvalId);
    await page.keyboard.press("a");
    await page.getByText("Press again to approve").waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Press again to approve" }).press("Enter");
    await page.evaluate('document.dispatchEvent(new KeyboardEvent("keydown", { key: "a", repeat: true }))');
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Approve" }).waitFor();
    expect(await decisions(parcel.sessionId)).toEqual([]);
    await page.keyboard.press("a");
    await page.keyboard.press("a");
    await page.getByText("Approved. The session has confirmed it").waitFor();
    expect((await resultOf(parcel.sessionId)).status).toBe("succeeded");
    const [decision] = await decisions(parcel.sessionId);
    expect(decision).toMatchObject({ kind: "approve", via: "web", principal: { id: "ann" } });
    expect(shipped(parcel.sessionId).map(argsDigest)).toEqual([parcel.argsDigest]);
  });

  it("on a phone, by touch: a double tap is one press", async () => {
    const parcel = await waitingParcel();
    const page = await screen("ann", PHONE);
    await page.locator(`a[href="/approvals/${parcel.approvalId}"]`).click();
    await page.getByText("this browser has checked it").waitFor();
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    const approve = page.locator("button[data-kind=approve]");
    const box = await approve.boundingBox();
    expect(box?.height).toBeGreaterThanOrEqual(44);
    expect((box?.y ?? Infinity) + (box?.height ?? 0), "the button is in view without scrolling").toBeLessThanOrEqual(PHONE.height);
    await approve.dblclick();
    await page.getByText("Press again to approve").waitFor();
    expect(await decisions(parcel.sessionId)).toEqual([]);
    await eventually("the second press to count", async () => { await approve.click({ timeout: 300 }).catch(() => undefined); return (await page.getByText("Approved. The session has confirmed it").count()) > 0 || undefined; });
    expect((await resultOf(parcel.sessionId)).status).toBe("succeeded");
    expect(await decisions(parcel.sessionId)).toHaveLength(1);
  });

  it("a rejection tells the model why; an answer in place of the tool is its result", async () => {
    const parcel = await waitingParcel();
    const page = await screen("ann");
    await openCard(page, parcel.approvalId);
    await page.keyboard.press("x");
    await expect(page.getByRole("dialog").getByRole("button", { name: "Reject" }).isDisabled()).resolves.toBe(true);
    await page.getByLabel("Reason").fill("wrong street");
    await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
    await page.getByText("Rejected. The session has confirmed it").waitFor();
    expect(await resultOf(parcel.sessionId)).toMatchObject({ status: "rejected", content: { text: expect.stringContaining("wrong street") as string } });

    const asking = freshSession("ask");
    await docket.prompt(asking, "ask which colour", { agent: "parcels" });
    const { pending: { record } } = await docket.openApproval(asking);
    await openCard(page, record.approvalId);
    expect(await page.locator("button[data-kind]").allInnerTexts()).toEqual([expect.stringContaining("Respond"), expect.stringContaining("Reject")]);
    await page.keyboard.press("a");
    await page.keyboard.press("a");
    await page.keyboard.press("r");
    await page.getByLabel("Your answer").fill("the blue one");
    await page.getByRole("dialog").getByRole("button", { name: "Respond" }).click();
    await page.getByText("Answered. The session has confirmed it").waitFor();
    expect(await resultOf(asking)).toMatchObject({ status: "responded", content: { text: "the blue one" } });
  });
});

describe("modify", () => {
  it("keeps types and every digit: a nested object and a 64-bit id, in the form and as JSON, with what changed", async () => {
    const parcel = await waitingParcel();
    const page = await screen("ann");
    await openCard(page, parcel.approvalId);
    await page.keyboard.press("m");
    const dialog = page.getByRole("dialog");
    const send = dialog.getByRole("button", { name: /Approve with changes|Press again/ });
    await expect(send.isDisabled()).resolves.toBe(true);
    await expect(dialog.getByLabel(/^id/).inputValue()).resolves.toBe("9007199254740993");
    await dialog.getByLabel(/^id/).fill("9223372036854775807x");
    await dialog.getByText("is not a JSON number").waitFor();
    await expect(send.isDisabled()).resolves.toBe(true);
    await dialog.getByLabel(/^id/).fill("9223372036854775807");
    await dialog.getByLabel(/^street/).fill("Deich 7");
    await dialog.getByLabel(/^fragile/).selectOption("false");
    await dialog.getByLabel(/^service/).selectOption("express");
    await dialog.getByRole("button", { name: "+ item" }).click();
    await dialog.getByLabel(/^\[0\]/).fill("ring twice");
    await dialog.getByRole("button", { name: "+ insuredCents" }).click();
    await dialog.getByText("insuredCents: 0 is below 1").waitFor();
    const json = dialog.getByLabel("As JSON");
    await json.fill((await json.inputValue()).replace('"insuredCents": 0', '"insuredCents": 50000'));
    const changes = await dialog.locator(".changes li").allInnerTexts();
    expect(changes.map((line) => line.replace(/\s+/g, " "))).toEqual(["insuredCents + 50000", 'notes[0] + "ring twice"', 'parcel.address.street − "Hafenstr. 1" + "Deich 7"', "parcel.fragile − true + false", "parcel.id − 9007199254740993 + 9223372036854775807", 'service − "standard" + "express"']
      .map((line) => expect.stringContaining(line.split(" ")[0] ?? "") as string));
    expect(changes.join(" ")).toContain("9223372036854775807");
    await send.dblclick();
    await dialog.getByText("Press again to approve the changes").waitFor();
    expect(await decisions(parcel.sessionId)).toEqual([]);
    await eventually("the second press to count", async () => { await send.click({ timeout: 300 }).catch(() => undefined); return (await page.getByText(/Sent: modify|Modified\./).count()) > 0 || undefined; });
    await page.getByText("Modified. The session has confirmed it").waitFor();
    expect((await resultOf(parcel.sessionId)).status).toBe("succeeded");
    expect(shipped(parcel.sessionId)).toEqual(['{"insuredCents":50000,"notes":["ring twice"],"parcel":{"address":{"city":"Bremen","street":"Deich 7"},"fragile":false,"id":9223372036854775807,"weightGrams":1200},"service":"express"}']);
  });
});

describe("two people at once", () => {
  it("one decision counts, the other is told who was first and changed nothing", async () => {
    const parcel = await waitingParcel();
    const [ann, ben] = [await screen("ann"), await screen("ben")];
    await openCard(ann, parcel.approvalId);
    await openCard(ben, parcel.approvalId);
    await ann.keyboard.press("a");
    await ben.keyboard.press("x");
    await ben.getByLabel("Reason").fill("not today");
    await Promise.all([ann.keyboard.press("a"), ben.getByRole("dialog").getByRole("button", { name: "Reject" }).click()]);
    const told = async (page: Page): Promise<string> => { const notice = page.locator(".card .notice", { hasText: /confirmed it|changed nothing/ }); await notice.waitFor(); return notice.innerText(); };
    const texts = await Promise.all([told(ann), told(ben)]);
    const [decision] = await decisions(parcel.sessionId);
    expect(await decisions(parcel.sessionId)).toHaveLength(1);
    const winner = decision?.principal.id === "ann" ? 0 : 1;
    expect(texts[winner]).toContain("confirmed it");
    expect(texts[1 - winner]).toContain("changed nothing");
    const loser = [ann, ben][1 - winner];
    await loser?.locator(".card .notice", { hasText: decision?.principal.id ?? "" }).waitFor();
    await resultOf(parcel.sessionId);
  });

  it("who has no right sees everything and can decide nothing", async () => {
    const parcel = await waitingParcel();
    const page = await screen("vic");
    await openCard(page, parcel.approvalId);
    await page.getByText("You cannot decide this").waitFor();
    for (const key of ["a", "a", "x", "m", "r"]) await page.keyboard.press(key);
    expect(await page.getByRole("dialog").count()).toBe(0);
    expect(await decisions(parcel.sessionId)).toEqual([]);
  });
});

describe("a console that is gone for ten seconds", () => {
  it("is said so, and everything is right again without a reload", async () => {
    const page = await screen("ann");
    const before = await waitingParcel();
    await openCard(page, before.approvalId);
    await page.evaluate("globalThis.sameDocument = true");
    await docket.test.stack.kill("console");
    await page.getByText("No connection to the console").waitFor();
    const sessionId = freshSession("meanwhile");
    await docket.prompt(sessionId, "ship 42 to Elbe 1", { agent: "parcels" });
    await page.getByText(/for 1\ds/).waitFor({ timeout: 20_000 });
    await page.keyboard.press("a");
    await page.keyboard.press("a");
    await page.getByText("Whether the decision was taken is not known").waitFor();
    await docket.test.stack.start("console");
    await page.getByText("No connection to the console").waitFor({ state: "detached", timeout: 30_000 });
    await page.locator(".queue").getByText(sessionId).waitFor({ timeout: 30_000 });
    await page.getByRole("button", { name: "Ask again" }).click();
    await page.getByText("Approved. The session has confirmed it").waitFor();
    expect(await page.evaluate("globalThis.sameDocument")).toBe(true);
    expect(await decisions(before.sessionId)).toHaveLength(1);
  });
});

describe("the sessions", () => {
  it("are filtered in the address, tell their story as it grows, take a message and a cancel", async () => {
    const page = await screen("dev", {}, "/sessions");
    const sessionId = freshSession("story");
    await docket.ended(await docket.prompt(sessionId, "hello"));
    await page.getByRole("searchbox").fill(sessionId);
    await page.getByRole("link", { name: sessionId }).waitFor();
    expect(new URL(page.url()).searchParams.get("q")).toBe(sessionId);
    await page.reload();
    expect(await page.getByRole("searchbox").inputValue()).toBe(sessionId);
    await page.getByRole("link", { name: sessionId }).click();
    await page.locator(".line-model").first().waitFor();
    await page.getByLabel("Message to the session").fill("refund 450 cents of order 1003");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("The session has the message").waitFor();
    await page.getByText("Awaiting approval").first().waitFor();
    await page.getByRole("link", { name: /Decide on/ }).waitFor();
    await page.getByText("If nobody does by").waitFor();
    await page.getByRole("button", { name: "Cancel run" }).click();
    await page.getByLabel("Reason").fill("wrong order");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
    await page.locator(".line", { hasText: "cancelled" }).first().waitFor();
    await page.getByText("Nothing until the next event or message").waitFor();
    expect(eventsOf(await docket.journal(sessionId), "RunEnded").map((event) => event.outcome)).toEqual(["completed", "cancelled"]);
    await page.getByRole("link", { name: /Journal/ }).click();
    await page.getByText("SessionOpened").first().waitFor();
  });
});

describe("dead letters, policies and the rest", () => {
  it("group, redrive and discard letters; judge a call as production does; show agents, audit and system", async () => {
    const orders = [freshSession("ord"), freshSession("ord")];
    for (const orderId of orders) await docket.test.callSidecar("gateway", "/v1.0/publish/tasks/agent.tasks.incoming", { method: "POST", body: JSON.stringify({ specversion: "1.0", id: orderId, source: "test", type: "com.nobody.wants.this", subject: orderId, data: {} }), headers: { "content-type": "application/cloudevents+json" } });
    const page = await screen("dev", {}, "/dead-letters");
    await page.locator(".row", { hasText: orders[0] ?? "" }).click();
    await page.getByRole("button", { name: "Discard" }).click();
    await page.getByLabel("Reason").fill("a test");
    await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
    await page.getByText("Discarded.").waitFor();
    await page.locator(".row", { hasText: orders[1] ?? "" }).click();
    await page.getByRole("button", { name: "Redrive" }).click();
    await page.getByLabel("Reason").fill("again");
    await page.getByRole("dialog").getByRole("button", { name: "Redrive" }).click();
    await page.getByText("Redriven: the session gets it").waitFor();
    const states = (await docket.deadLetters()).filter((item) => orders.includes(item.letter.envelope?.subject ?? "")).map((item) => item.state);
    // The redriven event is as dead as the first time: a letter of its own.
    expect(states).toEqual(expect.arrayContaining(["discarded", "redriven"]));

    await page.goto("/policies");
    await page.locator(".try option", { hasText: "issue_refund" }).waitFor({ state: "attached" });
    await page.locator(".try select").first().selectOption("issue_refund");
    await page.getByLabel("Arguments, JSON").fill('{"orderId":"1001","amountCents":1200,"reason":"x"}');
    await page.getByRole("button", { name: "Judge" }).click();
    await page.locator(".judged").getByText("effects-once,money-moves").waitFor();
    await page.goto("/audit");
    await page.locator("tbody tr", { hasText: "dead-letter.discard" }).first().waitFor();
    await page.goto("/system");
    await page.getByText("Everything that the console can see answers").waitFor();
    await docket.test.stack.kill("sessions");
    await page.getByText("session host is down").waitFor({ timeout: 30_000 });
    await page.getByText("folded into the lists").waitFor();
    await docket.test.stack.start("sessions");
    await page.getByText("Everything that the console can see answers").waitFor({ timeout: 60_000 });
  });
});

const PAGES = ["/approvals?view=all", "/approvals?view=decided", "/sessions", "/dead-letters", "/audit", "/policies", "/agents", "/system"];

describe("hostile texts", () => {
  it("are inert on every page, in every field that a model, tool, sender or person writes", async () => {
    const sessionId = `${XSS} ${freshSession("xss")}`;
    await docket.prompt(sessionId, `ship 7 to ${XSS.replaceAll('"', "'")}`, { agent: "parcels" });
    const { pending: { record } } = await docket.openApproval(sessionId);
    await docket.test.callSidecar("gateway", "/v1.0/publish/tasks/agent.tasks.incoming", { method: "POST", body: JSON.stringify({ specversion: "1.0", id: `${sessionId}-letter`, source: XSS, type: `com.${XSS}`, subject: sessionId, data: { text: XSS } }), headers: { "content-type": "application/cloudevents+json" } });
    const letter = await eventually("its dead letter", async () => (await docket.deadLetters()).find((item) => item.letter.envelope?.subject === sessionId), 30_000);
    const page = await screen("dev");
    await openCard(page, record.approvalId);
    await page.keyboard.press("x");
    await page.getByLabel("Reason").fill(XSS);
    await page.getByRole("dialog").getByRole("button", { name: "Reject" }).click();
    await page.getByText("Rejected. The session has confirmed it").waitFor();
    const seen: string[] = [];
    for (const path of [...PAGES, `/approvals/${record.approvalId}`, `/sessions/${encodeURIComponent(sessionId)}`, `/sessions/${encodeURIComponent(sessionId)}?tab=journal`, `/dead-letters/${encodeURIComponent(letter.letter.deadLetterId)}`, `/sessions?q=${encodeURIComponent(XSS)}`, `/${encodeURIComponent(XSS)}`]) {
      await page.goto(path);
      await page.locator("main h1, main h2").first().waitFor();
      await page.locator(".skeleton").first().waitFor({ state: "detached" });
      await page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true");
      expect(await page.evaluate(INTRUDERS), path).toEqual({ hacked: undefined, made: 0 });
      if ((await page.locator("main").innerText()).includes("<img src=x onerror=")) seen.push(path);
    }
    // Where a text was not on the page, nothing was proven.
    expect(seen.length).toBeGreaterThanOrEqual(6);
  });
});

describe("the first load", () => {
  it("is below 70 KB on the wire, from this server alone, and refuses what is inline", async () => {
    const opened = await openScreen(browser, url());
    screens.push(opened);
    const sizes: number[] = [];
    opened.page.on("response", (response) => { void response.request().sizes().then((size) => { sizes.push(size.responseBodySize); }); });
    await opened.page.goto("/");
    await opened.page.getByLabel("API key").waitFor();
    await eventually("sizes of page, script and style", () => sizes.length >= 3 || undefined);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    expect(total).toBeGreaterThan(10_000);
    expect(total).toBeLessThan(70_000);
    await opened.page.evaluate("const made = document.createElement('script'); made.textContent = 'globalThis.inlineRan = true'; document.body.append(made)").catch(() => undefined);
    expect(await opened.page.evaluate("globalThis.inlineRan")).toBeUndefined();
    expect(opened.wrongs.splice(0).join(" ")).toMatch(/Content Security Policy|Trusted/);
  });
});

describe("accessibility", () => {
  it.each(["light", "dark"] as const)("axe has no serious finding on any page, %s", async (colorScheme) => {
    const parcel = await waitingParcel();
    const page = await screen("dev", { colorScheme });
    const findings: Record<string, string[]> = {};
    const check = async (name: string): Promise<void> => { const found = await axeFindings(page); if (found.length > 0) findings[name] = found; };
    for (const path of [...PAGES, `/approvals/${parcel.approvalId}`, `/sessions/${parcel.sessionId}`, `/sessions/${parcel.sessionId}?tab=journal`]) {
      await page.goto(path);
      await page.locator("main h1, main h2").first().waitFor();
      await page.locator(".skeleton").first().waitFor({ state: "detached" });
      await check(path);
    }
    await openCard(page, parcel.approvalId);
    for (const key of ["m", "x", "?"]) {
      await page.keyboard.press(key);
      await page.getByRole("dialog").waitFor();
      await check(`dialog ${key}`);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    await page.keyboard.press("a");
    await check("armed");
    await page.setViewportSize(PHONE);
    await check("card on a phone");
    await page.goto("/approvals?view=all");
    await page.locator(".queue .row").first().waitFor();
    await check("queue on a phone");
    await page.locator("button", { hasText: "Sign out" }).click();
    await page.getByLabel("API key").waitFor();
    await check("sign-in");
    expect(findings).toEqual({});
  });
});
