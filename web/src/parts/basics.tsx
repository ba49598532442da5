/** Owns: the small parts of every page. All text is rendered as text. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { SessionStatus } from "../../../src/contracts/journal.js";
import type { Risk } from "../../../src/contracts/tools.js";
import type { ApiError } from "../lib/api.js";
import { pretty, visible } from "../lib/json.js";
import { useNow } from "../lib/poll.js";
import { iso, plural, relative, shortId, STATUS_WORDS } from "../lib/words.js";

/** A time, relative, with the exact one on hover. */
export function Time({ at, prefix = "" }: { at: number | undefined; prefix?: string }): JSX.Element {
  const nowMs = useNow(at !== undefined && Math.abs(at - Date.now()) < 120_000 ? 1_000 : 15_000);
  return at === undefined ? <span class="quiet">never</span> : <time dateTime={iso(at)} title={iso(at)}>{prefix}{relative(at, nowMs)}</time>;
}

const RISK_MARKS: Readonly<Record<Risk, string>> = { high: "▲", medium: "◆", low: "●" };
export function RiskMark({ risk }: { risk: Risk }): JSX.Element { return <span class={`risk risk-${risk}`}><span aria-hidden="true">{RISK_MARKS[risk]}</span> {risk} risk</span>; }

const STATUS_MARKS: Readonly<Record<SessionStatus, string>> = { IDLE: "○", PLANNING: "◐", EXECUTING_TOOL: "◑", SUMMARIZING: "◒", AWAITING_APPROVAL: "◆", ESCALATED: "▲", CLOSED: "×", DELETED: "∅" };
export function Status({ status }: { status: SessionStatus }): JSX.Element { return <span class={`status status-${status}`}><span aria-hidden="true">{STATUS_MARKS[status]}</span> {STATUS_WORDS[status]}</span>; }

/** An id, short, with the whole one a click away. */
export function Id({ id, whole = false }: { id: string; whole?: boolean }): JSX.Element {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = window.setTimeout(() => { setCopied(false); }, 1_500);
    return () => { window.clearTimeout(timer); };
  }, [copied]);
  const copy = (): void => { void copyText(id).then(() => { setCopied(true); }, () => undefined); };
  return <button type="button" class="id" title={`${visible(id)}\ncopy`} onClick={copy}><bdi>{visible(whole ? id : shortId(id))}</bdi><span class={`copy ${copied ? "copied" : ""}`} aria-hidden="true" /><span class="sr" role="status">{copied ? "copied" : ""}</span></button>;
}

/** Without TLS the browser has no clipboard API; then the person selects by hand. */
function copyText(text: string): Promise<void> {
  const { clipboard } = navigator as { clipboard?: Clipboard };
  return clipboard === undefined ? Promise.reject(new Error("no clipboard here")) : clipboard.writeText(text);
}

/** JSON text, indented, whole, digits kept. */
export function Json({ text, label }: { text: string; label: string }): JSX.Element { return <pre class="json" tabIndex={0} role="region" aria-label={label}><bdi>{pretty(text)}</bdi></pre>; }

/** Text that a model, tool or sender wrote. */
export function Words({ text, max }: { text: string; max?: number }): JSX.Element {
  const [whole, setWhole] = useState(false);
  const shown = visible(text);
  if (whole || max === undefined || shown.length <= max) return <span class="words" dir="auto">{shown}</span>;
  return <span class="words" dir="auto">{shown.slice(0, max)}… <button type="button" class="link" onClick={() => { setWhole(true); }}>all {plural(shown.length, "character")}</button></span>;
}

export function Fields({ rows }: { rows: readonly (readonly [string, ComponentChildren] | undefined)[] }): JSX.Element {
  return <dl class="fields">{rows.filter((row) => row !== undefined).map(([name, value], index) => <div key={index}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>;
}

/** What a page shows while it has nothing yet, and when it cannot have it. */
export function Loading(): JSX.Element { return <div class="skeleton" role="status"><span class="sr">loading</span><i /><i /><i /></div>; }

export function Broken({ error, again }: { error: ApiError; again: () => void }): JSX.Element {
  return <div class="state" role="alert">
    <h2>{error.status === 404 ? "Not here" : "This could not be loaded"}</h2>
    <p><Words text={error.message} max={400} /></p>
    {error.problem?.hint === undefined ? null : <p class="quiet">Next: <Words text={error.problem.hint} max={300} /></p>}
    <p><button type="button" onClick={again}>Try again</button> <span class="quiet code">{error.code}</span></p>
  </div>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element { return <div class="state"><h2>{title}</h2>{children}</div>; }

export function Notice({ tone, children }: { tone: "good" | "bad" | "info"; children: ComponentChildren }): JSX.Element {
  return <div class={`notice notice-${tone}`} role={tone === "bad" ? "alert" : "status"}>{children}</div>;
}

/** What is odd about the address (lib/address.ts), each in a line of its own; nothing where nothing is. */
export function OddAddress({ odd }: { odd: readonly (string | undefined)[] }): JSX.Element | null {
  const said = odd.filter((line) => line !== undefined);
  return said.length === 0 ? null : <Notice tone="bad">{said.map((line) => <p key={line}><bdi>{line}</bdi></p>)}</Notice>;
}

/** A modal dialog: the browser's own, with its focus trap and Escape. Enter alone submits nothing. */
export function Dialog({ title, onClose, wide = false, children }: { title: string; onClose: () => void; wide?: boolean; children: ComponentChildren }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { current } = dialog;
    if (current !== null && !current.open) current.showModal();
    return () => { current?.close(); };
  }, []);
  return <dialog ref={dialog} class={wide ? "wide" : ""} aria-label={title} onCancel={(event) => { event.preventDefault(); onClose(); }}>
    <header><h2>{title}</h2><button type="button" class="quiet-button" aria-label="Close" onClick={onClose}>×</button></header>
    {children}
  </dialog>;
}

/** A link that looks like a tab; the address says which one is open. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly { readonly href: string; readonly name: string; readonly open: boolean; readonly count?: number | undefined }[] }): JSX.Element {
  return <nav class="tabs" aria-label={label}>{tabs.map(({ href, name, open, count }) => <a key={name} href={href} aria-current={open ? "page" : undefined}>{name}{count === undefined ? null : <span class="count">{count}</span>}</a>)}</nav>;
}
