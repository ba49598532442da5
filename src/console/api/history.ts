/** Owns: the routes that read a session's whole journal: its state at any revision, folded by the core's own code (I7), and the journal as a file. */
import type { Express } from "express";
import { z } from "zod";
import { isCheckpoint, type JournalEntry } from "../../contracts/journal.js";
import { Problem } from "../../contracts/problems.js";
import { evolveAll } from "../../session/core/evolve.js";
import { NEW_SESSION, type SessionState } from "../../session/core/state.js";
import type { Sessions } from "../ports.js";
import { callerWith, pathId, readQuery } from "./access.js";
import type { ApiContext } from "./context.js";
import { actorOf, notThere } from "./sessions.js";

const PAGE = 500;
const STATE_QUERY = { rev: z.coerce.number().int().min(1) };

export function historyRoutes(app: Express, { deps }: ApiContext): void {
  app.get("/v1/sessions/:id/state", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const { rev } = readQuery(req, STATE_QUERY);
    let state: SessionState = NEW_SESSION;
    let seen = false;
    for await (const entry of journalOf(deps.sessions, actorOf(caller, pathId(req)))) {
      seen = true;
      // A compacted journal can be folded from its checkpoint on; what is kept before it cannot.
      if (state.status === "NEW" && entry.events[0]?.type !== "SessionOpened" && !isCheckpoint(entry)) continue;
      if (entry.rev > rev) {
        if (state.status === "NEW") throw new Problem("not_found", `the state of session ${pathId(req)} at revision ${String(rev)} is no longer known: its journal was compacted`, { hint: `ask for revision ${String(entry.rev)} or a later one` });
        break;
      }
      state = evolveAll(state, entry.events, entry);
    }
    if (state.status === "NEW" && !seen) throw notThere(pathId(req), caller);
    if (state.rev !== rev) throw new Problem("not_found", `session ${pathId(req)} has no revision ${String(rev)}; its newest is ${String(state.rev)}`);
    res.json({ rev, state });
  });

  /** One entry a line. What was sent before a failure is cut off visibly: the connection breaks. */
  app.get("/v1/sessions/:id/export", async (req, res) => {
    const caller = callerWith(deps.authenticator, req, "read");
    const id = pathId(req);
    const entries = journalOf(deps.sessions, actorOf(caller, id));
    let next = await entries.next();
    if (next.done === true) throw notThere(id, caller);
    res.setHeader("content-type", "application/jsonl; charset=utf-8").setHeader("content-disposition", `attachment; filename="${id.replace(/[^\w.-]/g, "_")}.jsonl"`);
    try {
      for (; next.done !== true; next = await entries.next()) {
        if (!res.write(`${JSON.stringify(next.value)}\n`)) await new Promise((resolve) => { res.once("drain", resolve).once("close", resolve); });
        if (res.destroyed) return;
      }
      res.end();
    } catch (error) {
      res.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });
}

async function* journalOf(sessions: Pick<Sessions, "readJournal">, actorId: string): AsyncGenerator<JournalEntry, undefined> {
  let afterRev = 0;
  for (;;) {
    const page = await sessions.readJournal(actorId, afterRev, PAGE);
    yield* page?.entries ?? [];
    const last = page?.entries.at(-1)?.rev;
    if (page === undefined || last === undefined || last >= page.headRev) return;
    afterRev = last;
  }
}
