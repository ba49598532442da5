/** Owns: which approval comes first, and how much time is left. */
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { ApprovalRecord } from "../../../src/contracts/decisions.js";

export interface Me { readonly principal: { readonly id: string; readonly class: string; readonly roles: readonly string[]; readonly groups?: readonly string[] }; readonly tenant: string; readonly keyId: string; readonly rights: readonly string[]; readonly name?: string; readonly email?: string; readonly development?: boolean }

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

function compare(a: readonly (number | string)[], b: readonly (number | string)[]): number {
  for (const [index, left] of a.entries()) {
    const right = b[index] ?? 0;
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}
