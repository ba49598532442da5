/**
 * Owns: the lock of one running try: renews it in the store until released, and says when it is lost. A lost lock means
 * that another worker may act on this try: a repeatable tool runs on (its result is dropped if it was overtaken), a
 * reconcilable `once` tool is stopped, because the other worker may find "not happened" and run it.
 */
import type { CallStore, Log, WorkerClock } from "./ports.js";
import { tryOf, withTry, type ClaimedTry } from "./record.js";

export interface LeaseOptions {
  readonly lockMs: number; readonly renewEveryMs: number; readonly ttlSeconds: number;
  /** Called once when the lock is, or is about to be, no longer ours. */
  readonly onLost: (why: string) => void;
}

export class Lease {
  #cancel: () => void = () => undefined;
  #released = false;
  #lockUntilMs: number;

  constructor(
    private readonly deps: { readonly store: CallStore; readonly clock: WorkerClock; readonly log: Log },
    private readonly callId: string, private readonly claim: ClaimedTry, private readonly options: LeaseOptions,
  ) {
    this.#lockUntilMs = claim.lockUntilMs;
    this.#schedule(options.renewEveryMs);
  }

  release(): void {
    this.#released = true;
    this.#cancel();
  }

  #schedule(delayMs: number): void {
    this.#cancel = this.deps.clock.after(delayMs, () => { void this.#renew(); });
  }

  async #renew(): Promise<void> {
    if (this.#released) return;
    const { clock, log } = this.deps;
    try {
      const verdict = await this.#write();
      if (this.#isReleased()) return;
      if (verdict === "renewed") this.#schedule(this.options.renewEveryMs);
      else if (verdict === "lost") this.#lose("another worker has taken the call over");
      else this.#schedule(0);
    } catch (error) {
      if (this.#isReleased()) return;
      log("warn", "a lock could not be renewed", { callId: this.callId, error: error instanceof Error ? error.message : String(error) });
      // Nobody else may act before the lock ends; stop a margin earlier.
      if (clock.nowMs() >= this.#lockUntilMs - this.options.lockMs / 6) this.#lose("the lock could not be renewed in time");
      else this.#schedule(Math.min(1000, this.options.renewEveryMs));
    }
  }

  async #write(): Promise<"renewed" | "lost" | "again"> {
    const { store, clock } = this.deps;
    const found = await store.read(this.callId);
    const entry = tryOf(found?.record, this.claim.try);
    if (found === undefined || entry?.state !== "claimed" || entry.claimId !== this.claim.claimId) return "lost";
    const lockUntilMs = clock.nowMs() + this.options.lockMs;
    const written = await store.replace(withTry(found.record, { ...entry, lockUntilMs }), found.etag, { ttlSeconds: this.options.ttlSeconds });
    if (written === "conflict") return "again";
    this.#lockUntilMs = lockUntilMs;
    return "renewed";
  }

  #lose(why: string): void {
    this.release();
    this.options.onLost(why);
  }

  /** A method, so that the check is not narrowed away across an await. */
  #isReleased(): boolean { return this.#released; }
}
