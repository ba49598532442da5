/**
 * Owns: what a quarantined session answers. It takes nothing: events become dead letters with this reason and can be redriven
 * after the release; decisions are refused and recorded; reports of tools and models are refused, and asked for again later.
 * Only an operator moves it: by release, which goes on with what is stored, or by close.
 */
import type { CommandOf, Decision, SessionCommand } from "../command.js";
import type { OpenSession } from "../state.js";
import { close } from "./control.js";
import { recordErased } from "./deletion.js";
import { MAX_MESSAGE } from "../limits.js";
import { clip, Draft, given } from "./draft.js";
import { knowsKey } from "./intake.js";
import { clearPublished, releaseGuard } from "./tick.js";

export function inQuarantine(state: OpenSession, command: SessionCommand): Decision {
  const draft = new Draft(state, command);
  switch (command.type) {
    case "Release":
      draft.emit({ type: "SessionReleased", key: command.key, reason: command.reason, ...given("principal", command.principal) });
      return draft.accept();
    case "Close": return closeReleased(draft, command);
    case "Tick":
      clearPublished(draft, command.published);
      releaseGuard(draft, command);
      return draft.accept();
    case "RecordErased": return recordErased(state, command);
    case "Heal": return draft.accept();
    case "Decide": return refuseDecision(draft, command);
    case "ReceiveEvent":
      if (command.seen || knowsKey(state, command.event.key)) return draft.refuse("duplicate", `the event ${command.event.source} ${command.event.id} was accepted before`);
      return refused(draft);
    case "TakeNext": case "StartModelCall": case "RecordAnswer": case "RecordModelFailure": case "RecordClaim": case "RecordToolResult": case "AcknowledgeApproval": case "TendApproval": case "RevokeAllowance": case "Cancel": case "Delete": case "Compact":
      return refused(draft);
  }
}

function closeReleased(draft: Draft, command: CommandOf<"Close">): Decision {
  draft.emit({ type: "SessionReleased", key: command.key, reason: `closed: ${command.reason}`, ...given("principal", command.principal) });
  const closed = close(draft.state, command);
  return { ...closed, events: [...draft.events, ...closed.events] };
}

/** The person gets a verdict, and may decide anew after the release (I10). */
function refuseDecision(draft: Draft, { claims: { approvalId, jti, principal, via }, judged }: CommandOf<"Decide">): Decision {
  if (draft.session.recentDecisions.some((line) => line.decisionId === jti)) return draft.refuse("duplicate", `decision ${jti} was received before`);
  draft.emit({ type: "DecisionRefused", approvalId, decisionId: jti, code: "session_quarantined", ...given("principal", judged.ok ? principal : undefined), via, message: clip(whyQuarantined(draft), MAX_MESSAGE) });
  return refused(draft);
}

function refused(draft: Draft): Decision {
  return draft.refuse("session_quarantined", whyQuarantined(draft));
}

function whyQuarantined(draft: Draft): string {
  const { reason, message } = draft.session.quarantine ?? { reason: "", message: "" };
  return `the session is quarantined (${reason}): ${message}`;
}
