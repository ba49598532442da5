/** `docket audit`: a copy from a console, checked without it. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ensureDevKeys, loadSigner, loadTrust } from "../../../src/platform/keys.js";
import { docket, fakeServer } from "../../support/cli-fakes.js";
import { startConsole, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";

let dir: string;
let world: ConsoleWorld;
let env: Record<string, string>;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "docket-cli-audit-"));
  await ensureDevKeys(join(dir, "keys"));
  world = await startConsole({ signer: await loadSigner(join(dir, "keys"), "console"), trust: await loadTrust(join(dir, "keys")) });
  world.clock.ms = Date.now();
  world.sessions.views.set("default_s-1", viewOf([]));
  env = { DOCKET_CONSOLE_URL: world.http.url, DOCKET_API_KEY: world.key(["admin"], { id: "root" }), DOCKET_DATA_DIR: dir };
  await world.call("POST", "/v1/sessions/s-1/cancel", { key: world.key(["operator"], { id: "otto" }), body: { reason: "wrong order" } });
});
afterAll(async () => {
  await world.close();
  rmSync(dir, { recursive: true });
});
const file = (): string => join(dir, "audit.jsonl");
const run = (...args: string[]) => docket(["audit", ...args], { env, cwd: dir });

it("takes a copy that verifies offline, by the public keys alone", async () => {
  expect(await run("export", "--out", "audit.jsonl")).toMatchObject({ code: 0, out: "" });
  const offline = { env: { DOCKET_KEYS_DIR: join(dir, "keys") }, cwd: dir };
  rmSync(join(dir, "keys", "console.private.jwk.json"));
  const good = await docket(["audit", "verify", "audit.jsonl"], offline);
  expect(good).toMatchObject({ code: 0 });
  expect(good.out).toContain("whole and true");
  expect(good.out).toContain("1 to 4");
});

it("leaves a file that is there as it is, unless --force says to replace it, and a copy that breaks off replaces nothing", async () => {
  writeFileSync(join(dir, "kept.jsonl"), "mine");
  const copies = async (): Promise<number> => (await run("list")).out.match(/audit\.export/g)?.length ?? 0;
  const before = await copies();
  expect(await run("export", "--out", "kept.jsonl")).toMatchObject({ code: 4, err: expect.stringContaining("code:  file_exists") as string });
  expect(await copies()).toBe(before);
  expect(readFileSync(join(dir, "kept.jsonl"), "utf8")).toBe("mine");
  expect(await run("export", "--out", "kept.jsonl", "--force")).toMatchObject({ code: 0 });
  expect((await run("verify", "kept.jsonl")).code).toBe(0);
  const whole = readFileSync(join(dir, "kept.jsonl"), "utf8");
  const breaking = await fakeServer((_req, res) => { res.writeHead(200); res.write("half a row", () => { res.destroy(); }); });
  try {
    for (const flags of [["--out", "kept.jsonl", "--force"], ["--out", "new.jsonl"]]) expect((await docket(["audit", "export", ...flags], { env: { ...env, DOCKET_CONSOLE_URL: breaking.url }, cwd: dir })).code).toBe(7);
  } finally {
    await breaking.close();
  }
  expect((await docket(["audit", "export", "--out", "refused.jsonl"], { env: { ...env, DOCKET_API_KEY: world.key(["viewer"]) }, cwd: dir })).code).toBe(5);
  expect(readFileSync(join(dir, "kept.jsonl"), "utf8")).toBe(whole);
  expect(readdirSync(dir).filter((name) => /^new\.jsonl$|part|refused/.test(name))).toEqual([]);
  expect(await run("export", "--out", "no/such/folder.jsonl")).toMatchObject({ code: 1, err: expect.stringContaining("file_unwritable") as string });
});

it("names the first bad row and ends 8", async () => {
  writeFileSync(join(dir, "bad.jsonl"), readFileSync(file(), "utf8").replace("wrong order", "right order"));
  const bad = await run("verify", "bad.jsonl");
  expect(bad).toMatchObject({ code: 8 });
  expect(bad.out).toMatch(/NOT TRUE: the content of row 1 was changed\nfirst bad row +1\n/);
  expect(JSON.parse((await run("verify", "bad.jsonl", "-o", "json")).out)).toMatchObject({ ok: false, fault: { seq: 1, line: 2 } });
});

it.each<[string, (lines: string[]) => string[], RegExp]>([
  ["a row removed", (lines) => lines.filter((line) => !line.startsWith('{"type":"row","seq":2,')), /NOT TRUE: row 2 is missing before row 3\nfirst bad row +3\n/],
  ["two rows swapped", ([first = "", one = "", two = "", ...rest]) => [first, two, one, ...rest], /NOT TRUE: .*\nfirst bad row +1\n/],
  ["the end cut off", (lines) => lines.slice(0, -1), /NOT TRUE: .*its end is missing, .*\nfirst bad row +5\nline +5\nbefore it +rows 1 to 4 fit together; no signature stands for them\n/],
  ["a row emptied", (lines) => lines.map((line) => (line.startsWith('{"type":"row","seq":3,') ? line.replace(/,"entry":.*$/, "}") : line)), /NOT TRUE: the content of row 3 was taken out\nfirst bad row +3\n/],
])("with %s it is refused, the row is named, exit code 8", async (_name, tamper, said) => {
  writeFileSync(join(dir, "mutated.jsonl"), `${tamper(readFileSync(file(), "utf8").trimEnd().split("\n")).join("\n")}\n`);
  const bad = await run("verify", "mutated.jsonl");
  expect(bad.code).toBe(8);
  expect(bad.out).toMatch(said);
});

it("an older copy does not continue a newer one; the newer continues the older", async () => {
  expect((await run("export", "--out", "newer.jsonl")).code).toBe(0);
  expect((await run("verify", "newer.jsonl", "--head", "audit.jsonl")).code).toBe(0);
  expect((await run("verify", "audit.jsonl", "--head", "newer.jsonl")).code).toBe(8);
  const short = await run("verify", "audit.jsonl", "--at-least", "9");
  expect(short.code).toBe(8);
  expect(short.out).toMatch(/NOT TRUE: the file ends with row 4, expected at least row 9: rows are missing at the end\nfirst bad row +5\nline +6\nbefore it +rows 1 to 4 fit together; signed\n/);
});

it("says what is wrong with what it is given", async () => {
  expect(await run("verify", "none.jsonl")).toMatchObject({ code: 3 });
  expect(await run("verify", "audit.jsonl", "--keys-dir", "nowhere")).toMatchObject({ code: 3 });
  expect(await run("verify", "audit.jsonl", "--at-least", "x")).toMatchObject({ code: 2 });
  expect(await run("verify", "audit.jsonl", "--head", "bad.jsonl")).toMatchObject({ code: 0 }); // its head is a true one
  writeFileSync(join(dir, "words.txt"), "no head");
  expect(await run("verify", "audit.jsonl", "--head", "words.txt")).toMatchObject({ code: 6 });
});

it("lists rows and says that the chain holds", async () => {
  expect((await run("list")).out).toMatch(/otto +session.cancel +s-1 +published +wrong order/);
  await world.console.lookAround();
  const state = await run("state");
  expect(state.code).toBe(0);
  expect(state.out).toMatch(/chain +holds/);
});
