/** `docket key`: keys are hashed, scoped and end; made, listed and revoked in the file that running apps follow. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createApiKeys, parseApiKeys, requireScope } from "../../../src/platform/apikeys.js";
import { docket } from "../../support/cli-fakes.js";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "docket-keys-"));
  mkdirSync(join(dir, "keys"));
});
afterEach(() => { rmSync(dir, { recursive: true }); });
const file = (): string => join(dir, "keys", "api-keys.json");
const run = (args: string[], options = {}) => docket(["key", ...args], { env: { DOCKET_DATA_DIR: dir }, cwd: dir, ...options });
const keysNow = (nowMs = Date.now()) => createApiKeys(parseApiKeys(readFileSync(file(), "utf8"), file()), { nowMs: () => nowMs });
const make = async (...more: string[]): Promise<{ key: string; id: string }> => JSON.parse((await run(["create", "--principal", "ann", "--scopes", "console:read", "-o", "json", ...more])).out) as { key: string; id: string };

it("makes a key that works, of which only the hash is kept, and which ends", async () => {
  const { key, id } = await make("--class", "person", "--roles", "approver,finance", "--expires", "30", "--note", "on call");
  const text = readFileSync(file(), "utf8");
  expect(text).not.toContain(/^dk_[^_]+_(.+)$/.exec(key)![1]);
  expect(statSync(file()).mode & 0o777).toBe(0o600);
  const caller = keysNow().authenticate(`Bearer ${key}`);
  expect(caller).toMatchObject({ keyId: id, tenant: "default", scopes: ["console:read"], principal: { id: "ann", class: "person", roles: ["approver", "finance"] } });
  expect(() => { requireScope(caller, "console:operate"); }).toThrow("lacks the scope console:operate");
  expect(() => keysNow(Date.now() + 30 * 86_400_000 + 1_000).authenticate(`Bearer ${key}`)).toThrow("has expired");
  expect(keysNow(Date.now() + 29 * 86_400_000).authenticate(`Bearer ${key}`).keyId).toBe(id);
});

it("ends after 90 days unless it says otherwise, and stands for a machine that only looks", async () => {
  const { key } = await make();
  expect(keysNow().authenticate(`Bearer ${key}`).principal).toMatchObject({ class: "machine", roles: ["viewer"] });
  expect(() => keysNow(Date.now() + 91 * 86_400_000).authenticate(`Bearer ${key}`)).toThrow("has expired");
  const forever = await make("--expires", "never");
  expect(keysNow(Date.now() + 10_000 * 86_400_000).authenticate(`Bearer ${forever.key}`).keyId).toBe(forever.id);
});

it("lists keys with their end and last use, never the hash", async () => {
  const { id } = await make("--note", "nightly");
  writeFileSync(join(dir, "key-uses-1.json"), JSON.stringify({ [id]: Date.now() - 120_000 }));
  const listed = await run(["list"]);
  expect(listed.out).toMatch(new RegExp(`${id} +ann +machine +viewer +console:read +in 90 d +2m ago +nightly`));
  const json = (await run(["list", "-o", "json"])).out;
  expect(JSON.parse(json)).toMatchObject({ items: [{ id, principalId: "ann" }] });
  expect(json).not.toContain("hash");
});

it("revokes after a yes, and what was signed in with the key ends", async () => {
  const { key, id } = await make();
  expect(await run(["revoke", id])).toMatchObject({ code: 2 });
  expect(await run(["revoke", id], { interactive: true, answer: "n" })).toMatchObject({ code: 1 });
  expect(keysNow().recall(id)).toBeDefined();
  expect(await run(["revoke", id, "--yes"])).toMatchObject({ code: 0 });
  expect(keysNow().recall(id)).toBeUndefined();
  expect(() => keysNow().authenticate(`Bearer ${key}`)).toThrow("not known");
  expect(await run(["revoke", id, "--yes"])).toMatchObject({ code: 3 });
});

it.each([["--scopes", "console:everything"], ["--scopes", ""], ["--class", "agent"], ["--expires", "0"], ["--expires", "soon"], ["--tenant", "Not A Tenant"]])("refuses %s %j and makes none", async (flag, value) => {
  expect(await run(["create", "--principal", "ann", "--scopes", "console:read", flag, value])).toMatchObject({ code: 2 });
  expect((await run(["list", "-o", "json"])).out).toContain('"items": []');
});
