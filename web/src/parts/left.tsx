/** Owns: the time that is left for a decision. */
import type { JSX } from "preact";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import { useNow } from "../lib/poll.js";
import { bandOf } from "../lib/urgency.js";
import { iso, relative } from "../lib/words.js";

/** Time left, by the server's clock. */
export function Left({ item }: { item: ApprovalListItem }): JSX.Element {
  const nowMs = useNow();
  const { record } = item.pending;
  const band = bandOf(record, nowMs);
  if (record.expiresAtMs === undefined) return <span class="quiet">no deadline</span>;
  return <time class={`left left-${band}`} dateTime={iso(record.expiresAtMs)} title={iso(record.expiresAtMs)}>{band === "over" ? "time is over" : `${relative(record.expiresAtMs, nowMs).replace("in ", "")} left`}</time>;
}
