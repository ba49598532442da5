/**
 * Owns: whether what once permitted a call still does when it is about to go out (I4, I5). Between the word and the act there may be
 * hours (retries, a quarantine, a quorum): time, policy and arguments are asked again at each dispatch.
 */
import type { ToolCall } from "../state.js";
import { plain, type Draft } from "./draft.js";
import { recordResult } from "./ending.js";
import { markUnknown } from "./tries.js";

/** Why the permission does not hold any more; undefined where it does. Calls of older sessions carry none. */
export function consentFault({ permit, argsDigest }: ToolCall, now: { readonly atMs: number; readonly policyVersion?: string | undefined }): string | undefined {
  if (permit === undefined) return undefined;
  if (permit.argsDigest !== argsDigest) return "it was given for other arguments";
  if (permit.validUntilMs !== undefined && permit.validUntilMs <= now.atMs) return "it was good for a time that is over";
  return now.policyVersion === undefined || permit.policyVersion === now.policyVersion ? undefined : `it was given under policy ${permit.policyVersion}, and ${now.policyVersion} holds now`;
}

/** The call does not go out. An earlier try of it may have had its effect: then a person is asked (I6). */
export function settleUnconsented(draft: Draft, call: ToolCall, fault: string): void {
  if (call.unproven === true) { markUnknown(draft, call, "try" in call.life ? call.life.try : 1, `it was not sent again, since its permission has run out (${fault}), and no earlier try was proven not to have run`); return; }
  recordResult(draft, call, "expired", plain(`not run: its permission has run out (${fault}); propose the call anew if it is still needed`));
}
