/**
 * Backup and restore as docs/backup.md has them: into fresh stores, with a fresh broker, placement and scheduler. What was accepted before the
 * backup is there and goes on, what came after it is lost, and what ran after it runs again exactly where the tool store was lost too.
 */
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import type { Accepted } from "../../src/contracts/api.js";
import { AuditChainState } from "../../src/contracts/audit.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import { foldCheck, outcomeProblems } from "../support/checks.js";
import { REPO_ROOT, type TestStackOptions } from "../support/cluster.js";
import { createDatabase, type TestDatabase } from "../support/database.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { workspaceLines } from "../support/kills.js";
import { componentsOf } from "../support/main-job.js";
import { hasPostgres } from "../support/tools/postgres.js";

const SLOW_MS = 60_000;
const REFUND = "refund 1200 cents of order 1001";

const ends: (() => Promise<void> | void)[] = [];
afterEach(async () => { for (const end of ends.splice(0).reverse()) await end(); });

/** A data folder that the test removes. */
function folder(): string {
  const dir = mkdtempSync(join(tmpdir(), "docket-backup-"));
  ends.push(() => { rmSync(dir, { recursive: true, force: true }); });
  return dir;
}

async function start(options: TestStackOptions): Promise<Docket> {
  const docket = await startDocket(options);
  ends.push(() => docket.close());
  return docket;
}

const refunds = (docket: Docket, session: string): { key: string }[] => workspaceLines(docket.dataDir, session, "refunds.jsonl") as { key: string }[];

/** Returns the approval's id. */
async function approve(docket: Docket, session: string): Promise<string> {
  const item = await docket.openApproval(session, SLOW_MS);
  expect(await docket.decide(item, "approve")).toMatchObject({ status: 200 });
  return item.pending.record.approvalId;
}
const status = async (docket: Docket, session: string): Promise<string> => (await docket.session(session)).summary.status;

/** Sessions in every state that a backup can meet. */
interface Before {
  readonly done: { readonly session: string; readonly approvalId: string };
  readonly waiting: { readonly session: string; readonly accepted: Accepted };
  /** Waits at the backup, approved after it. */
  readonly late: { readonly session: string; readonly accepted: Accepted };
  /** A question that expires while everything is gone. */
  readonly due: string;
  /** Waits for the worker, which is away. */
  readonly busy: { readonly session: string; readonly accepted: Accepted; readonly generation: number };
  /** Accepted, and no session host has it yet. */
  readonly promised: { readonly session: string; readonly accepted: Accepted };
}

async function work(docket: Docket): Promise<Before> {
  const ask = async (prefix: string): Promise<{ session: string; accepted: Accepted }> => {
    const session = freshSession(prefix);
    return { session, accepted: await docket.prompt(session, REFUND) };
  };
  const [done, waiting, late] = [await ask("done"), await ask("waiting"), await ask("late")];
  const approvalId = await approve(docket, done.session);
  await docket.ended(done.accepted, SLOW_MS);
  for (const { session } of [waiting, late]) await docket.openApproval(session, SLOW_MS);

  await docket.test.stack.kill("tools");
  const busy = freshSession("busy");
  const asked = await docket.prompt(busy, "where is order 1001?");
  await eventually("a call waits for the worker", async () => (await status(docket, busy) === "EXECUTING_TOOL" ? true : undefined), SLOW_MS);
  const generation = eventsOf(await docket.journal(busy), "GuardArmed").at(-1)?.generation ?? 0;
  const due = freshSession("due");
  expect((await docket.gateway("POST", `/v1/sessions/${due}/events`, { text: REFUND, expiresAt: new Date(Date.now() + 15_000).toISOString() })).status).toBe(202);
  await docket.openApproval(due, SLOW_MS);
  await docket.test.stack.kill("sessions");
  const promised = freshSession("promised");
  return { done: { session: done.session, approvalId }, waiting, late, due, busy: { session: busy, accepted: asked, generation }, promised: { session: promised, accepted: await docket.prompt(promised, "hello") } };
}

