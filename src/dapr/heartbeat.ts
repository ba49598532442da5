/**
 * Owns: host heartbeats in the session store: each host writes its key every few seconds; a host whose key is old is
 * dead to the others, and its open model calls are started again (DESIGN 3).
 */
import { z } from "zod";
import type { Clock } from "../platform/clock.js";
import { errorFields, type Logger } from "../platform/log.js";
import type { DaprState } from "./state.js";

const BEAT_MS = 2_000;
/** Four missed beats. Longer than a long garbage collection, shorter than a person's patience; a host that is only slow pays for a model call twice. */
export const HEARTBEAT_STALE_MS = 8_000;

const Beat = z.object({ atMs: z.number() });

export class DaprHeartbeats {
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly state: DaprState, private readonly host: string, private readonly clock: Clock, private readonly logger: Logger) {}

  /** Beats at once and then periodically. Throws when the first beat fails. */
  async start(): Promise<void> {
    await this.#beat();
    this.#timer = setInterval(() => {
      this.#beat().catch((error: unknown) => { this.logger.warn(errorFields(error), "heartbeat failed"); });
    }, BEAT_MS);
  }

  async isAlive(host: string): Promise<boolean> {
    const item = await this.state.get(keyOf(host));
    if (item === undefined) return false;
    const { atMs } = Beat.parse(JSON.parse(item.value));
    return this.clock.nowMs() - atMs < HEARTBEAT_STALE_MS;
  }

  /** Says that this host is gone, so that others need not wait; where the sidecar went first, the key just grows stale. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    try {
      await this.state.transact([{ op: "delete", key: keyOf(this.host) }]);
    } catch (error) {
      this.logger.debug(errorFields(error), "the heartbeat could not be withdrawn");
    }
  }

  async #beat(): Promise<void> {
    await this.state.transact([{ op: "put", key: keyOf(this.host), value: JSON.stringify({ atMs: this.clock.nowMs() }), ttlSeconds: 3600 }]);
  }
}

function keyOf(host: string): string { return `host:${host}`; }
