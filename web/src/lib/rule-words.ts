/** Owns: everything that a policy rule and a verdict say, in words. A key of rules that has none here does not compile. */
import type { PolicyRule } from "../../../src/session/core/policy/policy.js";
import { peopleWords } from "./who-may.js";
import { onExpiryWords, plural, span } from "./words.js";

/** `code`: names and conditions. */
export interface RuleRow { readonly name: string; readonly words: string; readonly code?: true }

/** Shown in the rule's head. */
type InHead = "id" | "verdict" | "reason" | "risk";
type Words = Readonly<Record<Exclude<keyof PolicyRule, InHead>, (rule: PolicyRule) => readonly RuleRow[]>>;

const HIGH = "never: its risk is high, and that is decided call by call";
const MANY = "never: more than one person has to approve each call";

const WORDS: Words = {
  match: ({ match: { tools, agents } }) => [...codes("tools", tools), ...codes("agents", agents)],
  when: ({ when }) => (when === undefined ? [] : [{ name: "when", words: when, code: true }]),
  approvers: ({ approvers }) => (approvers === undefined ? [] : [
    ...(approvers.roles === undefined && approvers.groups === undefined ? [] : [{ name: "may decide", words: peopleWords({ roles: approvers.roles ?? [], groups: approvers.groups }) }]),
    ...(approvers.quorum === undefined ? [] : [{ name: "signatures", words: signaturesWords(approvers.quorum) }]),
    ...(approvers.excludeRequester === undefined ? [] : [{ name: "who asked", words: requesterWords(approvers.excludeRequester) }]),
  ]),
  allowed: ({ allowed }) => (allowed === undefined ? [] : [{ name: "answers", words: allowed.join(", ") }]),
  expiresIn: ({ expiresIn }) => (expiresIn === undefined ? [] : [{ name: "expires", words: `after ${expiresIn}` }]),
  onExpiry: ({ onExpiry }) => (onExpiry === undefined ? [] : [{ name: "on expiry", words: `${onExpiry}: ${onExpiryWords(onExpiry)}` }]),
  chain: ({ chain = [] }) => chain.map(({ after, to }) => ({ name: "chain", words: stepWords(after, to) })),
  consentFor: ({ consentFor }) => (consentFor === undefined ? [] : [{ name: "consent", words: `an approval holds ${consentFor} until the call goes out` }]),
  allowSession: ({ verdict, allowSession, risk, approvers }) => (verdict !== "ask" ? [] : [{ name: "for a session", words: sessionWords({ allowSession, risk, quorum: approvers?.quorum }) }]),
};

/** What a rule has besides its head, in order. */
export function rowsOfRule(rule: PolicyRule): RuleRow[] { return Object.values(WORDS).flatMap((words) => words(rule)); }

interface People { readonly roles: readonly string[]; readonly groups?: readonly string[] }
/** What the console answers to "try it". */
export interface Asking {
  readonly risk: string; readonly allowed: readonly string[]; readonly approvers: People & { readonly quorum: number; readonly excludeRequester: boolean }; readonly onExpiry: string; readonly expiresInMs?: number;
  readonly chain?: readonly { readonly afterMs: number; readonly to?: People }[]; readonly consentForMs?: number; readonly allowSession?: boolean;
}

/** What an `ask` comes to, all rules together. */
export function rowsOfVerdict({ approvers, allowed, expiresInMs, onExpiry, chain = [], consentForMs, allowSession, risk }: Asking): RuleRow[] {
  return [
    { name: "may decide", words: peopleWords(approvers) }, { name: "signatures", words: signaturesWords(approvers.quorum) }, { name: "who asked", words: requesterWords(approvers.excludeRequester) },
    { name: "answers", words: allowed.join(", ") },
    { name: "expires", words: expiresInMs === undefined ? "with the run" : `after ${span(expiresInMs)}` }, { name: "on expiry", words: `${onExpiry}: ${onExpiryWords(onExpiry)}` },
    ...chain.map(({ afterMs, to }): RuleRow => ({ name: "chain", words: stepWords(span(afterMs), to) })),
    ...(consentForMs === undefined ? [] : [{ name: "consent", words: `an approval holds ${span(consentForMs)} until the call goes out` }]),
    { name: "for a session", words: sessionWords({ allowSession, risk, quorum: approvers.quorum }) },
  ];
}

function codes(name: string, globs: readonly string[] | undefined): RuleRow[] { return globs === undefined ? [] : [{ name, words: globs.join(", "), code: true }]; }
function signaturesWords(quorum: number): string { return `${plural(quorum, "person has", "people have")} to approve`; }
function requesterWords(excluded: boolean): string { return excluded ? "may not decide (separation of duties)" : "may decide too"; }

function stepWords(after: string, to: { readonly roles?: readonly string[] | undefined; readonly groups?: readonly string[] | undefined } | undefined): string {
  return `after ${after} ${to === undefined ? "those who may decide are reminded" : `${peopleWords({ roles: to.roles ?? [], groups: to.groups })} may decide too, and is told`}`;
}

function sessionWords({ allowSession, risk, quorum = 1 }: { readonly allowSession: boolean | undefined; readonly risk: string | undefined; readonly quorum: number | undefined }): string {
  if (risk === "high") return HIGH;
  if (quorum > 1) return MANY;
  return allowSession === false ? "a person may not allow the tool" : "a person may allow the tool, where its risk is below high";
}
