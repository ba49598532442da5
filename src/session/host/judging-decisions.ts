/**
 * Owns: what the host finds out about a decision before the core judges it: edited arguments, sealed and put before policy; and for an
 * approval the arguments as they were shown, with what the present policy says of them.
 */
import type { DecisionClaims } from "../../contracts/decisions.js";
import type { CommandOf } from "../core/command.js";
import { manifestDigest } from "../core/seal.js";
import type { SessionState } from "../core/state.js";
import type { Catalog } from "./agents.js";
import { factsOf, judgeAgain, judgeModification } from "./judging.js";
import { argumentsOf } from "./publications.js";
import { principalOfRun } from "./service.js";
import type { TurnContext } from "./turn.js";

export async function judgeDecision(catalog: Catalog, context: TurnContext, state: SessionState, claims: DecisionClaims): Promise<CommandOf<"Decide">["judged"]> {
  if (!("run" in state) || (claims.kind !== "modify" && claims.kind !== "approve")) return { ok: true };
  const { run } = state;
  const record = state.approvals.find((candidate) => candidate.approvalId === claims.approvalId);
  if (record?.tool === undefined) return { ok: true };
  const facts = factsOf(state, run, await principalOfRun(context));
  const manifest = catalog.manifests.get(record.tool);
  const tool = manifest === undefined ? {} : { toolDigest: manifestDigest(manifest) };
  if (claims.kind === "modify") return { ...judgeModification(catalog, record.tool, claims.args ?? "", facts), ...tool };
  const call = run.calls.find(({ callId }) => callId === record.callId);
  const sealed = call === undefined ? undefined : await argumentsOf(context, call);
  if (sealed === undefined) return { ok: true };
  const verdict = judgeAgain(catalog, record.tool, sealed.args, facts);
  // A tool that is no longer installed here cannot be judged: what cannot be judged does not run.
  return verdict === undefined ? { ok: false, code: "denied_by_policy", message: `${record.tool} is not installed here: what cannot be judged does not run` } : { ok: true, ...tool, current: { args: sealed.args, verdict } };
}
