/**
 * I1, I6 on the real runtime: the shipped PostgreSQL tool's worker is killed between effect and result; a session's host is killed
 * while a try waits for its time; broker and store are away for longer than many retries; a session is flooded.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { actorIdOf } from "../../src/contracts/ids.js";
import { docket as cli } from "../support/cli-fakes.js";
import { REPO_ROOT } from "../support/cluster.js";
import { createDatabase, type TestDatabase } from "../support/database.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { buildExample, install } from "../support/example.js";
import { chaosAgents, workspaceLines } from "../support/kills.js";
import { hasPostgres } from "../support/tools/postgres.js";

let docket: Docket;
let database: TestDatabase | undefined;
let home: string;
let ledger: pg.Client | undefined;

beforeAll(async () => {
  mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
  home = mkdtempSync(join(REPO_ROOT, ".docket/once-"));
  const folders = await chaosAgents(home);
  const example = buildExample("ledger-tool", home);
  renameSync(join(example, "tools/post-entry.js"), join(example, "tools/_post-entry.js"));
  const fixture = join(REPO_ROOT, "test/fixtures/flaky-agent");
  copyFileSync(join(fixture, "hold-after.mjs"), join(example, "tools/post-entry.js"));
  await install(folders, [
    { name: "ledger-tool", agent: join(example, "agent.js"), tools: { "post-entry.js": join(example, "tools/post-entry.js") }, script: join(REPO_ROOT, "examples/ledger-tool/script.yaml") },
    { name: "flaky", agent: join(fixture, "agent.mjs"), tools: { "never-ready.js": join(fixture, "tools/never-ready.mjs") }, script: join(fixture, "script.yaml") },
  ]);
  if (hasPostgres()) {
    database = await createDatabase();
    ledger = new pg.Client(database.address);
    await ledger.connect();
    await ledger.query(readFileSync(join(REPO_ROOT, "examples/ledger-tool/schema.sql"), "utf8"));
  }
  docket = await startDocket({ extraEnv: { all: { DOCKET_AGENTS_DIR: folders.agentsDir, DOCKET_SCRIPTS_DIR: folders.scriptsDir }, tools: { DOCKET_TOOL_SECRET_LEDGER_URL: database?.address ?? "" } } });
});
afterAll(async () => {
  await docket.close();
  await ledger?.end();
  await database?.drop();
  rmSync(home, { recursive: true, force: true });
});

const workspace = (session: string, file: string): string => join(docket.dataDir, "workspaces", actorIdOf("default", session), file);

describe("a tool whose worker dies between effect and result", () => {
  it.skipIf(!hasPostgres())("killed with -9, its effect is there once, its outcome is known, and nobody is asked", async () => {
    const session = freshSession("ledger");
    const answer = await docket.prompt(session, "post 1250 cents to cash-drawer", { agent: "ledger-tool" });
    await docket.decide(await docket.openApproval(session), "approve");
    await eventually("the effect is committed and its worker stands still", () => (existsSync(workspace(session, "held")) ? true : undefined), 30_000);
    await docket.test.stack.restart("tools");
    const outcome = await docket.ended(answer, 90_000);
    expect(outcome).toMatchObject({ outcome: "completed" });
    const rows = await ledger!.query<{ amount_cents: string }>("select amount_cents from ledger_entries where account = 'cash-drawer'");
    expect(rows.rows).toEqual([{ amount_cents: "1250" }]);
    const journal = await docket.journal(session);
    expect(eventsOf(journal, "ToolResultRecorded")).toMatchObject([{ status: "succeeded", content: { text: expect.stringContaining('"balanceCents"') as unknown } }]);
    expect(eventsOf(journal, "ToolOutcomeUnknown")).toEqual([]);
    expect(eventsOf(journal, "ModelAnswered").at(-1)?.text).toMatch(/^Posted: /);
  });
});

describe("a try that waits for its time", () => {
  it("is neither lost nor counted anew when its host is killed meanwhile: three tries, each in its time, then one dead letter", async () => {
    const waitMs = 6_000;
    const session = freshSession("flaky");
    const answer = await docket.prompt(session, `try, wait ${String(waitMs)}`, { agent: "flaky" });
    const tries = (): { try: number; atMs: number }[] => workspaceLines(docket.dataDir, session, "tries.jsonl") as { try: number; atMs: number }[];
    for (const done of [1, 2]) {
      await eventually(`try ${String(done)} has failed and the next one waits`, async () => (eventsOf(await docket.journal(session), "ToolTryFailed").length === done ? true : undefined), 60_000);
      await docket.test.stack.restart("sessions");
    }
    await docket.ended(answer, 90_000);
    expect(tries().map((line) => line.try)).toEqual([1, 2, 3]);
    const failed = eventsOf(await docket.journal(session), "ToolTryFailed");
    expect(failed.map((event) => [event.try, event.kind, event.retryAtMs === undefined])).toEqual([[1, "transient", false], [2, "transient", false], [3, "transient", true]]);
    // Not before its time, though hosts that know nothing of the wait took the session up in it.
    for (const [index, due] of failed.slice(0, 2).map((event) => event.retryAtMs ?? 0).entries()) expect(tries()[index + 1]!.atMs).toBeGreaterThanOrEqual(due);
    const letters = (await docket.deadLetters()).filter((item) => item.letter.sessionId === session);
    expect(letters.map((item) => item.letter)).toMatchObject([{ kind: "tool_request", reason: "transient", tries: 3 }]);
  });
});

describe("an outage", () => {
  /** Sends while something is away; resolves with what was accepted. */
  const send = (count: number, prefix: string) => Promise.all(Array.from({ length: count }, () => docket.prompt(freshSession(prefix), "hello")));

  it("of the broker, longer than many retries: nothing is dead-lettered, everything is handled afterwards", async () => {
    const before = (await docket.deadLetters()).length;
    const calm = await send(2, "calm");
    await docket.test.stack.kill("broker");
    const accepted = await send(8, "away");
    const pause = Date.now();
    await eventually("fifteen seconds have passed", () => (Date.now() - pause > 15_000 ? true : undefined), 20_000);
    await docket.test.stack.restart("broker");
    for (const answer of [...calm, ...accepted]) expect(await docket.ended(answer, 90_000)).toMatchObject({ outcome: "completed" });
    expect(await docket.deadLetters()).toHaveLength(before);
  });

  it("of the session store, longer than many retries: nothing is dead-lettered, everything is handled afterwards", async () => {
    const before = (await docket.deadLetters()).length;
    // Another process holds the write lock: every commit of the session store fails.
    const lock = new Database(join(docket.dataDir, "state/sessions.db"), { fileMustExist: true });
    lock.exec("BEGIN IMMEDIATE");
    const accepted = await send(4, "locked");
    const pause = Date.now();
    await eventually("twenty seconds have passed", () => (Date.now() - pause > 20_000 ? true : undefined), 25_000);
    const states = await Promise.all(accepted.map(async (answer) => (await docket.gateway("GET", `/v1/sessions/${answer.sessionId}/events/${answer.eventKey}`)).body as { state: string }));
    expect(states.map((outcome) => outcome.state)).not.toContain("ended");
    lock.exec("ROLLBACK");
    lock.close();
    for (const answer of accepted) expect(await docket.ended(answer, 90_000)).toMatchObject({ outcome: "completed" });
    expect(await docket.deadLetters()).toHaveLength(before);
  });
});

