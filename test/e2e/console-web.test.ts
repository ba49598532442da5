/** The web console on the real stack, in a real browser: careful decisions are quick, careless ones do not happen, and what is shown is what is so (I4, I5, I10). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { actorIdOf, argsDigest } from "../../src/contracts/ids.js";
import { axeFindings, type ScreenOptions } from "../support/browser.js";
import { goAndSettle, linesOf, openCard, PAGES, PHONE, pressTwice, pressUntil, sidewaysOf, startConsoleInBrowser, type ConsoleInBrowser } from "../support/console-browser.js";
import { eventsOf, eventually, freshSession, type Docket } from "../support/docket.js";

const INTRUDERS = '({ hacked: globalThis.hacked, made: document.querySelectorAll("main img, main script, main iframe, main [onerror]").length })';
const XSS = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=1</script>";

let world: ConsoleInBrowser;
let docket: Docket;

beforeAll(async () => {
  world = await startConsoleInBrowser({ fixtures: [{ folder: "parcel-agent", name: "parcels" }], people: { ann: ["approver"], ben: ["approver"], vic: ["viewer"] } });
  ({ docket } = world);
});
afterAll(() => world.close());
afterEach(async () => { expect(await world.endTest()).toEqual([]); });

const screen = (who: string, options?: ScreenOptions, path?: string): Promise<Page> => world.screen(who, options, path);
/** A session whose parcel waits for a decision, and its approval. */
const waitingParcel = (id = "9007199254740993", street = "Hafenstr. 1") => world.waiting(`ship ${id} to ${street}`, "parcels");

const shipped = (sessionId: string): string[] => readFileSync(join(docket.dataDir, "workspaces", actorIdOf("default", sessionId), "shipped.jsonl"), "utf8").trim().split("\n");
const decisions = async (sessionId: string) => eventsOf(await docket.journal(sessionId), "DecisionRecorded");
const resultOf = (sessionId: string) => eventually(`a tool result of ${sessionId}`, async () => eventsOf(await docket.journal(sessionId), "ToolResultRecorded")[0], 30_000);

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
    await pressUntil(approve, page.getByText("Approved. The session has confirmed it"));
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
    await pressUntil(send, page.getByText(/Sent: modify|Modified\./));
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

describe("a console that takes connections and answers none", () => {
  it("is said so long before its requests time out; once it goes on everything is right again, without a reload", async () => {
    const page = await screen("ann");
    const before = await waitingParcel();
    await openCard(page, before.approvalId);
    await page.evaluate("globalThis.sameDocument = true");
    docket.test.stack.freeze("console");
    try {
      // A request times out after 15 s.
      await page.getByText("No connection to the console").waitFor({ timeout: 12_000 });
    } finally {
      docket.test.stack.thaw("console");
    }
    await page.getByText("No connection to the console").waitFor({ state: "detached", timeout: 60_000 });
    const { sessionId } = await waitingParcel();
    await page.locator(".queue").getByText(sessionId).waitFor({ timeout: 60_000 });
    expect(await page.evaluate("globalThis.sameDocument")).toBe(true);
    expect(await decisions(before.sessionId)).toEqual([]);
  });
});

