/** Owns: what an operator can set at the console, with its defaults. src/main fills it from file, environment and flags. */
import { z } from "zod";
import type { NoticeSettings } from "./notices/settings.js";
import { OidcSettings } from "./oidc/provider.js";

const ms = (fallback: number, what: string) => z.number().int().positive().default(fallback).describe(what);
const count = ms;

export const ConsoleConfig = z.object({
  database: z.string().default(".docket/console.db").describe("SQLite file of the read model, or an address postgres://…; `:memory:` keeps nothing"),
  decisionTtlMs: ms(300_000, "How long a signed decision is valid on its way to the session"),
  messageTtlMs: ms(7 * 86_400_000, "How long a message that a person sends may wait in the session's mailbox"),
  verdictWaitMs: ms(10_000, "How long a decision's request waits for the session's verdict before it answers 202"),
  verdictPollMs: ms(100, "Pause between two looks for the verdict; grows fivefold"),
  trustProxyHops: z.number().int().min(0).default(0).describe("Proxies in front whose X-Forwarded-For is believed"),
  rateLimitPerMinute: count(1_200, "Requests per minute and client address"),
  bodyLimitBytes: count(512 * 1024, "Largest request body"),
  webDir: z.string().optional().describe("Folder of the built web pages; without it only the API is served"),
  origin: z.string().optional().describe("Origin under which browsers reach the console, where a proxy changes it"),
  signIn: z.object({
    withKeys: z.boolean().default(true).describe("Browsers may sign in with API keys"),
    oidcAttempts: count(300, "Steps of sign-ins through the identity provider per client address and window"),
    lastsMs: ms(12 * 3_600_000, "How long a browser stays signed in"),
    attempts: count(10, "Failed sign-ins per client address and window"),
    windowMs: ms(15 * 60_000, "That window"),
  }).prefault({}),
  oidc: OidcSettings.optional().describe("The identity provider; without it only keys sign in"),
  notices: z.custom<NoticeSettings>().optional().describe("Which notices go where; without it nobody is told"),
  noticeTiming: z.object({
    everyMs: ms(1_000, "Pause between looks for notices that are due"),
    timeoutMs: ms(10_000, "How long a receiver may take for one notice"),
    baseMs: ms(1_000, "Longest pause after the first failure; it doubles with each"),
    capMs: ms(600_000, "Longest pause between attempts"),
    refusals: count(12, "Times that a receiver may refuse a notice (4xx) before it is given up"),
    batch: count(50, "Most notices sent to a channel at one look"),
    slackWindowMs: ms(300_000, "How old a Slack callback may be"),
    slackAnswerMs: ms(2_200, "How long a Slack callback waits for the session's verdict; Slack itself waits three seconds"),
  }).prefault({}),
  nudge: z.object({
    everyMs: ms(3_000, "Pause between looks for sessions that missed their due time"),
    overdueMs: ms(5_000, "A session is nudged when its due time passed by this much"),
    batch: count(50, "Most sessions nudged at one look"),
    backoffCapMs: ms(3_600_000, "Longest pause between nudges of one session"),
  }).prefault({}),
  check: z.object({
    everyMs: ms(2_000, "Pause between looks for sessions whose journal is to be checked"),
    quietMs: ms(5_000, "A session's journal is checked when nothing of it arrived for this long"),
    sinceMs: ms(3_600_000, "At its start the console checks the sessions that it saw move in this time before its end"),
    batch: count(100, "Most sessions checked at one look"),
    gaps: count(200, "Most journals read at one look for entries that did not arrive"),
  }).prefault({}),
  redrive: z.object({
    everyMs: ms(5_000, "Pause between looks for redrives that have not arrived"),
    confirmMs: ms(15_000, "A redrive that its session does not know for this long is sent again"),
    backoffCapMs: ms(600_000, "Longest pause between sendings of one redrive"),
    attempts: count(30, "Sendings after which a redrive is given up and its letter is dead again"),
    batch: count(50, "Most redrives looked at at once"),
  }).prefault({}),
  audit: z.object({
    everyMs: ms(10_000, "Pause between looks at the audit chain"),
    signEveryMs: ms(60_000, "Pause between signed heads"),
    fullCheckEveryMs: ms(6 * 3_600_000, "Pause between checks of the whole chain; between them only what is new is checked"),
    batch: count(1_000, "Rows read at once"),
    refusalsPerMinute: count(20, "Refused requests without credentials that get a row each, per client address; more are counted in one row"),
  }).prefault({}),
  retention: z.object({
    everyMs: ms(3_600_000, "Pause between clean-ups"),
    decidedMs: ms(90 * 86_400_000, "How long closed approvals and settled dead letters are kept"),
    deadMs: ms(180 * 86_400_000, "How long dead letters are kept that nobody has settled"),
    idleMs: ms(90 * 86_400_000, "A session that is IDLE for so long is deleted"),
    closedMs: ms(30 * 86_400_000, "A session that is CLOSED for so long is deleted"),
    journalMs: ms(30 * 86_400_000, "Journal entries of a living session that are younger stay; 24 h at least"),
    journalEntries: count(1_000, "So many newest entries of a living session's journal stay, whatever their age"),
    batch: count(1_000, "Most sessions deleted, and most journals shortened, at one clean-up"),
    costsMs: ms(400 * 86_400_000, "How long sums of costs and of rules' hits are kept, per day"),
    auditMs: ms(365 * 86_400_000, "How long audit rows are kept"),
  }).prefault({}),
});
export type ConsoleConfig = z.infer<typeof ConsoleConfig>;
