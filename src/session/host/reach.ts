/**
 * Owns: where a delivery is handled. By the actor where it lives: in this process, else through the sidecar. Where that fails, the
 * host is dead or stands still and placement does not know yet: the delivery is handled here, since every commit is fenced and a
 * session belongs to no process (DESIGN 3). So one dead host does not hold up the channel for all sessions behind the delivery.
 */
import { SESSION_NUDGE } from "../../contracts/messages.js";
import { Problem } from "../../contracts/problems.js";
import { errorFields, type Logger } from "../../platform/log.js";
import type { SessionChannel, Target } from "./deliveries.js";
import type { RouterDeps } from "./router.js";

/** What an actor's `deliver` answers. */
export interface Answer { readonly ok?: unknown; readonly code?: unknown; readonly message?: unknown }

export interface ReachDeps {
  /** The sidecar has called the actor in this process a moment ago. */
  readonly livesHere: (actorId: string) => boolean;
  readonly here: (target: Target, channel: SessionChannel, text: string) => Promise<Answer>;
  /** Throws Problem `actor_unavailable`. */
  readonly there: (target: Target, channel: SessionChannel, text: string) => Promise<Answer>;
  /** How long `here` may take, in ms: below the broker's ack window with what `there` takes. */
  readonly timeoutMs: number;
  readonly logger: Logger;
}

/** Hands a delivery over; throws Problem `actor_unavailable` where it was not taken, so that the broker repeats it. */
export function reach(deps: ReachDeps): RouterDeps["deliver"] {
  return async (target, channel, text, type) => {
    const here = (): Promise<Answer> => inTime(deps.here(target, channel, text), target.actorId, deps.timeoutMs);
    const there = (): Promise<Answer> => deps.there(target, channel, text).catch((error: unknown) => {
      deps.logger.info({ actorId: target.actorId, channel, ...errorFields(error) }, "the actor cannot be reached; the delivery is handled here");
      return here();
    });
    // A nudge is for a session whose host may be gone: whoever gets it looks.
    const [first, second] = type === SESSION_NUDGE || deps.livesHere(target.actorId) ? [here, there] : [there, here];
    const taken = await first();
    // During a rolling update: an older build cannot read what a newer one has stored, but the other place may be newer.
    const answer = taken.code === "newer_version" ? await second() : taken;
    if (answer.ok !== true) throw new Problem("actor_unavailable", `session ${target.sessionId} did not take a delivery: ${String(answer.code)} ${String(answer.message)}`);
  };
}

/** A delivery that takes too long goes on all the same, and its repetition meets the ledger. */
async function inTime<T>(work: Promise<T>, actorId: string, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => { reject(new Problem("actor_unavailable", `session actor ${actorId} did not take a delivery in ${String(timeoutMs)} ms`)); }, timeoutMs);
  });
  return await Promise.race([work, late]).finally(() => { clearTimeout(timer); });
}
