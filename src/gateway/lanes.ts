/**
 * Owns: order across publications (I3). Of one session's accepted events only the eldest without receipt is on its way; the
 * next is published when that has its receipt. So an event that the broker or a sidecar lost (DESIGN 7.10), and that the sweeper
 * sends again, is not overtaken by those behind it. Nobody's 202 waits for this.
 *
 * Nothing holds a session up for ever (I14): who has been on its way for ten minutes lets the next one pass.
 *
 * In memory: what an earlier process left is adopted at the start. Receipts reach one replica only, so whoever waits in another
 * asks the inbox whether the eldest is still there: on every hint that the session has moved, and at each sweep.
 */
import type { Clock } from "../platform/clock.js";

interface Waiting { readonly rowKey: string; readonly publish: () => Promise<void>; /** When it became the eldest. */ sinceMs: number }

const PATIENCE_MS = 600_000;

export interface LanesDeps {
  /** Whether an event still waits for its receipt. */
  readonly holds: (rowKey: string) => Promise<boolean>;
  readonly clock: Clock;
  readonly onFailure: (rowKey: string, error: unknown) => void;
}

export class Lanes {
  /** By actor, in the order of acceptance; the first is on its way. */
  readonly #lanes = new Map<string, Waiting[]>();

  constructor(private readonly deps: LanesDeps) {}

  /** Publishes the event if nothing of its session is on its way, else later. Resolves when it is published or has to wait; rejects with what `publish` says. */
  async enter(actorId: string, rowKey: string, publish: () => Promise<void>): Promise<void> {
    if (this.has(actorId, rowKey)) return; // its sender has repeated it
    const lane = this.#lanes.get(actorId);
    if (lane !== undefined) {
      lane.push({ rowKey, publish, sinceMs: Infinity });
      return;
    }
    this.#lanes.set(actorId, [{ rowKey, publish, sinceMs: this.deps.clock.nowMs() }]);
    await publish();
  }

  /** Whether the event is on its way, or waits for that, in this process. */
  has(actorId: string, rowKey: string): boolean { return this.#lanes.get(actorId)?.some((waiting) => waiting.rowKey === rowKey) === true; }

  /** The event needs no further publication: the one behind it goes. */
  leave(actorId: string, rowKey: string): void {
    const lane = this.#lanes.get(actorId);
    const at = lane?.findIndex((waiting) => waiting.rowKey === rowKey) ?? -1;
    if (lane === undefined || at === -1) return;
    lane.splice(at, 1);
    const [next] = lane;
    if (next === undefined) this.#lanes.delete(actorId);
    else if (at === 0) {
      next.sinceMs = this.deps.clock.nowMs();
      next.publish().catch((error: unknown) => { this.deps.onFailure(next.rowKey, error); });
    }
  }

  /** The session has moved: the eldest may have its receipt, by way of another replica. */
  async look(actorId: string): Promise<void> {
    const [eldest, next] = this.#lanes.get(actorId) ?? [];
    if (eldest === undefined || next === undefined) return;
    const isLate = this.deps.clock.nowMs() - eldest.sinceMs > PATIENCE_MS;
    if (isLate || !(await this.deps.holds(eldest.rowKey))) this.leave(actorId, eldest.rowKey);
  }

  /** Whether a sweep may publish the event: nothing older of its session waits. */
  async mayGo(actorId: string, rowKey: string): Promise<boolean> {
    await this.look(actorId);
    const lane = this.#lanes.get(actorId);
    return lane === undefined || lane[0]?.rowKey === rowKey || !lane.some((waiting) => waiting.rowKey === rowKey);
  }
}
