/** Owns: saying what is wrong and what to do, from what apps report and lists show. Pure. */
import type { AppId } from "../contracts/channels.js";
import { plural, wordFor } from "../contracts/plural.js";
import { isSilent, type KnownReport } from "./read-model/app-reports.js";
import type { Behind } from "./read-model/overview.js";
import type { Symptoms } from "./read-model/symptoms.js";

export type DiagnosisCode = "sidecar_down" | "app_silent" | "app_unwell" | "no_worker" | "calls_unclaimed" | "tool_unknown" | "model_limited" | "approvals_expired" | "lists_behind" | "reminders_late";
export interface Diagnosis { readonly code: DiagnosisCode; readonly tone: "bad" | "info"; readonly title: string; readonly detail: string; readonly fix: string; readonly href?: string }

export interface Facts {
  readonly nowMs: number;
  readonly reports: readonly KnownReport[];
  /** The console's own look at its sidecar; undefined: well. */
  readonly sidecarFault: string | undefined;
  readonly symptoms: Symptoms | undefined;
  readonly projection: Behind | undefined;
  /** How long the console has been up: before the first reports nothing can be said of who is missing. */
  readonly upMs: number;
}

const FIRST_REPORTS_MS = 30_000;
/** A model that had no room within this time. */
const LIMITED_MS = 120_000;
const OTHERS: readonly AppId[] = ["gateway", "sessions", "tools"];

/** What is bad comes first. */
export function diagnose(facts: Facts): Diagnosis[] {
  const found = [...ofApps(facts), ...ofTools(facts), ...ofModels(facts), ...ofLists(facts)];
  return [...found.filter(({ tone }) => tone === "bad"), ...found.filter(({ tone }) => tone === "info")];
}

function ofApps({ nowMs, reports, sidecarFault, upMs }: Facts): Diagnosis[] {
  if (sidecarFault !== undefined) return [{ code: "sidecar_down", tone: "bad", title: "The console's sidecar is down", detail: sidecarFault, fix: "Nothing can be decided or sent until it is back. docket doctor names what is wrong; daprd's log says why." }];
  if (upMs < FIRST_REPORTS_MS) return [];
  const awake = (app: AppId): boolean => reports.some((known) => known.report.app === app && !isSilent(known, nowMs));
  const missing = OTHERS.filter((app) => !awake(app));
  const silent = reports.filter((known) => !missing.includes(known.report.app) && isSilent(known, nowMs));
  const sick = reports.filter((known) => !isSilent(known, nowMs)).flatMap(({ report }) => report.checks.filter(({ status }) => status === "fail").map((check) => ({ report, check })));
  return [
    ...missing.map((app): Diagnosis => ({ code: app === "tools" ? "no_worker" : "app_silent", tone: "bad", ...MISSING[app] })),
    ...silent.map(({ report }): Diagnosis => ({ code: "app_silent", tone: "info", title: `${report.app} ${report.instance} is silent`, detail: "Another process of the app works on. This one, or its sidecar, has stopped without a word.", fix: `See its log. If it was taken away on purpose there is nothing to do: it is forgotten after a day.` })),
    ...sick.map(({ report, check }): Diagnosis => ({ code: "app_unwell", tone: "bad", title: `${report.app} ${report.instance}: ${check.name}`, detail: check.detail, fix: check.fix })),
  ];
}

const MISSING: Readonly<Record<AppId, Pick<Diagnosis, "title" | "detail" | "fix">>> = {
  tools: { title: "No worker is listening", detail: "No `tools` app reports. Calls go out and wait: none is lost, and none is run twice.", fix: "Start the tools app (npm run dev -- tools, or dapr run -f dapr.yaml) and look at its log and its sidecar's." },
  sessions: { title: "No session host is running", detail: "No `sessions` app reports. Sessions keep their state; events wait in the broker.", fix: "Start the sessions app and look at its log and its sidecar's." },
  gateway: { title: "The gateway is not running", detail: "No `gateway` app reports. Nobody can send new events; what was accepted goes on.", fix: "Start the gateway app and look at its log and its sidecar's." },
  console: { title: "The console is not running", detail: "", fix: "" },
};

