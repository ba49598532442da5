/** The audit: a chain that the file itself guards, signed heads, an export that anyone can check offline, and retention that keeps it checkable (I10). */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import SqliteDatabase from "better-sqlite3";
import fc from "fast-check";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { addAudit, listAudit } from "../../../src/console/read-model/audit.js";
import { openReadModel } from "../../../src/console/read-model/open.js";
import { verifyAuditFile, type AuditFileOptions, type AuditFileReport } from "../../../src/platform/audit-file.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { signAuditHead } from "../../../src/platform/signing.js";
import { START_MS, startConsole, type ConsoleWorld } from "../../support/console-fakes.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
let file: string;
let world: ConsoleWorld;
const DAY_MS = 86_400_000;
const CONFIG = { retention: { auditMs: DAY_MS, everyMs: 1 }, audit: { signEveryMs: 1_000, batch: 7, refusalsPerMinute: 3 } };

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-audit-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => { rmSync(dir, { recursive: true }); });
beforeEach(async () => {
  file = join(dir, `${String(Math.random()).slice(2)}.db`);
  world = await startConsole(keys, { database: file, ...CONFIG });
});
afterEach(() => world.close());

const admin = () => world.key(["admin"]);
const row = (n: number, tenant = "default") => ({ atMs: world.clock.ms, tenant, principalId: `p${String(n)}`, keyId: "k", action: "session.cancel", target: `s${String(n)}`, outcome: "published", reason: `because \u202e ${String(n)}`, detail: { n, big: "9007199254740993" }, ip: "::1" });
/** A second door to the console's file, as another process has it. */
async function add(count: number, tenant?: string): Promise<void> {
  const db = openReadModel(file);
  for (let n = 1; n <= count; n += 1) await addAudit(db, row(n, tenant));
  await db.destroy();
}
async function exported(key = admin(), query = ""): Promise<string[]> {
  const response = await fetch(`${world.http.url}/v1/audit/export${query}`, { headers: { authorization: `Bearer ${key}` } });
  expect(response.status).toBe(200);
  return (await response.text()).trimEnd().split("\n");
}
const verify = (lines: readonly string[], options: Partial<AuditFileOptions> = {}): Promise<AuditFileReport> => verifyAuditFile(lines, { trust: keys.trust, nowMs: world.clock.ms, ...options });
const state = async () => (await world.call("GET", "/v1/audit/chain", { key: admin() })).body;
const rowsOf = (lines: readonly string[]): number[] => lines.flatMap((line, index) => (line.includes('"type":"row"') ? [index] : []));

