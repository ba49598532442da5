/** Owns: the line of a card that says which notices went where, and what became of them. */
import type { JSX } from "preact";
import type { NoticeItem } from "../../../src/contracts/notices.js";
import { usePoll } from "../lib/poll.js";
import { Time, Words } from "./basics.js";

const EVERY_MS = 10_000;
const WORDS: Readonly<Record<NoticeItem["state"], string>> = { waiting: "waiting", sent: "sent", given_up: "given up", overtaken: "not needed" };

export function NoticesLine({ approvalId }: { approvalId: string }): JSX.Element | null {
  const { value } = usePoll<{ readonly items: readonly NoticeItem[] }>(`/v1/approvals/${encodeURIComponent(approvalId)}/notices`, EVERY_MS);
  if (value === undefined || value.items.length === 0) return null;
  return <section><h3>Who was told</h3><ul class="plain">{value.items.map((notice) => <li key={notice.noticeId}>
    <b>{notice.channel}</b> {notice.event} <span class={notice.state === "given_up" ? "fault" : "quiet"}>{WORDS[notice.state]}</span> <Time at={notice.settledAtMs ?? notice.createdAtMs} />
    {notice.state === "sent" || notice.note === "" ? null : <span class="quiet"> <Words text={notice.note} max={120} />{notice.attempts > 1 ? `, ${String(notice.attempts)} attempts` : ""}</span>}
  </li>)}</ul></section>;
}