/** What happens after the backup, and is lost with it. Then everything is destroyed. */
async function goOnAndDie(docket: Docket, before: Before): Promise<string> {
  await docket.test.stack.start("sessions");
  await docket.test.stack.start("tools");
  await docket.test.stack.waitReady();
  await approve(docket, before.late.session);
  await docket.ended(before.late.accepted, SLOW_MS);
  expect(refunds(docket, before.late.session)).toHaveLength(1);
  await docket.ended(before.promised.accepted, SLOW_MS);
  const after = freshSession("after");
  await docket.ended(await docket.prompt(after, "hello"), SLOW_MS);
  await docket.test.stack.killAll("SIGKILL");
  await docket.close();
  return after;
}

/** Keys come from the backup, files of tools from their own place, which was not lost. */
function newDataDir(docket: Docket, keysOf: string): string {
  const dataDir = folder();
  for (const path of ["keys", "secrets.json"]) cpSync(join(keysOf, path), join(dataDir, path), { recursive: true });
  cpSync(join(docket.dataDir, "workspaces"), join(dataDir, "workspaces"), { recursive: true });
  return dataDir;
}

/** Everything that must hold of the restored installation. `effects`: of the call that ran after the backup, once it is approved again. */
async function checkRestored(docket: Docket, before: Before, after: string, effects: number): Promise<void> {
  // Nobody touches these: inbox, and the console's nudges in place of the reminders that the new scheduler does not have.
  const rearmed = eventually("the guard of a busy session is registered anew", async () => {
    const reply = await docket.test.callSidecar("sessions", `/v1.0/actors/SessionActor/${actorIdOf("default", before.busy.session)}/reminders/guard-${String(before.busy.generation)}-again`);
    return reply.ok && await reply.text() !== "" ? true : undefined;
  }, SLOW_MS);
  expect((await docket.ended(before.busy.accepted, SLOW_MS)).outcome).toBe("completed");
  expect((await docket.ended(before.promised.accepted, SLOW_MS)).outcome).toBe("completed");
  await rearmed;
  await eventually("the question has expired", async () => (eventsOf(await docket.journal(before.due), "ApprovalExpired").length === 1 ? true : undefined), SLOW_MS);

  expect(await status(docket, before.done.session)).toBe("IDLE");
  expect(outcomeProblems(await docket.journal(before.done.session))).toEqual([]);
  expect(refunds(docket, before.done.session)).toHaveLength(1);

  expect(refunds(docket, before.waiting.session)).toHaveLength(0);
  await approve(docket, before.waiting.session);
  expect((await docket.ended(before.waiting.accepted, SLOW_MS)).outcome).toBe("completed");
  expect(refunds(docket, before.waiting.session)).toHaveLength(1);

  await approve(docket, before.late.session);
  expect((await docket.ended(before.late.accepted, SLOW_MS)).outcome).toBe("completed");
  expect(refunds(docket, before.late.session)).toHaveLength(effects);
  expect(new Set(refunds(docket, before.late.session).map(({ key }) => key)).size).toBe(1);

  expect((await docket.gateway("GET", `/v1/sessions/${after}`)).status).toBe(404);
  expect((await docket.ended(await docket.prompt(after, "hello"), SLOW_MS)).outcome).toBe("completed");
  const chain = await eventually("the audit is checked", async () => {
    const found = AuditChainState.parse((await docket.console("GET", "/v1/audit/chain")).body);
    return found.verifiedAtMs === null || found.verifiedSeq < found.headSeq ? undefined : found;
  }, SLOW_MS);
  expect(chain.broken).toBeNull();
  expect((await docket.deadLetters()).filter(({ letter }) => letter.sessionId !== before.due)).toEqual([]);
}

