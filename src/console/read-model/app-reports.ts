/** Owns: the latest report of each process of each app. Forgotten a day after the last one. */
import { AppReport } from "../../contracts/reports.js";
import type { ReadModel } from "./database.js";

const DAY_MS = 86_400_000;
const MOST = 500;

export interface KnownReport { readonly report: AppReport; /** By the console's clock. */ readonly receivedAtMs: number }

/** The newest wins; a process that has taken its leave does not come back. */
export async function putReport(db: ReadModel, report: AppReport, nowMs: number): Promise<void> {
  const row = { app: report.app, instance: report.instance, at: report.stopping ? Number.MAX_SAFE_INTEGER : report.atMs, received_at: nowMs, report: JSON.stringify(report) };
  await db.insertInto("app_reports").values(row).onConflict((oc) => oc.columns(["app", "instance"]).doUpdateSet(row).where("app_reports.at", "<=", row.at)).execute();
}

/** By app and name; those that have stopped are left out. */
export async function listReports(db: ReadModel, nowMs: number): Promise<KnownReport[]> {
  const rows = await db.selectFrom("app_reports").selectAll().where("received_at", ">", nowMs - DAY_MS).where("at", "<", Number.MAX_SAFE_INTEGER).orderBy("app").orderBy("instance").limit(MOST).execute();
  return rows.map((row) => ({ report: AppReport.parse(JSON.parse(row.report)), receivedAtMs: row.received_at }));
}

export async function forgetReports(db: ReadModel, nowMs: number): Promise<void> {
  await db.deleteFrom("app_reports").where("received_at", "<", nowMs - DAY_MS).execute();
}

/** Two reports are missing, and a little more. */
export function isSilent({ report, receivedAtMs }: KnownReport, nowMs: number): boolean { return nowMs - receivedAtMs > report.everyMs * 2 + 10_000; }
