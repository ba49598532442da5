/**
 * Owns: calling the session actor from another process. Every call carries a token that the answer must echo: daprd
 * can answer 200 with an empty body for a call that failed (DESIGN 7.10), so an answer without it is a failure.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { DecisionOutcome, EventOutcome, JournalPage, SessionView } from "../contracts/api.js";
import { SESSION_ACTOR_TYPE } from "../contracts/channels.js";
import { Problem } from "../contracts/problems.js";
import { describeReply, type Sidecar } from "./sidecar.js";

/** Calls one actor method. Throws Problem `actor_unavailable`. */
export async function callSession(sidecar: Sidecar, actorId: string, method: string, body: object, timeoutMs = 30_000): Promise<Record<string, unknown>> {
  const token = randomUUID();
  const reply = await sidecar.call("PUT", `/v1.0/actors/${SESSION_ACTOR_TYPE}/${actorId}/method/${method}`, {
    body: JSON.stringify({ ...body, token }), unavailable: "actor_unavailable", timeoutMs,
  });
  const failed = (detail: string): Problem => new Problem("actor_unavailable", `calling ${method} of session actor ${actorId} failed: ${detail}`,
    { hint: "a session host may be moving or down; the call can be repeated" });
  if (reply.status !== 200) throw failed(describeReply(reply));
  let answer: unknown;
  try {
    answer = JSON.parse(reply.text);
  } catch {
    throw failed(`the answer is not JSON: ${reply.text.slice(0, 200)}`);
  }
  if (typeof answer !== "object" || answer === null || (answer as { token?: unknown }).token !== token) {
    throw failed("the answer does not carry the call's token");
  }
  return answer as Record<string, unknown>;
}

/** A read takes milliseconds; one that hangs behind a moving actor is better asked again. */
const READ_TIMEOUT_MS = 10_000;

/** A host that comes or goes takes its sidecar along for a moment: a read is asked again for so long, then it has failed. */
const READ_PATIENCE_MS = 8_000;

/** Reads of a session, as gateway and console need them. Throws Problem `actor_unavailable`. */
export class SessionsClient {
  constructor(private readonly sidecar: Sidecar, private readonly patienceMs = READ_PATIENCE_MS) {}

  async readSession(actorId: string): Promise<SessionView | undefined> {
    const answer = await this.#read(actorId, "readSession", {});
    return answer.view === undefined || answer.view === null ? undefined : SessionView.parse(answer.view);
  }

  async readJournal(actorId: string, afterRev: number, limit: number): Promise<JournalPage | undefined> {
    const answer = await this.#read(actorId, "readJournal", { afterRev, limit });
    return answer.page === undefined || answer.page === null ? undefined : JournalPage.parse(answer.page);
  }

  async readOutcome(actorId: string, key: string): Promise<EventOutcome> {
    return EventOutcome.parse((await this.#read(actorId, "readOutcome", { key })).outcome);
  }

  async readDecision(actorId: string, decisionId: string): Promise<DecisionOutcome> {
    return DecisionOutcome.parse((await this.#read(actorId, "readDecision", { decisionId })).outcome);
  }

  async #read(actorId: string, method: string, body: object): Promise<Record<string, unknown>> {
    const giveUpAtMs = performance.now() + this.patienceMs;
    for (let pauseMs = 50; ; pauseMs = Math.min(2 * pauseMs, 400)) {
      try {
        return await this.#readOnce(actorId, method, body);
      } catch (error) {
        if (!(error instanceof Problem) || !error.retryable || performance.now() + pauseMs > giveUpAtMs) throw error;
        await sleep(pauseMs);
      }
    }
  }

  async #readOnce(actorId: string, method: string, body: object): Promise<Record<string, unknown>> {
    const answer = await callSession(this.sidecar, actorId, method, body, READ_TIMEOUT_MS);
    if (answer.ok !== true) throw new Problem("actor_unavailable", `${method} of session actor ${actorId} failed: ${String(answer.message)}`);
    return answer;
  }
}
