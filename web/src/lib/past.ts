/** Owns: what became of the arguments of a decided approval: which were let run, and which were asked for, where that is not the same. */
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import { decisionWords } from "./words.js";

export interface Past {
  /** What people did, who, in the order in which they signed. */
  readonly verb: string; readonly who: string;
  /** The arguments that were let run; undefined where none were, or where they are not known here. */
  readonly ran?: string;
  /** What was asked for, where it was not what ran. */
  readonly asked?: string;
  /** They were changed, and only the session's journal has how (an approval of an older version). */
  readonly changed?: true;
}

export function pastOf({ pending: { args, record }, decision = "", decidedBy = "somebody", modifiedArgs }: ApprovalListItem): Past {
  const signers = record.signatures.map(({ principalId }) => principalId).filter((id) => id !== decidedBy);
  const who = [...signers, decidedBy].join(" and ");
  if (decision !== "approve" && decision !== "modify") return { verb: decisionWords(decision), who: decidedBy, asked: args };
  if (modifiedArgs !== undefined) return { verb: decisionWords(decision), who, ran: modifiedArgs, ...(modifiedArgs === args ? {} : { asked: args }) };
  return decision === "modify" ? { verb: decisionWords(decision), who, asked: args, changed: true } : { verb: decisionWords(decision), who, ran: args };
}
