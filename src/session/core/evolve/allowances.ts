/** Owns: how allowances fold into the state: granted, used, ended. */
import { MAX_ALLOWANCES, RING } from "../limits.js";
import { ring, withCommon, type Parts } from "../parts.js";
import type { AppliersOf } from "./applier.js";

export function useAllowance(parts: Parts, allowanceId: string): Parts {
  const allowances = (parts.common.allowances ?? []).map((one) => (one.allowanceId === allowanceId && one.usesLeft !== undefined ? { ...one, usesLeft: one.usesLeft - 1 } : one));
  return withCommon(parts, { allowances });
}

export const allowanceAppliers: AppliersOf<"AllowanceGranted" | "AllowanceEnded"> = {
  AllowanceGranted: (parts, { allowance }) => withCommon(parts, { allowances: ring(parts.common.allowances ?? [], allowance, MAX_ALLOWANCES) }),
  AllowanceEnded: (parts, { allowanceId, key }) => {
    const { allowances = [], recentCommands } = parts.common;
    const left = withCommon(parts, { allowances: allowances.filter((one) => one.allowanceId !== allowanceId) });
    return key === undefined ? left : withCommon(left, { recentCommands: ring(recentCommands, key, RING) });
  },
};
