/** What the console's pages ask for beside lists: decisions together, similar ones, a state at any revision, the journal as a file, costs, saved views, reading it all again. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { APPROVAL_PENDING, type ApprovalRecord } from "../../../src/contracts/decisions.js";
import { actorIdOf, argsDigest } from "../../../src/contracts/ids.js";
import { JOURNAL_APPENDED } from "../../../src/contracts/journal.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { fold } from "../../../src/session/core/evolve.js";
import { messageOf, pendingOf, recordOf, START_MS, startConsole, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";
import { madeJournal } from "../../support/journal-made.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
let world: ConsoleWorld;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "docket-pages-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => rm(dir, { recursive: true }));
beforeEach(async () => { world = await startConsole(keys); });
afterEach(() => world.close());

/** An approval of a session of its own. */
async function waiting(n: number, overrides: Partial<ApprovalRecord> = {}): Promise<{ approvalId: string; version: number; argsDigest: string }> {
  const args = `{"amount":${String(n)}}`;
  const sessionId = `ord-${String(n)}`;
  const record = recordOf({ approvalId: `apr_${String(n)}`, argsDigest: argsDigest(args), risk: "medium", ...overrides });
  const actorId = actorIdOf("default", sessionId);
  world.sessions.views.set(actorId, viewOf([record]));
  await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(record, { args, actorId, sessionId }), { id: `p${String(n)}` }));
  return { approvalId: record.approvalId, version: record.version, argsDigest: record.argsDigest };
}
const together = (approvals: object[], more: object = {}, roles = ["approver"]) => world.call("POST", "/v1/approvals/decisions", { key: world.key(roles), body: { kind: "approve", clickId: "click-0001", approvals, ...more } });
const audit = async () => ((await world.call("GET", "/v1/audit", { key: world.key(["admin"]) })).body["items"] as { action: string; target: string; outcome: string }[]).map(({ action, target, outcome }) => `${action} ${target} ${outcome}`);

describe("decisions together", () => {
  it("of one tool, one rule and less than high risk are each a decision of its own, with its own verdict and rows in the audit", async () => {
    const approvals = [await waiting(1), await waiting(2), { ...await waiting(3), version: 9 }];
    const answer = await together(approvals);
    expect(answer.status).toBe(200);
    expect((answer.body["items"] as { verdict: string }[]).map((one) => one.verdict)).toEqual(["approved", "approved", "version_mismatch"]);
    expect(world.decisions.sent).toHaveLength(3);
    expect(await audit()).toEqual(expect.arrayContaining(["approval.approve apr_1 approved", "approval.approve apr_2 approved", "approval.approve apr_3 version_mismatch"]));
    const again = await together(approvals.slice(0, 2));
    expect((again.body["items"] as { verdict: string }[]).map((one) => one.verdict), "the same click counts once").toEqual(["approved", "approved"]);
    expect(world.decisions.sent).toHaveLength(3);
  });

  it.each<[string, Partial<ApprovalRecord>, RegExp]>([
    ["high risk", { risk: "high" }, /is of high risk/], ["another tool", { tool: "ship" }, /is for ship/], ["another rule", { rule: "other" }, /asked for by rule other/], ["an escalation", { kind: "escalation" }, /is an escalation/],
  ])("with one of %s among them nothing at all is decided", async (_what, overrides, why) => {
    const answer = await together([await waiting(1), await waiting(2, overrides)]);
    expect(answer).toMatchObject({ status: 403, body: { code: "decision_not_allowed", detail: expect.stringMatching(why) as string } });
    expect(world.decisions.sent).toEqual([]);
  });

  it("needs the role, a person, no repetition, and a reason to reject", async () => {
    const approvals = [await waiting(1), await waiting(2)];
    expect((await together(approvals, {}, ["viewer"])).status).toBe(403);
    expect((await together([...approvals, approvals[0] ?? {}])).status).toBe(400);
    expect((await together(approvals, { kind: "reject" })).status).toBe(422);
    expect((await together(approvals, { kind: "modify" })).status).toBe(422);
    expect(world.decisions.sent).toEqual([]);
    expect(await audit()).toEqual(expect.arrayContaining(["approval.together 2 approvals not_an_approver", "approval.together 3 approvals bad_request"]));
    expect(((await together(approvals, { kind: "reject", text: "not today" })).body["items"] as { verdict: string }[]).map((one) => one.verdict)).toEqual(["rejected", "rejected"]);
  });
});

