/** Owns: how dead letters, publications, window, guard and quarantine fold into the state. */
import type { SessionEventOf } from "../../../contracts/journal.js";
import { addRow, dropRows, withCall, withCommon, type EntryAt, type Parts } from "../parts.js";
import type { SessionCommon } from "../state.js";
import type { AppliersOf } from "./applier.js";
import { advanceTo } from "./window.js";

function repeated(parts: Parts, event: SessionEventOf<"PublicationRepeated">, entry: EntryAt): Parts {
  const { outbox } = parts.common;
  if (outbox.some((row) => row.rowId === event.rowId)) {
    const next = outbox.map((row) => (row.rowId === event.rowId ? { ...row, publication: event.publication, publishedAtMs: entry.atMs } : row));
    return withCommon(parts, { outbox: next });
  }
  return reasked(parts, event, entry);
}

/** A claimed call went quiet: its row had been cleared by the claim and comes back. */
function reasked(parts: Parts, event: SessionEventOf<"PublicationRepeated">, entry: EntryAt): Parts {
  const call = parts.run?.calls.find(({ callId, life }) => life.phase === "dispatched" && event.rowId === `tool:${callId}:${String(life.try)}`);
  if (call === undefined) return parts;
  const asked = withCall(parts, call.callId, ({ life }) => (life.phase === "dispatched" ? { life: { ...life, askedAtMs: entry.atMs } } : {}));
  const row = { rowId: event.rowId, kind: "tool_request" as const, subject: call.callId, rev: entry.rev, publication: event.publication, publishedAtMs: entry.atMs };
  return withCommon(asked, { outbox: [...asked.common.outbox, row] });
}

function released({ common, ...rest }: Parts, _event: SessionEventOf<"SessionReleased">, entry: EntryAt): Parts {
  const { quarantine: _ended, ...free } = common;
  return { ...rest, common: { ...free, checkedFromRev: entry.rev } };
}

function erased(parts: Parts, event: SessionEventOf<"SessionErased">): Parts {
  const { erase, ...common } = parts.common;
  return erase?.toRev === event.toRev ? { ...parts, common } : parts;
}

function guardOf(event: SessionEventOf<"GuardArmed">): SessionCommon["guard"] {
  const { generation, periodMs, dueAtMs } = event;
  return { generation, armed: true, periodMs, ...(dueAtMs === undefined ? {} : { dueAtMs }) };
}

export const bookAppliers: AppliersOf<"SessionErased" | "SessionRepaired" | "SessionQuarantined" | "SessionReleased" | "DeadLetterRecorded" | "PublicationsCleared" | "PublicationRepeated" | "WindowAdvanced" | "GuardArmed" | "GuardReleased"> = {
  SessionErased: erased,
  SessionRepaired: (parts) => parts,
  SessionQuarantined: (parts, { reason, message }, entry) => withCommon(parts, { quarantine: { reason, message, sinceMs: entry.atMs } }),
  SessionReleased: released,
  DeadLetterRecorded: (parts, event, entry) => addRow(parts, { rowId: `dead:${event.deadLetterId}`, kind: "dead_letter", subject: event.deadLetterId }, entry),
  PublicationsCleared: (parts, event) => dropRows(parts, (row) => event.rowIds.includes(row.rowId)),
  PublicationRepeated: repeated,
  WindowAdvanced: (parts, event) => advanceTo(parts, event.fromRev),
  GuardArmed: (parts, event) => withCommon(parts, { guard: guardOf(event) }),
  GuardReleased: (parts, event) => withCommon(parts, { guard: { generation: event.generation, armed: false, periodMs: parts.common.guard.periodMs } }),
};
