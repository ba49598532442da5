/**
 * Owns: which rule of a script answers a request, and what its placeholders stand for. Pure. A rule that asks for no
 * tool, result, status, step or round answers user messages only, so that a simple script cannot loop on its own tools.
 */
import { LosslessNumber, parseLossless, stringifyLossless } from "../contracts/json.js";
import { ModelError, type ModelMessage, type ModelRequest } from "./model.js";
import { patternOf, type ScriptCall, type ScriptRule } from "./script.js";

type Result = Extract<ModelMessage, { role: "tool_results" }>["results"][number];

/** What rules look at. */
export interface Situation {
  readonly user: string;
  /** Results in the last message; empty where that is no `tool_results`. */
  readonly lastResults: readonly Result[];
  /** Last result of each tool since the last user message. */
  readonly results: ReadonlyMap<string, Result>;
  readonly round: number;
}

export interface Match {
  readonly rule: ScriptRule;
  /** Placeholder name → text or JSON value. */
  readonly values: ReadonlyMap<string, unknown>;
}

export function situationOf(messages: readonly ModelMessage[]): Situation {
  const lastUser = messages.findLastIndex((message) => message.role === "user");
  const user = messages[lastUser];
  const since = messages.slice(lastUser + 1);
  const last = messages.at(-1);
  const results = since.flatMap((message) => (message.role === "tool_results" ? message.results : []));
  return {
    user: user?.role === "user" ? user.text : "",
    lastResults: last?.role === "tool_results" ? last.results : [],
    results: new Map(results.map((result) => [result.name, result])),
    round: since.filter((message) => message.role === "assistant").length + 1,
  };
}

/** The first rule that fits, with its captures; undefined where none does. */
export function matchRule(rules: readonly ScriptRule[], request: ModelRequest): Match | undefined {
  const situation = situationOf(request.messages);
  for (const rule of rules) {
    const values = valuesOf(rule, request, situation);
    if (values !== undefined) return { rule, values };
  }
  return undefined;
}

function valuesOf(rule: ScriptRule, request: ModelRequest, situation: Situation): Map<string, unknown> | undefined {
  const { when } = rule;
  const asksForResult = when.tool !== undefined || when.result !== undefined || when.status !== undefined;
  if (!asksForResult && when.step === undefined && when.round === undefined && situation.lastResults.length > 0) return undefined;
  if (when.step?.includes(request.context.step) === false || when.round?.includes(situation.round) === false) return undefined;
  const values = basicValues(request, situation);
  if (when.user !== undefined && !capture(values, when.user, situation.user)) return undefined;
  if (!asksForResult) return values;
  const found = situation.lastResults.find((result) => (when.tool === undefined || when.tool.includes("*") || when.tool.includes(result.name))
    && (when.status === undefined || result.isError === (when.status === "error"))
    && (when.result === undefined || patternOf(when.result).test(result.text)));
  if (found === undefined) return undefined;
  addJson(values, "result", found.text);
  values.set("tool", found.name);
  if (when.result !== undefined) capture(values, when.result, found.text);
  return values;
}

function basicValues(request: ModelRequest, situation: Situation): Map<string, unknown> {
  const { sessionId, runId, step, attempt } = request.context;
  const values = new Map<string, unknown>([["sessionId", sessionId], ["runId", runId], ["step", String(step)], ["attempt", String(attempt)], ["round", String(situation.round)], ["model", request.model]]);
  addJson(values, "user", situation.user);
  for (const [name, result] of situation.results) addJson(values, `results.${name}`, result.text);
  const last = situation.lastResults.at(-1);
  if (last !== undefined) {
    addJson(values, "result", last.text);
    values.set("tool", last.name);
  }
  return values;
}

/** Text under `name`; where it is JSON, its members under `name.member` (two levels of arrays and objects and more). */
function addJson(values: Map<string, unknown>, name: string, text: string): void {
  for (const key of [...values.keys()]) if (key.startsWith(`${name}.`)) values.delete(key);
  values.set(name, text);
  try {
    addMembers(values, name, parseLossless(text));
  } catch {
    // Plain text has no members.
  }
}

function addMembers(values: Map<string, unknown>, name: string, value: unknown): void {
  if (typeof value !== "object" || value === null || value instanceof LosslessNumber) return;
  for (const [key, member] of Object.entries(value)) {
    values.set(`${name}.${key}`, member);
    addMembers(values, `${name}.${key}`, member);
  }
}

/** Named groups under their names, numbered ones as `1`, `2` … */
function capture(values: Map<string, unknown>, pattern: string, text: string): boolean {
  const found = patternOf(pattern).exec(text);
  if (found === null) return false;
  found.slice(1).forEach((group, index) => values.set(String(index + 1), group));
  for (const [name, group] of Object.entries(found.groups ?? {})) values.set(name, group);
  return true;
}

const PLACEHOLDER = /\{\{\s*([^{}\s]+)\s*\}\}/g;

/** Fills a text. Throws ModelError (permanent) for a placeholder that stands for nothing. */
export function fillText(template: string, values: ReadonlyMap<string, unknown>): string {
  return template.replace(PLACEHOLDER, (_, name: string) => asText(lookUp(name, values)));
}

/** Arguments of a call as JSON text, digits kept. A string that is one placeholder becomes the value itself, a number stays a number. */
export function fillArgs(call: ScriptCall, values: ReadonlyMap<string, unknown>): string {
  if (typeof call.args === "string") return call.args.replace(PLACEHOLDER, (_, name: string) => JSON.stringify(asText(lookUp(name, values))).slice(1, -1));
  return stringifyLossless(fillValue(call.args, values));
}

function fillValue(value: unknown, values: ReadonlyMap<string, unknown>): unknown {
  if (typeof value === "string") {
    const whole = /^\{\{\s*([^{}\s]+)\s*\}\}$/.exec(value)?.[1];
    return whole === undefined ? fillText(value, values) : lookUp(whole, values);
  }
  if (Array.isArray(value)) return value.map((item) => fillValue(item, values));
  if (typeof value !== "object" || value === null || value instanceof LosslessNumber) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, fillValue(member, values)]));
}

function lookUp(name: string, values: ReadonlyMap<string, unknown>): unknown {
  const value = values.get(name);
  if (value === undefined) throw new ModelError("permanent", `the script's placeholder {{${name}}} stands for nothing here; known: ${[...values.keys()].slice(0, 40).join(", ")}`);
  return value;
}

function asText(value: unknown): string {
  return typeof value === "string" ? value : stringifyLossless(value);
}