describe("a session's history", () => {
  const journal = madeJournal({ index: 1, modelCalls: 2, startMs: START_MS });
  const { actorId, sessionId } = journal[0]?.summary ?? { actorId: "", sessionId: "" };
  beforeEach(() => { world.sessions.journals.set(actorId, journal.map(({ entry }) => entry)); });

  it("is the fold of its journal up to any revision, and nothing beyond the newest", async () => {
    const state = async (rev: number) => world.call("GET", `/v1/sessions/${sessionId}/state?rev=${String(rev)}`, { key: world.key(["viewer"]) });
    const statuses = await Promise.all(journal.map(async ({ entry }) => ((await state(entry.rev)).body["state"] as { status: string; rev: number }).status));
    expect(statuses).toEqual(["PLANNING", "EXECUTING_TOOL", "SUMMARIZING", "IDLE"]);
    expect((await state(5)).status).toBe(404);
    expect((await state(0)).status).toBe(422);
    expect((await world.call("GET", "/v1/sessions/nobody/state?rev=1", { key: world.key(["viewer"]) })).status).toBe(404);
    expect((await world.call("GET", `/v1/sessions/${sessionId}/state?rev=1`)).status).toBe(401);
  });

  it("of a journal that was shortened is known from its checkpoint on, and says so before", async () => {
    const [, second, ...rest] = journal.map(({ entry }) => entry);
    if (second === undefined || rest[0] === undefined) throw new Error("the journal has too few entries");
    const before = fold([journal[0]?.entry, second].filter((entry) => entry !== undefined));
    const checkpoint = { ...rest[0], events: [{ type: "JournalCompacted" as const, toRev: 1, toDigest: "d1", state: { ...before }, erase: { fromRev: 1, toRev: 1, dueAtMs: START_MS } }, ...rest[0].events] };
    world.sessions.journals.set(actorId, [second, checkpoint, ...rest.slice(1)]);
    const state = (rev: number) => world.call("GET", `/v1/sessions/${sessionId}/state?rev=${String(rev)}`, { key: world.key(["viewer"]) });
    expect(await state(2)).toMatchObject({ status: 404, body: { detail: expect.stringContaining("compacted") as string } });
    expect(await state(3)).toMatchObject({ status: 200, body: { state: { status: "SUMMARIZING", rev: 3 } } });
  });

  it("is exported entry by entry, one a line", async () => {
    const reply = await fetch(`${world.http.url}/v1/sessions/${sessionId}/export`, { headers: { authorization: `Bearer ${world.key(["viewer"])}` } });
    expect(reply.headers.get("content-disposition")).toBe(`attachment; filename="${sessionId}.jsonl"`);
    expect((await reply.text()).trim().split("\n").map((line) => JSON.parse(line) as unknown)).toEqual(journal.map(({ entry }) => entry));
  });
});

describe("what days cost, and rules decided", () => {
  it("is counted from the journals, and read again when an administrator says so", async () => {
    const journal = madeJournal({ index: 2, modelCalls: 3, startMs: START_MS });
    world.sessions.journals.set(journal[0]?.entry.actorId ?? "", journal.map(({ entry }) => entry));
    await world.console.handleJournal(messageOf(JOURNAL_APPENDED, { appended: journal }));
    const costs = async () => (await world.call("GET", "/v1/costs?days=7", { key: world.key(["viewer"]) })).body;
    const before = await costs();
    expect(before).toMatchObject({ agents: [{ agent: "refunds", calls: 3, inputTokens: 2_700 }], models: [{ model: "big-model" }], sessions: [{ sessionId: "case-000002" }] });
    expect((before["days"] as { usd: number }[])[0]?.usd).toBeCloseTo(0.009);
    expect((await world.call("GET", "/v1/policy", { key: world.key(["viewer"]) })).body["hits"]).toMatchObject([{ rule: "read-only", verdict: "allow", hits: 2 }]);
    const rebuild = (roles: string[], body: object) => world.call("POST", "/v1/read-model/rebuild", { key: world.key(roles), body });
    expect((await rebuild(["operator"], { reason: "x" })).status).toBe(403);
    expect((await rebuild(["admin"], {})).status).toBe(422);
    expect(await rebuild(["admin"], { reason: "after the restore" })).toMatchObject({ status: 202, body: { projection: { gaps: 1 } } });
    expect((await costs())["days"]).toEqual([]);
    await world.console.lookAround();
    expect(await costs()).toEqual(before);
    expect(await rebuild(["admin"], { reason: "x", sessions: ["nobody"] })).toMatchObject({ status: 202, body: { missing: ["nobody"] } });
  });
});

describe("saved views", () => {
  it("are each person's own, lead to lists only, and are audited", async () => {
    const ann = world.key(["viewer"]);
    const ben = world.key(["viewer"], { id: "ben" });
    const save = (address: string, name = "mine") => world.call("POST", "/v1/views", { key: ann, body: { name, address } });
    expect((await save("/sessions?status=IDLE")).status).toBe(201);
    expect((await save("/sessions?status=CLOSED&q=a")).status).toBe(201);
    for (const address of ["//evil.example/sessions", "https://evil.example", "/session", "javascript:alert(1)", "/sessions#x", "/sessions?a b"]) expect((await save(address)).status, address).toBe(422);
    const views = async (key: string) => (await world.call("GET", "/v1/views", { key })).body["items"];
    expect(await views(ann)).toEqual([{ name: "mine", address: "/sessions?status=CLOSED&q=a" }]);
    expect(await views(ben)).toEqual([]);
    expect((await world.call("DELETE", "/v1/views/mine", { key: ben })).status).toBe(204);
    expect(await views(ann)).toHaveLength(1);
    expect((await world.call("DELETE", "/v1/views/mine", { key: ann })).status).toBe(204);
    expect(await views(ann)).toEqual([]);
    expect(await audit()).toEqual(expect.arrayContaining(["view.save mine saved", "view.remove mine removed"]));
  });
});
