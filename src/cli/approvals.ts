/** Owns: one approval as the CLI shows it: fetched, checked against its digest, and told in lines. */
import { ApprovalListItem, type ApprovalEvent } from "../contracts/api.js";
import { argsDigest } from "../contracts/ids.js";
import { segment, type CliContext } from "./context.js";
import { CliError, EXIT } from "./exit.js";
import { clip, fields, plain, relative } from "./output.js";

/** Fetches and checks that the digest is the digest of the arguments shown. */
export async function fetchApproval({ console }: CliContext, id: string): Promise<ApprovalListItem> {
  const item = await console.get(`/v1/approvals/${segment(id)}`, ApprovalListItem);
  const { record, args } = item.pending;
  if (record.kind === "tool_call" && argsDigest(args) !== record.argsDigest) {
    throw new CliError(EXIT.conflict, "digest_mismatch", `the console shows arguments whose digest is ${argsDigest(args)}, but the approval is for ${record.argsDigest}`, "do not decide this; look at the session's journal");
  }
  return item;
}

/** The card of an approval, as text. */
export function describe({ pending, state, decidedBy, decision, history }: ApprovalListItem): string {
  const { record } = pending;
  const nowMs = Date.now();
  const { approvers, signatures } = record;
  return fields([
    ["approval", `${record.approvalId} (version ${String(record.version)})`], ["state", decidedBy === undefined ? state : `${state}: ${decision ?? ""} by ${decidedBy}`], ["session", `${pending.sessionId} (agent ${pending.agent})`],
    ["what", record.tool ?? record.kind], ["risk", record.risk], ["why", `${record.question} (rule ${record.rule}, policy ${record.policyVersion})`],
    ["assigned to", record.assignedTo], ["snoozed", record.snoozedUntilMs === undefined || record.snoozedUntilMs <= nowMs ? undefined : `wakes ${relative(record.snoozedUntilMs, nowMs)}`],
    ["requested by", record.requestedBy], ["model says", pending.rationale || undefined], ["trigger", pending.trigger === "" ? undefined : `${clip(pending.trigger, 1000)} (untrusted)`],
    ["may decide", `${approvers.roles.join(" or ") || "approver or admin"}${(approvers.groups ?? []).length === 0 ? "" : `, in ${approvers.groups?.join(" or ") ?? ""}`}${approvers.excludeRequester ? ", not the requester" : ""}${approvers.quorum > 1 ? `, ${String(signatures.length)} of ${String(approvers.quorum)} ${state === "open" ? "so far" : `signed${signatures.length === 0 ? "" : `: ${signatures.map(({ principalId }) => principalId).join(", ")}`}`}` : ""}`],
    ["answers", record.allowed.join(", ")], ["expires", state !== "open" ? undefined : record.expiresAtMs === undefined ? "never" : `${relative(record.expiresAtMs, nowMs)}, then ${record.onExpiry}`],
    ...(record.chain ?? []).filter((_, index) => state === "open" || index < (record.chainDone ?? 0)).map((step, index) => [index < (record.chainDone ?? 0) ? "done" : "then", `${relative(step.atMs, nowMs)}: ${step.to === undefined ? "a reminder" : `also ${[...step.to.roles, ...step.to.groups].join(", ")}`}`] as const),
    ["for the session", record.allowSession === true ? "can be allowed (--for-session)" : undefined],
    ["arguments", pending.args], ["digest", record.argsDigest],
    ...(history ?? []).map((line) => ["history", historyLine(line, nowMs)] as const),
  ]);
}

/** What happened, who did it and by which way, what they said, and the arguments that they made of those asked for. */
function historyLine({ atMs, what, detail, by, via, untilMs, args, text }: ApprovalEvent, nowMs: number): string {
  const parts = [detail, by === undefined ? undefined : `by ${by}`, via === undefined ? undefined : `(${via})`, untilMs === undefined ? undefined : `until ${relative(untilMs, nowMs)}`, args === undefined ? undefined : `with ${args}`];
  return `${relative(atMs, nowMs)}: ${[what, ...parts].filter((part) => part !== undefined).join(" ")}${text === undefined ? "" : `: ${plain(text)}`}`;
}
