/**
 * Owns: notices on the wire: what an outgoing webhook carries, what a one-time link and a Slack button are signed over, and how the
 * console's API shows what went where. A link and a button name session, approval, version and digest, never only the session (I5, I10).
 */
import { z } from "zod";
import { ApprovalListItem } from "./api.js";

/** Why a notice is sent. `settled`: somebody decided, or it expired or was withdrawn. `locked`: a copy that is out there is replaced. */
export const NoticeEvent = z.enum(["opened", "reminded", "escalated", "settled", "locked"]);
export type NoticeEvent = z.infer<typeof NoticeEvent>;

/** `waiting`: to be sent, or sent again. `given_up`: its receiver refused it for good. `overtaken`: something newer told the same. */
export const NoticeState = z.enum(["waiting", "sent", "given_up", "overtaken"]);
export type NoticeState = z.infer<typeof NoticeState>;

/** A notice as `GET /v1/approvals/:id/notices` shows it. `note`: what the last attempt came to, without addresses or secrets. */
export const NoticeItem = z.object({
  noticeId: z.string(), channel: z.string(), event: NoticeEvent, version: z.number().int(), state: NoticeState, attempts: z.number().int(),
  createdAtMs: z.number(), dueAtMs: z.number().optional(), settledAtMs: z.number().optional(), note: z.string(),
});
export type NoticeItem = z.infer<typeof NoticeItem>;

/** What is bound together in a link and in a button. */
const Bound = { iss: z.literal("docket/console"), jti: z.string().min(1), tenant: z.string(), sub: z.string(), sessionId: z.string(), approvalId: z.string(), version: z.number().int(), argsDigest: z.string() };

/** Claims of a one-time link. `principal`: for whom it is. Its time is asked for by its reader, which says so in a code of its own. */
export const LinkClaims = z.object({ ...Bound, aud: z.literal("docket/link"), principal: z.string().min(1), iat: z.number().int(), exp: z.number().int() });
export type LinkClaims = z.infer<typeof LinkClaims>;

/** Claims of a button of a Slack card: one decision on one approval, as that card showed it. */
export const ButtonClaims = z.object({ ...Bound, aud: z.literal("docket/slack"), kind: z.enum(["approve", "reject"]), iat: z.number().int() });
export type ButtonClaims = z.infer<typeof ButtonClaims>;

/** A link for one person, as it is handed out. */
export const OneTimeLink = z.object({ principal: z.string(), url: z.string(), expiresAtMs: z.number() });
export type OneTimeLink = z.infer<typeof OneTimeLink>;

/** How long a one-time link may be good. */
export const LINK_SPAN = { atLeastMs: 60_000, atMostMs: 7 * 86_400_000 } as const;
/** Body of POST /v1/approvals/:id/links. */
export const LinkRequest = z.strictObject({ principal: z.string().min(1).max(200), expiresInMs: z.number().int().min(LINK_SPAN.atLeastMs).max(LINK_SPAN.atMostMs).optional() });
/** Body of POST /v1/links/open. */
export const LinkOpen = z.strictObject({ token: z.string().min(1).max(4_000) });
/** Body of POST /v1/links/decisions: what was seen goes along, as with any decision. */
export const LinkDecision = z.strictObject({
  token: z.string().min(1).max(4_000), approvalId: z.string().min(1).max(200), kind: z.enum(["approve", "reject"]), version: z.number().int(), argsDigest: z.string(), text: z.string().max(20_000).optional(),
});
export type LinkDecision = z.infer<typeof LinkDecision>;
/** Answer to POST /v1/links/open. */
export const LinkView = z.object({ item: ApprovalListItem, principal: z.string(), expiresAtMs: z.number(), used: z.boolean() });
export type LinkView = z.infer<typeof LinkView>;

/** Body of an outgoing webhook (Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`). */
export const NoticeWebhook = z.object({
  type: z.string(), timestamp: z.string(),
  data: z.object({
    noticeId: z.string(), event: NoticeEvent, tenant: z.string(), sessionId: z.string(), agent: z.string(), approvalId: z.string(), version: z.number().int(), state: z.string(),
    kind: z.string(), tool: z.string().optional(), risk: z.string(), rule: z.string(), question: z.string(), requestedBy: z.string(), argsDigest: z.string(),
    /** Whole, canonical JSON text; absent where the channel shows a summary only. */
    args: z.string().optional(), rationale: z.string().optional(), trigger: z.string().optional(),
    allowed: z.array(z.string()), approvers: z.object({ roles: z.array(z.string()), groups: z.array(z.string()), quorum: z.number().int(), excludeRequester: z.boolean() }),
    openedAtMs: z.number(), expiresAtMs: z.number().optional(), decidedBy: z.string().optional(), decision: z.string().optional(), decidedAtMs: z.number().optional(),
    url: z.string(), links: z.array(OneTimeLink),
  }),
});
export type NoticeWebhook = z.infer<typeof NoticeWebhook>;
