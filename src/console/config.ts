/** Owns: what an operator can set at the console, with its defaults. src/main fills it from file, environment and flags. */
import { z } from "zod";

const ms = (fallback: number, what: string) => z.number().int().positive().default(fallback).describe(what);
const count = ms;

export const ConsoleConfig = z.object({
  database: z.string().default(".docket/console.db").describe("SQLite file of the read model; `:memory:` keeps nothing"),
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
    lastsMs: ms(12 * 3_600_000, "How long a browser stays signed in"),
    attempts: count(10, "Failed sign-ins per client address and window"),
    windowMs: ms(15 * 60_000, "That window"),
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
  }).prefault({}),
  redrive: z.object({
    everyMs: ms(5_000, "Pause between looks for redrives that have not arrived"),
    confirmMs: ms(15_000, "A redrive that its session does not know for this long is sent again"),
    backoffCapMs: ms(600_000, "Longest pause between sendings of one redrive"),
    attempts: count(30, "Sendings after which a redrive is given up and its letter is dead again"),
    batch: count(50, "Most redrives looked at at once"),
  }).prefault({}),
  retention: z.object({
    everyMs: ms(3_600_000, "Pause between clean-ups"),
    decidedMs: ms(90 * 86_400_000, "How long closed approvals and settled dead letters are kept"),
    deadMs: ms(180 * 86_400_000, "How long dead letters are kept that nobody has settled"),
    idleMs: ms(90 * 86_400_000, "A session that is IDLE for so long is deleted"),
    closedMs: ms(30 * 86_400_000, "A session that is CLOSED for so long is deleted"),
    batch: count(1_000, "Most sessions deleted at one clean-up"),
    auditMs: ms(365 * 86_400_000, "How long audit rows are kept"),
  }).prefault({}),
});
export type ConsoleConfig = z.infer<typeof ConsoleConfig>;
