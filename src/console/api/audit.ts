/** Owns: the routes of the audit: the list, whether the chain holds, and the export that `docket audit verify` checks offline. */
import { once } from "node:events";
import type { Express } from "express";
import { z } from "zod";
import type { AuditKeeper } from "../audit-keeper.js";
import { listAudit } from "../read-model/audit.js";
import { callerWith, PAGE_QUERY, pageRequest, readQuery } from "./access.js";
import { audited, type ApiContext } from "./context.js";

const EXPORT_QUERY = { from: z.coerce.number().int().min(1).default(1) };
/** Lines that are written at once. */
const LINES = 200;

export function auditRoutes(app: Express, context: ApiContext, keeper: AuditKeeper): void {
  const { db, deps } = context;

  app.get("/v1/audit", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "audit");
    res.json(await listAudit(db, caller.tenant, pageRequest(readQuery(req, PAGE_QUERY))));
  });

  app.get("/v1/audit/chain", async (req, res) => {
    callerWith(deps.authenticator, req, "audit");
    res.json(await keeper.state());
  });

  // Who took a copy is in the audit too, and in the copy.
  app.get("/v1/audit/export", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "audit");
    const { from } = readQuery(req, EXPORT_QUERY);
    await audited(context, req, { caller, action: "audit.export", target: "", reason: "", detail: { from } }, () => Promise.resolve({ outcome: "begun", result: undefined }));
    res.setHeader("content-disposition", 'attachment; filename="docket-audit.jsonl"').type("application/jsonl");
    let waiting: string[] = [];
    const flush = async (): Promise<void> => {
      if (waiting.length === 0) return;
      const more = res.write(`${waiting.join("\n")}\n`);
      waiting = [];
      if (!more && !res.destroyed) await Promise.race([once(res, "drain"), once(res, "close")]);
    };
    for await (const line of keeper.lines(caller.tenant, from)) {
      waiting.push(line);
      if (waiting.length >= LINES) await flush();
      if (res.destroyed) return;
    }
    await flush();
    res.end();
  });
}
