/** API keys: what is stored, what is compared, what is refused. */
import { mkdtemp, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { createApiKey, createApiKeys, followApiKeyFile, parseApiKeys, readApiKeyFile, requireScope, writeApiKeyFile } from "../../../src/platform/apikeys.js";

const make = () => createApiKey({ tenant: "acme", principalId: "ann", class: "person", roles: ["operator"], scopes: ["sessions:read"] });

describe("API keys", () => {
  it("stores a hash, never the key", () => {
    const { key, record } = make();
    expect(key).toMatch(/^dk_[a-z0-9]{12}_[A-Za-z0-9_-]{43}$/);
    expect(JSON.stringify(record)).not.toContain(key.slice(16));
    expect(createApiKeys([record]).authenticate(`Bearer ${key}`)).toMatchObject({ tenant: "acme", principal: { id: "ann", class: "person", roles: ["operator"] } });
  });

  it("refuses everything else, a known id with another secret like an unknown id", () => {
    const { key, record } = make();
    const keys = createApiKeys([record]);
    const wrong = [undefined, "", key, `Basic ${key}`, `Bearer ${key}x`, `Bearer ${key.slice(0, -1)}`, `Bearer ${make().key}`, `Bearer dk_${record.id}_${"A".repeat(43)}`, `Bearer ${key} ${key}`, `Bearer dk_${record.id}_`, `Bearer ${"x".repeat(10_000)}`];
    for (const header of wrong) expect(() => keys.authenticate(header)).toThrow(expect.objectContaining({ code: "unauthenticated" }) as Error);
  });

  it("asks for a scope; * is all", () => {
    const { key, record } = make();
    const caller = createApiKeys([record]).authenticate(`Bearer ${key}`);
    requireScope(caller, "sessions:read");
    expect(() => { requireScope(caller, "sessions:cancel"); }).toThrow(expect.objectContaining({ code: "forbidden" }) as Error);
    requireScope({ ...caller, scopes: ["*"] }, "sessions:cancel");
  });

  it("says what is wrong with a file, and reads none as no keys", async () => {
    const { record } = make();
    expect(parseApiKeys(JSON.stringify([record]), "env")).toEqual([record]);
    expect(() => parseApiKeys("{", "DOCKET_API_KEYS")).toThrow(/DOCKET_API_KEYS is not JSON/);
    expect(() => parseApiKeys(JSON.stringify([{ ...record, hash: "plain" }]), "env")).toThrow(/not usable/);
    expect(() => parseApiKeys(JSON.stringify([record, record]), "env")).toThrow(/twice/);
    expect(await readApiKeyFile("/nonexistent/keys.json")).toEqual([]);
  });

  it("writes for its owner only, and follows changes: a key is revoked without a restart", async () => {
    const path = join(await mkdtemp(join(tmpdir(), "docket-keys-")), "api-keys.json");
    const { key, record } = make();
    await writeApiKeyFile(path, [record]);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const keys = createApiKeys(await readApiKeyFile(path));
    const errors: unknown[] = [];
    const follow = followApiKeyFile(path, keys, { everyMs: 10, onError: (error) => errors.push(error) });
    keys.authenticate(`Bearer ${key}`);
    await writeFile(path, "broken");
    await vi.waitFor(() => { expect(errors.length).toBeGreaterThan(0); }, 5_000);
    keys.authenticate(`Bearer ${key}`);
    await writeApiKeyFile(path, []);
    await vi.waitFor(() => { expect(() => keys.authenticate(`Bearer ${key}`)).toThrow(); }, 5_000);
    follow.stop();
  });
});
