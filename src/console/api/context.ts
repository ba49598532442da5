/** Owns: what every route works with, and the audit around every write. */
import type { Request } from "express";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import type { ConsoleConfig } from "../config.js";
import type { Intake } from "../intake/intake.js";
import type { Projector } from "../intake/projector.js";
import type { ConsoleDeps } from "../ports.js";
import { addAudit } from "../read-model/audit.js";
import type { ReadModel } from "../read-model/database.js";

export interface ApiContext { readonly db: ReadModel; readonly deps: ConsoleDeps; readonly config: ConsoleConfig; readonly intake: Intake; readonly projector: Projector }

export interface Write {
  readonly caller: Pick<Authenticated, "tenant" | "keyId"> & { readonly principal: { readonly id: string } }; readonly action: string; readonly target: string; readonly reason: string; readonly detail: Readonly<Record<string, unknown>>;
}

const noted = new WeakSet<Request>();

/** Whether the request has its rows in the audit, or needs none. */
export function isNoted(req: Request): boolean { return noted.has(req); }

/** Says that a request changes nothing although it is no GET, so that it leaves no row. */
export function changesNothing(req: Request): void { noted.add(req); }

/** Runs a write between two audit rows: what was asked, before anything happens, and what came of it. */
export async function audited<T>(context: ApiContext, req: Request, write: Write, work: () => Promise<{ readonly outcome: string; readonly result: T }>): Promise<T> {
  const note = async (outcome: string): Promise<void> => {
    await addAudit(context.db, {
      atMs: context.deps.clock.nowMs(), tenant: write.caller.tenant, principalId: write.caller.principal.id, keyId: write.caller.keyId,
      action: write.action, target: write.target, outcome, reason: write.reason, detail: write.detail, ip: req.ip ?? "",
    });
  };
  await note("requested");
  noted.add(req);
  try {
    const { outcome, result } = await work();
    await note(outcome);
    return result;
  } catch (error) {
    await note(error instanceof Problem ? error.code : "internal");
    throw error;
  }
}
