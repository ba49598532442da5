/** Owns: what every route works with, and the audit around every write. */
import type { Request } from "express";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import type { ConsoleConfig } from "../config.js";
import type { Intake } from "../intake/intake.js";
import type { ConsoleDeps } from "../ports.js";
import { addAudit } from "../read-model/audit.js";
import type { ReadModel } from "../read-model/database.js";

export interface ApiContext { readonly db: ReadModel; readonly deps: ConsoleDeps; readonly config: ConsoleConfig; readonly intake: Intake }

export interface Write {
  readonly caller: Authenticated; readonly action: string; readonly target: string; readonly reason: string; readonly detail: Readonly<Record<string, unknown>>;
}

/** Runs a write between two audit rows: what was asked, before anything happens, and what came of it. */
export async function audited<T>(context: ApiContext, req: Request, write: Write, work: () => Promise<{ readonly outcome: string; readonly result: T }>): Promise<T> {
  const note = (outcome: string): Promise<void> => addAudit(context.db, {
    atMs: context.deps.clock.nowMs(), tenant: write.caller.tenant, principalId: write.caller.principal.id, keyId: write.caller.keyId,
    action: write.action, target: write.target, outcome, reason: write.reason, detail: write.detail, ip: req.ip ?? "",
  });
  await note("requested");
  try {
    const { outcome, result } = await work();
    await note(outcome);
    return result;
  } catch (error) {
    await note(error instanceof Problem ? error.code : "internal");
    throw error;
  }
}
