/**
 * Owns: carrying notices to one channel, one after the other. An attempt is counted in the database before it is made; what fails is tried again with
 * exponential backoff and full jitter, without end while the way is down; a receiver that keeps refusing is given up, which is shown, logged and can be undone.
 */
import type { ApprovalListItem } from "../../contracts/api.js";
import { NoticeEvent } from "../../contracts/notices.js";
import { z } from "zod";
import type { ConsoleConfig } from "../config.js";
import type { ConsoleDeps } from "../ports.js";
import { placedApproval } from "../read-model/approvals.js";
import type { NoticeRow, ReadModel } from "../read-model/database.js";
import { beginAttempt, dueNotices, markForNotices, noteFailed, noteGivenUp, noteSent, overtake } from "../read-model/notices.js";
import { isCard } from "./planner.js";
import { backoffMs, post, type Outgoing } from "./post.js";
import { discordRequest, slackRequest, webhookRequest, type RenderDeps } from "./requests.js";
import type { Channel, NoticeSettings } from "./settings.js";

/** Where a copy is to be replaced: a Discord message, or where Slack takes changes until a time. */
export const Target = z.union([z.object({ message: z.string() }), z.object({ responseUrl: z.string(), untilMs: z.number() })]);
const DiscordMessage = z.object({ id: z.string().regex(/^\d{1,30}$/) });

/** After a failure the whole channel rests, not longer than this. */
const REST_MS = 60_000;

export interface Sender { /** What is due for the channel; returns how many were sent. */ deliver(): Promise<number> }
type SendDeps = RenderDeps & Pick<ConsoleDeps, "logger"> & { readonly random: () => number };

export function createSender(db: ReadModel, settings: NoticeSettings, channel: Channel, { timing, deps }: { readonly timing: ConsoleConfig["noticeTiming"]; readonly deps: SendDeps }): Sender {
  const { clock, logger } = deps;
  let restUntilMs = 0;

  /** True: the channel works. */
  const send = async (row: NoticeRow): Promise<boolean> => {
    const attempts = row.attempts + 1;
    const pauseMs = backoffMs(attempts, deps.random(), timing);
    if (!(await beginAttempt(db, row, clock.nowMs() + timing.timeoutMs + pauseMs))) return true;
    const item = (await placedApproval(db, row.approval_id))?.item;
    const moot = item === undefined ? "the approval is no longer kept" : mootNote(row, item, clock.nowMs());
    if (item === undefined || moot !== undefined) {
      await overtake(db, [row.notice_id], clock.nowMs(), moot ?? "");
      await markForNotices(db, row.approval_id);
      return true;
    }
    const request = await requestFor(row, item);
    if (request === undefined) {
      await noteFailed(db, row.notice_id, { note: "the decision has not arrived in the lists yet", dueAtMs: clock.nowMs() + pauseMs, refusals: row.refusals });
      return true;
    }
    const answer = await post(request, timing.timeoutMs);
    const nowMs = clock.nowMs();
    if (answer.kind === "sent") {
      const receipt = channel.kind === "discord" && isCard(row) ? messageIdIn(answer.text) : undefined;
      await noteSent(db, row.notice_id, nowMs, { note: answer.note, receipt });
      // Decided while it was on its way: then this copy is to be locked as well.
      if (isCard(row) && (await placedApproval(db, row.approval_id))?.item.state !== "open") await markForNotices(db, row.approval_id);
      return true;
    }
    const refusals = row.refusals + (answer.kind === "refused" ? 1 : 0);
    if (answer.kind === "gone" || refusals >= timing.refusals) {
      await noteGivenUp(db, row.notice_id, nowMs, answer.note);
      logger.error({ noticeId: row.notice_id, approvalId: row.approval_id, channel: channel.name, attempts, note: answer.note }, "a notice was given up: its receiver refuses it");
      return true;
    }
    const dueAtMs = nowMs + Math.max(pauseMs, answer.retryAfterMs);
    await noteFailed(db, row.notice_id, { note: answer.note, dueAtMs, refusals });
    restUntilMs = Math.min(dueAtMs, nowMs + Math.max(REST_MS, answer.retryAfterMs));
    logger.warn({ noticeId: row.notice_id, channel: channel.name, attempts, note: answer.note }, "a notice could not be delivered yet");
    return false;
  };

  const requestFor = (row: NoticeRow, item: ApprovalListItem): Promise<Outgoing | undefined> => {
    const target = row.target === null ? undefined : Target.parse(JSON.parse(row.target));
    const about = { row, item, event: NoticeEvent.parse(row.event), settings, db, deps };
    if (row.event === "locked" && item.state === "open") return Promise.resolve(undefined);
    switch (channel.kind) {
      case "webhook": return webhookRequest(channel, about);
      case "slack": return slackRequest(channel, about, target !== undefined && "responseUrl" in target ? target.responseUrl : undefined);
      case "discord": return Promise.resolve(discordRequest(channel, about, target !== undefined && "message" in target ? target.message : undefined));
    }
  };

  return {
    async deliver() {
      if (clock.nowMs() < restUntilMs) return 0;
      let sent = 0;
      for (const row of await dueNotices(db, channel.name, clock.nowMs(), timing.batch)) {
        if (!(await send(row))) break;
        sent += 1;
      }
      return sent;
    },
  };
}

/** Why a notice need not go out any more. */
function mootNote(row: NoticeRow, { state, pending }: ApprovalListItem, nowMs: number): string | undefined {
  if (isCard(row) && state !== "open") return "decided before it could be sent";
  if (isCard(row) && pending.record.version !== row.version) return "the approval has changed";
  const target = row.target === null ? undefined : Target.parse(JSON.parse(row.target));
  return target !== undefined && "untilMs" in target && target.untilMs <= nowMs ? "Slack takes changes of a message for half an hour only" : undefined;
}

function messageIdIn(text: string): string | undefined {
  try {
    return DiscordMessage.parse(JSON.parse(text)).id;
  } catch {
    return undefined;
  }
}
