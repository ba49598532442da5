/** The clock of a process is where the file says, while it runs; timers do not care. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { REPO_ROOT } from "../../support/cluster.js";

let home: string;
beforeAll(() => { home = mkdtempSync(join(tmpdir(), "docket-clock-")); });
afterAll(() => { rmSync(home, { recursive: true, force: true }); });

it("moves Date.now and new Date together, forwards and back, and nothing else", async () => {
  const file = join(home, "offset");
  const child = spawn(process.execPath, ["--import", pathToFileURL(join(REPO_ROOT, "test/support/clock-jump.mjs")).href, "-e",
    `process.stdin.on("data", () => setTimeout(() => console.log(JSON.stringify([Date.now(), new Date().getTime(), new Date(5).getTime(), new Date() instanceof Date])), 60))`],
  { env: { ...process.env, DOCKET_CLOCK_FILE: file }, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (): Promise<[number, number, number, boolean]> => {
    child.stdin.write("?");
    return JSON.parse((await lines.next()).value as string) as [number, number, number, boolean];
  };
  try {
    for (const offsetMs of [0, 25_000, -25_000, 0]) {
      writeFileSync(file, String(offsetMs));
      const [now, date, fixed, isDate] = await ask();
      expect(Math.abs(now - Date.now() - offsetMs)).toBeLessThan(10_000);
      expect(Math.abs(date - now)).toBeLessThan(100);
      expect([fixed, isDate]).toEqual([5, true]);
    }
  } finally {
    child.kill();
    await once(child, "exit");
  }
});
