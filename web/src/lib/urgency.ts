/** Owns: which approval comes first, how much time is left, and whether this person may decide it. The session has the last word. */
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { ApprovalRecord } from "../../../src/contracts/decisions.js";

export interface Me { readonly principal: { readonly id: string; readonly class: string; readonly roles: readonly string[] }; readonly tenant: string; readonly keyId: string; readonly rights: readonly string[] }

/** How pressing the time is: the share that is gone, and near the end the time itself. */
export type Band = "none" | "calm" | "soon" | "urgent" | "over";

const URGENT_MS = 15 * 60_000;
const RISKS = ["high", "medium", "low"];
const BANDS: readonly Band[] = ["over", "urgent", "soon", "calm", "none"];

export function bandOf({ openedAtMs, expiresAtMs }: Pick<ApprovalRecord, "openedAtMs" | "expiresAtMs">, nowMs: number): Band {
  if (expiresAtMs === undefined) return "none";
  if (expiresAtMs <= nowMs) return "over";
  const gone = (nowMs - openedAtMs) / Math.max(1, expiresAtMs - openedAtMs);
  if (expiresAtMs - nowMs < URGENT_MS || gone >= 0.8) return "urgent";
  return gone >= 0.5 ? "soon" : "calm";
}

/** The most urgent first: by band of time, then risk, then expiry, then age, then id. */
export function byUrgency(items: readonly ApprovalListItem[], nowMs: number): ApprovalListItem[] {
  const rank = ({ pending: { record } }: ApprovalListItem): (number | string)[] =>
    [BANDS.indexOf(bandOf(record, nowMs)), RISKS.indexOf(record.risk), record.expiresAtMs ?? Number.MAX_SAFE_INTEGER, record.openedAtMs, record.approvalId];
  return items.map((item) => ({ item, rank: rank(item) })).sort((a, b) => compare(a.rank, b.rank)).map(({ item }) => item);
}

/** Why this person may not decide, or undefined. */
export function obstacleOf(record: ApprovalRecord, me: Me): string | undefined {
  const roles = record.approvers.roles.length === 0 ? ["approver", "admin"] : record.approvers.roles;
  if (!me.rights.includes("decide")) return "your key gives no right to decide";
  if (me.principal.class !== "person") return `a ${me.principal.class} may not decide`;
  if (!me.principal.roles.some((role) => roles.includes(role))) return `only ${roles.join(" or ")} may decide`;
  if (record.approvers.excludeRequester && record.requestedBy === me.principal.id) return "you asked for this yourself";
  if (record.signatures.some((signature) => signature.principalId === me.principal.id)) return "you have signed; others are needed";
  return undefined;
}

function compare(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [index, left] of a.entries()) {
    const right = b[index] ?? 0;
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}
