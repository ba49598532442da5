/** Owns: whose turn an approval is and when to look again. Neither decides anything, gives a right or moves a deadline; the session's word is what counts. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { ApprovalListItem } from "../../../src/contracts/api.js";
import { ApiError, post, serverNow } from "../lib/api.js";
import { useKeys } from "../lib/keys.js";
import { useNow } from "../lib/poll.js";
import type { Me } from "../lib/urgency.js";
import { isSnoozed, rolesOf } from "../lib/who-may.js";
import { iso } from "../lib/words.js";
import { Dialog, Notice, Time, Words } from "../parts/basics.js";

type Told = { readonly tone: "bad" | "info"; readonly text: string } | undefined;

const MAX_SNOOZE_DAYS = 30;
const MINUTE_MS = 60_000;
const PAUSES: readonly (readonly [string, number])[] = [["15 minutes", 15 * MINUTE_MS], ["1 hour", 60 * MINUTE_MS], ["4 hours", 240 * MINUTE_MS], ["1 day", 1_440 * MINUTE_MS]];

export function Tending({ item, me, onDone }: { item: ApprovalListItem; me: Me; onDone: () => void }): JSX.Element {
  const { record } = item.pending;
  const nowMs = useNow(2_000);
  const [asking, setAsking] = useState<"assign" | "snooze">();
  const [told, setTold] = useState<Told>();
  const may = me.rights.includes("operate") || me.rights.includes("decide");
  const snoozed = isSnoozed(record, nowMs);
  const isMine = record.assignedTo === me.principal.id;
  const carry = async (how: "assign" | "snooze", body: object): Promise<void> => {
    setAsking(undefined);
    setTold(undefined);
    try {
      const { verdict } = await post<{ verdict: string }>(`/v1/approvals/${encodeURIComponent(record.approvalId)}/${how}`, body);
      if (verdict === "not_known_yet") setTold({ tone: "info", text: "Sent; the session has not said yet that it has it." });
    } catch (error) {
      setTold({ tone: "bad", text: error instanceof ApiError ? error.message : String(error) });
    }
    onDone();
  };
  const assign = (to: string | null, reason = ""): void => { void carry("assign", { to, reason }); };
  const snooze = (untilMs: number | null, reason = ""): void => { void carry("snooze", { untilMs, reason }); };
  const mine = (): void => { assign(isMine ? null : me.principal.id); };
  useKeys(may && item.state === "open" ? { i: mine, t: () => { setAsking("assign"); }, s: () => { if (snoozed) snooze(null); else setAsking("snooze"); } } : {});
  return <div class="tending">
    <p>{record.assignedTo === undefined ? <span class="quiet">Nobody's turn in particular.</span> : <span>Turn of <b><bdi>{record.assignedTo}</bdi></b>{isMine ? " (you)" : ""}.</span>} {snoozed ? <span class="tag-snoozed">Snoozed: back <Time at={record.snoozedUntilMs} /></span> : null}</p>
    {may && item.state === "open" ? <p class="tending-buttons">
      <button type="button" onClick={mine}>{isMine ? "Give back" : "Assign to me"}<kbd aria-hidden="true">i</kbd></button>
      <button type="button" onClick={() => { setAsking("assign"); }}>Assign…<kbd aria-hidden="true">t</kbd></button>
      {snoozed ? <button type="button" onClick={() => { snooze(null); }}>Wake<kbd aria-hidden="true">s</kbd></button> : <button type="button" onClick={() => { setAsking("snooze"); }}>Snooze…<kbd aria-hidden="true">s</kbd></button>}</p> : null}
    {told === undefined ? null : <Notice tone={told.tone}><Words text={told.text} max={400} /></Notice>}
    {asking === "assign" ? <AssignDialog item={item} me={me} onSend={assign} onClose={() => { setAsking(undefined); }} /> : null}
    {asking === "snooze" ? <SnoozeDialog item={item} onSend={snooze} onClose={() => { setAsking(undefined); }} /> : null}
  </div>;
}

/** People and groups that have to do with it, to choose from; any other name may be typed. */
function AssignDialog({ item, me, onSend, onClose }: { item: ApprovalListItem; me: Me; onSend: (to: string | null, reason: string) => void; onClose: () => void }): JSX.Element {
  const { approvers, chain = [], assignedTo } = item.pending.record;
  const [to, setTo] = useState("");
  const [reason, setReason] = useState("");
  const people = item.history?.flatMap(({ by }) => by ?? []) ?? [];
  const known = [...new Set([me.principal.id, ...people, ...(approvers.groups ?? []), ...rolesOf(approvers), ...chain.flatMap((step) => [...(step.to?.groups ?? []), ...(step.to?.roles ?? [])])])].filter((name) => name !== assignedTo);
  return <Dialog title="Whose turn is it?" onClose={onClose}>
    <p class="quiet">A person, a group or a role. It shows up in their queue and leaves the others'. It gives no right and takes none.</p>
    <label class="field"><span>Person, group or role</span><input value={to} maxLength={200} autoComplete="off" autoFocus onInput={(event) => { setTo(event.currentTarget.value); }} /></label>
    <p class="choices">{known.map((name) => <button key={name} type="button" onClick={() => { setTo(name); }}><bdi>{name}</bdi></button>)}</p>
    <Reason value={reason} onChange={setReason} />
    <Buttons onClose={onClose}>{assignedTo === undefined ? null : <button type="button" onClick={() => { onSend(null, reason); }}>Nobody</button>}<button type="button" class="go" disabled={to.trim() === ""} onClick={() => { onSend(to.trim(), reason); }}>Assign</button></Buttons>
  </Dialog>;
}

