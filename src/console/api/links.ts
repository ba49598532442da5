/**
 * Owns: deciding by a one-time link. Both routes are POSTs with the token in the body: nothing that only fetches an address looks at an approval, still less
 * decides. A link gives nobody a right: it names a person, who must be allowed to decide now, and whose decision takes the same way as any other.
 *
 * - It is for one approval, as it was then (version and digest), one person, one decision, until its time has passed.
 * - Where the file asks for it (the default), that very person must be signed in as well.
 */
import type { Express, Request } from "express";
import type { ApprovalListItem, DecisionAnswer } from "../../contracts/api.js";
import { LinkDecision, LinkOpen, type LinkClaims, type LinkView } from "../../contracts/notices.js";
import { Problem } from "../../contracts/problems.js";
import type { Authenticated } from "../../platform/apikeys.js";
import { decisionIdOf } from "../decide.js";
import { readLink } from "../notices/links.js";
import { personOf } from "../notices/people.js";
import type { NoticeSettings } from "../notices/settings.js";
import { findApproval } from "../read-model/approvals.js";
import { findLink, giveLinkBack, noteLinkVerdict, useLink } from "../read-model/links.js";
import { requireOwnOrigin } from "../web/cookies.js";
import { callerWith, readBody } from "./access.js";
import { noteCaller } from "./caller.js";
import { decideAs, isRefusal, refusalOf } from "./approvals.js";
import { audited, type ApiContext } from "./context.js";
import { settingsOf } from "./notices.js";

export function linkRoutes(app: Express, context: ApiContext): void {
  const { db, deps, config } = context;

  app.post("/v1/links/open", async (req, res) => {
    refuseOtherSites(req, config.origin);
    const settings = settingsOf(config.notices);
    const claims = await readLink(deps.noticeSigner, readBody(req, LinkOpen).token, deps.clock.nowMs());
    const item = await itemOf(context, claims);
    const caller = personBehind(context, req, { settings, claims, risk: item.pending.record.risk });
    const view = await audited(context, req, { caller, action: "link.open", target: claims.approvalId, reason: "", detail: { linkId: claims.jti } }, async (): Promise<{ outcome: string; result: LinkView }> => {
      const used = (await findLink(db, claims.jti))?.used_at;
      return { outcome: "shown", result: { item, principal: claims.principal, expiresAtMs: claims.exp * 1000, used: used !== null } };
    });
    res.json(view);
  });

  app.post("/v1/links/decisions", async (req, res) => {
    refuseOtherSites(req, config.origin);
    const settings = settingsOf(config.notices);
    const { token, approvalId, ...request } = readBody(req, LinkDecision);
    const claims = await readLink(deps.noticeSigner, token, deps.clock.nowMs());
    const item = await itemOf(context, claims);
    const caller = personBehind(context, req, { settings, claims, risk: item.pending.record.risk });
    // What is on the page, what the link is for, and what is decided must be one thing. The session compares once more with what it asks now.
    if (approvalId !== claims.approvalId) throw new Problem("forbidden", `this link is for approval ${claims.approvalId}, not for ${approvalId}`);
    if (request.version !== claims.version) throw new Problem("version_mismatch", `this link is for version ${String(claims.version)} of the approval, not for ${String(request.version)}`, { hint: "open the approval in the console" });
    if (request.argsDigest !== claims.argsDigest) throw new Problem("digest_mismatch", "this link is for other arguments than those decided on", { hint: "open the approval in the console" });
    if (request.kind === "reject" && (request.text ?? "").trim() === "") throw new Problem("validation_failed", "rejecting needs a reason for the model", { errors: [{ path: "text", message: "is required here" }] });
    const answer = await decideOnce(context, req, { caller, claims, item, request });
    if (answer.verdict === "not_known_yet") { res.status(202).json(answer); return; }
    if (isRefusal(answer.verdict)) throw refusalOf(answer.verdict, answer);
    res.json(answer);
  });
}

/** A page of another site that got hold of a link does not use it. Programs send no Origin. */
function refuseOtherSites(req: Request, proxied: string | undefined): void {
  if (req.header("origin") !== undefined) requireOwnOrigin(req, proxied);
}

interface Once { readonly caller: Authenticated; readonly claims: LinkClaims; readonly item: ApprovalListItem; readonly request: Omit<LinkDecision, "token" | "approvalId"> }

async function decideOnce(context: ApiContext, req: Request, { caller, claims, item, request }: Once): Promise<DecisionAnswer> {
  const { db, deps } = context;
  const decisionId = decisionIdOf({ pending: item.pending, request, caller, via: "link" }, claims.jti);
  if (!(await useLink(db, claims.jti, decisionId, deps.clock.nowMs()))) throw new Problem("link_used", "this link was used before; one link is one decision", { hint: "open the approval in the console" });
  try {
    const answer = await decideAs(context, req, { caller, approvalId: claims.approvalId, request, clickId: claims.jti, via: "link", detail: { linkId: claims.jti } });
    if (answer.verdict !== "not_known_yet") await noteLinkVerdict(db, claims.jti, answer.verdict);
    return answer;
  } catch (error) {
    await giveLinkBack(db, claims.jti, decisionId);
    throw error;
  }
}

async function itemOf({ db }: ApiContext, claims: LinkClaims): Promise<ApprovalListItem> {
  const item = await findApproval(db, claims.tenant, claims.approvalId);
  if (item?.pending.actorId !== claims.sub) throw new Problem("approval_not_found", `there is no approval ${claims.approvalId} in tenant ${claims.tenant}`);
  return item;
}

/** Throws Problem `unauthenticated`, `forbidden`. */
function personBehind({ deps }: ApiContext, req: Request, { settings, claims, risk }: { readonly settings: NoticeSettings; readonly claims: LinkClaims; readonly risk: string }): Authenticated {
  const person = personOf(settings, deps.authenticator, claims.tenant, claims.principal);
  if (person === undefined) throw new Problem("forbidden", `${claims.principal} may no longer decide by link`, { hint: "the notices file no longer names them, or their key has ended" });
  if (settings.links.signIn === "never" || (settings.links.signIn === "high-risk" && risk !== "high")) {
    noteCaller(req, person);
    return person;
  }
  const caller = callerWith(deps.authenticator, req, "read");
  if (caller.tenant !== claims.tenant || caller.principal.id !== claims.principal) throw new Problem("forbidden", `this link is for ${claims.principal}, and you are ${caller.principal.id}`, { hint: "sign in as the person it was sent to" });
  return caller;
}