describe("a change that does not fit", () => {
  it("is refused with its place in the arguments and what was expected there; the reason of one that fits is in the audit and on the card, with what ran beside what was asked", async () => {
    const parcel = await waitingParcel();
    // The form knows the schema: what it lets through and the session refuses comes from somebody else's form.
    const { pending } = await docket.openApproval(parcel.sessionId);
    expect(await docket.decide({ pending, state: "open" }, "modify", { args: pending.args.replace('"Hafenstr. 1"', "17") })).toMatchObject({ status: 422, body: { code: "arguments_invalid", detail: expect.stringContaining("/parcel/address/street: got 17 (a number), expected: it must be string") as string } });
    const page = await screen("ann");
    await openCard(page, parcel.approvalId);
    await page.getByText(/What happened so far/).click();
    await page.locator(".course", { hasText: "/parcel/address/street: got 17" }).waitFor();
    await page.keyboard.press("m");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel(/^street/).fill("Deich 7");
    await dialog.getByLabel("Why (optional)").fill("they have moved");
    await pressTwice(page, /Approve with changes/, /Sent: modify|Modified\./);
    await page.getByText("Modified. The session has confirmed it").waitFor();
    await page.getByRole("region", { name: "Arguments that were let run" }).getByText("Deich 7").waitFor();
    await page.goto(`/approvals/${parcel.approvalId}`);
    await page.locator(".card .notice", { hasText: "they have moved" }).waitFor();
    const next = await waitingParcel("42");
    await openCard(page, next.approvalId);
    const past = page.locator(".similar li", { hasText: "they have moved" });
    await past.getByText("ann").waitFor();
    expect((await past.locator("p").allInnerTexts()).slice(1)).toEqual([expect.stringContaining("Deich 7") as string, expect.stringMatching(/^asked: .*Hafenstr. 1/) as string]);
    await page.getByLabel("Why (optional)").fill("as ordered");
    await page.keyboard.press("Tab");
    await page.getByText("This call only. Allowing the tool for the session: never for a high risk").waitFor();
    expect(await page.getByRole("button", { name: /Approve for this session/ }).count()).toBe(0);
    await page.keyboard.press("a");
    await page.keyboard.press("a");
    await page.getByText("Approved. The session has confirmed it").waitFor();
    expect((await decisions(next.sessionId)).map(({ text }) => text)).toEqual(["as ordered"]);
    const { body } = await docket.console("GET", "/v1/audit?limit=100");
    expect((body as { items: { action: string; target: string; reason: string }[] }).items.filter(({ reason }) => reason !== "").map(({ action, target, reason }) => `${action} ${target} ${reason}`)).toEqual(expect.arrayContaining([`approval.approve ${next.approvalId} as ordered`, `approval.modify ${parcel.approvalId} they have moved`]));
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
    await eventually("the window's title to say it", async () => (await page.title()).includes(`${sessionId}: Awaiting approval`) || undefined);
    await page.getByRole("button", { name: "Cancel run" }).click();
    await page.getByLabel("Reason").fill("wrong order");
    await page.getByRole("dialog").getByRole("button", { name: "Cancel run" }).click();
    await page.locator(".line", { hasText: "cancelled" }).first().waitFor();
    await page.getByText("Nothing until the next event or message").waitFor();
    expect(eventsOf(await docket.journal(sessionId), "RunEnded").map((event) => event.outcome)).toEqual(["completed", "cancelled"]);
    await page.getByRole("link", { name: /Journal/ }).click();
    await page.getByText("SessionOpened").first().waitFor();
  });

  it("show where the time went, the state at any revision, and give the journal as a file", async () => {
    const parcel = await waitingParcel();
    const page = await screen("dev", {}, `/sessions/${parcel.sessionId}?tab=waterfall`);
    await page.locator(".waterfall li", { hasText: "waits for a person" }).getByText("so far").waitFor();
    expect(await page.locator(".waterfall li").count()).toBeGreaterThanOrEqual(3);
    await page.getByRole("link", { name: "State", exact: true }).click();
    await page.locator(".state-at .status", { hasText: "Awaiting approval" }).waitFor();
    await page.getByRole("button", { name: "Revision before" }).click();
    await page.waitForURL(/rev=\d+/);
    await page.getByRole("spinbutton", { name: "Revision" }).fill("1");
    await page.keyboard.press("Tab");
    await page.waitForURL(/rev=1$/);
    await page.locator(".state-at .status", { hasText: /Idle|Planning/ }).waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Export the journal" }).click()]);
    const lines = readFileSync(await download.path(), "utf8").trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { rev: number }).rev)).toEqual((await docket.journal(parcel.sessionId)).map((entry) => entry.rev));
  });

  it("are found by words of their messages, in a view that is kept under a name; costs and hits of rules are counted", async () => {
    const sessionId = freshSession("view");
    await docket.ended(await docket.prompt(sessionId, "hello from Zanzibar"));
    const page = await screen("dev", {}, "/sessions?q=zanzib");
    await page.getByRole("link", { name: sessionId }).waitFor();
    await page.getByRole("button", { name: "Save this view" }).click();
    await page.getByLabel("Name").fill("the islands");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.goto("/sessions");
    await page.getByRole("link", { name: "the islands" }).click();
    await page.waitForURL(/q=zanzib/);
    await page.getByRole("link", { name: sessionId }).waitFor();
    await page.goto("/costs");
    await page.getByRole("region", { name: "By agent" }).getByRole("link", { name: "assistant" }).waitFor();
    await waitingParcel();
    await page.goto("/policies");
    await page.locator(".rule", { hasText: "effects-once" }).locator(".hits b").filter({ hasNotText: /^0$/ }).first().waitFor();
  });
});

