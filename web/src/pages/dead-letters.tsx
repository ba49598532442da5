/** Owns: the Dead letters page: grouped by what they died of; one letter whole, redriven or discarded with a reason. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { DeadLetterItem } from "../../../src/contracts/api.js";
import { oddChoice } from "../lib/address.js";
import { ApiError, post } from "../lib/api.js";
import { groupLetters, sessionOf, type LetterGroup } from "../lib/letters.js";
import { usePoll } from "../lib/poll.js";
import { to } from "../lib/router.js";
import type { Me } from "../lib/urgency.js";
import { plural } from "../lib/words.js";
import { Broken, Dialog, Empty, Fields, Id, Json, Loading, Notice, OddAddress, Tabs, Time, Words } from "../parts/basics.js";
import { ManyDialog } from "./many-letters.js";

interface Page { readonly items: readonly DeadLetterItem[]; readonly nextCursor?: string }

const EVERY_MS = 5_000;
const STATES = [["dead", "Dead"], ["redriven", "Redriven"], ["discarded", "Discarded"]] as const;

export function DeadLetters({ me, id, query }: { me: Me; id: string | undefined; query: URLSearchParams }): JSX.Element {
  const state = STATES.find(([name]) => name === query.get("state"))?.[0] ?? "dead";
  const { value, error, refresh } = usePoll<Page>(`/v1/dead-letters?state=${state}&limit=200`, EVERY_MS);
  const [many, setMany] = useState<{ readonly group: LetterGroup; readonly how: "redrive" | "discard" }>();
  const suffix = state === "dead" ? "" : `?state=${state}`;
  return <div class={`split ${id === undefined ? "" : "has-open"}`}>
    <section class="queue" aria-label="Dead letters">
      <header class="page-head"><h1>Dead letters</h1><Tabs label="Which" tabs={STATES.map(([name, words]) => ({ href: name === "dead" ? "/dead-letters" : `/dead-letters?state=${name}`, name: words, open: state === name }))} /></header>
      <OddAddress odd={[oddChoice(query, "state", { expected: STATES.map(([name]) => name), shown: "letters that are dead" })]} />
      {value === undefined ? (error === undefined ? <Loading /> : <Broken error={error} again={refresh} />)
        : value.items.length === 0 ? <Empty title={state === "dead" ? "No dead letters" : "None"}><p>What Docket had to give up appears here, whole, with its reason.</p></Empty>
        : groupLetters(value.items).map((group) => <Group key={group.fingerprint} group={group} open={id} suffix={suffix} {...(state === "dead" && me.rights.includes("operate") ? { settle: (how: "redrive" | "discard") => { setMany({ group, how }); } } : {})} />)}
      {many === undefined ? null : <ManyDialog group={many.group} how={many.how} onClose={() => { setMany(undefined); refresh(); }} />}
      {value?.nextCursor === undefined ? null : <p class="quiet pad">Only the newest 200 are shown.</p>}
    </section>
    <section class="detail" aria-label="The open dead letter">{id === undefined ? <div class="state quiet"><p>Choose a letter.</p></div> : <Letter key={id} id={id} me={me} back={`/dead-letters${suffix}`} onDone={refresh} />}</section>
  </div>;
}

function Group({ group, open, suffix, settle }: { group: LetterGroup; open: string | undefined; suffix: string; settle?: (how: "redrive" | "discard") => void }): JSX.Element {
  return <details class="group" open={group.items.length <= 5 || group.items.some((item) => item.letter.deadLetterId === open)}>
    <summary><b class="code">{group.reason}</b> <span class="count">{group.items.length}</span> <span class="quiet"><Time at={group.newestAtMs} /></span><span class="group-message"><Words text={group.message.slice(0, 200)} /></span></summary>
    {settle === undefined ? null : <p class="group-act"><button type="button" onClick={() => { settle("redrive"); }}>Redrive all like these…</button><button type="button" onClick={() => { settle("discard"); }}>Discard all…</button></p>}
    <ul class="rows">{group.items.map((item) => <li key={item.letter.deadLetterId}><a class="row" href={to.letter(item.letter.deadLetterId) + suffix} aria-current={item.letter.deadLetterId === open ? "true" : undefined}>
      <span class="row-top"><span class="code">{item.letter.kind}</span><span class="quiet"><Time at={item.receivedAtMs} /></span></span>
      <span class="row-bottom"><bdi class="quiet clip">{sessionOf(item) ?? item.letter.deadLetterId}</bdi></span></a></li>)}</ul>
  </details>;
}

function Letter({ id, me, back, onDone }: { id: string; me: Me; back: string; onDone: () => void }): JSX.Element {
  const { value: item, error, refresh } = usePoll<DeadLetterItem>(`/v1/dead-letters/${encodeURIComponent(id)}`, EVERY_MS);
  const [asking, setAsking] = useState<"redrive" | "discard">();
  const [told, setTold] = useState<{ tone: "good"; text: string }>();
  if (item === undefined) return error === undefined ? <Loading /> : <Broken error={error} again={refresh} />;
  const { letter } = item;
  const sessionId = sessionOf(item);
  const close = (next?: typeof told): void => { setAsking(undefined); if (next !== undefined) setTold(next); refresh(); onDone(); };
  return <article class="card" aria-labelledby="letter-title">
    <header class="card-head"><a class="back" href={back} aria-label="Back to the list">←</a><div class="grow"><h2 id="letter-title"><span class="code">{letter.reason}</span></h2><p class="card-line"><span class="badge">{item.state}</span> <span class="quiet">{letter.kind.replace("_", " ")} from {letter.topic}</span></p></div></header>
    {told === undefined ? null : <Notice tone={told.tone}>{told.text}</Notice>}
    <section><h3>What happened</h3><p><Words text={letter.message} max={2_000} /></p></section>
    <Fields rows={[
      sessionId === undefined ? undefined : ["session", <a href={to.session(sessionId)}><bdi>{sessionId}</bdi></a>], letter.tool === undefined ? undefined : ["tool", <span class="code">{letter.tool}</span>],
      ["tries", String(letter.tries)], ["app", letter.app], ["first failed", <Time at={letter.firstFailedAtMs} />], ["last failed", <Time at={letter.lastFailedAtMs} />], ["redriven", plural(item.redriveCount, "time")],
      ["letter", <Id id={letter.deadLetterId} />], letter.envelope?.id === undefined ? undefined : ["event", <Id id={letter.envelope.id} />], letter.runId === undefined ? undefined : ["run", <Id id={letter.runId} />],
    ]} />
    <section><h3>Payload <span class="tag-untrusted">untrusted</span></h3><Json text={letter.payload === "" ? "(empty)" : letter.payload} label="Payload" /></section>
    {me.rights.includes("operate") ? <footer class="bar" aria-label="Settle"><div class="bar-buttons"><button type="button" class="decide go" onClick={() => { setAsking("redrive"); }}>Redrive</button>{item.state === "dead" ? <button type="button" class="decide stop" onClick={() => { setAsking("discard"); }}>Discard</button> : null}</div></footer> : null}
    {asking === undefined ? null : <SettleDialog item={item} how={asking} mayEdit={me.rights.includes("decide")} onClose={close} />}
  </article>;
}

/** The number of the redrive is that of what was shown when the dialog opened: two people at once make one, and whoever comes second with another payload is told. */
function SettleDialog({ item, how, mayEdit, onClose }: { item: DeadLetterItem; how: "redrive" | "discard"; mayEdit: boolean; onClose: (told?: { tone: "good"; text: string }) => void }): JSX.Element {
  const [reason, setReason] = useState("");
  const { letter } = item;
  const [redrive] = useState(item.redriveCount + 1);
  const [refused, setRefused] = useState<string>();
  const [payload, setPayload] = useState(letter.payload);
  const editable = how === "redrive" && mayEdit && letter.payloadEncoding === "utf8" && ["event", "unreadable", "journal", "approval"].includes(letter.kind);
  const edited = editable && payload !== letter.payload;
  const act = async (): Promise<void> => {
    try {
      await post(`/v1/dead-letters/${encodeURIComponent(item.letter.deadLetterId)}/${how}`, how === "discard" ? { reason } : { reason, redrive, ...(edited ? { payload } : {}) });
      onClose({ tone: "good", text: how === "discard" ? "Discarded." : "Redriven: the session gets it as a new event." });
    } catch (error) {
      setRefused(error instanceof ApiError ? `${error.message}${error.problem?.hint === undefined ? "" : ` Next: ${error.problem.hint}`}` : String(error)); // what was written stays
    }
  };
  return <Dialog title={how === "discard" ? "Discard this letter" : "Redrive this letter"} onClose={() => { onClose(); }}>
    <p class="quiet">{how === "discard" ? "It stays readable until retention takes it, and is not sent again." : "It is sent as a new event, with a new id and expiry. Policy judges every call anew."}{how === "redrive" && redrive > 1 ? ` It was redriven ${plural(redrive - 1, "time")} already; this is redrive ${String(redrive)}, another event.` : ""}</p>
    {refused === undefined ? null : <Notice tone="bad">{refused}</Notice>}
    {editable ? <details class="in-cell"><summary>Edit it first{edited ? " (edited)" : ""}</summary><label class="field"><span>The event as it is sent, in your name</span><textarea class="code json-edit" spellcheck={false} maxLength={512 * 1024} value={payload} onInput={(event) => { setPayload(event.currentTarget.value); }} /></label></details> : null}
    <label class="field"><span>Reason</span><textarea rows={3} maxLength={2_000} value={reason} autoFocus onInput={(event) => { setReason(event.currentTarget.value); }} /></label>
    <div class="dialog-buttons"><button type="button" onClick={() => { onClose(); }}>Close</button><button type="button" class={how === "discard" ? "stop" : "go"} disabled={reason.trim() === ""} onClick={() => { void act(); }}>{how === "discard" ? "Discard" : edited ? "Redrive as edited" : "Redrive"}</button></div>
  </Dialog>;
}
