/**
 * Owns: a card as a Discord message. Texts of others stand in code blocks, out of which they cannot break, and nothing in a message may ping anybody.
 * A message is kept by its id, and replaced by what became of it.
 */
import type { ApprovalListItem } from "../../contracts/api.js";
import { cardOf, type Card } from "./card.js";
import type { Channel } from "./settings.js";
import { clip, moreWords, type Clipped } from "./text.js";

/** An embed holds 6,000 characters in all, its description 4,096. */
const LIMITS = { args: 1_800, words: 350 };
const FACTS_MAX = 900;
const COLOURS = { open: 0xd9822b, closed: 0x5c7080 };

export function discordCard(item: ApprovalListItem, event: Card["event"], { channel, consoleUrl }: { readonly channel: Pick<Channel, "show">; readonly consoleUrl: string }): Card {
  const { record, args, rationale, trigger, sessionId, agent } = item.pending;
  const pending = { ...item.pending, args: unticked(args), rationale: unticked(rationale), trigger: unticked(trigger), sessionId: unticked(sessionId), agent: unticked(agent), record: { ...record, question: unticked(record.question), requestedBy: unticked(record.requestedBy) } };
  return cardOf({ ...item, pending, ...(item.decidedBy === undefined ? {} : { decidedBy: unticked(item.decidedBy) }) }, event, { show: channel.show, limits: LIMITS, consoleUrl });
}

/** A backtick is written as JSON may write it: three of them would end a code block. Before anything is cut, so that what is cut still fits. */
function unticked(text: string): string { return text.replaceAll("`", "\\u0060"); }

export function discordMessage(card: Card): Readonly<Record<string, unknown>> {
  const description = [
    ...(card.outcome === "" ? [] : [block("", { shown: card.outcome, more: 0 })]),
    block("", clip(card.facts.map(([name, value]) => `${name}: ${value}`).join("\n"), FACTS_MAX)),
    block(card.args?.more === 0 ? "Arguments, exactly and in full" : "Arguments (not all of them)", card.args), block("Why the agent wants it", card.rationale), block("What started it (untrusted)", card.trigger),
    "Decide in the console: follow the title.",
  ].filter((part) => part !== "").join("\n");
  return {
    content: "", allowed_mentions: { parse: [] },
    embeds: [{ title: card.title.slice(0, 250), url: card.url, color: card.open ? COLOURS.open : COLOURS.closed, description }],
  };
}

/** Whatever else came here: no block is ended from within. */
function block(heading: string, clipped: Clipped | undefined): string {
  if (clipped === undefined) return "";
  const more = clipped.more === 0 ? "" : `\n${moreWords(clipped)}`;
  return `${heading === "" ? "" : `**${heading}**\n`}\`\`\`\n${clipped.shown.replaceAll("`", "'")}\n\`\`\`${more}`;
}
