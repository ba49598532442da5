/** What apps report of themselves, the audit of what others refused, running versions, and the diagnosis with its fix. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { diagnose, type Facts } from "../../../src/console/diagnose.js";
import type { KnownReport } from "../../../src/console/read-model/app-reports.js";
import { APP_REPORTED, AppReport, REFUSALS_NOTED } from "../../../src/contracts/reports.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { entryOf, journalMessage, messageOf, START_MS, startConsole, type ConsoleWorld } from "../../support/console-fakes.js";

const reportOf = (app: AppReport["app"], more: Partial<AppReport> = {}): AppReport => AppReport.parse({ app, instance: `${app}-1`, startedAtMs: START_MS, atMs: START_MS, everyMs: 15_000, node: "v20", checks: [{ name: "sidecar", status: "ok", detail: "healthy", fix: "" }], ...more });
const known = (report: AppReport, receivedAtMs = START_MS): KnownReport => ({ report, receivedAtMs });
const agents = [{ name: "orders", version: "2", tools: ["refund"] }];
const WELL: readonly KnownReport[] = [known(reportOf("gateway")), known(reportOf("sessions", { agents })), known(reportOf("tools", { tools: ["refund"] }))];
const facts = (more: Partial<Facts> = {}): Facts => ({
  nowMs: START_MS, reports: WELL, sidecarFault: undefined, upMs: 60_000, symptoms: { unclaimed: [], expired: 0, latestExpiredAtMs: null },
  projection: { gaps: 0, entriesMissing: 0, overdue: 0 }, ...more,
});
const without = (app: string): KnownReport[] => WELL.filter(({ report }) => report.app !== app);
const codes = (more: Partial<Facts>): string[] => diagnose(facts(more)).map(({ code, title }) => `${code}: ${title}`);

describe("a diagnosis", () => {
  it("is empty where all is well", () => { expect(diagnose(facts())).toEqual([]); });

  it.each<[string, Partial<Facts>, string[]]>([
    ["a sidecar that is down comes alone", { sidecarFault: "no answer", reports: [] }, ["sidecar_down: The console's sidecar is down"]],
    ["no worker", { reports: without("tools") }, ["no_worker: No worker is listening"]],
    ["a worker that went silent", { reports: [...without("tools"), known(reportOf("tools", { tools: ["refund"] }), START_MS - 60_000)] }, ["no_worker: No worker is listening"]],
    ["one of two workers went silent", { reports: [...WELL, known(reportOf("tools", { instance: "tools-2", tools: ["refund"] }), START_MS - 60_000)] }, ["app_silent: tools tools-2 is silent"]],
    ["no session host, no gateway", { reports: without("sessions").filter(({ report }) => report.app !== "gateway") }, ["app_silent: The gateway is not running", "app_silent: No session host is running"]],
    ["nobody is missed before the first reports", { reports: [], upMs: 5_000 }, []],
    ["a check that failed", { reports: [...without("gateway"), known(reportOf("gateway", { checks: [{ name: "components", status: "fail", detail: "missing: inbox", fix: "look" }] }))] }, ["app_unwell: gateway gateway-1: components"]],
    ["a tool that no worker has", { reports: [...without("tools"), known(reportOf("tools", { tools: ["other"] }))] }, ["tool_unknown: Tool refund is unknown to every worker"]],
    ["calls that nobody takes", { symptoms: { unclaimed: [{ tool: "refund", calls: 3, oldestAtMs: 1 }], expired: 0, latestExpiredAtMs: null } }, ["calls_unclaimed: 3 tool calls wait for a worker"]],
    ["a model without room", { reports: [...without("sessions"), known(reportOf("sessions", { agents, limited: [{ model: "anthropic:x", atMs: START_MS - 5_000, count: 2, message: "answered with 429" }] }))] }, ["model_limited: Model anthropic:x is rate-limited"]],
    ["a model that had none long ago", { reports: [...without("sessions"), known(reportOf("sessions", { agents, limited: [{ model: "anthropic:x", atMs: START_MS - 500_000, count: 2, message: "m" }] }))] }, []],
    ["approvals that ran out", { symptoms: { unclaimed: [], expired: 2, latestExpiredAtMs: START_MS } }, ["approvals_expired: 2 approvals have expired in the last 24 hours"]],
    ["lists behind, reminders late", { projection: { gaps: 2, entriesMissing: 5, overdue: 1 } }, ["lists_behind: The lists are behind", "reminders_late: 1 session has passed its due time"]],
  ])("%s", (_name, given, expected) => {
    expect(codes(given)).toEqual(expected);
    for (const { fix } of diagnose(facts(given))) expect(fix.length).toBeGreaterThan(3);
  });
});

describe("reports", () => {
  let dir: string;
  let keys: { signer: Signer; trust: Trust };
  let world: ConsoleWorld;
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), "docket-reports-"));
    await ensureDevKeys(dir);
    keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
  });
  afterAll(() => { rmSync(dir, { recursive: true }); });
  beforeEach(async () => { world = await startConsole(keys); });
  afterEach(() => world.close());
  const tell = (report: AppReport) => world.console.handleDeadLetter(messageOf(APP_REPORTED, report));
  const system = async (): Promise<{ apps: (AppReport & { silent: boolean })[]; diagnosis: { code: string }[] }> => (await world.call("GET", "/v1/system", { key: world.key(["viewer"]) })).body as never;
  const letters = async (): Promise<unknown> => (await world.call("GET", "/v1/dead-letters", { key: world.key(["admin"]) })).body["items"];

  it("are on the System page, the newest of each process, no dead letters; who has stopped is gone and stays so", async () => {
    await tell(reportOf("sessions", { actors: 7, atMs: START_MS + 10 }));
    await tell(reportOf("sessions", { actors: 3, atMs: START_MS }));
    await tell(reportOf("tools", { tools: ["refund"] }));
    expect((await system()).apps).toMatchObject([{ app: "sessions", actors: 7, silent: false }, { app: "tools" }]);
    await tell(reportOf("tools", { stopping: true, atMs: START_MS + 20 }));
    await tell(reportOf("tools", { atMs: START_MS + 19 }));
    world.clock.ms += 60_000;
    expect((await system()).apps).toMatchObject([{ app: "sessions", silent: true }]);
    expect((await system()).diagnosis.map(({ code }) => code)).toContain("no_worker");
    expect(await letters()).toEqual([]);
  });

  it("that do not fit are dropped, and are no dead letters either", async () => {
    expect(await world.console.handleDeadLetter(messageOf(APP_REPORTED, { app: "nobody" }))).toBe("SUCCESS");
    expect(await world.console.handleDeadLetter(messageOf(REFUSALS_NOTED, { app: "gateway", refusals: [] }))).toBe("SUCCESS");
    expect(await letters()).toEqual([]);
    expect((await system()).apps).toEqual([]);
  });

  it("say which versions live sessions run, and who offers which", async () => {
    for (const [n, agentVersion] of ["1", "1", "2"].entries()) await world.console.handleJournal(journalMessage(entryOf(1, [], `default_v-${String(n)}`), { actorId: `default_v-${String(n)}`, sessionId: `v-${String(n)}`, agentVersion, status: n === 0 ? "PLANNING" : "IDLE" }));
    await tell(reportOf("sessions", { agents, actors: 3 }));
    await tell(reportOf("tools", { tools: ["refund"] }));
    expect((await world.call("GET", "/v1/agents/running", { key: world.key(["viewer"]) })).body).toEqual({
      live: [{ agent: "orders", version: "1", sessions: 2, busy: 1 }, { agent: "orders", version: "2", sessions: 1, busy: 0 }],
      hosts: [{ instance: "sessions-1", policy: null, actors: 3, agents: [{ name: "orders", version: "2" }] }], workers: [{ instance: "tools-1", tools: ["refund"] }],
    });
    expect((await world.call("GET", "/v1/agents/running", { key: world.key(["viewer"], { tenant: "other" }) })).body["live"]).toEqual([]);
  });

  it("of refusals are rows of the chained audit, each once however often it is delivered; a stranger's path is not shown", async () => {
    const refusals = [
      { refusalId: "r1", atMs: START_MS, code: "forbidden", method: "POST", path: "/v1/sessions/ord-1/events", ip: "10.0.0.1", requestId: "q1", tenant: "default", principalId: "ria", keyId: "k1" },
      { refusalId: "r2", atMs: START_MS, code: "unauthenticated", method: "GET", path: "/v1/sessions/secret", ip: "10.0.0.2", requestId: "q2" }, { refusalId: "r3", atMs: START_MS, code: "unauthenticated", method: "POST", path: "", ip: "10.0.0.2", requestId: "", count: 40 },
    ];
    for (let n = 0; n < 2; n += 1) expect(await world.console.handleDeadLetter(messageOf(REFUSALS_NOTED, { app: "gateway", refusals }))).toBe("SUCCESS");
    const rows = (await world.call("GET", "/v1/audit", { key: world.key(["admin"]) })).body["items"] as { action: string; target: string; outcome: string; principalId: string; ip: string; detail: unknown }[];
    expect(rows.reverse().map(({ action, target, outcome, principalId, ip }) => [action, target, outcome, principalId, ip])).toEqual([
      ["gateway POST", "/v1/sessions/ord-1/events", "forbidden", "ria", "10.0.0.1"], ["gateway GET", "", "unauthenticated", "", "10.0.0.2"], ["gateway refusals.counted", "", "refused", "", "10.0.0.2"],
    ]);
    expect(rows[2]?.detail).toEqual({ count: 40, latest: "unauthenticated" });
    world.clock.ms += 10_000;
    await world.console.lookAround();
    expect((await world.call("GET", "/v1/audit/chain", { key: world.key(["admin"]) })).body).toMatchObject({ broken: null });
  });
});
