/** Owns: a notice as the HTTP request that its channel takes. */
import type { ApprovalListItem } from "../../contracts/api.js";
import type { ButtonClaims, NoticeEvent, OneTimeLink } from "../../contracts/notices.js";
import type { ConsoleDeps } from "../ports.js";
import { addAudit } from "../read-model/audit.js";
import type { NoticeRow, ReadModel } from "../read-model/database.js";
import { discordCard, discordMessage } from "./discord.js";
import { makeLink } from "./links.js";
import { isCard } from "./planner.js";
import type { Outgoing } from "./post.js";
import type { Channel, NoticeSettings } from "./settings.js";
import { clickable, slackCard, slackMessage, type Buttons } from "./slack.js";
import { sealWebhook, webhookBody } from "./webhook.js";

export type RenderDeps = Pick<ConsoleDeps, "noticeSigner" | "clock">;
export interface About { readonly row: NoticeRow; readonly item: ApprovalListItem; readonly event: NoticeEvent; readonly settings: NoticeSettings; readonly db: ReadModel; readonly deps: RenderDeps }

const JSON_HEADERS = { "content-type": "application/json" };
const HOUR_MS = 3_600_000;

export async function webhookRequest(channel: Extract<Channel, { kind: "webhook" }>, about: About): Promise<Outgoing> {
  const { row, item, event, settings, deps } = about;
  const links = isCard(row) ? await linksFor(channel.links, about) : [];
  const body = webhookBody(item, { noticeId: row.notice_id, event, atMs: row.created_at, show: channel.show, consoleUrl: settings.consoleUrl, links });
  return { method: "POST", url: channel.url, ...sealWebhook(body, row.notice_id, deps.clock.nowMs(), channel.secrets) };
}

/** `responseUrl`: the copy that was clicked on is replaced; without it a new message is sent. */
export async function slackRequest(channel: Extract<Channel, { kind: "slack" }>, { row, item, event, settings, deps }: About, responseUrl: string | undefined): Promise<Outgoing> {
  const card = slackCard(item, event, { channel, consoleUrl: settings.consoleUrl });
  const buttons = isCard(row) ? await buttonsOf(deps, row, item, clickable(item, card, channel)) : {};
  const message = slackMessage(card, buttons);
  return { method: "POST", url: responseUrl ?? channel.url, headers: JSON_HEADERS, body: JSON.stringify(responseUrl === undefined ? message : { ...message, replace_original: true }) };
}

/** `message`: that message is replaced. With `wait` Discord tells a new one's id. */
export function discordRequest(channel: Extract<Channel, { kind: "discord" }>, { item, event, settings }: About, message: string | undefined): Outgoing {
  const url = new URL(channel.url);
  if (message === undefined) url.searchParams.set("wait", "true");
  else url.pathname = `${url.pathname.replace(/\/$/, "")}/messages/${encodeURIComponent(message)}`;
  return { method: message === undefined ? "POST" : "PATCH", url: url.href, headers: JSON_HEADERS, body: JSON.stringify(discordMessage(discordCard(item, event, { channel, consoleUrl: settings.consoleUrl }))) };
}

async function buttonsOf({ noticeSigner }: RenderDeps, row: NoticeRow, { pending: { tenant, sessionId, actorId, record } }: ApprovalListItem, kinds: readonly ButtonClaims["kind"][]): Promise<Buttons> {
  const claims = { iss: "docket/console", aud: "docket/slack", jti: row.notice_id, tenant, sub: actorId, sessionId, approvalId: record.approvalId, version: record.version, argsDigest: record.argsDigest, iat: Math.floor(row.created_at / 1000) } as const;
  return Object.fromEntries(await Promise.all(kinds.map(async (kind) => [kind, await noticeSigner.signButton({ ...claims, kind })] as const)));
}

/** A repeated attempt carries the same links; after a long outage new ones, so that at least half of their time is left. */
async function linksFor(people: readonly string[], { row, item, settings, db, deps }: About): Promise<OneTimeLink[]> {
  const lastsMs = settings.links.lastHours * HOUR_MS;
  const round = Math.floor((deps.clock.nowMs() - row.created_at) / (lastsMs / 2));
  const links: OneTimeLink[] = [];
  for (const principal of people) {
    const { link, linkId, made } = await makeLink(db, deps.noticeSigner, settings, item.pending, { principal, madeBy: "docket/console", atMs: row.created_at + Math.floor(round * lastsMs / 2), lastsMs, seed: `${row.notice_id}:${String(round)}` });
    if (made) await addAudit(db, { atMs: deps.clock.nowMs(), tenant: row.tenant, principalId: "docket/console", keyId: "", action: "link.make", target: row.approval_id, outcome: "made", reason: "", detail: { linkId, principal, channel: row.channel, noticeId: row.notice_id }, ip: "" });
    links.push(link);
  }
  return links;
}
