/**
 * Owns: the console on the real stack in a real browser, for tests: people with keys of their own, windows in which they are signed in, what went wrong in any of these, and the
 * gestures that every test makes.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { createApiKey, writeApiKeyFile } from "../../src/platform/apikeys.js";
import { launchChromium, openScreen, signIn, type Screen, type ScreenOptions } from "./browser.js";
import { REPO_ROOT, type TestStackOptions } from "./cluster.js";
import { eventually, freshSession, startDocket, type Docket } from "./docket.js";
import { agentsWith, type Fixture } from "./fixture-agents.js";

export const PHONE = { width: 390, height: 844 };
/** Pages without an id. */
export const PAGES = ["/approvals?view=all", "/approvals?view=decided", "/sessions", "/dead-letters", "/costs", "/audit", "/policies", "/agents", "/system"];

export interface ConsoleInBrowser {
  readonly docket: Docket;
  url(): string;
  /** A window of its own in which somebody is signed in: one of the people, or `dev`, the development operator. */
  screen(who: string, options?: ScreenOptions, path?: string): Promise<Page>;
  /** A window in which nobody is. */
  open(options?: ScreenOptions): Promise<Screen>;
  /** Sends a prompt to an agent and waits until somebody is asked. */
  waiting(text: string, agent: string, sessionId?: string): Promise<{ readonly sessionId: string; readonly approvalId: string; readonly argsDigest: string }>;
  /** Closes the windows of a test; what went wrong in them. */
  endTest(): Promise<string[]>;
  close(): Promise<void>;
}

export interface ConsoleOptions {
  /** Agents of test/fixtures. Those of the checkout come along. */
  readonly fixtures: readonly Fixture[];
  /** Roles by name. */
  readonly people: Readonly<Record<string, readonly string[]>>;
  readonly env?: TestStackOptions["extraEnv"];
}

/** Takes about ten seconds. */
export async function startConsoleInBrowser({ fixtures, people, env = {} }: ConsoleOptions): Promise<ConsoleInBrowser> {
  mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
  const home = mkdtempSync(join(REPO_ROOT, ".docket/console-"));
  const { agentsDir, scriptsDir } = await agentsWith(home, fixtures, ["assistant", "order-triage"]);
  const dataDir = join(home, "data");
  mkdirSync(join(dataDir, "keys"), { recursive: true });
  const made = Object.entries(people).map(([principalId, roles]) => [principalId, createApiKey({ tenant: "default", principalId, class: "person", roles, scopes: ["*"] })] as const);
  await writeApiKeyFile(join(dataDir, "keys", "api-keys.json"), made.map(([, { record }]) => record));
  const docket = await startDocket({ dataDir, extraEnv: { ...env, all: { DOCKET_AGENTS_DIR: agentsDir, DOCKET_SCRIPTS_DIR: scriptsDir, ...env.all } } });
  const keys = new Map([...made.map(([name, { key }]) => [name, key] as const), ["dev", docket.apiKey] as const]);
  const browser: Browser = await launchChromium();
  const screens: Screen[] = [];
  const url = (): string => docket.test.stack.urls.console ?? "";
  const open = async (options: ScreenOptions = {}): Promise<Screen> => {
    const opened = await openScreen(browser, url(), options);
    screens.push(opened);
    return opened;
  };
  return {
    docket, url, open,
    async screen(who, options = {}, path = "/approvals") {
      const { page } = await open(options);
      await signIn(page, keys.get(who) ?? "", path);
      return page;
    },
    async waiting(text, agent, sessionId = freshSession(agent)) {
      await docket.prompt(sessionId, text, { agent });
      const { pending: { record } } = await docket.openApproval(sessionId);
      return { sessionId, approvalId: record.approvalId, argsDigest: record.argsDigest };
    },
    async endTest() {
      const wrongs = screens.flatMap((screen) => screen.wrongs);
      for (const screen of screens.splice(0)) await screen.close();
      return wrongs;
    },
    async close() {
      await browser.close();
      await docket.close();
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Opens an approval's card and waits until the browser has checked its digest. */
export async function openCard(page: Page, approvalId: string): Promise<void> {
  await page.goto(`/approvals/${approvalId}`);
  await page.getByText("this browser has checked it").waitFor();
}

/** Approves the open card by its two key presses. */
export async function approveByKeys(page: Page): Promise<void> {
  await page.keyboard.press("a");
  await page.getByText("Press again to approve").waitFor();
  await page.keyboard.press("a");
}

/** Two clicks that are no double click, in the open dialog, until the page has told what came of it. */
export async function pressTwice(page: Page, name: RegExp, told: RegExp): Promise<void> {
  await page.getByRole("dialog").getByRole("button", { name }).click();
  await pressUntil(page.getByRole("dialog").getByRole("button", { name: /Press again/ }), page.getByText(told));
}

/** Goes to a page and waits until it has its content. */
export async function goAndSettle(page: Page, path: string): Promise<void> {
  await page.goto(path);
  await page.locator("main h1:visible, main h2:visible").first().waitFor();
  await page.locator(".skeleton").first().waitFor({ state: "detached" });
}

/** What sticks out of the window sideways, where the page would have to be scrolled for it. */
export function sidewaysOf(page: Page): Promise<string[]> {
  return page.evaluate(`document.scrollingElement.scrollWidth <= innerWidth ? [] : [document.scrollingElement.scrollWidth + " px wide",
    ...[...document.querySelectorAll("body *")].filter((element) => element.getBoundingClientRect().right > innerWidth + 1).slice(0, 5).map((element) => element.outerHTML.slice(0, 160))]`);
}

/** On how many lines the text of a link or button is drawn. */
export function linesOf(page: Page, text: string): Promise<number> {
  return page.evaluate(`(() => {
    const range = document.createRange();
    range.selectNodeContents([...document.querySelectorAll("a, button")].find((element) => element.textContent.trim() === ${JSON.stringify(text)}));
    return new Set([...range.getClientRects()].map(({ bottom }) => Math.round(bottom / 4))).size;
  })()`);
}

/** The second press, again and again until the page shows `told`: one that comes too early does not count, and a slow machine may need some. */
export async function pressUntil(button: Locator, told: Locator, count = 1): Promise<void> {
  await eventually("the second press to count", async () => {
    if (await told.count() >= count) return true;
    await button.click({ timeout: 2_000 }).catch(() => undefined);
    return undefined;
  }, 60_000);
}
