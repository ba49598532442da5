/** Owns: a run that stands still until a person raises its limit, tries again or gives up, on its session's page: what was reached, and deciding it right there. A call is never approved here: its arguments are on its card (I5). */
import type { JSX } from "preact";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import type { EscalationReason } from "../../../src/contracts/decisions.js";
import { useDecision } from "../lib/decision.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import type { Me } from "../lib/urgency.js";
import { obstacleOf } from "../lib/who-may.js";
import { Broken, Loading, Time, Words } from "../parts/basics.js";
import { Left } from "../parts/left.js";
import { DecisionBar } from "./decision-bar.js";
import { DecisionDialog } from "./decision-dialogs.js";
import { DecisionOutcome } from "./decision-outcome.js";

const EVERY_MS = 2_000;
const TITLES: Readonly<Record<EscalationReason, string>> = {
  budget: "The budget is used up", step_limit: "The step limit is reached", reflection_limit: "The model tried again too often", model_lost: "The model call was lost again and again", model_failed: "The model fails",
  critical_tool_failed: "A critical tool failed", outcome_unknown: "It is not known whether the tool had its effect", approval_expired: "Nobody decided in time",
};

export function Escalation({ approvalId, me, onDone }: { approvalId: string; me: Me; onDone: () => void }): JSX.Element {
  const { value: item, error, refresh } = usePoll<ApprovalListItem>(`/v1/approvals/${encodeURIComponent(approvalId)}`, EVERY_MS);
  const deciding = useDecision(item, () => { refresh(); onDone(); });
  if (item === undefined) return error === undefined ? <Loading /> : <Broken error={error} again={refresh} />;
  const { record } = item.pending;
  return <section class="escalation" aria-label="The run stands still">
    <h2>{record.escalation === undefined ? "The run needs a person" : TITLES[record.escalation]}</h2>
    <p><Words text={record.question} max={600} /></p>
    <p class="quiet">It has stood still since <Time at={record.openedAtMs} />, costs nothing meanwhile, and goes on where it was. {item.state === "open" ? <Left item={item} /> : null} <a href={to.approval(approvalId)}>The whole question</a></p>
    <DecisionOutcome item={item} phase={deciding.phase} dismiss={deciding.dismiss} />
    {item.state !== "open" ? null : record.allowed.includes("approve") ? <p><a class="button go" href={to.approval(approvalId)}>Decide where the arguments are shown</a></p> : <DecisionBar record={record} obstacle={obstacleOf(record, me)} deciding={deciding} keyed={false} />}
    {deciding.phase.at === "asking" && item.state === "open" ? <DecisionDialog kind={deciding.phase.kind} remember={false} item={item} tool={undefined} deciding={deciding} /> : null}
  </section>;
}
