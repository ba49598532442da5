/** Fault points: inert unless a file is named, exact about the point and the count, and never twice. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { FAULT_POINTS, faultPointsOf, type FaultPoint } from "../../../src/platform/faults.js";
import { sources } from "../docs/pages.js";

let home: string;
let file: string;
let ended = 0;
const end = (): void => { ended += 1; };
beforeAll(() => { home = mkdtempSync(join(tmpdir(), "docket-faults-")); file = join(home, "armed"); });
beforeEach(() => { ended = 0; writeFileSync(file, ""); });
afterAll(() => { rmSync(home, { recursive: true, force: true }); });

describe("a fault point", () => {
  it("does nothing where no file is named, and nothing while the file is empty, missing, or names another point", () => {
    faultPointsOf(undefined, end)("after-commit");
    faultPointsOf("", end)("after-commit");
    faultPointsOf(join(home, "nowhere"), end)("after-commit");
    const pass = faultPointsOf(file, end);
    pass("after-commit");
    writeFileSync(file, "before-commit:1");
    pass("after-commit");
    expect(ended).toBe(0);
  });

  it("ends the process the n-th time it is passed, and disarms itself first", () => {
    const pass = faultPointsOf(file, end);
    writeFileSync(file, "after-commit:3\n");
    pass("after-commit");
    pass("before-ack");
    pass("after-commit");
    expect(ended).toBe(0);
    pass("after-commit");
    expect(ended).toBe(1);
    expect(readFileSync(file, "utf8")).toBe("");
    pass("after-commit");
    expect(ended).toBe(1);
  });

  it("counts anew when it is armed again", () => {
    const pass = faultPointsOf(file, end);
    for (const round of [1, 2]) {
      writeFileSync(file, "after-result");
      pass("after-result");
      expect(ended).toBe(round);
    }
  });

  it("is passed somewhere in the code, each of them", () => {
    const code = sources("src", ".ts").map(({ text }) => text).join("\n");
    for (const point of Object.keys(FAULT_POINTS) as FaultPoint[]) expect(code).toContain(`faultPoint("${point}")`);
  });
});