describe("a flooded session", () => {
  it("gives every accepted event one outcome: a run, or a dead letter that its sender sees and a redrive runs", async () => {
    const session = freshSession("flood");
    const accepted = [await docket.prompt(session, "think", { agent: "flaky" })];
    await eventually("it works", async () => (eventsOf(await docket.journal(session), "ModelCallStarted").length > 0 ? true : undefined));
    for (let n = 0; n < 6; n += 1) accepted.push(await docket.prompt(session, `event ${String(n)}`));
    const outcomes = [];
    for (const answer of accepted) outcomes.push(await docket.ended(answer, 60_000));
    expect(outcomes.map((outcome) => outcome.outcome)).toEqual(["completed", "completed", ...Array.from({ length: 5 }, () => "dead_lettered")]);
    expect(outcomes.slice(2)).toMatchObject(Array.from({ length: 5 }, () => ({ code: "mailbox_full", deadLetterId: expect.stringMatching(/^dl_/) as unknown })));
    const letters = await eventually("the letters are kept", async () => {
      const found = (await docket.deadLetters()).filter((item) => item.letter.sessionId === session && item.letter.reason === "mailbox_full");
      return found.length === 5 ? found : undefined;
    });
    expect(new Set(letters.map((item) => item.letter.deadLetterId))).toEqual(new Set(outcomes.slice(2).map((outcome) => outcome.deadLetterId)));
    expect(new Set(letters.map((item) => item.fingerprint)).size).toBe(1);

    const env = { DOCKET_GATEWAY_URL: docket.test.stack.urls.gateway, DOCKET_CONSOLE_URL: docket.test.stack.urls.console, DOCKET_API_KEY: docket.apiKey };
    const watched = await cli(["session", "tail", session, "--run", accepted[6]!.runId, "--timeout", "20"], { env });
    expect(watched).toMatchObject({ code: 9, err: expect.stringContaining(outcomes[6]!.deadLetterId!) as unknown });

    // Three at most fit at once: the mailbox holds one. What does not fit dies again, under a new id.
    const bulk = await cli(["dlq", "redrive", "--session", session, "--code", "mailbox_full", "--reason", "there is room", "-o", "json"], { env });
    expect(JSON.parse(bulk.out)).toMatchObject({ matched: 5, redriven: 5, skipped: [] });
    const received = await eventually("the redriven events have come", async () => {
      const events = eventsOf(await docket.journal(session), "EventReceived").filter((event) => event.id.endsWith("#redrive-1"));
      const again = (await docket.deadLetters()).filter((item) => item.letter.sessionId === session && (item.letter.envelope?.id ?? "").endsWith("#redrive-1"));
      return events.length + again.length >= 5 ? events : undefined;
    }, 30_000);
    for (const event of received) expect(letters.map((item) => item.letter.deadLetterId)).toContain(event.causationId);
    expect(new Set(received.map((event) => event.id)).size).toBe(received.length);
    expect((await cli(["dlq", "redrive", "--session", session, "--code", "mailbox_full", "--fingerprint", letters[0]!.fingerprint, "--until", new Date(letters[0]!.receivedAtMs + 1).toISOString(), "--reason", "again", "-o", "json"], { env })).out).toContain('"redriven": 0');
  });
});