describe("an export", () => {
  let lines: string[];
  /** 12 rows, a signed head in the middle, the row of the export itself, a signed end. */
  beforeEach(async () => {
    await add(6);
    await world.console.lookAround();
    await add(6);
    world.clock.ms += 2_000;
    lines = await exported();
  });

  it("holds as it is: every row, the head between, the signed end", async () => {
    expect(await verify(lines)).toMatchObject({ ok: true, firstSeq: 1, lastSeq: 14, heads: 2, hidden: 0, partial: false, fault: null });
    expect((JSON.parse(lines.at(-2) ?? "") as { entry: object }).entry).toMatchObject({ action: "audit.export", outcome: "begun" });
  });

  const at = (seq: number): number => lines.findIndex((line) => line.startsWith(`{"type":"row","seq":${String(seq)},`));
  const edit = (seq: number, change: (row: { entry: Record<string, unknown> }) => void): string[] => lines.map((line, index) => {
    if (index !== at(seq)) return line;
    const parsed = JSON.parse(line) as { entry: Record<string, unknown> };
    change(parsed);
    return JSON.stringify(parsed);
  });
  const without = (...indexes: number[]): string[] => lines.filter((_line, index) => !indexes.includes(index));
  const attacks: [string, () => string[], { seq: number; reason: RegExp }][] = [
    ["a word of a row edited", () => edit(4, (r) => { r.entry["principalId"] = "mallory"; }), { seq: 4, reason: /content of row 4 was changed/ }],
    ["a number in its detail edited", () => edit(9, (r) => { r.entry["detail"] = { n: 3, big: "9007199254740992" }; }), { seq: 9, reason: /content of row 9 was changed/ }],
    ["a field added", () => edit(5, (r) => { r.entry["also"] = 1; }), { seq: 5, reason: /content of row 5 was changed/ }],
    ["a row removed", () => without(at(5)), { seq: 6, reason: /row 5 is missing/ }],
    ["two rows swapped", () => { const moved = [...lines]; [moved[at(3)], moved[at(4)]] = [moved[at(4)] ?? "", moved[at(3)] ?? ""]; return moved; }, { seq: 4, reason: /row 3 is missing/ }],
    ["a row repeated", () => [...lines.slice(0, at(3) + 1), lines[at(3)] ?? "", ...lines.slice(at(3) + 1)], { seq: 3, reason: /reordered or repeated/ }],
    ["the end cut off", () => lines.slice(0, -3), { seq: 13, reason: /ends after row 12 .* its end is missing, that head alone or rows from 13 on too/ }],
    ["cut off right behind a signed head", () => lines.slice(0, lines.findIndex((line) => line.includes('"type":"head"')) + 1), { seq: 7, reason: /its end is missing/ }],
    ["the end cut off in the middle of a row", () => [...lines.slice(0, at(9)), (lines[at(9)] ?? "").slice(0, 40)], { seq: 9, reason: /not one of an audit export/ }],
    ["nothing left but the beginning", () => lines.slice(0, 1), { seq: 1, reason: /its end is missing/ }],
    ["rows before the last head cut out", () => without(...rowsOf(lines).slice(-2)), { seq: 12, reason: /signs row 14/ }],
    ["the beginning cut off", () => without(at(1), at(2)), { seq: 3, reason: /its beginning is missing/ }],
    ["rows behind the end", () => [...lines, lines[at(2)] ?? ""], { seq: 15, reason: /lines follow/ }],
    ["a line that is none", () => [...lines.slice(0, 3), "{", ...lines.slice(3)], { seq: 3, reason: /not one of an audit export/ }],
    ["the head in the middle put elsewhere", () => { const moved = [...lines]; const head = moved.findIndex((line) => line.includes('"type":"head"')); moved.splice(head + 1, 0, ...moved.splice(head, 1).map(() => lines[at(7)] ?? "")); return moved; }, { seq: 7, reason: /reordered or repeated/ }],
    ["a row's content taken out", () => edit(5, (r) => { delete (r as { entry?: unknown }).entry; }), { seq: 5, reason: /content of row 5 was taken out/ }],
    ["a row's content taken out, and the row put on the list of those that were left out", () => edit(5, (r) => { delete (r as { entry?: unknown }).entry; }).map((line, index) => (index === lines.length - 1 ? JSON.stringify({ ...JSON.parse(line) as object, withheld: "5" }) : line)), { seq: 14, reason: /not the one that was signed/ }],
    ["nothing", () => [], { seq: 0, reason: /empty/ }],
    ["another file", () => ["{}"], { seq: 1, reason: /not one of an audit export/ }],
  ];
  it.each(attacks)("with %s does not, and the first bad row is named", async (_name, tampered, { seq, reason }) => {
    const report = await verify(tampered());
    expect(report.ok).toBe(false);
    expect(report.fault?.seq).toBe(seq);
    expect(report.fault?.reason).toMatch(reason);
  });

  it("with any byte of any row changed does not, and that row is named", async () => {
    const whole = lines;
    await fc.assert(fc.asyncProperty(fc.constantFrom(...rowsOf(whole)), fc.nat(10_000), fc.integer({ min: 0x20, max: 0x7e }), async (index, place, code) => {
      const line = whole[index] ?? "";
      const at_ = place % line.length;
      const changed = `${line.slice(0, at_)}${String.fromCharCode(code)}${line.slice(at_ + 1)}`;
      // The same value in other signs (the case of an escape's hex digit) is no change.
      let same = false;
      try { same = JSON.stringify(JSON.parse(changed)) === JSON.stringify(JSON.parse(line)); } catch { /* no JSON at all */ }
      fc.pre(!same);
      const seq = (JSON.parse(line) as { seq: number }).seq;
      const report = await verify(whole.map((one, other) => (other === index ? changed : one)));
      expect(report.ok, changed).toBe(false);
      // A number or hash of the row's place changed may be found at the row behind it, or at a row that is missing before it.
      expect(report.fault?.line, `${String(seq)}: ${report.fault?.reason ?? ""}`).toBeGreaterThanOrEqual(index + 1);
    }), { numRuns: 300 });
  });

  it("of another installation, or with another installation's head, does not hold, by the same console's key", async () => {
    const elsewhere = join(dir, `${String(Math.random()).slice(2)}.db`);
    const other = await startConsole(keys, { database: elsewhere, ...CONFIG });
    const response = await fetch(`${other.http.url}/v1/audit/export`, { headers: { authorization: `Bearer ${other.key(["admin"])}` } });
    const theirs = (await response.text()).trimEnd().split("\n");
    await other.close();
    expect(await verify(theirs), "their own copy").toMatchObject({ ok: true });
    expect(await verify([...lines.slice(0, -1), theirs.at(-1) ?? ""])).toMatchObject({ ok: false, fault: { seq: 14, reason: expect.stringMatching(/belongs to installation/) as string } });
    expect(await verify([theirs[0] ?? "", ...lines.slice(1)])).toMatchObject({ ok: false, fault: { reason: expect.stringMatching(/belongs to installation/) as string } });
    expect(await verify(lines, { knownHead: (JSON.parse(theirs.at(-1) ?? "") as { jws: string }).jws })).toMatchObject({ ok: false, fault: { reason: expect.stringMatching(/belongs to installation/) as string } });
  });

  it("whose chain was computed anew after a forgery does not hold without the console's key", async () => {
    const forged = await rechained(lines, (entry) => { if (entry["principalId"] === "p3") entry["principalId"] = "mallory"; });
    expect(await verify(forged)).toMatchObject({ ok: false, fault: { seq: 6, reason: expect.stringMatching(/rewritten/) as string } });
    // Nor without the heads, nor with heads of somebody else's key.
    const headless = forged.filter((line) => !line.includes('"type":"head"'));
    expect(await verify(headless)).toMatchObject({ ok: false, fault: { reason: expect.stringMatching(/end is missing/) as string } });
    const elsewhere = mkdtempSync(join(tmpdir(), "docket-mallory-"));
    await ensureDevKeys(elsewhere);
    const mallory = await loadSigner(elsewhere, "console");
    rmSync(elsewhere, { recursive: true });
    const last = JSON.parse(headless.at(-1) ?? "") as { seq: number; hash: string };
    const first = JSON.parse(headless[1] ?? "") as { prev: string };
    const installation = (JSON.parse(headless[0] ?? "") as { installation: string }).installation;
    const claims = { iss: "docket/console", aud: "docket/audit", installation, purpose: "export", seq: last.seq, hash: last.hash, from: { seq: 1, prev: first.prev, olderKept: false }, iat: Math.floor(world.clock.ms / 1000) } as const;
    expect(await verify([...headless, JSON.stringify({ type: "head", jws: await signAuditHead(mallory, claims) })])).toMatchObject({ ok: false, fault: { reason: expect.stringMatching(/not trusted here/) as string } });
    // The twin: the same lines with the console's own signature hold, so it was the key.
    expect(await verify([...headless, JSON.stringify({ type: "head", jws: await signAuditHead(keys.signer, claims) })])).toMatchObject({ ok: true });
  });

  it("that is an older one is told by a head or a number that was kept elsewhere", async () => {
    await add(2);
    const newer = await exported();
    const head = (JSON.parse(newer.at(-1) ?? "") as { jws: string }).jws;
    expect(await verify(lines, { knownHead: head })).toMatchObject({ ok: false, lastSeq: 14, fault: { seq: 15, reason: expect.stringMatching(/rows are missing at the end/) as string } });
    expect(await verify(newer, { knownHead: head })).toMatchObject({ ok: true });
    expect(await verify(lines, { atLeastSeq: 16 })).toMatchObject({ ok: false, fault: { seq: 15, reason: "the file ends with row 14, expected at least row 16: rows are missing at the end" } });
    expect(await verify(lines, { atLeastSeq: 14 })).toMatchObject({ ok: true });
  });

  it("that was cut short names the first row that is not there, and how far rows must have gone", async () => {
    const cut = lines.slice(0, at(11));
    expect(await verify(cut, { atLeastSeq: 14 })).toMatchObject({ ok: false, lastSeq: 10, signedSeq: 6, fault: { seq: 11, reason: expect.stringMatching(/ends after row 10 .* its end is missing, rows 11 to 14 at least$/) as string } });
    const head = (JSON.parse(lines.at(-1) ?? "") as { jws: string }).jws;
    expect(await verify(cut, { knownHead: head })).toMatchObject({ fault: { seq: 11, reason: expect.stringMatching(/rows 11 to 14 at least$/) as string } });
    expect(await verify(cut, { atLeastSeq: 10 })).toMatchObject({ fault: { seq: 11, reason: expect.stringMatching(/that head alone or rows from 11 on too$/) as string } });
  });

  it("says for which rows a signature stands: rows that fit together may be forged", async () => {
    expect(await verify(lines)).toMatchObject({ signedSeq: 14 });
    const forged = await rechained(lines, (entry) => { if (entry["principalId"] === "p3") entry["principalId"] = "mallory"; });
    expect(await verify(forged), "row 3 was rewritten with all behind it").toMatchObject({ signedSeq: 0, fault: { seq: 6 } });
    const kept = (JSON.parse(lines.at(-1) ?? "") as { jws: string }).jws;
    expect(await verify(lines.slice(0, -1), { knownHead: kept })).toMatchObject({ signedSeq: 14, fault: { seq: 15 } });
  });

  it("may begin later, and says so", async () => {
    const part = await exported(admin(), "?from=9");
    expect(await verify(part)).toMatchObject({ ok: true, firstSeq: 9, partial: true });
    expect(await verify([part[0] ?? "", ...part.slice(2)])).toMatchObject({ ok: false, fault: { reason: expect.stringMatching(/beginning is missing/) as string } });
  });

  it("has of other tenants the hashes only, and still holds", async () => {
    await add(3, "other");
    const mixed = await exported();
    expect(await verify(mixed)).toMatchObject({ ok: true, hidden: 3 });
    // One more, where the console left out three: by its number.
    const emptied = mixed.map((line) => (line.startsWith('{"type":"row","seq":2,') ? line.replace(/,"entry":.*$/, "}") : line));
    expect(await verify(emptied)).toMatchObject({ ok: false, fault: { seq: 2, reason: "the content of row 2 was taken out" } });
    expect(mixed.join("\n")).not.toContain('"tenant":"other"');
    expect(await verify(await exported(world.key(["admin"], { tenant: "other" })))).toMatchObject({ ok: true });
  });

  it("is for administrators", async () => {
    for (const path of ["/v1/audit/export", "/v1/audit/chain"]) for (const role of ["viewer", "operator", "approver"]) expect((await world.call("GET", path, { key: world.key([role]) })).status, `${path} ${role}`).toBe(403);
  });
});

