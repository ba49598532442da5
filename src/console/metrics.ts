/**
 * Owns: `GET /metrics`: dead letters and notices as numbers, in Prometheus' text format, for alerts. It speaks of all tenants, so it asks for
 * an `admin` key with the scope `console:metrics` (which a scraper's key should have alone).
 */
import type { Express } from "express";
import { callerWith } from "./api/access.js";
import type { ApiContext } from "./api/context.js";
import { letterCounts, type LetterCount } from "./read-model/letter-groups.js";
import { noticeCounts, type ChannelCount } from "./read-model/notices.js";

/** A label is a series: reasons that are no code, and more of them than this, are counted as `other`. */
const MAX_REASONS = 50;

export function metricsRoute(app: Express, { db, deps }: Pick<ApiContext, "db" | "deps">): void {
  app.get("/metrics", async (req, res) => {
    callerWith(deps.authenticator, req, "metrics");
    res.type("text/plain; version=0.0.4; charset=utf-8").send(metricsText(await letterCounts(db), deps.clock.nowMs(), await noticeCounts(db)));
  });
}

/** Pure. */
export function metricsText(counts: readonly LetterCount[], nowMs: number, notices: readonly ChannelCount[] = []): string {
  const reasons = new Set(counts.map(({ reason }) => reason).filter((reason) => /^[a-z][a-z_]{0,49}$/.test(reason)).slice(0, MAX_REASONS));
  const letters = new Map<string, number>();
  const oldest = new Map<string, number>();
  for (const { kind, reason, state, count, oldestAtMs } of counts) {
    const series = `kind="${kind}",reason="${reasons.has(reason) ? reason : "other"}",state="${state}"`;
    letters.set(series, (letters.get(series) ?? 0) + count);
    if (state === "dead") oldest.set(kind, Math.min(oldest.get(kind) ?? Infinity, oldestAtMs));
  }
  return [
    "# HELP docket_dead_letters Dead letters that are kept, by what died, why, and whether somebody has settled it.", "# TYPE docket_dead_letters gauge",
    ...[...letters].map(([series, count]) => `docket_dead_letters{${series}} ${String(count)}`),
    "# HELP docket_dead_letter_oldest_seconds Age of the oldest dead letter that nobody has settled.", "# TYPE docket_dead_letter_oldest_seconds gauge",
    ...[...oldest].map(([kind, atMs]) => `docket_dead_letter_oldest_seconds{kind="${kind}"} ${String(Math.max(0, Math.round((nowMs - atMs) / 1000)))}`),
    "# HELP docket_notices Notices that are kept, by channel and by what became of them; `given_up` was refused by its receiver.", "# TYPE docket_notices gauge",
    ...notices.map(({ channel, state, count }) => `docket_notices{channel="${channel}",state="${state}"} ${String(count)}`),
    "",
  ].join("\n");
}
