/** Owns: saying what is wrong with the installation, each with its fix: whole on the System page, one line above every other one. */
import type { JSX } from "preact";
import type { Diagnosis } from "../lib/diagnosis.js";
import { usePoll } from "../lib/poll.js";
import { plural } from "../lib/words.js";
import { Notice, Words } from "./basics.js";

const EVERY_MS = 10_000;

export function Diagnoses({ items }: { items: readonly Diagnosis[] }): JSX.Element {
  return <>{items.map((one) => <Notice key={`${one.code} ${one.title}`} tone={one.tone}><b><Words text={one.title} max={200} /></b>. <Words text={one.detail} max={400} /> <span class="fix">{one.fix}</span>{one.href === undefined ? null : <> <a href={one.href}>Look</a></>}</Notice>)}</>;
}

/** Above the pages; only what is bad. */
export function DiagnosisLine(): JSX.Element | null {
  const { value } = usePoll<{ readonly items: readonly Diagnosis[] }>("/v1/diagnosis", EVERY_MS);
  const [first, ...more] = value?.items.filter(({ tone }) => tone === "bad") ?? [];
  return <div class="diagnosis" role="status">{first === undefined ? null : <p class="diagnosis-line"><a href="/system"><Words text={first.title} max={120} />{more.length === 0 ? "" : `, and ${plural(more.length, "more problem")}`}: what to do</a></p>}</div>;
}
