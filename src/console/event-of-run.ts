/** Owns: finding the event behind a run in its session's journal: a worker's letter names the run, and only the session has the event. */
import { serializeEnvelope } from "../contracts/cloudevent.js";
import { Problem } from "../contracts/problems.js";
import type { Sessions } from "./ports.js";

const PAGE = 200;
const MAX_PAGES = 25;

export interface RunAddress { readonly tenant: string; readonly sessionId: string; readonly actorId: string; readonly runId: string }

/** The event as JSON text; undefined where the journal does not have it. Throws Problem `actor_unavailable`, `payload_too_large`. */
export async function eventOfRun(sessions: Pick<Sessions, "readJournal">, run: RunAddress): Promise<string | undefined> {
  let afterRev = 0;
  for (let page = 0; page < MAX_PAGES; page += 1) {
    const { entries, headRev } = await sessions.readJournal(run.actorId, afterRev, PAGE) ?? { entries: [], headRev: 0 };
    for (const event of entries.flatMap((entry) => entry.events)) {
      if (event.type !== "EventReceived" || event.runId !== run.runId) continue;
      const { id, source, eventType: type, data, principal } = event;
      if (data.blob !== undefined) throw new Problem("payload_too_large", `the event behind run ${run.runId} is kept outside the journal`, { hint: "send it again from its source" });
      return serializeEnvelope({ specversion: "1.0", id, source, type, subject: run.sessionId, tenant: run.tenant, data: data.text, ...(principal === undefined ? {} : { principal: JSON.stringify(principal) }) });
    }
    afterRev = entries.at(-1)?.rev ?? headRev;
    if (afterRev >= headRev) return undefined;
  }
  return undefined;
}
