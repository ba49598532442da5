/** Owns: a session's waterfall: what was waited for, in the order it began. Every bar says its length in words. */
import type { JSX } from "preact";
import type { JournalEntry } from "../../../src/contracts/journal.js";
import { visible } from "../lib/json.js";
import { useNow } from "../lib/poll.js";
import { to } from "../lib/router.js";
import { KIND_WORDS, scaleOf, spansOf, sumsOf, type Span } from "../lib/spans.js";
import { iso, span as spanWords } from "../lib/words.js";
import { Empty } from "../parts/basics.js";

const WIDTH = 1_000;

export function Waterfall({ entries, sessionId }: { entries: readonly JournalEntry[]; sessionId: string }): JSX.Element {
  const spans = spansOf(entries);
  const lasting = spans.some((one) => one.endMs === undefined);
  const nowMs = useNow(lasting ? 1_000 : 60_000);
  if (spans.length === 0) return <Empty title="Nothing to show yet"><p>What a session waits for appears here once it has begun.</p></Empty>;
  const scale = scaleOf(spans, nowMs);
  return <section class="waterfall" aria-label="Waterfall">
    <p class="legend">{sumsOf(spans, nowMs).map(({ kind, ms }) => <span key={kind}><i class={`swatch kind-${kind}`} aria-hidden="true" />{KIND_WORDS[kind]} <b>{lengthWords(ms)}</b></span>)}{scale.squeezed.length === 0 ? null : <span class="quiet">dotted lines: time drawn shorter than it was</span>}</p>
    <ol>{spans.map((one) => <Bar key={one.key} one={one} from={scale.at(one.startMs)} till={scale.at(one.endMs ?? nowMs)} nowMs={nowMs} cuts={scale.squeezed.map((cut) => cut.at)} sessionId={sessionId} />)}</ol>
  </section>;
}

function Bar({ one, from, till, nowMs, cuts, sessionId }: { one: Span; from: number; till: number; nowMs: number; cuts: readonly number[]; sessionId: string }): JSX.Element {
  const length = (one.endMs ?? nowMs) - one.startMs;
  const href = one.approvalId === undefined ? `${to.session(sessionId)}?tab=state&rev=${String(one.rev)}` : to.approval(one.approvalId);
  return <li>
    <a class="bar-label" href={href} title={iso(one.startMs)}><span class="quiet">{KIND_WORDS[one.kind]}</span> <bdi>{visible(one.label)}</bdi></a>
    <svg class="track" viewBox={`0 0 ${String(WIDTH)} 14`} preserveAspectRatio="none" aria-hidden="true">
      {cuts.map((cut) => <line key={cut} x1={cut * WIDTH} x2={cut * WIDTH} y1="0" y2="14" class="cut" />)}
      <rect x={Math.min(from * WIDTH, WIDTH - 3)} width={Math.max(3, (till - from) * WIDTH)} y="2" height="10" class={`kind-${one.kind} ${one.endMs === undefined ? "lasting" : ""}`} />
    </svg>
    <span class="bar-length"><b>{lengthWords(length)}</b>{one.endMs === undefined ? " so far" : ""} <span class="quiet"><bdi>{visible(one.note)}</bdi></span></span>
  </li>;
}

function lengthWords(ms: number): string { return ms < 1_000 ? `${String(Math.max(0, Math.round(ms)))} ms` : ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : spanWords(ms); }
