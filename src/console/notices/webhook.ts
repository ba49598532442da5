/**
 * Owns: a card as an outgoing webhook, signed as Standard Webhooks has it: HMAC-SHA256 over `id.timestamp.body`. The id is the notice's own, so that a
 * receiver recognises a repetition; the timestamp is that of the attempt. How a receiver checks it: docs/notices.md.
 */
import { createHmac } from "node:crypto";
import type { ApprovalListItem } from "../../contracts/api.js";
import type { NoticeEvent, NoticeWebhook, OneTimeLink } from "../../contracts/notices.js";
import { approvalUrl } from "./card.js";

export interface Sealed { readonly body: string; readonly headers: Readonly<Record<string, string>> }

export function webhookBody(item: ApprovalListItem, about: { readonly noticeId: string; readonly event: NoticeEvent; readonly atMs: number; readonly show: "all" | "summary"; readonly consoleUrl: string; readonly links: readonly OneTimeLink[] }): string {
  const { record, args, rationale, trigger, tenant, sessionId, agent } = item.pending;
  const { approvers } = record;
  const given = <K extends string, V>(key: K, value: V | undefined): { [P in K]?: V } => (value === undefined ? {} : { [key]: value } as { [P in K]?: V });
  const content: NoticeWebhook = {
    type: `approval.${about.event}`, timestamp: new Date(about.atMs).toISOString(),
    data: {
      noticeId: about.noticeId, event: about.event, tenant, sessionId, agent, approvalId: record.approvalId, version: record.version, state: item.state,
      kind: record.kind, ...given("tool", record.tool), risk: record.risk, rule: record.rule, question: about.show === "all" ? record.question : "", requestedBy: record.requestedBy, argsDigest: record.argsDigest,
      ...(about.show === "all" ? { args, rationale, trigger } : {}),
      allowed: record.allowed, approvers: { roles: approvers.roles, groups: approvers.groups ?? [], quorum: approvers.quorum, excludeRequester: approvers.excludeRequester },
      openedAtMs: record.openedAtMs, ...given("expiresAtMs", record.expiresAtMs), ...given("decidedBy", item.decidedBy), ...given("decision", item.decision), ...given("decidedAtMs", item.decidedAtMs),
      url: approvalUrl(about.consoleUrl, record.approvalId), links: [...about.links],
    },
  };
  return JSON.stringify(content);
}

/** Signed with each secret: while one is rotated, a receiver with either takes it. */
export function sealWebhook(body: string, id: string, nowMs: number, secrets: readonly string[]): Sealed {
  const timestamp = String(Math.floor(nowMs / 1000));
  const signatures = secrets.map((secret) => `v1,${createHmac("sha256", Buffer.from(secret.slice("whsec_".length), "base64")).update(`${id}.${timestamp}.${body}`).digest("base64")}`);
  return { body, headers: { "content-type": "application/json", "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") } };
}
