/**
 * Owns: what the console does with deliveries. RETRY only for failures of the way (its own database, the broker for
 * the receipt); a message that does not fit becomes a dead letter right here, so nothing is refused and nothing blocks.
 */
import type { Envelope } from "../../contracts/cloudevent.js";
import { APPROVAL_PENDING, APPROVAL_RECEIVED, PendingApproval } from "../../contracts/decisions.js";
import { isLetterKeeper, LETTER_RECEIVED, type DeadLetter, type DeliveryStatus, type LetterReceived } from "../../contracts/messages.js";
import { errorFields } from "../../platform/log.js";
import { CONSOLE_SOURCE, envelopeFor } from "../envelopes.js";
import type { ConsoleDeps } from "../ports.js";
import { putPending } from "../read-model/approvals.js";
import type { ReadModel } from "../read-model/database.js";
import { putDeadLetter } from "../read-model/dead-letters.js";
import { letterOf, readData, readJournal, unusableLetter } from "./letters.js";
import type { Projector } from "./projector.js";
import { takeReport } from "./reports.js";

export interface Intake {
  handleJournal(text: string): Promise<DeliveryStatus>;
  handleApprovalPending(text: string): Promise<DeliveryStatus>;
  /** `bytes`: the delivery where it is no text. */
  handleDeadLetter(text: string, bytes?: Uint8Array): Promise<DeliveryStatus>;
}

export function createIntake(db: ReadModel, projector: Projector, deps: Pick<ConsoleDeps, "tasks" | "receipts" | "clock" | "logger">): Intake {
  const settle = async (what: string, work: () => Promise<void>): Promise<DeliveryStatus> => {
    try {
      await work();
      return "SUCCESS";
    } catch (error) {
      deps.logger.warn({ what, ...errorFields(error) }, "a delivery failed on the way and will be repeated");
      return "RETRY";
    }
  };
  return {
    handleJournal: (text) => settle("journal", async () => {
      const { fitting, unusable } = readJournal(text, deps.clock.nowMs());
      for (const letter of unusable) await putDeadLetter(db, letter, deps.clock.nowMs());
      if (fitting.length > 0) await projector.project(fitting);
    }),
    handleApprovalPending: (text) => settle("approval", async () => {
      const read = readData(text, PendingApproval, APPROVAL_PENDING);
      if (!read.ok) {
        await putDeadLetter(db, unusableLetter(text, deps.clock.nowMs(), "approval", read), deps.clock.nowMs());
        return;
      }
      await putPending(db, read.data);
      await deps.tasks.publish(receiptFor(read.envelope, read.data, deps.clock.nowMs()));
    }),
    handleDeadLetter: (text, bytes) => settle("dead letter", async () => {
      const nowMs = deps.clock.nowMs();
      if (bytes === undefined && await takeReport(db, text, nowMs, deps.logger)) return;
      const letter = letterOf(text, nowMs, bytes);
      await putDeadLetter(db, letter, nowMs);
      // A receipt that died itself (a host of an older version knows none) is not answered: that would go round for ever (I14).
      if (isLetterKeeper(letter.app) && letter.envelope?.type !== LETTER_RECEIVED) await deps.receipts.publish(letterReceipt(letter, { deadLetterId: letter.deadLetterId, app: letter.app }, nowMs));
    }),
  };
}

/** Its id follows the publication it answers: a repeated publication means that the receipt before may be lost. */
function receiptFor(received: Envelope, pending: PendingApproval, atMs: number): Envelope {
  const { approvalId, version } = pending.record;
  return envelopeFor({ id: `received:${received.id}`, type: APPROVAL_RECEIVED, tenant: pending.tenant, sessionId: pending.sessionId, data: { approvalId, version }, atMs, causationId: received.id });
}

/** Also for a letter that was known: the receipt before may be lost. */
function letterReceipt(letter: DeadLetter, receipt: LetterReceived, atMs: number): Envelope {
  return {
    specversion: "1.0", id: `letter-received:${letter.deadLetterId}:${String(atMs)}`, source: CONSOLE_SOURCE, type: LETTER_RECEIVED,
    time: new Date(atMs).toISOString(), datacontenttype: "application/json", data: JSON.stringify(receipt),
  };
}
