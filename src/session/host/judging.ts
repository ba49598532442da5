/**
 * Owns: sealing and judging what a model proposes, and what a person edits, before the core sees it (I4, I5).
 * A call of an unknown tool, or with arguments that do not fit, becomes an error result for the model.
 */
import { argsDigest, callIdOf } from "../../contracts/ids.js";
import type { ModelAnswer } from "../../model/model.js";
import type { JudgedCall, Verdict } from "../core/command.js";
import { judge, type CallFacts } from "../core/policy/judge.js";
import { didYouMean } from "../../contracts/suggest.js";
import { manifestDigest, sealArguments } from "../core/seal.js";
import type { OpenSession, Run } from "../core/state.js";
import { definitionOf, type Catalog } from "./agents.js";

/** Facts that do not depend on the call. */
export type SessionFacts = Omit<CallFacts, "toolName" | "argsText">;

export function factsOf(state: OpenSession, run: Run, principal: CallFacts["principal"]): SessionFacts {
  return {
    session: { id: state.sessionId, tenant: state.tenant, agent: state.agent },
    principal, budget: { spentUsd: run.spentUsd, budgetUsd: run.budgetUsd },
  };
}

/** Every call of an answer, in its order, each with its id, sealed arguments and verdict. */
export function judgeAnswer(catalog: Catalog, state: OpenSession, run: Run, options: { step: number; answer: ModelAnswer; facts: SessionFacts }): JudgedCall[] {
  const allowed = definitionOf(catalog, state.agent, state.agentVersion)?.tools ?? [];
  return options.answer.calls.map((call, index): JudgedCall => {
    const callId = callIdOf(run.runId, options.step, index);
    const refused = (message: string): JudgedCall => ({ ok: false, callId, providerCallId: call.id, tool: call.name, args: call.args, message });
    const manifest = allowed.includes(call.name) ? catalog.manifests.get(call.name) : undefined;
    if (manifest === undefined) return refused(`there is no tool named ${call.name}${didYouMean(call.name, allowed)}; available: ${allowed.join(", ")}`);
    const sealed = sealArguments(manifest, call.args);
    if (!sealed.ok) return refused(sealed.message);
    return {
      ok: true, callId, providerCallId: call.id, tool: call.name, args: sealed.text, argsDigest: sealed.digest,
      effects: manifest.effects, critical: manifest.critical, timeoutMs: manifest.timeoutMs, maxTries: manifest.maxTries,
      verdict: judge(catalog.policy, manifest, { ...options.facts, toolName: call.name, argsText: sealed.text }), toolDigest: manifestDigest(manifest),
    };
  });
}

export type Modification =
  | { readonly ok: true; readonly modified: { readonly args: string; readonly argsDigest: string; readonly verdict: Verdict } }
  | { readonly ok: false; readonly code: "arguments_invalid" | "denied_by_policy"; readonly message: string };

/** What policy says now of arguments that a person has been shown. The session asks whether it has become stricter since. */
export function judgeAgain(catalog: Catalog, tool: string, args: string, facts: SessionFacts): Verdict | undefined {
  const manifest = catalog.manifests.get(tool);
  return manifest === undefined ? undefined : judge(catalog.policy, manifest, { ...facts, toolName: tool, argsText: args });
}

/** Edited arguments: sealed against the tool's schema again, policy run again. What was signed must be what is sealed. */
export function judgeModification(catalog: Catalog, tool: string, args: string, facts: SessionFacts): Modification {
  const manifest = catalog.manifests.get(tool);
  if (manifest === undefined) return { ok: false, code: "arguments_invalid", message: `${tool} is not installed here: new arguments for it cannot be checked` };
  const sealed = sealArguments(manifest, args);
  if (!sealed.ok) return { ok: false, code: "arguments_invalid", message: sealed.message };
  const verdict = judge(catalog.policy, manifest, { ...facts, toolName: tool, argsText: sealed.text });
  if (verdict.verdict === "deny") return { ok: false, code: "denied_by_policy", message: `policy denies the new arguments (rule ${verdict.rule}): ${verdict.reason}` };
  return { ok: true, modified: { args: sealed.text, argsDigest: argsDigest(sealed.text), verdict } };
}
