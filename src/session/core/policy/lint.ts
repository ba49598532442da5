/** Owns: warnings about policies that are legal and probably not what was meant. Faults are `compilePolicy`'s. */
import type { ToolManifest } from "../../../contracts/tools.js";
import { didYouMean } from "../../../contracts/suggest.js";
import { globFits, type CompiledRule, type Policy, type PolicyRule } from "./policy.js";

export interface PolicyWarning { readonly file: string; readonly line: number; readonly rule: string; readonly message: string }

const STRICTNESS = { allow: 0, ask: 1, deny: 2 } as const;

/** `tools`: the known manifests, where there are any; without them names and effects are not checked. */
export function lintPolicy(policy: Policy, tools: readonly ToolManifest[] = []): PolicyWarning[] {
  return policy.rules.flatMap((compiled) => {
    const messages = [shadowedBy(policy, compiled), riskyPattern(compiled.rule), ...unknownTools(compiled.rule, tools), ...allowsEffects(compiled.rule, tools)];
    return messages.filter((message) => message !== undefined).map((message) => ({ file: compiled.file, line: compiled.line, rule: compiled.rule.id, message }));
  });
}

function shadowedBy(policy: Policy, own: CompiledRule): string | undefined {
  const stricter = policy.rules.find((other) => other !== own && other.rule.when === undefined
    && STRICTNESS[other.rule.verdict] > STRICTNESS[own.rule.verdict] && covers(other.rule, own.rule));
  if (stricter !== undefined) return `never has an effect: ${stricter.rule.id} (line ${String(stricter.line)}) says ${stricter.rule.verdict} for everything it matches, and the strictest wins`;
  const twin = policy.rules.find((other) => policy.rules.indexOf(other) < policy.rules.indexOf(own)
    && JSON.stringify({ ...other.rule, id: "", reason: "" }) === JSON.stringify({ ...own.rule, id: "", reason: "" }));
  return twin === undefined ? undefined : `says the same as ${twin.rule.id} (line ${String(twin.line)})`;
}

/** Does `wide` match whatever `narrow` matches? Read as text, a `*` of the narrow glob is only met by one of the wide glob. */
function covers(wide: PolicyRule, narrow: PolicyRule): boolean {
  const within = (wideGlobs: readonly string[] | undefined, narrowGlobs: readonly string[] | undefined): boolean =>
    wideGlobs === undefined || (narrowGlobs ?? ["*"]).every((glob) => wideGlobs.some((w) => globFits(w, glob)));
  return within(wide.match.tools, narrow.match.tools) && within(wide.match.agents, narrow.match.agents);
}

/** `matches` runs as a JavaScript regular expression over arguments that a model wrote. */
function riskyPattern(rule: PolicyRule): string | undefined {
  return rule.when !== undefined && /\.matches\([^)]*[+*]\)[+*{]/.test(rule.when)
    ? "its regular expression repeats a repetition, which hostile arguments can make run for minutes; write it without the outer + or *" : undefined;
}

function unknownTools(rule: PolicyRule, tools: readonly ToolManifest[]): string[] {
  const names = tools.map((tool) => tool.name);
  if (names.length === 0) return [];
  // A pattern may well be written before the first tool that it is for; a name is more often a slip.
  return (rule.match.tools ?? []).filter((glob) => !glob.includes("*") && !names.includes(glob)).map((glob) => `matches no known tool: "${glob}"${didYouMean(glob, names)}`);
}

function allowsEffects(rule: PolicyRule, tools: readonly ToolManifest[]): string[] {
  if (rule.verdict !== "allow" || rule.when !== undefined) return [];
  const once = tools.filter((tool) => tool.effects === "once" && (rule.match.tools ?? ["*"]).some((glob) => globFits(glob, tool.name)));
  return once.map((tool) => `allows ${tool.name} without a condition, and what it does cannot be repeated or undone (effects: once)`);
}
