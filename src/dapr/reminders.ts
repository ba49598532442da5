/** Owns: reminders of the session actor. Names say their purpose; data is JSON text (trap 14). */
import { SESSION_ACTOR_TYPE } from "../contracts/channels.js";
import { Problem } from "../contracts/problems.js";
import { describeReply, type Sidecar } from "./sidecar.js";

export class DaprReminders {
  constructor(private readonly sidecar: Sidecar) {}

  /** Registers (or replaces) a periodic reminder. Throws Problem `actor_unavailable`. */
  async set(actorId: string, name: string, options: { dueMs: number; periodMs: number; data: string }): Promise<void> {
    const reply = await this.sidecar.call("PUT", this.#path(actorId, name), {
      body: JSON.stringify({ dueTime: `${String(options.dueMs)}ms`, period: `${String(options.periodMs)}ms`, data: options.data }), unavailable: "actor_unavailable", timeoutMs: 10_000,
    });
    if (reply.status !== 204 && reply.status !== 200) throw new Problem("actor_unavailable", `registering reminder ${name} of ${actorId} failed: ${describeReply(reply)}`);
  }

  /** Removes a reminder; one that is not there is fine. Throws Problem `actor_unavailable`. */
  async remove(actorId: string, name: string): Promise<void> {
    const reply = await this.sidecar.call("DELETE", this.#path(actorId, name), { unavailable: "actor_unavailable", timeoutMs: 10_000 });
    if (reply.status >= 300 && reply.status !== 404) throw new Problem("actor_unavailable", `removing reminder ${name} of ${actorId} failed: ${describeReply(reply)}`);
  }

  #path(actorId: string, name: string): string { return `/v1.0/actors/${SESSION_ACTOR_TYPE}/${actorId}/reminders/${name}`; }
}