describe("backup and restore", () => {
  it("with SQLite, while it runs: lists and audit come back, and the tool store that survived keeps an effect from running again", async () => {
    const docket = await start({ dataDir: folder() });
    const before = await work(docket);
    const backup = join(folder(), "copy");
    execFileSync(process.execPath, [join(REPO_ROOT, "bin/docket.mjs"), "backup", backup, "--data-dir", docket.dataDir], { stdio: "pipe" });
    const after = await goOnAndDie(docket, before);

    const dataDir = newDataDir(docket, backup);
    cpSync(backup, dataDir, { recursive: true });
    for (const file of readdirSync(join(docket.dataDir, "state")).filter((name) => name.startsWith("tools.db"))) cpSync(join(docket.dataDir, "state", file), join(dataDir, "state", file));
    const restored = await start({ dataDir });
    await checkRestored(restored, before, after, 1);
    const rows = (await restored.console("GET", "/v1/audit?limit=200")).body as { items: { target: string }[] };
    expect(rows.items.map(({ target }) => target)).toContain(before.done.approvalId);
    expect(foldCheck(restored).problems).toEqual([]);
  });

  it.skipIf(!hasPostgres())("with PostgreSQL, by the shell of the docs: empty lists are filled from the journals, and without the tool store's last state an effect runs again, under the same key", async () => {
    const stores = await databases();
    const resources = componentsOf({ profile: "embedded", store: "PostgreSQL v2" });
    ends.push(() => { rmSync(resources, { recursive: true, force: true }); });
    const docket = await start(onPostgres(folder(), resources, stores));
    const before = await work(docket);
    const dumps = folder();
    shell("backup", dumps, stores);
    const after = await goOnAndDie(docket, before);

    const fresh = await databases();
    shell("restore", dumps, { ...fresh, console: stores.console });
    const restored = await start(onPostgres(newDataDir(docket, docket.dataDir), resources, fresh));
    const sessions = shell("sessions", dumps, fresh).split("\n").filter((line) => line !== "");
    expect(sessions).toContain(before.waiting.session);
    expect((await restored.console("POST", "/v1/read-model/rebuild", { reason: "restored", sessions })).status).toBe(202);
    await checkRestored(restored, before, after, 2);
    expect(foldCheck(restored, fresh.sessions.address).problems).toEqual([]);
  });
});

type Stores = Record<"sessions" | "inbox" | "tools" | "console", TestDatabase>;

async function databases(): Promise<Stores> {
  const sessions = await createDatabase();
  const [inbox, tools, lists] = [await createDatabase({ beside: sessions }), await createDatabase({ beside: sessions }), await createDatabase({ beside: sessions })];
  ends.push(async () => { for (const one of [lists, tools, inbox, sessions]) await one.drop(); });
  return { sessions, inbox, tools, console: lists };
}

function onPostgres(dataDir: string, resources: string, stores: Stores): TestStackOptions {
  return {
    dataDir, resources, env: { ...process.env, DOCKET_POSTGRES_SESSIONS: stores.sessions.address, DOCKET_POSTGRES_INBOX: stores.inbox.address, DOCKET_POSTGRES_TOOLS: stores.tools.address },
    extraEnv: { console: { DOCKET_CONSOLE_DATABASE: stores.console.address } },
  };
}

/** Runs a block of docs/backup.md: the one after the marker `<!-- shell: name -->`. */
function shell(name: string, cwd: string, stores: Stores): string {
  const block = new RegExp(`<!-- shell: ${name} -->\\n\`\`\`sh\\n([^]*?)\`\`\``).exec(readFileSync(join(REPO_ROOT, "docs/backup.md"), "utf8"))?.[1];
  if (block === undefined) throw new Error(`docs/backup.md has no shell block "${name}"`);
  const env = { ...process.env, SESSIONS: stores.sessions.address, INBOX: stores.inbox.address, TOOLS: stores.tools.address, CONSOLE: stores.console.address };
  return execFileSync("sh", ["-eu", "-c", block], { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
