/** The one log of a stack: each format is understood, and infrastructure is quiet. */
import { describe, expect, it } from "vitest";
import { isWorthShowing, LogView, parseLogLine } from "../../../src/launcher/log-view.js";

describe("parseLogLine", () => {
  it.each([
    ['{"level":40,"time":1,"pid":2,"hostname":"h","msg":"slow"}', "warn", "slow"],
    ['{"level":"error","msg":"broken"}', "error", "broken"],
    ['time="2026-01-01T00:00:00Z" level=warning msg="a \\"b\\" c" app_id=x', "warn", 'a "b" c'],
    ['time="2026-01-01T00:00:00Z" level=fatal msg="gone" x=y', "error", "gone"],
    ["[123] 2026/11/30 06:37:19.123456 [ERR] no disk", "error", "no disk"],
    ["[123] 2026/11/30 06:37:19.123456 [INF] fine", "info", "fine"],
    ["plain", "info", "plain"],
    ["{not json", "info", "{not json"],
  ])("%s", (line, level, text) => {
    expect(parseLogLine(line)).toEqual({ level, text });
  });
});

describe("what is shown", () => {
  it("apps from info up, infrastructure from warnings up, without the known noise", () => {
    expect(isWorthShowing(true, { level: "info", text: "x" })).toBe(true);
    expect(isWorthShowing(true, { level: "debug", text: "x" })).toBe(false);
    expect(isWorthShowing(false, { level: "info", text: "x" })).toBe(false);
    expect(isWorthShowing(false, { level: "warn", text: "mTLS is disabled. Skipping" })).toBe(false);
    expect(isWorthShowing(false, { level: "error", text: "x" })).toBe(true);
  });

  it("everything with --verbose", () => {
    const shown: string[] = [];
    const view = new LogView(true, (line) => shown.push(line));
    view.show("sessions-daprd", 'time="x" level=info msg="hello"', false);
    expect(shown.join()).toContain("hello");
  });
});
