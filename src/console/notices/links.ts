/**
 * Owns: one-time links: signed over session, approval, version, digest and the person they are for. The token is behind the `#` of the address: it is in no
 * server's log, no Referer, and whoever only fetches the address (a mail scanner) has done nothing.
 */
import type { PendingApproval } from "../../contracts/decisions.js";
import { sha256Hex } from "../../contracts/ids.js";
import type { LinkClaims, OneTimeLink } from "../../contracts/notices.js";
import { Problem } from "../../contracts/problems.js";
import type { NoticeSigner } from "../ports.js";
import type { ReadModel } from "../read-model/database.js";
import { addLink } from "../read-model/links.js";
import type { NoticeSettings } from "./settings.js";

/** Where a link leads: a page of the console. */
const CONFIRM_PATH = "/confirm";

export interface NewLinkFor { readonly principal: string; readonly madeBy: string; readonly atMs: number; readonly lastsMs: number; /** The same seed gives the same link. */ readonly seed: string }

/** `made`: it was not there before. */
export interface MadeLink { readonly link: OneTimeLink; readonly linkId: string; readonly made: boolean }

/** Makes a link. It ends with its approval, if that is sooner. */
export async function makeLink(db: ReadModel, signer: Pick<NoticeSigner, "signLink">, settings: Pick<NoticeSettings, "consoleUrl">, pending: PendingApproval, about: NewLinkFor): Promise<MadeLink> {
  const { record, tenant, sessionId, actorId } = pending;
  const expiresAtMs = Math.min(about.atMs + about.lastsMs, record.expiresAtMs ?? Infinity);
  const jti = `lnk_${sha256Hex(JSON.stringify([about.seed, tenant, record.approvalId, record.version, about.principal])).slice(0, 32)}`;
  const made = await addLink(db, { link_id: jti, tenant, approval_id: record.approvalId, principal_id: about.principal, made_by: about.madeBy, created_at: about.atMs, expires_at: expiresAtMs });
  const token = await signer.signLink({
    iss: "docket/console", aud: "docket/link", jti, tenant, sub: actorId, sessionId, approvalId: record.approvalId, version: record.version, argsDigest: record.argsDigest, principal: about.principal,
    iat: Math.floor(about.atMs / 1000), exp: Math.floor(expiresAtMs / 1000),
  });
  return { made, linkId: jti, link: { principal: about.principal, url: `${new URL(CONFIRM_PATH, settings.consoleUrl).href}#${token}`, expiresAtMs } };
}

/** What a token says. Throws Problem `bad_signature`, `link_expired`. */
export async function readLink(signer: Pick<NoticeSigner, "verifyLink">, token: string, nowMs: number): Promise<LinkClaims> {
  const claims = await signer.verifyLink(token, nowMs);
  if (claims.exp * 1000 <= nowMs) throw new Problem("link_expired", `this link was good until ${new Date(claims.exp * 1000).toISOString()}`, { hint: "open the approval in the console, or ask for a new link" });
  return claims;
}