function SnoozeDialog({ item, onSend, onClose }: { item: ApprovalListItem; onSend: (untilMs: number, reason: string) => void; onClose: () => void }): JSX.Element {
  const { expiresAtMs } = item.pending.record;
  const [at, setAt] = useState("");
  const [reason, setReason] = useState("");
  const atMs = at === "" ? undefined : new Date(at).getTime();
  const fault = atMs === undefined ? undefined : atMs <= serverNow() ? "That time is over." : atMs > serverNow() + MAX_SNOOZE_DAYS * 86_400_000 ? `At most ${String(MAX_SNOOZE_DAYS)} days.` : undefined;
  return <Dialog title="Look at it again later" onClose={onClose}>
    <p class="quiet">Until then it is not in the queue. It comes back by itself. Its deadline stays{expiresAtMs === undefined ? "" : <>: <Time at={expiresAtMs} /></>}.</p>
    <p class="choices">{PAUSES.map(([words, ms]) => <button key={words} type="button" onClick={() => { onSend(serverNow() + ms, reason); }}>{words}</button>)}</p>
    <label class="field"><span>Or until</span><input type="datetime-local" value={at} onInput={(event) => { setAt(event.currentTarget.value); }} /></label>
    {atMs !== undefined && fault === undefined && expiresAtMs !== undefined && atMs >= expiresAtMs ? <p class="fault" role="alert">That is after its deadline ({iso(expiresAtMs)}): it would expire unseen.</p> : null}
    {fault === undefined ? null : <p class="fault" role="alert">{fault}</p>}
    <Reason value={reason} onChange={setReason} />
    <Buttons onClose={onClose}><button type="button" class="go" disabled={atMs === undefined || fault !== undefined} onClick={() => { if (atMs !== undefined) onSend(atMs, reason); }}>Snooze</button></Buttons>
  </Dialog>;
}

function Reason({ value, onChange }: { value: string; onChange: (text: string) => void }): JSX.Element {
  return <label class="field"><span>Reason (optional)</span><input maxLength={2_000} autoComplete="off" value={value} onInput={(event) => { onChange(event.currentTarget.value); }} /></label>;
}

function Buttons({ onClose, children }: { onClose: () => void; children: ComponentChildren }): JSX.Element {
  return <div class="dialog-buttons"><button type="button" onClick={onClose}>Cancel</button>{children}</div>;
}