function ofTools({ nowMs, reports, symptoms }: Facts): Diagnosis[] {
  const awake = reports.filter((known) => !isSilent(known, nowMs)).map(({ report }) => report);
  const workers = awake.filter(({ app, tools }) => app === "tools" && tools !== undefined);
  const offered = new Set(workers.flatMap(({ tools = [] }) => tools));
  const wanted = awake.flatMap(({ agents = [] }) => agents.flatMap(({ name, tools }) => tools.map((tool) => ({ agent: name, tool }))));
  const unknown = workers.length === 0 ? [] : [...new Set(wanted.map(({ tool }) => tool))].filter((tool) => !offered.has(tool));
  const stuck = symptoms?.unclaimed ?? [];
  return [
    ...unknown.map((tool): Diagnosis => ({ code: "tool_unknown", tone: "bad", title: `Tool ${tool} is unknown to every worker`, detail: `Wanted by ${[...new Set(wanted.filter((one) => one.tool === tool).map(({ agent }) => agent))].join(", ")}; calls of it are refused.`, fix: "Deploy the same agents folder to session hosts and workers, and restart the workers: they read it at their start.", href: "/agents" })),
    ...(stuck.length === 0 ? [] : [{ code: "calls_unclaimed" as const, tone: "bad" as const, title: `${plural(stuck.reduce((sum, { calls }) => sum + calls, 0), "tool call waits", "tool calls wait")} for a worker`, detail: stuck.map(({ tool, calls }) => `${tool}: ${String(calls)}`).join(", "), fix: "Are workers running and not all busy (DOCKET_TOOL_CONCURRENCY)? Calls are asked for again by themselves.", href: "/sessions?status=EXECUTING_TOOL" }]),
  ];
}

function ofModels({ nowMs, reports }: Facts): Diagnosis[] {
  const limited = new Map<string, { readonly message: string; readonly atMs: number }>();
  for (const { report } of reports) for (const one of report.limited ?? []) if (nowMs - one.atMs < LIMITED_MS && (limited.get(one.model)?.atMs ?? 0) < one.atMs) limited.set(one.model, one);
  return [...limited].map(([model, { message }]): Diagnosis => ({ code: "model_limited", tone: "bad", title: `Model ${model} is rate-limited`, detail: message, fix: "Calls wait and are tried again by themselves. If it stays so: raise the limit at the provider, lower the load, or set DOCKET_MODEL_REQUESTS_PER_MINUTE so that Docket waits instead of being refused." }));
}

function ofLists({ symptoms, projection }: Facts): Diagnosis[] {
  const expired = symptoms?.expired ?? 0;
  return [
    ...(projection !== undefined && projection.gaps > 0 ? [{ code: "lists_behind" as const, tone: "bad" as const, title: "The lists are behind", detail: `${plural(projection.entriesMissing, "journal entry", "journal entries")} of ${plural(projection.gaps, "session")} ${wordFor(projection.entriesMissing, "is", "are")} missing here.`, fix: "They are fetched from the sessions by themselves, every few seconds. If it stays so, a session host cannot be reached: see the parts below." }] : []),
    ...(projection !== undefined && projection.overdue > 0 ? [{ code: "reminders_late" as const, tone: "info" as const, title: `${plural(projection.overdue, "session has passed its", "sessions have passed their")} due time`, detail: "Their reminders are late or were lost.", fix: "The console nudges them by itself. If the number grows, look at the scheduler." }] : []),
    ...(expired > 0 ? [{ code: "approvals_expired" as const, tone: "info" as const, title: `${plural(expired, "approval has", "approvals have")} expired in the last 24 hours`, detail: "Nobody decided in time.", fix: "Look at who should have: assign them, or give the rule a chain that brings somebody else in (policies, chain).", href: "/approvals?view=decided" }] : []),
  ];
}
