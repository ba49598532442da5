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
  const base = name.replaceAll(".", "_");
  return kind === "counter" ? [`${base}_total`] : kind === "gauge" ? [base] : [`${base}_bucket`, `${base}_sum`, `${base}_count`];
}));
const flat = (metric: string): string => metric.replaceAll(".", "_");
/** What is said of a label that none of the expression's metrics has: it would match nothing, or group everything as one. */
const unknownLabelsIn = (expr: string): string[] => {
  const own = Object.entries(INSTRUMENTS as Record<string, Instrument>).filter(([name]) => new RegExp(`\\b${flat(name)}(?:_total|_bucket|_sum|_count)?\\b`).test(expr)).flatMap(([, { labels }]) => labels.map(flat));
  const named = [...[...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list]) => (list ?? "").split(",").map((label) => label.trim())), ...[...expr.matchAll(/(\w+)(?:=~?|!=|!~)"/g)].map(([, label]) => label ?? "")];
  return named.filter((label) => ![...own, "le", "job", "instance"].includes(label));
};
/** Gauges of the console are of the whole installation: with two replicas a bare one is there twice, and a sum is twice too much. */
const countedTwiceIn = (expr: string): string[] => Object.entries(INSTRUMENTS as Record<string, Instrument>).filter(([, { kind, apps }]) => kind === "gauge" && apps.every((app) => app === "console"))
  .map(([name]) => flat(name)).filter((name) => expr.replaceAll(new RegExp(`max(?: by \\(\\w+\\) )?\\(${name}\\b`, "g"), "").match(new RegExp(`\\b${name}\\b`)) !== null);
const unknownIn = (expr: string): string[] => [...expr.matchAll(/\b(?:docket|gen_ai_client)_\w+/g)].map(([name]) => name).filter((name) => !series.has(name));

describe("alerts", () => {
  it.each(rules)("$alert: metrics, runbook section, test that fires it", ({ alert, expr, annotations }) => {
    expect([...unknownIn(expr), ...unknownLabelsIn(expr), ...countedTwiceIn(expr)]).toEqual([]);
    const [page, anchor] = annotations.runbook_url.split("#");
    expect(page).toBe("{{ $externalLabels.docket_docs }}docs/runbook.md");
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
    for (const { targets } of board.panels) for (const { expr } of targets) expect([...unknownIn(expr), ...unknownLabelsIn(expr), ...countedTwiceIn(expr)], expr).toEqual([]);
  });

  it("and alerts are read closely: a label that is not there, a sum of what each console says", () => {
    expect(unknownLabelsIn('sum by (agent) (rate(docket_deliveries_total{outcome="RETRY"}[5m]))')).toEqual(["agent", "outcome"]);
    expect(unknownLabelsIn('sum by (channel) (rate(docket_deliveries_total{answer="RETRY",job=~"docket.*"}[5m]))')).toEqual([]);
    expect(countedTwiceIn("sum by (kind) (docket_dead_letters_open) > max(docket_sessions_overdue)")).toEqual(["docket_dead_letters_open"]);
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
