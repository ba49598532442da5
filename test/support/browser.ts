/** Owns: a real Chromium for tests: found on PATH, driven by playwright, with everything that phones home switched off. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { chromium, type Browser, type BrowserContext, type Page } from "playwright-core";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export function launchChromium(): Promise<Browser> {
  const executablePath = NAMES.flatMap((name) => (process.env["PATH"] ?? "").split(delimiter).map((dir) => join(dir, name))).find((file) => existsSync(file));
  if (executablePath === undefined) throw new Error(`No Chromium on PATH (${NAMES.join(", ")}). Install it: apt-get install chromium`);
  return chromium.launch({ executablePath, args: FLAGS });
}

/** A page of its own, with what went wrong in it. */
export interface Screen { readonly page: Page; readonly context: BrowserContext; readonly wrongs: string[]; close(): Promise<void> }

export interface ScreenOptions { readonly width?: number; readonly height?: number; readonly colorScheme?: "light" | "dark" }

/** Opens a browser window of its own (cookies too). Script errors, refused content and dialogs are kept as wrongs. */
export async function openScreen(browser: Browser, baseURL: string, options: ScreenOptions = {}): Promise<Screen> {
  const { width = 1280, height = 800, colorScheme = "light" } = options;
  const context = await browser.newContext({ baseURL, viewport: { width, height }, colorScheme });
  const page = await context.newPage();
  const wrongs: string[] = [];
  page.on("pageerror", (error) => { wrongs.push(`script error: ${error.message}`); });
  page.on("console", (message) => { if (/Content Security Policy|Trusted|Refused to/i.test(message.text())) wrongs.push(`refused: ${message.text()}`); });
  page.on("dialog", (dialog) => { wrongs.push(`dialog: ${dialog.message()}`); void dialog.dismiss(); });
  page.on("request", (request) => { if (!request.url().startsWith(baseURL)) wrongs.push(`went elsewhere: ${request.url()}`); });
  return { page, context, wrongs, close: () => context.close() };
}

/** Signs in on whatever page is open. */
export async function signIn(page: Page, apiKey: string, path = "/approvals"): Promise<void> {
  await page.goto(path);
  await page.getByLabel("API key").fill(apiKey);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** Serious and critical findings of axe on the page as it is. */
export async function axeFindings(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<{ violations: { id: string; impact: string; nodes: { html: string; failureSummary: string }[] }[] }> } };
    const { violations } = await axe.run({ resultTypes: ["violations"] });
    return violations.filter(({ impact }) => impact === "serious" || impact === "critical").flatMap(({ id, nodes }) => nodes.slice(0, 5).map((node) => `${id}: ${node.html.slice(0, 160)} ${node.failureSummary.slice(0, 240)}`));
  });
}
