/**
 * Owns: a card in Slack's Block Kit. Every text that somebody else wrote goes into rich text, whose elements Slack takes literally: no mention, no link,
 * no markup can be made there. The one text that Slack parses is the fallback, and it is escaped.
 *
 * - A card that cannot show the arguments in full has no button to approve: nobody signs what they have not seen (I5).
 */
import type { ApprovalListItem } from "../../contracts/api.js";
import { cardOf, type Card } from "./card.js";
import type { Channel } from "./settings.js";
import { moreWords, type Clipped } from "./text.js";

type Block = Readonly<Record<string, unknown>>;
export interface SlackMessage { readonly text: string; readonly blocks: readonly Block[] }
/** The signed values of the buttons; a button that is not there is not offered. */
export interface Buttons { readonly approve?: string; readonly reject?: string }

/** One block of text: Slack allows 3,000 characters. */
const BLOCK_CHARS = 2_800;
const LIMITS = { args: 3 * BLOCK_CHARS, words: 1_000 };
const REASON_MAX = 1_000;

export function slackCard(item: ApprovalListItem, event: Card["event"], { channel, consoleUrl }: { readonly channel: Pick<Channel, "show">; readonly consoleUrl: string }): Card {
  return cardOf(item, event, { show: channel.show, limits: LIMITS, consoleUrl });
}

/** Which decisions may be clicked on this card. */
export function clickable(item: ApprovalListItem, card: Card, channel: Extract<Channel, { kind: "slack" }>): readonly ("approve" | "reject")[] {
  const { record } = item.pending;
  if (!card.open || channel.buttons === "none" || (channel.buttons === "below-high" && record.risk === "high") || record.kind !== "tool_call" || card.args === undefined) return [];
  return (["approve", "reject"] as const).filter((kind) => record.allowed.includes(kind) && (kind === "reject" || card.args?.more === 0));
}

export function slackMessage(card: Card, buttons: Buttons): SlackMessage {
  return {
    text: escapeMrkdwn(card.open ? `${card.title} (${card.facts.find(([name]) => name === "session")?.[1] ?? ""})` : `${card.title}: ${card.outcome}`),
    blocks: [
      { type: "header", text: { type: "plain_text", text: card.title.slice(0, 150), emoji: false } },
      ...(card.outcome === "" ? [] : [words([bold(card.outcome)])]),
      { type: "rich_text", elements: [{ type: "rich_text_list", style: "bullet", elements: card.facts.map(([name, value]) => ({ type: "rich_text_section", elements: [bold(`${name}: `), text(value)] })) }] },
      ...(card.args === undefined ? [] : [words([bold(card.args.more === 0 ? "Arguments, exactly and in full" : "Arguments (not all of them)")]), ...preformatted(card.args)]),
      ...quoted("Why the agent wants it", card.rationale), ...quoted("What started it (untrusted: nothing in it is a decision, or an instruction to you)", card.trigger),
      ...(card.args !== undefined && card.args.more > 0 && card.open ? [words([bold("It can be approved in the console only: this card does not show all of it.")])] : []),
      ...(buttons.reject === undefined ? [] : [reasonInput()]),
      actions(card, buttons),
    ],
  };
}

/** Slack's own rule for text that it parses. */
export function escapeMrkdwn(value: string): string { return value.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"); }

const text = (value: string): Block => ({ type: "text", text: value });
const bold = (value: string): Block => ({ type: "text", text: value, style: { bold: true } });
const words = (elements: readonly Block[]): Block => ({ type: "rich_text", elements: [{ type: "rich_text_section", elements }] });

function preformatted(clipped: Clipped): Block[] {
  const parts = clipped.shown.match(/[\s\S]{1,2800}/gu) ?? [];
  return [
    ...parts.map((part) => ({ type: "rich_text", elements: [{ type: "rich_text_preformatted", elements: [text(part)] }] })),
    ...(clipped.more === 0 ? [] : [words([bold(moreWords(clipped))])]),
  ];
}

function quoted(heading: string, clipped: Clipped | undefined): Block[] {
  if (clipped === undefined) return [];
  return [words([bold(heading)]), { type: "rich_text", elements: [{ type: "rich_text_quote", elements: [text(clipped.shown)] }] }, ...(clipped.more === 0 ? [] : [words([text(moreWords(clipped))])])];
}

function reasonInput(): Block {
  return { type: "input", block_id: "reason", optional: true, label: plain("Reason, where you reject (the model reads it)"), element: { type: "plain_text_input", action_id: "reason", max_length: REASON_MAX } };
}

function actions(card: Card, { approve, reject }: Buttons): Block {
  const confirm = (title: string, label: string): Block => ({ title: plain(title), text: plain("The decision is yours and will be recorded under your name."), confirm: plain(label), deny: plain("Back") });
  return { type: "actions", block_id: "decide", elements: [
    ...(approve === undefined ? [] : [{ type: "button", action_id: "approve", style: "primary", text: plain("Approve"), value: approve, confirm: confirm("Approve exactly this?", "Approve") }]),
    ...(reject === undefined ? [] : [{ type: "button", action_id: "reject", style: "danger", text: plain("Reject"), value: reject, confirm: confirm("Reject this?", "Reject") }]),
    { type: "button", action_id: "open", text: plain("Open in the console"), url: card.url },
  ] };
}

const plain = (value: string): Block => ({ type: "plain_text", text: value, emoji: false });
