/** Owns: what apps tell of themselves on the channel of the dead letters: how they are, and what they refused. One that does not fit is no dead letter: the next one follows. */
import { parseEnvelope } from "../../contracts/cloudevent.js";
import { APP_REPORTED, AppReport, REFUSALS_NOTED, RefusalsNoted, type Refusal } from "../../contracts/reports.js";
import type { Logger } from "../../platform/log.js";
import { putReport } from "../read-model/app-reports.js";
import { addAuditOnce } from "../read-model/audit.js";
import type { ReadModel } from "../read-model/database.js";
import { readData } from "./letters.js";

/** True where the text was such a report, and is dealt with. Throws where the database does not take it. */
export async function takeReport(db: ReadModel, text: string, nowMs: number, logger: Logger): Promise<boolean> {
  const type = typeOf(text);
  if (type !== APP_REPORTED && type !== REFUSALS_NOTED) return false;
  if (type === APP_REPORTED) {
    const read = readData(text, AppReport);
    if (read.ok) await putReport(db, read.data, nowMs);
    else logger.warn({ why: read.message }, "an app's report on itself does not fit; is one of the apps of another version?");
    return true;
  }
  const read = readData(text, RefusalsNoted);
  if (!read.ok) {
    logger.warn({ why: read.message }, "an app's report of refusals does not fit; its own log has them");
    return true;
  }
  for (const refusal of read.data.refusals) await addAuditOnce(db, rowOf(read.data.app, refusal));
  return true;
}

/** Its id is the refusal's: a repeated delivery makes no second row. Rows of nobody in particular are the installation's. */
function rowOf(app: string, { refusalId, atMs, code, method, path, ip, requestId, tenant = "", principalId = "", keyId = "", count }: Refusal): Parameters<typeof addAuditOnce>[1] {
  const about = { auditId: refusalId, atMs, tenant, principalId, keyId, ip };
  if (count !== undefined) return { ...about, tenant: "", principalId: "", keyId: "", action: `${app} refusals.counted`, target: "", outcome: "refused", reason: "more refused requests than get a row each", detail: { count, latest: code } };
  // The path of somebody unknown is not shown to every tenant: it may name another's session.
  return { ...about, action: `${app} ${method}`, target: tenant === "" ? "" : path, outcome: code, reason: "", detail: { requestId } };
}

function typeOf(text: string): string | undefined {
  if (!text.includes(APP_REPORTED) && !text.includes(REFUSALS_NOTED)) return undefined;
  try {
    return parseEnvelope(text).type;
  } catch {
    return undefined;
  }
}