describe("dead letters, policies and the rest", () => {
  it("group, redrive and discard letters; judge a call as production does; show agents, audit and system", async () => {
    const orders = [freshSession("ord"), freshSession("ord")];
    for (const orderId of orders) await docket.test.callSidecar("gateway", "/v1.0/publish/tasks/agent.tasks.incoming", { method: "POST", body: JSON.stringify({ specversion: "1.0", id: orderId, source: "test", type: "com.nobody.wants.this", subject: orderId, data: {} }), headers: { "content-type": "application/cloudevents+json" } });
    const page = await screen("dev", {}, "/dead-letters");
    await page.locator(".row", { hasText: orders[0] ?? "" }).click();
    await page.locator(".detail").getByRole("button", { name: "Discard" }).click();
    await page.getByLabel("Reason").fill("a test");
    await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
    await page.getByText("Discarded.").waitFor();
    await page.locator(".row", { hasText: orders[1] ?? "" }).click();
    await page.locator(".detail").getByRole("button", { name: "Redrive" }).click();
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
    for (const words of ["approver or admin", "1 person has to approve", "never: its risk is high, and that is decided call by call"]) await page.locator(".judged").getByText(words).waitFor();
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
      await goAndSettle(page, path);
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
    const opened = await world.open();
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

describe("on a phone, 390 px wide", () => {
  it("nothing sticks out sideways on any page, and what is one line stays one", async () => {
    const parcel = await waitingParcel("9223372036854775807", "A-street-whose-name-is-one-word-and-does-not-end-anywhere-near-the-edge-of-a-phone 1");
    const letterId = freshSession("letter");
    await docket.test.callSidecar("gateway", "/v1.0/publish/tasks/agent.tasks.incoming", { method: "POST", body: JSON.stringify({ specversion: "1.0", id: letterId, source: "test", type: "com.nobody.wants.this", subject: letterId, data: {} }), headers: { "content-type": "application/cloudevents+json" } });
    const letter = await eventually("its dead letter", async () => (await docket.deadLetters()).find((item) => item.letter.envelope?.subject === letterId), 30_000);
    const opened = await world.open(PHONE);
    await opened.page.goto("/approvals");
    await opened.page.getByLabel("API key").waitFor();
    const found: Record<string, string[]> = {};
    const look = async (page: Page, name: string): Promise<void> => { const out = await sidewaysOf(page); if (out.length > 0) found[name] = out; };
    for (const words of ["its roles say what you may do here", ".docket/keys/dev-api-key.txt"]) await opened.page.getByText(words).waitFor();
    await look(opened.page, "sign-in");
    const page = await screen("dev", PHONE);
    const session = `/sessions/${parcel.sessionId}`;
    for (const path of [...PAGES, "/approvals?view=snoozed", `/approvals/${parcel.approvalId}`, session, ...["waterfall", "journal", "state"].map((tab) => `${session}?tab=${tab}`), `/dead-letters/${encodeURIComponent(letter.letter.deadLetterId)}`, "/confirm", "/no-such-page"]) {
      await goAndSettle(page, path);
      await page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true");
      await look(page, path);
    }
    for (const key of ["m", "x", "t", "s"]) {
      await openCard(page, parcel.approvalId);
      await page.keyboard.press(key);
      await page.getByRole("dialog").waitFor();
      await look(page, `dialog ${key}`);
    }
    expect(found).toEqual({});
    await goAndSettle(page, session);
    expect([await linesOf(page, "Sign out"), await linesOf(page, "Export the journal")]).toEqual([1, 1]);
  });
});

describe("accessibility", () => {
  it.each(["light", "dark"] as const)("axe has no serious finding on any page, %s", async (colorScheme) => {
    const parcel = await waitingParcel();
    const page = await screen("dev", { colorScheme });
    const findings: Record<string, string[]> = {};
    const check = async (name: string): Promise<void> => { const found = await axeFindings(page); if (found.length > 0) findings[name] = found; };
    for (const path of [...PAGES, `/approvals/${parcel.approvalId}`, `/sessions/${parcel.sessionId}`, `/sessions/${parcel.sessionId}?tab=journal`, `/sessions/${parcel.sessionId}?tab=waterfall`, `/sessions/${parcel.sessionId}?tab=state`]) {
      await goAndSettle(page, path);
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
