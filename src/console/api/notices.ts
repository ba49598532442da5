/** Owns: the routes that show which notices went where, send one again that was given up, and make one-time links. */
import { randomUUID } from "node:crypto";
import type { Express } from "express";
import { z } from "zod";
import { LinkRequest } from "../../contracts/notices.js";
import { Problem } from "../../contracts/problems.js";
import { requireScope } from "../../platform/apikeys.js";
import { makeLink } from "../notices/links.js";
import { personOf } from "../notices/people.js";
import type { NoticeSettings } from "../notices/settings.js";
import { itemOfNotice, noticeCounts, noticesOf, reviveNotice } from "../read-model/notices.js";
import { callerWith, isAdmin, pathId, readBody, requireRight } from "./access.js";
import { approvalOf } from "./approvals.js";
import { audited, type ApiContext } from "./context.js";

const HOUR_MS = 3_600_000;
const ResendBody = z.strictObject({ reason: z.string().max(2000).default("") });

export function noticeRoutes(app: Express, context: ApiContext): void {
  const { db, deps, config } = context;

  app.get("/v1/notices", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const counts = await noticeCounts(db, caller.tenant);
    const channels = (config.notices?.channels ?? []).map(({ name, kind, show }) => ({ name, kind, show, counts: counts.filter(({ channel }) => channel === name).map(({ state, count, oldestAtMs }) => ({ state, count, oldestAtMs })) }));
    res.json({ channels });
  });

  app.get("/v1/approvals/:id/notices", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const { pending: { record: { approvalId } } } = await approvalOf(context, caller, pathId(req));
    res.json({ items: (await noticesOf(db, approvalId)).map(itemOfNotice) });
  });

  app.post("/v1/approvals/:id/notices/:notice/resend", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "operate");
    const { reason } = readBody(req, ResendBody);
    const { notice } = req.params;
    const { pending: { record: { approvalId } } } = await approvalOf(context, caller, pathId(req));
    await audited(context, req, { caller, action: "notice.resend", target: notice, reason, detail: { approvalId } }, async () => {
      if (!(await reviveNotice(db, approvalId, notice, deps.clock.nowMs()))) throw new Problem("not_found", `approval ${approvalId} has no notice ${notice.slice(0, 100)} that was given up`, { hint: `GET /v1/approvals/${approvalId}/notices` });
      return { outcome: "waiting", result: undefined };
    });
    res.status(202).json({ noticeId: notice, state: "waiting" });
  });

  app.post("/v1/approvals/:id/links", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const { principal, expiresInMs } = readBody(req, LinkRequest);
    const approvalId = pathId(req);
    const { link, linkId } = await audited(context, req, { caller, action: "link.make", target: approvalId, reason: "", detail: { principal, expiresInMs: expiresInMs ?? null } }, async () => {
      // A link may be as good as its person's own sign-in: for others only an administrator makes one.
      if (principal === caller.principal.id) requireRight(caller, "decide");
      else if (!isAdmin(caller)) throw new Problem("forbidden", `${caller.principal.id} may make links for themselves only; an administrator makes them for others`);
      else requireScope(caller, "console:administer");
      const settings = settingsOf(config.notices);
      if (personOf(settings, deps.authenticator, caller.tenant, principal) === undefined) throw new Problem("validation_failed", `nobody in the notices file is ${principal} of tenant ${caller.tenant}, or their key has ended`, { errors: [{ path: "principal", message: "expected somebody of the section people" }] });
      const { pending, state } = await approvalOf(context, caller, approvalId);
      if (state !== "open") throw new Problem(state === "expired" ? "approval_expired" : state === "withdrawn" ? "approval_withdrawn" : "already_decided", `approval ${approvalId} is ${state}; there is nothing to decide`);
      const made = await makeLink(db, deps.noticeSigner, settings, pending, { principal, madeBy: caller.principal.id, atMs: deps.clock.nowMs(), lastsMs: expiresInMs ?? settings.links.lastHours * HOUR_MS, seed: randomUUID() });
      return { outcome: "made", result: made };
    });
    res.status(201).json({ linkId, ...link });
  });
}

/** Throws Problem `not_found` where notices are not set up. */
export function settingsOf(settings: NoticeSettings | undefined): NoticeSettings {
  if (settings === undefined) throw new Problem("not_found", "notices are not set up here", { hint: "DOCKET_NOTICES_FILE, docs/notices.md" });
  return settings;
}
