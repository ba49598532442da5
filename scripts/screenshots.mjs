/**
 * `npm run screenshots`: writes docs/screenshots/*.png: each page of the console on the real stack, light and dark, and the
 * approval on a phone. Everything is made afresh in a folder of its own and removed again.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";
import { ensureBuilt, ensureChromium, ROOT } from "./lib.mjs";
import { withPalette } from "./png.mjs";

const OUT = join(ROOT, "docs", "screenshots");
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };
const WAIT_MS = 60_000;

ensureBuilt();
const executablePath = ensureChromium();
const { startStack } = await import(pathToFileURL(join(ROOT, "dist/src/launcher/stack.js")).href);
const dataDir = mkdtempSync(join(tmpdir(), "docket-screenshots-"));
const stack = await startStack({ profile: "embedded", root: ROOT, ports: "free", dataDir, onExit: "ignore", report: (line) => process.stderr.write(`${line}\n`) });
const key = readFileSync(join(dataDir, "keys", "dev-api-key.txt"), "utf8").trim();
try {
  await makeWork();
  mkdirSync(OUT, { recursive: true });
  const browser = await chromium.launch({ executablePath, args: FLAGS });
  try {
    for (const colorScheme of ["light", "dark"]) await shoot(browser, colorScheme);
  } finally {
    await browser.close();
  }
} finally {
  await stack.stop();
  rmSync(dataDir, { recursive: true, force: true });
}

/** Something for every page: answered, waiting, escalated by a failing system, decided. */
async function makeWork() {
  const texts = { "desk-1001": "where is order 1001?", "desk-1002": "where is order 1002?", "desk-help": "hello", "parcel-lost-1002": "refund 8900 cents of order 1002", "goodwill-1001": "refund 1200 cents of order 1001", "double-charge-1003": "refund 450 cents of order 1003" };
  for (const [session, text] of Object.entries(texts)) await call(stack.urls.gateway, `/v1/sessions/${session}/events`, { text });
  for (const orderId of ["ord-2001", "ord-2002", "ord-2003"]) await call(stack.urls.gateway, "/v1/events", { specversion: "1.0", id: orderId, type: "com.acme.order.created", source: "https://shop.acme.example/orders", data: { orderId, customer: "C. Miller", totalCents: 4200 } }, "application/cloudevents+json");
  const open = await until("three open approvals", async () => { const { items } = await call(stack.urls.console, "/v1/approvals"); return items.length >= 3 ? items : undefined; });
  const { record } = open.find((item) => item.pending.sessionId === "double-charge-1003").pending;
  await call(stack.urls.console, `/v1/approvals/${record.approvalId}/decisions`, { kind: "reject", version: record.version, argsDigest: record.argsDigest, text: "the customer was not charged twice" });
  const { record: lost } = open.find((item) => item.pending.sessionId === "parcel-lost-1002").pending;
  await call(stack.urls.console, `/v1/approvals/${lost.approvalId}/assign`, { to: "finance" });
  await until("dead letters", async () => { const { items } = await call(stack.urls.console, "/v1/dead-letters"); return items.length >= 3 ? items : undefined; });
}

async function shoot(browser, colorScheme) {
  const context = await browser.newContext({ colorScheme, viewport: DESKTOP });
  const page = await context.newPage();
  const to = (path) => page.goto(`${stack.urls.console}${path}`);
  const save = async (name) => { await page.mouse.move(0, 0); writeFileSync(join(OUT, `${name}-${colorScheme}.png`), withPalette(await page.screenshot())); };
  await to("/approvals");
  await page.getByLabel("API key").waitFor();
  await page.getByText(".docket/keys/dev-api-key.txt").waitFor();
  await save("sign-in");
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator(".card .json").waitFor();
  await page.getByText("has checked it").waitFor();
  await save("approvals");
  await page.keyboard.press("m");
  await page.getByLabel("amountCents").fill("1000");
  await page.getByText("1 change").waitFor();
  await save("modify");
  await page.keyboard.press("Escape");
  await to("/sessions"); await page.locator("tbody tr").nth(5).waitFor(); await save("sessions");
  await to("/sessions/double-charge-1003"); await page.locator(".line-good").waitFor(); await save("session");
  await to("/sessions/double-charge-1003?tab=waterfall"); await page.locator(".waterfall li").nth(3).waitFor(); await save("waterfall");
  await to("/sessions/double-charge-1003?tab=journal"); await page.locator(".journal li").nth(3).waitFor(); await save("journal");
  await to("/sessions/double-charge-1003?tab=state"); await page.locator(".state-at .json").waitFor(); await save("state");
  await to("/costs"); await page.getByRole("region", { name: "By agent" }).locator("tbody tr").first().waitFor(); await save("costs");
  await to("/dead-letters"); await page.locator(".queue .row").first().click(); await page.locator(".card .json").waitFor(); await save("dead-letters");
  await to("/audit"); await page.locator("tbody tr").first().waitFor(); await save("audit");
  await to("/policies"); await page.locator(".try option").nth(3).waitFor({ state: "attached" });
  await page.locator(".try select").first().selectOption("issue_refund");
  await page.getByLabel("Arguments, JSON").fill('{"orderId": "1001", "amountCents": 1200, "reason": "lost"}');
  await page.getByRole("button", { name: "Judge" }).click(); await page.locator(".judged").waitFor(); await save("policies");
  await to("/agents"); await page.locator(".versions tbody tr", { hasText: "1 host" }).first().waitFor(); await save("agents");
  await to("/system"); await page.getByRole("region", { name: "Apps" }).locator("tbody tr").nth(2).waitFor(); await save("system");
  await page.setViewportSize(PHONE);
  await to("/approvals"); await page.locator(".queue .row").first().waitFor(); await save("phone-queue");
  await page.locator(".queue .row").first().click(); await page.locator(".card .json").waitFor(); await save("phone-approval");
  await context.close();
}

async function call(base, path, body, type = "application/json") {
  const reply = await fetch(`${base}${path}`, { method: body === undefined ? "GET" : "POST", headers: { authorization: `Bearer ${key}`, ...(body === undefined ? {} : { "content-type": type }) }, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
  return reply.json();
}

async function until(what, probe) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const value = await probe();
    if (value !== undefined) return value;
    if (Date.now() > deadline) throw new Error(`did not happen in ${WAIT_MS} ms: ${what}`);
    await new Promise((next) => { setTimeout(next, 200); });
  }
}
