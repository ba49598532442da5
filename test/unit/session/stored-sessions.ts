/** Owns: sessions in every status, as this build stores them: what test/fixtures/stored keeps of each version. */
import { manifestDigest } from "../../../src/session/core/seal.js";
import { Bench, callOf, receive, under } from "./support.js";

const TOOL = manifestDigest({ name: "refund", description: "pays back", inputSchema: { type: "object" }, effects: "once", critical: false, reconcilable: false, timeoutMs: 10_000, outputCapBytes: 1000, maxTries: 3, risk: "high", allowedDecisions: ["approve"] });

const STORIES: Readonly<Record<string, (bench: Bench) => void>> = {
  "at rest": (bench) => { bench.receive(); bench.answer([callOf("allow")]); bench.result(); bench.answer(); bench.confirm(); },
  "model running, two events waiting": (bench) => { bench.receive(1); bench.receive(2); bench.receive(3); },
  "tool running": (bench) => { bench.receive(); bench.answer([callOf("allow", { effects: "idempotent" })]); },
  "tool waiting for its second try": (bench) => { bench.receive(); bench.answer([callOf("allow", { effects: "idempotent" })]); bench.fails("transient"); },
  "awaiting approval": (bench) => { bench.receive(); bench.answer([callOf("ask", { toolDigest: TOOL })]); },
  "awaiting approval, one of two signatures": (bench) => { bench.receive(); bench.answer([callOf("ask", { verdict: { approvers: { roles: [], quorum: 2, excludeRequester: true } } })]); bench.decides("approve", { principal: { id: "ben", class: "person", roles: ["approver"] } }); },
  "outcome unknown": (bench) => { bench.receive(); bench.answer([callOf("allow")]); bench.result(0, { outcome: "outcome_unknown" }); },
  "escalated": (bench) => { bench.receive(); for (let failure = 0; failure < 6; failure += 1) { bench.ask({ type: "RecordModelFailure", runId: bench.run.runId, step: 1, attempt: bench.run.attempt, kind: "transient", message: "busy" }); bench.later(120_000).tick(); } },
  "closed": (bench) => { bench.receive(); bench.answer(); bench.ask({ type: "Close", key: "close-1", reason: "done" }); },
  "deleted and opened anew": (bench) => { bench.receive(); bench.answer(); bench.confirm(); bench.later(60_000).tick(); bench.ask({ type: "Delete", reason: "old" }); bench.receive(2); },
  "gone over to another version of its agent": (bench) => { bench.receive(); bench.answer(); bench.confirm(); bench.ask(under("2", receive(2))); },
};

/** By name: document and journal, in the form in which a store has them. */
export function storedSessions(): Record<string, { document: unknown; entries: unknown[] }> {
  return Object.fromEntries(Object.entries(STORIES).map(([name, play]) => {
    const bench = new Bench();
    play(bench);
    return [name, JSON.parse(JSON.stringify({ document: bench.state, entries: bench.entries })) as { document: unknown; entries: unknown[] }];
  }));
}
