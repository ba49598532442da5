/** Workspaces end: by age after their last use, and with their session; never while a run is in them. */
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { Problem } from "../../../src/contracts/problems.js";
import { WORKSPACE_RELEASE, WORKSPACE_RELEASED, type GrantClaims } from "../../../src/contracts/tools.js";
import { handleRelease } from "../../../src/tools/release.js";
import { Workspaces } from "../../../src/tools/workspace.js";

const DAY_MS = 86_400_000;
let root: string;
let nowMs: number;
let workspaces: Workspaces;
beforeEach(async () => {
  root = join(await mkdtemp(join(tmpdir(), "docket-workspaces-")), "workspaces");
  nowMs = Date.parse("2026-01-01T00:00:00Z");
  workspaces = new Workspaces(root, () => nowMs);
});
afterEach(async () => { await rm(join(root, ".."), { recursive: true, force: true }); });

async function used(actorId: string): Promise<string> {
  const workspace = await workspaces.open(actorId);
  await writeFile(join(workspace.path, "file.txt"), "x");
  await workspace.close();
  return workspace.path;
}
const there = (): Promise<string[]> => readdir(root);

describe("a workspace that nobody uses any more", () => {
  it("is removed with all that is in it, by age after its last use; the others stay", async () => {
    await used("default_old");
    nowMs += 20 * DAY_MS;
    await used("default_new");
    expect(await workspaces.sweep(30 * DAY_MS)).toBe(0);
    nowMs += 11 * DAY_MS;
    expect(await workspaces.sweep(30 * DAY_MS)).toBe(1);
    expect(await there()).toEqual(["default_new"]);
    await used("default_new");
    nowMs += 29 * DAY_MS;
    expect(await workspaces.sweep(30 * DAY_MS)).toBe(0);
  });

  it("is not removed while a run is in it, however old; a second run that ends does not free it for the first", async () => {
    const first = await workspaces.open("default_busy");
    const second = await workspaces.open("default_busy");
    nowMs += 90 * DAY_MS;
    await second.close();
    await second.close();
    await utimes(first.path, new Date(0), new Date(0));
    expect(await workspaces.sweep(30 * DAY_MS)).toBe(0);
    expect(await workspaces.forget("default_busy", nowMs)).toBe(false);
    await first.close();
    expect(await workspaces.sweep(30 * DAY_MS)).toBe(0); // its run has ended just now
    nowMs += 31 * DAY_MS;
    expect(await workspaces.sweep(30 * DAY_MS)).toBe(1);
  });

  it("is never taken from a run that begins at the same moment", async () => {
    for (let n = 0; n < 50; n += 1) {
      await used("default_race");
      nowMs += 31 * DAY_MS;
      const [, opened] = await Promise.all([workspaces.sweep(30 * DAY_MS), workspaces.open("default_race"), workspaces.sweep(30 * DAY_MS)]);
      await writeFile(join(opened.path, "mine.txt"), "x");
      await opened.close();
      expect(await there()).toEqual(["default_race"]);
    }
  });

  it("leaves nothing behind where a worker was killed while it removed one; a missing root is no failure", async () => {
    expect(await workspaces.sweep(0)).toBe(0);
    await mkdir(join(root, ".gone-1", "deep"), { recursive: true });
    await workspaces.sweep(30 * DAY_MS);
    expect(await there()).toEqual([]);
  });
});

describe("a deleted session", () => {
  const claims: Pick<GrantClaims, "sub" | "tool" | "digest"> = { sub: "default_s", tool: WORKSPACE_RELEASE, digest: "" };
  const deliver = async (deletedAtMs: number, about: Partial<GrantClaims> | Problem = {}) => handleRelease({
    workspaces, log: () => undefined,
    grants: { verify: () => (about instanceof Problem ? Promise.reject(about) : Promise.resolve({ ...claims, digest: String(deletedAtMs), ...about } as GrantClaims)) },
  }, JSON.stringify({ specversion: "1.0", id: "r1", source: "docket://sessions", type: WORKSPACE_RELEASED, data: { tenant: "default", sessionId: "s", actorId: "default_s", deletedAtMs, proof: "jws" } }));

  it("takes its workspace with it; one that a new life has used since stays", async () => {
    await used("default_s");
    expect(await deliver(nowMs - 1)).toBe("SUCCESS");
    expect(await there()).toEqual(["default_s"]);
    expect(await deliver(nowMs + 1)).toBe("SUCCESS");
    expect(await there()).toEqual([]);
    expect(await deliver(nowMs + 1)).toBe("SUCCESS");
  });

  it.each([
    ["for another session", { sub: "default_other" }], ["for a tool", { tool: "refund" }], ["for another time", { digest: "1" }], ["that does not verify", new Problem("bad_signature", "forged")],
  ] as const)("is not believed by a word %s", async (_what, about) => {
    await used("default_s");
    expect(await deliver(nowMs + 1, about)).toBe("SUCCESS");
    expect(await there()).toEqual(["default_s"]);
  });

  it("is asked about again where the keys cannot be read; what is not about it is left to others", async () => {
    expect(await deliver(nowMs + 1, new Problem("store_unavailable", "no keys"))).toBe("RETRY");
    expect(await handleRelease({ workspaces, log: () => undefined, grants: { verify: () => Promise.reject(new Error("never")) } }, `{"note":"${WORKSPACE_RELEASED}"}`)).toBeUndefined();
  });
});