describe("the file", () => {
  const raw = <T>(work: (db: SqliteDatabase.Database) => T): T => {
    const db = new SqliteDatabase(file);
    try { return work(db); } finally { db.close(); }
  };

  it("refuses to change, delete or forge rows", async () => {
    await add(3);
    raw((db) => {
      expect(() => db.exec("update audit_chain set content = '{}' where seq = 2")).toThrow("audit rows never change");
      expect(() => db.exec("delete from audit_chain where seq = 1")).toThrow("kept until a checkpoint");
      expect(() => db.exec("insert into audit_chain select 9, hash, content_hash, hash, content, 'x', at, tenant, action, null from audit_chain where seq = 3")).toThrow("must follow the last one");
      expect(() => db.exec("insert into audit_chain select 4, prev, content_hash, hash, content, 'x', at, tenant, action, null from audit_chain where seq = 3")).toThrow("must follow the last one");
      expect(() => db.exec("update audit_meta set installation = 'x'")).toThrow("never changes");
    });
    await world.console.lookAround();
    raw((db) => {
      expect(() => db.exec("update audit_heads set hash = ''")).toThrow("never change");
      expect(() => db.exec("delete from audit_heads")).toThrow("kept until a checkpoint");
    });
    expect(await state()).toMatchObject({ firstSeq: 1, headSeq: 3, signedSeq: 3, verifiedSeq: 3, broken: null });
  });

  const drop = "drop trigger audit_chain_fixed; drop trigger audit_chain_kept; drop trigger audit_heads_kept;";
  it.each([
    ["a changed row", "update audit_chain set content = replace(content, 'p2', 'pX') where seq = 2", 2],
    ["a changed column", "update audit_chain set tenant = 'other' where seq = 3", 3],
    ["a removed row", "delete from audit_chain where seq = 2", 3],
    ["a removed end", "delete from audit_chain where seq > 3", 4],
    ["a removed beginning", "delete from audit_chain where seq < 3", 3],
  ])("without its triggers: %s is found by the console itself, shown, and not signed over", async (_name, sql, seq) => {
    await add(5);
    await world.console.lookAround();
    raw((db) => db.exec(drop + sql));
    await world.close();
    world = await startConsole(keys, { database: file, ...CONFIG });
    await world.console.lookAround();
    expect(await state()).toMatchObject({ broken: { seq }, signedSeq: 5 });
    // A copy says what was hashed; only the columns that lists search by were wrong.
    expect(await verify(await exported())).toMatchObject({ ok: sql.includes("set tenant") });
  });

  it("takes rows from several processes at once, each once, in one chain", async () => {
    await Promise.all([add(20), add(20), add(20)]);
    const report = await verify(await exported());
    expect(report).toMatchObject({ ok: true, lastSeq: 62 });
  });

  it("of a version without chain is taken over, in order, and says so", async () => {
    const old = join(dir, "old.db");
    const db = new SqliteDatabase(old);
    db.exec(`create table audit (audit_id text primary key, at integer not null, tenant text not null, principal_id text not null, key_id text not null, action text not null, target text not null, outcome text not null, reason text not null, detail text not null, ip text not null);
      insert into audit values ('b', 2, 'default', 'ann', 'k', 'session.cancel', 's', 'published', 'r', '{"x":1}', '::1'), ('a', 1, 'default', 'ann', 'k', 'session.cancel', 's', 'requested', 'r', '{}', '::1')`);
    db.close();
    for (let opened = 0; opened < 2; opened += 1) {
      const model = openReadModel(old);
      const { items } = await listAudit(model, "default", { limit: 10, after: undefined });
      expect(items.map(({ seq, auditId, action }) => [seq, action === "audit.taken-over" ? action : auditId])).toEqual([[3, "audit.taken-over"], [2, "b"], [1, "a"]]);
      expect(items[1]).toMatchObject({ atMs: 2, principalId: "ann", detail: { x: 1 } });
      await model.destroy();
    }
  });

  it("forgets what is old behind a checkpoint, and the chain still holds from there", async () => {
    await add(5);
    await world.console.lookAround();
    world.clock.ms += DAY_MS + 1;
    await add(2);
    await world.console.lookAround();
    expect(await state()).toMatchObject({ firstSeq: 6, headSeq: 8, broken: null });
    const lines = await exported();
    expect(await verify(lines)).toMatchObject({ ok: true, firstSeq: 6, partial: false });
    // Without the checkpoint the missing beginning is a fault: rows gone and nothing stands for them.
    const forged = await rechained(lines, (entry) => { if (entry["action"] === "audit.checkpoint") entry["action"] = "audit.nothing"; });
    expect(await verify(await resigned(forged))).toMatchObject({ ok: false, fault: { seq: 6, reason: expect.stringMatching(/no checkpoint/) as string } });
    world.clock.ms += 3 * DAY_MS;
    await world.console.lookAround();
    await world.console.lookAround();
    expect(await verify(await exported())).toMatchObject({ ok: true });
  });
});

