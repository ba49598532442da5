/**
 * Owns: order across publications (I3). Of one session's accepted events only the eldest without receipt is on its way; the
 * next is published when that has its receipt. So an event that the broker or a sidecar lost (DESIGN 7.10), and that the sweeper
 * sends again, is not overtaken by those behind it. Nobody's 202 waits for this.
 *
 * In memory: what an earlier process left is adopted at the start. Receipts reach one replica only, so whoever waits in another
 * asks the inbox whether the eldest is still there: on every hint that the session has moved, and at each sweep.
 */
interface Waiting { readonly rowKey: string; readonly publish: () => Promise<void> }

export interface LanesDeps {
  /** Whether an event still waits for its receipt. */
  readonly holds: (rowKey: string) => Promise<boolean>;
  readonly onFailure: (rowKey: string, error: unknown) => void;
}

export class Lanes {
  /** By actor, in the order of acceptance; the first is on its way. */
  readonly #lanes = new Map<string, Waiting[]>();

  constructor(private readonly deps: LanesDeps) {}

  /** Publishes the event if nothing of its session is on its way, else later. Resolves when it is published or has to wait; rejects with what `publish` says. */
  async enter(actorId: string, rowKey: string, publish: () => Promise<void>): Promise<void> {
    const lane = this.#lanes.get(actorId);
    if (lane !== undefined) {
      lane.push({ rowKey, publish });
      return;
    }
    this.#lanes.set(actorId, [{ rowKey, publish }]);
    await publish();
  }

  /** The event needs no further publication: the one behind it goes. */
  leave(actorId: string, rowKey: string): void {
    const lane = this.#lanes.get(actorId);
    const at = lane?.findIndex((waiting) => waiting.rowKey === rowKey) ?? -1;
    if (lane === undefined || at === -1) return;
    lane.splice(at, 1);
    const [next] = lane;
    if (next === undefined) this.#lanes.delete(actorId);
    else if (at === 0) next.publish().catch((error: unknown) => { this.deps.onFailure(next.rowKey, error); });
  }

  /** The session has moved: the eldest may have its receipt, by way of another replica. */
  async look(actorId: string): Promise<void> {
    const [eldest, next] = this.#lanes.get(actorId) ?? [];
    if (eldest === undefined || next === undefined) return;
    if (!(await this.deps.holds(eldest.rowKey))) this.leave(actorId, eldest.rowKey);
  }

  /** Whether a sweep may publish the event: nothing older of its session waits. */
  async mayGo(actorId: string, rowKey: string): Promise<boolean> {
    await this.look(actorId);
    const lane = this.#lanes.get(actorId);
    return lane === undefined || lane[0]?.rowKey === rowKey || !lane.some((waiting) => waiting.rowKey === rowKey);
  }
}
