/** Sign-in through a real OpenID provider, in Chromium, on the real stack: who may decide follows from claims, all the way to the session's actor (I4, I10). */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { verifyAuditFile } from "../../src/platform/audit-file.js";
import { loadTrust } from "../../src/platform/keys.js";
import { axeFindings, launchChromium } from "../support/browser.js";
import { REPO_ROOT } from "../support/cluster.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { agentsWith } from "../support/fixture-agents.js";
import { startIdentityServer, type IdentityServer } from "../support/identity-provider.js";

const ACCESS = "version: 1\nroles:\n  approver: [{ claim: groups, is: approvers }]\n  admin: [{ claim: groups, is: ops }]\ngroups:\n  finance: [{ claim: groups, is: finance-team }]\n";
const POLICY = "version: 1\nrules:\n  - { id: parcels-are-finance, match: { tools: [ship_parcel] }, verdict: ask, reason: finance signs parcels, approvers: { roles: [finance] } }\n";

let home: string;
let docket: Docket;
let idp: IdentityServer;
let browser: Browser;

beforeAll(async () => {
  mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
  home = mkdtempSync(join(REPO_ROOT, ".docket/oidc-"));
  const { agentsDir, scriptsDir } = await agentsWith(home, [{ folder: "parcel-agent", name: "parcels" }], ["assistant"]);
  const policies = join(home, "policies");
  mkdirSync(policies);
  copyFileSync(join(REPO_ROOT, "policies", "default.yaml"), join(policies, "default.yaml"));
  writeFileSync(join(policies, "finance.yaml"), POLICY);
  writeFileSync(join(home, "access.yaml"), ACCESS);
  idp = await startIdentityServer();
  idp.people.set("ann", { name: "Ann Example", email: "ann@example.com", email_verified: true, groups: ["approvers", "finance-team"] });
  idp.people.set("bob", { name: "Bob Example", email: "bob@example.com", email_verified: true, groups: ["approvers"] });
  idp.people.set("zed", { name: "Zed", email: "zed@example.com", email_verified: true, groups: [] });
  docket = await startDocket({
    dataDir: join(home, "data"),
    extraEnv: {
      all: { DOCKET_AGENTS_DIR: agentsDir, DOCKET_SCRIPTS_DIR: scriptsDir, DOCKET_POLICIES_DIR: policies },
      console: { DOCKET_OIDC_ISSUER: idp.issuer, DOCKET_OIDC_CLIENT_ID: idp.clientId, DOCKET_OIDC_CLIENT_SECRET: idp.clientSecret, DOCKET_OIDC_SCOPES: "openid profile email groups", DOCKET_OIDC_ACCESS_FILE: join(home, "access.yaml"), DOCKET_OIDC_LABEL: "Example login" },
    },
  });
  idp.register(`${url()}/session/oidc/callback`, `${url()}/`);
  browser = await launchChromium();
});
afterAll(async () => {
  await browser.close();
  await docket.close();
  await idp.close();
  rmSync(home, { recursive: true, force: true });
});

const url = (): string => docket.test.stack.urls.console ?? "";

/** A browser of its own, signed in as `login` on the page that was asked for. */
async function asPerson(login: string, path: string): Promise<Page> {
  const context = await browser.newContext({ baseURL: url() });
  // The provider's own pages want a font from elsewhere; there is no elsewhere here.
  await context.route((to) => to.hostname !== "127.0.0.1", (route) => route.abort());
  const page = await context.newPage();
  await page.goto(path);
  await page.getByRole("link", { name: "Sign in with Example login" }).click();
  await page.locator("input[name=login]").fill(login);
  await page.locator("input[name=password]").fill("any");
  await page.locator("button[type=submit]").click();
  return page;
}

it("a person without the group is refused by the session, one with it decides; both are who the provider says, and the audit proves it", async () => {
  const sessionId = freshSession("parcel");
  await docket.prompt(sessionId, "ship 9007199254740993 to Hafenstr. 1", { agent: "parcels" });
  const { pending: { record } } = await docket.openApproval(sessionId);
  expect(record.approvers.roles).toEqual(["finance"]);
  const path = `/approvals/${record.approvalId}`;

  const bob = await asPerson("bob", path);
  await bob.waitForURL(`${url()}${path}`);
  await bob.getByText("only finance may decide").first().waitFor();
  // The page would not send it. Whoever sends it all the same gets the session's own word.
  const answer = await bob.evaluate(async ([at, body]) => {
    const response = await fetch(at ?? "", { method: "POST", headers: { "content-type": "application/json" }, body: body ?? "" });
    return { status: response.status, body: await response.json() as { code: string } };
  }, [`/v1${path}/decisions`, JSON.stringify({ kind: "approve", version: record.version, argsDigest: record.argsDigest })]);
  expect(answer).toMatchObject({ status: 403, body: { code: "not_an_approver" } });
  const refused = await eventually("the refusal in the journal", async () => eventsOf(await docket.journal(sessionId), "DecisionRefused")[0]);
  expect(refused).toMatchObject({ code: "not_an_approver", principal: { id: `${idp.issuer}#bob`, class: "person", roles: ["approver"] } });

  const ann = await asPerson("ann", path);
  await ann.waitForURL(`${url()}${path}`);
  await ann.getByText("this browser has checked it").waitFor();
  await ann.getByText("Ann Example").first().waitFor();
  expect(await axeFindings(ann)).toEqual([]);
  await ann.keyboard.press("a");
  await ann.getByText("Press again to approve").waitFor();
  const decided = await eventually("the second press to count", async () => {
    const found = eventsOf(await docket.journal(sessionId), "DecisionRecorded");
    if (found.length === 0) await ann.keyboard.press("a");
    return found.length === 0 ? undefined : found;
  }, 60_000);
  expect(decided).toMatchObject([{ kind: "approve", via: "web", principal: { id: `${idp.issuer}#ann`, class: "person", roles: ["approver", "finance"] } }]);
  const result = await eventually("the parcel's result", async () => eventsOf(await docket.journal(sessionId), "ToolResultRecorded")[0], 30_000);
  expect(result.status).toBe("succeeded");

  // Signing out goes on to the provider, and back.
  await ann.getByRole("button", { name: "Sign out" }).click();
  await ann.locator("button[name=logout][value=yes]").click();
  await ann.getByRole("link", { name: "Sign in with Example login" }).waitFor();
  expect(await ann.evaluate(async () => (await fetch("/session")).status)).toBe(401);

  const zed = await asPerson("zed", "/approvals");
  await zed.getByText("nobody has given you a role here").waitFor();
  expect(new URL(zed.url()).pathname).toBe("/sign-in");
  expect(await axeFindings(zed)).toEqual([]);

  const copy = await fetch(`${url()}/v1/audit/export`, { headers: { authorization: `Bearer ${docket.apiKey}` } });
  const text = await copy.text();
  const report = await verifyAuditFile(text.trimEnd().split("\n"), { trust: await loadTrust(join(docket.dataDir, "keys")), nowMs: Date.now() });
  expect(report).toMatchObject({ ok: true, fault: null });
  for (const words of [`"outcome":"approved"`, `"outcome":"not_an_approver"`, `"outcome":"no_role"`, `"outcome":"signed in"`, `"outcome":"signed out"`, `${idp.issuer}#ann`, `${idp.issuer}#bob`]) expect(text).toContain(words);
  expect(text).not.toContain(idp.clientSecret);
});
