/**
 * Owns: reading policy files. A policy with any fault is refused whole, with all faults at once, each with file, line and
 * rule: a policy that half loads would allow what its other half denies.
 */
import { LineCounter, parseDocument, type Document } from "yaml";
import type { z } from "zod";
import { sha256Hex } from "../../../contracts/ids.js";
import { Problem } from "../../../contracts/problems.js";
import { DecisionKind } from "../../../contracts/tools.js";
import { compileCondition } from "./condition.js";
import { didYouMean } from "../../../contracts/suggest.js";
import { durationMs, PolicyFile, PolicyRule, type CompiledRule, type Policy } from "./policy.js";

export interface PolicyText { readonly file: string; readonly text: string }
interface Fault { readonly path: string; readonly message: string }
interface Source { readonly file: string; readonly document: Document; readonly lines: LineCounter }
type Path = readonly (string | number)[];

const KNOWN_KEYS: Readonly<Record<string, readonly string[]>> = {
  "": ["version", "rules"],
  rule: Object.keys(PolicyRule.shape),
  match: ["tools", "agents"],
  approvers: ["roles", "groups", "quorum", "excludeRequester"],
  chain: ["after", "to", "roles", "groups"],
};
const ASK_ONLY = ["approvers", "allowed", "expiresIn", "onExpiry", "chain", "allowSession", "consentFor"] as const;

/** Throws Problem `config_invalid`; `errors` has one row for each fault, `path` being `file:line rule`. */
export function compilePolicy(texts: readonly PolicyText[]): Policy {
  const faults: Fault[] = [];
  const rules = texts.flatMap((text) => readFile(text, faults));
  const seen = new Map<string, CompiledRule>();
  for (const compiled of rules) {
    const first = seen.get(compiled.rule.id);
    if (first !== undefined) faults.push({ path: `${compiled.file}:${String(compiled.line)} ${compiled.rule.id}`, message: `the id is taken by ${first.file}:${String(first.line)}; every rule has its own` });
    seen.set(compiled.rule.id, compiled);
  }
  if (faults.length > 0) {
    throw new Problem("config_invalid", `the policy has ${String(faults.length)} fault${faults.length === 1 ? "" : "s"}:\n${faults.map((f) => `  ${f.path}: ${f.message.replaceAll("\n", "\n    ")}`).join("\n")}`,
      { errors: faults, hint: "`docket policy lint` shows the same without starting anything" });
  }
  return { version: `p-${sha256Hex(JSON.stringify(texts.map((t) => t.text).sort())).slice(0, 12)}`, rules };
}

function readFile({ file, text }: PolicyText, faults: Fault[]): CompiledRule[] {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true });
  for (const error of document.errors) faults.push({ path: `${file}:${String(error.linePos?.[0].line ?? 1)}`, message: error.message });
  if (document.errors.length > 0) return [];
  const source = { file, document, lines };
  let raw: unknown;
  try {
    raw = document.toJS({ maxAliasCount: 20 });
  } catch (error) {
    faults.push({ path: file, message: error instanceof Error ? error.message : String(error) });
    return [];
  }
  const parsed = PolicyFile.safeParse(raw);
  if (!parsed.success) {
    faults.push(...parsed.error.issues.flatMap((issue) => faultsOf(source, issue, [], undefined)));
    return [];
  }
  return parsed.data.rules.flatMap((rule, index) => readRule(source, rule, index, faults));
}

function readRule(source: Source, raw: unknown, index: number, faults: Fault[]): CompiledRule[] {
  const at: Path = ["rules", index];
  const id = raw !== null && typeof raw === "object" && "id" in raw && typeof raw.id === "string" ? raw.id : `rule ${String(index + 1)}`;
  const parsed = PolicyRule.safeParse(raw);
  if (!parsed.success) {
    faults.push(...parsed.error.issues.flatMap((issue) => faultsOf(source, issue, at, id)));
    return [];
  }
  const rule = parsed.data;
  const found: Fault[] = [];
  const fault = (key: string, message: string): void => { found.push({ path: `${source.file}:${String(lineOf(source, [...at, key]))} ${id}`, message }); };
  if (rule.verdict !== "ask") {
    for (const key of ASK_ONLY) if (rule[key] !== undefined) fault(key, `"${key}" means something only where the verdict is ask; this rule says ${rule.verdict}`);
  }
  const condition = rule.when === undefined ? undefined : compileCondition(rule.when);
  if (condition?.ok === false) fault("when", `the condition does not compile: ${condition.message}`);
  faults.push(...found);
  if (found.length > 0) return [];
  return [{
    rule, file: source.file, line: lineOf(source, at),
    expiresInMs: rule.expiresIn === undefined ? undefined : durationMs(rule.expiresIn),
    holds: condition?.ok === true ? condition.holds : undefined,
  }];
}

function faultsOf(source: Source, issue: z.core.$ZodIssue, base: Path, id: string | undefined): Fault[] {
  const own: Path = issue.path.filter((part) => typeof part !== "symbol");
  const where = (path: Path): string => `${source.file}:${String(lineOf(source, path))}${id === undefined ? "" : ` ${id}`}`;
  if (issue.code === "unrecognized_keys") {
    const known = KNOWN_KEYS[base.length === 0 ? "" : String(own[0] ?? "rule")] ?? [];
    return issue.keys.map((key) => ({ path: where([...base, ...own, key]), message: `unknown key "${key}"${didYouMean(key, known)}; there are ${known.join(", ")}` }));
  }
  const at = [...base, ...own];
  const value: unknown = source.document.getIn(at);
  const words = own[0] === "verdict" ? ["allow", "ask", "deny"] : own[0] === "allowed" ? DecisionKind.options : [];
  const hint = typeof value === "string" ? didYouMean(value, words) : "";
  const name = own.map(String).join(".");
  return [{ path: where(at), message: `${name === "" ? "" : `${name}: `}${issue.message}${typeof value === "string" || typeof value === "number" ? `, got ${JSON.stringify(value)}` : ""}${hint}` }];
}

/** Line of the node at a path, or of the nearest one above it. */
function lineOf({ document, lines }: Source, path: Path): number {
  for (let length = path.length; length > 0; length -= 1) {
    const node: unknown = document.getIn(path.slice(0, length), true);
    const range: unknown = node !== null && typeof node === "object" && "range" in node ? node.range : undefined;
    if (Array.isArray(range) && typeof range[0] === "number") return lines.linePos(range[0]).line;
  }
  return 1;
}
