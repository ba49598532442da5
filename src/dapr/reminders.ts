/** Owns: reminders of the session actor. Names say their purpose; data is JSON text (trap 14). */
import { SESSION_ACTOR_TYPE } from "../contracts/channels.js";
import { Problem } from "../contracts/problems.js";
import { describeReply, type Sidecar } from "./sidecar.js";

/**
 * daprd does not tell the scheduler that a caller has given up, and two removals of one reminder at once can stop the scheduler of 1.14
 * (docs/dapr-facts.md): so a removal waits much longer than a scheduler needs to come back (20 s) or to get through a trigger (45 s).
 */
const REMOVE_TIMEOUT_MS = 180_000;

export class DaprReminders {
  constructor(private readonly sidecar: Sidecar) {}

  /** Registers (or replaces) a reminder; without a period it fires once. Throws Problem `actor_unavailable`. */
  async set(actorId: string, name: string, { dueMs, periodMs, data }: { dueMs: number; periodMs?: number; data: string }): Promise<void> {
    const reply = await this.sidecar.call("PUT", this.#path(actorId, name), {
      body: JSON.stringify({ dueTime: `${String(dueMs)}ms`, ...(periodMs === undefined ? {} : { period: `${String(periodMs)}ms` }), data }), unavailable: "actor_unavailable", timeoutMs: 10_000,
    });
    if (reply.status !== 204 && reply.status !== 200) throw new Problem("actor_unavailable", `registering reminder ${name} of ${actorId} failed: ${describeReply(reply)}`);
  }

  /** Removes a reminder; one that is not there is fine. Throws Problem `actor_unavailable`. */
  async remove(actorId: string, name: string): Promise<void> {
    const reply = await this.sidecar.call("DELETE", this.#path(actorId, name), { unavailable: "actor_unavailable", timeoutMs: REMOVE_TIMEOUT_MS });
    if (reply.status >= 300 && reply.status !== 404) throw new Problem("actor_unavailable", `removing reminder ${name} of ${actorId} failed: ${describeReply(reply)}`);
  }

  #path(actorId: string, name: string): string { return `/v1.0/actors/${SESSION_ACTOR_TYPE}/${actorId}/reminders/${name}`; }
}
