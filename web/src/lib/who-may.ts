/** Owns: who may decide an approval, whose turn it is, and what happens to it next, in words. The session has the last word. */
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { ApprovalRecord } from "../../../src/contracts/decisions.js";
import type { Me } from "./urgency.js";
import { onExpiryWords, plural } from "./words.js";

interface People { readonly roles: readonly string[]; readonly groups?: readonly string[] | undefined }

const USUAL = ["approver", "admin"];

/** Why this person may not decide, or undefined. */
export function obstacleOf(record: ApprovalRecord, me: Me): string | undefined {
  const { approvers } = record;
  if (!me.rights.includes("decide")) return "your key gives no right to decide";
  if (me.principal.class !== "person") return `a ${me.principal.class} may not decide`;
  if (![approvers, ...stepsTaken(record)].some((people) => isOneOf(people, me))) return `only ${peopleWords(approvers)} may decide, and you are ${me.principal.roles.join(", ") || "without a role"}${approvers.groups === undefined ? "" : `, in ${groupsOf(me).join(", ") || "no group"}`}`;
  if (approvers.excludeRequester && record.requestedBy === me.principal.id) return `you asked for this yourself, and rule ${record.rule} wants somebody else to decide (separation of duties)`;
  if (record.signatures.some((signature) => signature.principalId === me.principal.id)) return `you have approved it; ${plural(missingOf(record), "more person is", "more people are")} needed, and nobody counts twice`;
  return undefined;
}

/** Those whom steps of the chain have brought in. */
export function stepsTaken({ chain = [], chainDone = 0 }: ApprovalRecord): People[] { return chain.slice(0, chainDone).flatMap(({ to }) => to ?? []); }

export function missingOf({ approvers, signatures }: ApprovalRecord): number { return Math.max(0, approvers.quorum - signatures.length); }

/** Roles of which one is needed. */
export function rolesOf({ roles }: People): readonly string[] { return roles.length === 0 ? USUAL : roles; }

/** `finance or lead, in group emea`. */
export function peopleWords(people: People): string {
  const { groups = [] } = people;
  return `${rolesOf(people).join(" or ")}${groups.length === 0 ? "" : `, in group ${groups.join(" or ")}`}`;
}

/** Nobody's, mine, one of my groups': then it is in my queue. */
export function isMyTurn({ assignedTo }: ApprovalRecord, { principal }: Me): boolean {
  return assignedTo === undefined || assignedTo === principal.id || principal.roles.includes(assignedTo) || (principal.groups ?? []).includes(assignedTo);
}

export function isSnoozed({ snoozedUntilMs }: ApprovalRecord, nowMs: number): boolean { return snoozedUntilMs !== undefined && snoozedUntilMs > nowMs; }

export interface Step { readonly atMs: number; readonly words: string; readonly done: boolean }

/** What happens to it while nobody decides, in order. */
export function stepsOf({ pending: { record } }: ApprovalListItem): Step[] {
  const steps = (record.chain ?? []).map(({ atMs, to }, index): Step => ({ atMs, done: index < (record.chainDone ?? 0), words: to === undefined ? "those who may decide are reminded" : `${peopleWords(to)} may decide too, and is told` }));
  return [...steps, ...(record.expiresAtMs === undefined ? [] : [{ atMs: record.expiresAtMs, done: false, words: `nobody has decided: ${onExpiryWords(record.onExpiry)}` }])];
}

/** Whether an approval of it may be given for the whole session. */
export function mayBeRemembered(record: ApprovalRecord): boolean { return isCallToApprove(record) && whyNotRemembered(record) === undefined; }

/** Why an approval of it is for this one call only; undefined where it need not be, or where nothing is approved at all. */
export function whyNotRemembered(record: ApprovalRecord): string | undefined {
  if (!isCallToApprove(record)) return undefined;
  if (record.risk === "high") return "never for a high risk: each such call is decided by itself";
  if (record.approvers.quorum > 1) return `never where ${plural(record.approvers.quorum, "person has", "people have")} to approve each call`;
  return record.allowSession === true ? undefined : `rule ${record.rule} does not let it`;
}

function isCallToApprove({ kind, allowed }: ApprovalRecord): boolean { return kind === "tool_call" && allowed.includes("approve"); }

function isOneOf(people: People, me: Me): boolean {
  const { groups = [] } = people;
  return me.principal.roles.some((role) => rolesOf(people).includes(role)) && (groups.length === 0 || groupsOf(me).some((group) => groups.includes(group)));
}

function groupsOf({ principal }: Me): readonly string[] { return principal.groups ?? []; }
