/**
 * Owns: one person's decision on one approval, as it was shown: exactly that version and digest are sent. A decision whose answer got lost is
 * sent again under the same id, so that it counts once. Approving takes two presses, and what was armed is disarmed as soon as
 * something else is shown.
 */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ApprovalListItem, DecisionAnswer, DecisionRequest } from "../../../src/contracts/api.js";
import type { DecisionKind } from "../../../src/contracts/tools.js";
import { ApiError, post } from "./api.js";

export type Content = Pick<DecisionRequest, "args" | "text" | "raise" | "remember">;
export type Phase =
  | { readonly at: "idle" }
  | { readonly at: "armed"; readonly kind: DecisionKind; readonly sinceMs: number }
  /** What is asked is no longer what was being decided. */
  | { readonly at: "changed" }
  /** `remember`: how far the approval is to hold in this session is asked too. */
  | { readonly at: "asking"; readonly kind: DecisionKind; readonly remember?: boolean }
  | { readonly at: "sending"; readonly kind: DecisionKind }
  | { readonly at: "told"; readonly kind: DecisionKind; readonly answer: DecisionAnswer }
  | { readonly at: "refused"; readonly kind: DecisionKind; readonly error: ApiError }
  /** It may or may not have been taken. */
  | { readonly at: "unsure"; readonly kind: DecisionKind; readonly why: string; readonly again: () => void };

export interface Deciding {
  readonly phase: Phase;
  /** Why, in the person's words: goes with whatever is decided, into the audit and the approval's history. */
  readonly note: string;
  readonly setNote: (text: string) => void;
  /** First press arms, the second sends. `pointer`: presses of a double click are one. */
  readonly press: (kind: DecisionKind, how: "key" | "pointer") => void;
  readonly ask: (kind: DecisionKind, how?: { readonly remember: boolean }) => void;
  readonly send: (kind: DecisionKind, content: Content) => void;
  readonly dismiss: () => void;
}

const ARMED_MS = 6_000;
/** Presses that are closer together are one double click. */
export const DOUBLE_CLICK_MS = 500;
const ASK_AGAIN = 5;

export function useDecision(item: ApprovalListItem | undefined, settled: () => void): Deciding {
  const record = item?.pending.record;
  const shown = record === undefined ? "" : `${record.approvalId} ${String(record.version)} ${record.argsDigest} ${item?.state ?? ""}`;
  const [{ phase, of }, setState] = useState<{ phase: Phase; of: string }>({ phase: { at: "idle" }, of: shown });
  const [note, setNote] = useState("");
  const newest = useRef({ shown, record });
  newest.current = { shown, record };
  const set = (next: Phase): void => { setState({ phase: next, of: newest.current.shown }); };
  // A press or an open dialog is for what was shown; the outcome of one that was sent stays to be read.
  const stale = of !== shown && (phase.at === "armed" || phase.at === "asking" || !sameApproval(of, shown));
  const current: Phase = !stale ? phase : sameApproval(of, shown) && item?.state === "open" ? { at: "changed" } : { at: "idle" };

  useEffect(() => {
    if (current.at !== "armed") return;
    const timer = window.setTimeout(() => { set({ at: "idle" }); }, ARMED_MS);
    return () => { window.clearTimeout(timer); };
  }, [phase, stale]);

  const send = (kind: DecisionKind, content: Content): void => {
    if (record === undefined || current.at === "sending") return;
    const body: DecisionRequest = { kind, version: record.version, argsDigest: record.argsDigest, decisionId: newId(), ...(note.trim() === "" || kind === "respond" ? {} : { text: note.trim() }), ...content };
    const carry = async (tries: number): Promise<void> => {
      set({ at: "sending", kind });
      try {
        const answer = await post<DecisionAnswer>(`/v1/approvals/${encodeURIComponent(record.approvalId)}/decisions`, body);
        if (answer.verdict !== "not_known_yet") set({ at: "told", kind, answer });
        else if (tries > 1) { await carry(tries - 1); return; }
        else set({ at: "unsure", kind, why: "It was sent, and the session has not said yet what it made of it.", again: () => { void carry(ASK_AGAIN); } });
      } catch (error) {
        if (error instanceof ApiError && !error.unreachable && error.problem?.retryable !== true) set({ at: "refused", kind, error });
        else set({ at: "unsure", kind, why: `${error instanceof Error ? error.message : String(error)}. Whether the decision was taken is not known.`, again: () => { void carry(ASK_AGAIN); } });
      }
      settled();
    };
    void carry(ASK_AGAIN);
  };

  return {
    phase: current, send, note,
    setNote: (text) => {
      setNote(text);
      // What is armed was armed for what was said then.
      if (current.at === "armed") set({ at: "idle" });
    },
    press: (kind, how) => {
      if (current.at === "sending") return;
      if (current.at !== "armed" || current.kind !== kind) { set({ at: "armed", kind, sinceMs: Date.now() }); return; }
      if (how === "pointer" && Date.now() - current.sinceMs < DOUBLE_CLICK_MS) return;
      send(kind, {});
    },
    ask: (kind, how) => { if (current.at !== "sending") set({ at: "asking", kind, ...how }); },
    dismiss: () => { if (current.at !== "sending") set({ at: "idle" }); },
  };
}

/** Works without TLS too, where `crypto.randomUUID` does not exist. */
export function newId(): string { return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join(""); }

function sameApproval(a: string, b: string): boolean { return a.split(" ")[0] === b.split(" ")[0]; }
