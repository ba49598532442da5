/** Alert rules, dashboards and runbook speak of metrics that exist and lead to sections that exist; every alert has its test. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { INSTRUMENTS, type Instrument } from "../../../src/platform/telemetry/metrics.js";
import { read, ROOT, sources } from "./pages.js";

const Rules = z.object({ groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string(), annotations: z.object({ summary: z.string(), description: z.string(), runbook_url: z.string() }) })) })) });
const Tests = z.object({ tests: z.array(z.object({ alert_rule_test: z.array(z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()).optional() })) })) });
const Board = z.object({ title: z.string(), panels: z.array(z.object({ id: z.number(), targets: z.array(z.object({ expr: z.string() })) })) });

const rules = Rules.parse(parse(read("observability/alerts.yaml"))).groups.flatMap((group) => group.rules);
const series = new Set(Object.entries(INSTRUMENTS as Record<string, Instrument>).flatMap(([name, { kind }]) => {
  const flat = name.replaceAll(".", "_");
  return kind === "counter" ? [`${flat}_total`] : kind === "gauge" ? [flat] : [`${flat}_bucket`, `${flat}_sum`, `${flat}_count`];
}));
const unknownIn = (expr: string): string[] => [...expr.matchAll(/\b(?:docket|gen_ai_client)_\w+/g)].map(([name]) => name).filter((name) => !series.has(name));

describe("alerts", () => {
  it.each(rules)("$alert: metrics, runbook section, test that fires it", ({ alert, expr, annotations }) => {
    expect(unknownIn(expr)).toEqual([]);
    const [page, anchor] = annotations.runbook_url.split("#");
    expect(page).toBe("docs/runbook.md");
    const headings = [...read("docs/runbook.md").matchAll(/^## (.+)$/gm)].map(([, text]) => (text ?? "").toLowerCase().replace(/[^\w\- ]/g, "").replaceAll(" ", "-"));
    expect(headings).toContain(anchor);
    expect(read("docs/runbook.md")).toContain(alert);
    const fired = Tests.parse(parse(read("observability/alerts.test.yaml"))).tests.flatMap((test) => test.alert_rule_test).filter((test) => test.alertname === alert && (test.exp_alerts ?? []).length > 0);
    expect(fired.length).toBeGreaterThan(0);
  });
});

describe("dashboards", () => {
  it.each(readdirSync(join(ROOT, "observability/dashboards")))("%s shows metrics that exist", (file) => {
    const board = Board.parse(JSON.parse(read(join("observability/dashboards", file))));
    expect(new Set(board.panels.map(({ id }) => id)).size).toBe(board.panels.length);
    for (const { targets } of board.panels) for (const { expr } of targets) expect(unknownIn(expr), expr).toEqual([]);
  });
});

describe("docs/telemetry.md", () => {
  it("names every attribute of the spans that a session says", () => {
    const page = read("docs/telemetry.md");
    const code = sources("src/session/host", ".ts").filter(({ path }) => path.endsWith("run-spans.ts")).map(({ text }) => text).join("\n");
    const names = new Set([...code.matchAll(/"((?:gen_ai|docket|llm|langfuse|langsmith|openinference|session|input|output|tool)\.[\w.]+)"/g)].map(([, name]) => name ?? ""));
    expect(names.size).toBeGreaterThan(30);
    expect([...names].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
  });
});
