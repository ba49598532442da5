/** Owns: attacks that come by way of notices: forged, old and repeated Slack callbacks, buttons of other cards, Slack users that are nobody, and one-time links used otherwise than they were made for. */
import { CompactSign } from "jose";
import { argsDigest } from "../../src/contracts/ids.js";
import type { SigningApp } from "../../src/platform/keys.js";
import { at, type Attack, type Change } from "./attack.js";
import { api, next, nowS, waiting, type Json } from "./families.js";
import { byLink, linkRequest, signedInLink, slackClick, slackRequest } from "./notice-families.js";
import type { RedWorld } from "./world.js";

const claimsIn = (token: unknown): Json => JSON.parse(Buffer.from(String(token).split(".")[1]!, "base64url").toString()) as Json;
/** A statement in the console's name, or in another's. */
async function signed(w: RedWorld, claims: Json, typ: string, by: SigningApp = "console"): Promise<string> {
  const { kid, key } = w.signers.get(by)!;
  return new CompactSign(new TextEncoder().encode(JSON.stringify(claims))).setProtectedHeader({ alg: "EdDSA", kid, typ }).sign(key);
}
const button = (change: Json, by?: SigningApp) => async (r: Json, w: RedWorld): Promise<Change> => ["value", await signed(w, { ...claimsIn(r["value"]), ...change }, "docket-button+jwt", by)];
const link = (change: Json, by?: SigningApp, typ = "docket-link+jwt") => async (r: Json, w: RedWorld): Promise<Change> => ["token", await signed(w, { ...claimsIn(r["token"]), ...change }, typ, by)];

export const NOTICE_ATTACKS: readonly Attack[] = [
  { rule: "a Slack callback is signed with another secret", by: slackClick, refusal: "bad_signature", change: at("secret", "guess") },
  { rule: "a Slack callback was changed after it was signed", by: slackClick, refusal: "bad_signature", change: at("tail", "&payload=%7B%7D") },
  { rule: "a Slack callback is an old one", by: slackClick, refusal: "stale_timestamp", change: (r) => ["atS", Number(r["atS"]) - 3_600] },
  { rule: "a Slack callback is one from the future", by: slackClick, refusal: "stale_timestamp", change: (r) => ["atS", Number(r["atS"]) + 3_600] },
  { rule: "a Slack callback is repeated byte for byte", by: slackClick, refusal: "callback_replayed", change: async (_r, w) => {
    const first = slackRequest(await slackClick.base(w));
    await w.http("console", first);
    return ["bytes", JSON.stringify(first)];
  } },
  { rule: "a Slack user stands for nobody", by: slackClick, refusal: "not_an_approver", change: at("user", "U0NOBODY") },
  { rule: "a Slack user stands for a viewer", by: slackClick, refusal: "not_an_approver", change: at("user", "U0VIC") },
  { rule: "a Slack user stands for the requester", by: slackClick, refusal: "own_request", change: at("user", "U0RITA") },
  { rule: "a Slack user stands for somebody of another tenant", by: slackClick, refusal: "approval_not_found", change: at("user", "U0OTHER") },
  { rule: "a Slack user stands for a key that is gone", by: slackClick, refusal: "not_an_approver", change: at("user", "U0GONE") },
  { rule: "a Slack user is of another workspace", by: slackClick, refusal: "forbidden", change: at("team", "T0EVIL") },
  { rule: "a Slack callback wants its answer elsewhere", by: slackClick, refusal: "validation_failed", change: at("responseUrl", "https://evil.example/x") },
  { rule: "a Slack button carries another decision than it says", by: slackClick, refusal: "validation_failed", change: at("action", "reject") },
  { rule: "a Slack button's value is made up", by: slackClick, refusal: "bad_signature", change: (r) => ["value", `${String(r["value"]).slice(0, -6)}AAAAAA`] },
  { rule: "a Slack button is signed by the worker", by: slackClick, refusal: "bad_signature", change: button({}, "tools") },
  { rule: "a Slack button is of an older card", by: slackClick, refusal: "version_mismatch", change: button({ version: 7 }) },
  { rule: "a Slack button is for other arguments", by: slackClick, refusal: "digest_mismatch", change: button({ argsDigest: argsDigest("{}") }) },
  { rule: "a Slack button is of another session", by: slackClick, refusal: "approval_not_found", change: button({ sub: "default_elsewhere" }) },
  { rule: "a Slack button is a one-time link", by: slackClick, refusal: "bad_signature", change: async (_r, w) => ["value", (await byLink.base(w))["token"]] },
  { rule: "a link is used a second time", by: byLink, refusal: "link_used", change: async (_r, w) => {
    const first = linkRequest(await byLink.base(w));
    await w.http("console", first);
    return ["bytes", JSON.stringify(first)];
  } },
  { rule: "a link is used for another approval", by: byLink, refusal: "forbidden", change: async (_r, w) => ["approvalId", (await waiting(w, `ship ${String(next())}`)).approvalId] },
  { rule: "a link is used for other arguments", by: byLink, refusal: "digest_mismatch", change: at("argsDigest", argsDigest("{}")) },
  { rule: "a link is used for another version", by: byLink, refusal: "version_mismatch", change: at("version", 2) },
  { rule: "a link's time has passed", by: byLink, refusal: "link_expired", change: link({ exp: nowS() - 1 }) },
  { rule: "a link was changed after it was signed", by: byLink, refusal: "bad_signature", change: (r) => ["token", `${String(r["token"]).slice(0, -6)}AAAAAA`] },
  { rule: "a link is signed by the session host", by: byLink, refusal: "bad_signature", change: link({}, "sessions") },
  { rule: "a link is a Slack button", by: byLink, refusal: "bad_signature", change: async (_r, w) => ["token", (await slackClick.base(w))["value"]] },
  { rule: "a link is of another session", by: byLink, refusal: "approval_not_found", change: link({ sub: "default_elsewhere" }) },
  { rule: "a link is for somebody whom the file no longer names", by: byLink, refusal: "forbidden", change: link({ principal: "zoe" }) },
  { rule: "a link was never handed out", by: byLink, refusal: "link_used", change: link({ jti: "lnk_00000000000000000000000000000000" }) },
  { rule: "a link decides by GET", by: byLink, refusal: "not_found", change: at("method", "GET") },
  { rule: "a link says where to go afterwards", by: byLink, refusal: "validation_failed", change: at("extra.returnTo", "https://evil.example") },
  { rule: "a link decides more than yes or no", by: byLink, refusal: "validation_failed", change: at("kind", "respond") },
  { rule: "a link for a payment comes without a sign-in", by: byLink, refusal: "unauthenticated", base: signedInLink, good: "signed", change: at("key", null) },
  { rule: "a link for a payment is used by whom it was forwarded to", by: byLink, refusal: "forbidden", base: signedInLink, good: "signed", change: async (_r, w) => ["key", await w.key(`forwarded-${String(next())}`)] },
  { rule: "a link for somebody else is made by an approver", by: api, refusal: "forbidden", base: async (w) => ({ key: w.keys.get("admin"), method: "POST", path: `/v1/approvals/${(await waiting(w, `ship ${String(next())}`)).approvalId}/links`, body: { principal: "lena" } }), change: async (_r, w) => ["key", await w.key(`maker-${String(next())}`)] },
];
