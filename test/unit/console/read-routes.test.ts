/** No action without a row, the other half: a GET changes nothing, each taken from the console's router, or it leaves a row in the audit and is named here (I10). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import SqliteDatabase from "better-sqlite3";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { APPROVAL_PENDING } from "../../../src/contracts/decisions.js";
import { JOURNAL_APPENDED } from "../../../src/contracts/journal.js";
import { DEAD_LETTERED, PROMPT_RECEIVED } from "../../../src/contracts/messages.js";
import { readAccessMap } from "../../../src/console/oidc/access-map.js";
import { ensureDevKeys, loadSigner, loadTrust } from "../../../src/platform/keys.js";
import { messageOf, pendingOf, recordOf, START_MS, startConsole, summaryOf, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";
import { madeJournal } from "../../support/journal-made.js";
import { noticesText, settingsFor } from "../../support/notices.js";
import { routesOf } from "../../support/routes.js";

/** `/v1/things` of `GET /v1/things/:id`; the pages aside. */
const placesOf = (routes: readonly string[]): string[] => [...new Set(routes.map((route) => (/ ((?:\/(?:v1|hooks))?\/[\w-]+)/.exec(route) ?? [])[1]).filter((place): place is string => place !== undefined && place !== "/assets"))].sort();

const JOURNAL = madeJournal({ index: 1, modelCalls: 2, startMs: START_MS });
const { actorId, sessionId } = JOURNAL[0]!.summary;
let dir: string;
let world: ConsoleWorld;
let eye: SqliteDatabase.Database;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-reads-"));
  await ensureDevKeys(dir);
  const keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
  // An identity provider that does not answer: sign-ins through it are refused, which leaves a row too. Those that succeed: oidc.test.ts.
  world = await startConsole(keys, (url) => ({
    database: join(dir, "console.db"), notices: settingsFor(noticesText(), { url: "http://127.0.0.1:1" }, url),
    oidc: { issuer: "http://127.0.0.1:1", clientId: "c", clientSecret: "s", scopes: "openid", access: readAccessMap("version: 1\nroles:\n  viewer: [{ claim: groups, is: staff }]\n", "test"), redirectUri: `${url}/session/oidc/callback`, afterLogout: `${url}/`, lastsMs: 1_000, attemptMs: 1_000, label: "Example", keySignIn: true },
  }));
  const record = recordOf();
  world.sessions.views.set(actorId, viewOf([record], summaryOf({ actorId, sessionId })));
  world.sessions.journals.set(actorId, JOURNAL.map(({ entry }) => entry));
  await world.console.handleJournal(messageOf(JOURNAL_APPENDED, { appended: JOURNAL }));
  await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(record, { actorId, sessionId })));
  await world.console.handleDeadLetter(messageOf(DEAD_LETTERED, {
    deadLetterId: "dl_1", kind: "event", reason: "expired", message: "m", topic: "t", app: "sessions", tries: 1, tenant: "default", sessionId, payloadEncoding: "utf8", firstFailedAtMs: START_MS, lastFailedAtMs: START_MS, payload: messageOf(PROMPT_RECEIVED, { text: "hello" }),
  }));
  eye = new SqliteDatabase(join(dir, "console.db"), { readonly: true });
});
afterAll(async () => {
  eye.close();
  await world.close();
  rmSync(dir, { recursive: true });
});

/** Differs as soon as anybody but this connection has written anything into the console's file. */
const version = (): unknown => eye.pragma("data_version", { simple: true });
const lastRow = (): string => { const row = eye.prepare("select content from audit_chain order by seq desc limit 1").get() as { content: string } | undefined; return row === undefined ? "none" : (({ action, outcome }: { action: string; outcome: string }) => `${action} ${outcome}`)(JSON.parse(row.content) as { action: string; outcome: string }); };
const sent = (): number => [world.tasks, world.decisions, world.receipts].flatMap((publisher) => publisher.sent).length;

/** GETs that do more than read: the row that each leaves, and how it answers here. */
const ROWS: Readonly<Record<string, { readonly says: string; readonly status: number }>> = {
  "GET /v1/audit/export": { says: "audit.export begun", status: 200 },
  "GET /session/oidc/start": { says: "browser.sign-in sign_in_unavailable", status: 503 },
  "GET /session/oidc/callback": { says: "browser.sign-in sign_in_replayed", status: 401 },
};
const IDS: readonly [part: string, id: string][] = [["/v1/sessions/", sessionId], ["/v1/approvals/", "apr_1"], ["/v1/dead-letters/", "dl_1"]];
const QUERIES: Readonly<Record<string, string>> = { "GET /v1/sessions/:id/state": "?rev=1" };
const pathOf = (route: string): string => `${route.replace("GET ", "").replace(":id", IDS.find(([part]) => route.includes(part))?.[1] ?? ":id").replace("{*path}", "none.js")}${QUERIES[route] ?? ""}`;

it("GET / names every place that the router has", async () => {
  expect([...((await world.call("GET", "/")).body["routes"] as string[])].sort()).toEqual(placesOf(routesOf(world.console.publicApp)));
});

describe("every GET of the console", () => {
  it("changes nothing and sends nothing, or leaves its row", async () => {
    const gets = routesOf(world.console.publicApp).filter((route) => route.startsWith("GET "));
    expect(gets.length).toBeGreaterThan(20);
    for (const route of gets) {
      const row = ROWS[route];
      const [before, messages] = [version(), sent()];
      const response = await fetch(`${world.http.url}${pathOf(route)}`, { redirect: "manual", headers: { authorization: `Bearer ${world.key(["admin"])}` } });
      await response.arrayBuffer();
      // Assets are not built here, and there is no page for them.
      const expected = row?.status ?? (route.startsWith("GET /assets/") ? 404 : 200);
      expect(response.status, route).toBe(expected);
      expect(sent(), `${route} sent something`).toBe(messages);
      if (row === undefined) expect(version(), `${route} wrote into the database`).toBe(before);
      else expect(lastRow(), route).toBe(row.says);
    }
    for (const route of Object.keys(ROWS)) expect(gets, "a route that is gone").toContain(route);
  });
});