describe("refused requests", () => {
  it("without credentials have a few rows a minute per address, the others are counted in one", async () => {
    for (let n = 0; n < 10; n += 1) expect((await world.call("POST", "/v1/sessions/secret-name/cancel", { body: {} })).status).toBe(401);
    world.clock.ms += 61_000;
    await world.console.lookAround();
    const items = (await world.call("GET", "/v1/audit", { key: admin() })).body["items"] as { action: string; outcome: string; detail: { count?: number }; target: string }[];
    expect(items.map(({ action, outcome, detail }) => `${action} ${outcome} ${String(detail.count ?? "")}`)).toEqual(["refusals.counted refused 7", ...Array.from({ length: 3 }, () => "POST /v1/sessions/:id/cancel unauthenticated ")]);
    expect(JSON.stringify(items)).not.toContain("secret-name");
  });
});

/** The rows with a change, their chain computed anew: what somebody with the file and no key can do. */
async function rechained(lines: readonly string[], change: (entry: Record<string, unknown>) => void): Promise<string[]> {
  const { contentHashOf, rowHashOf } = await import("../../../src/contracts/audit.js");
  let prev: string | undefined;
  return lines.map((line) => {
    const parsed = JSON.parse(line) as { type: string; seq: number; prev: string; contentHash: string; hash: string; entry: Record<string, unknown> };
    if (parsed.type !== "row") return line;
    change(parsed.entry);
    parsed.prev = prev ?? parsed.prev;
    parsed.contentHash = contentHashOf(JSON.stringify(parsed.entry));
    parsed.hash = prev = rowHashOf(parsed);
    return JSON.stringify(parsed);
  });
}

/** Only the last head stays, made anew with the console's key. */
async function resigned(lines: readonly string[]): Promise<string[]> {
  const rows = lines.filter((line) => !line.includes('"type":"head"'));
  const first = JSON.parse(rows[1] ?? "") as { seq: number; prev: string }, last = JSON.parse(rows.at(-1) ?? "") as { seq: number; hash: string };
  const installation = (JSON.parse(rows[0] ?? "") as { installation: string }).installation;
  const jws = await signAuditHead(keys.signer, { iss: "docket/console", aud: "docket/audit", installation, purpose: "export", seq: last.seq, hash: last.hash, from: { seq: first.seq, prev: first.prev, olderKept: false }, iat: Math.floor(START_MS / 1000) });
  return [...rows, JSON.stringify({ type: "head", jws })];
}
