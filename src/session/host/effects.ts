/**
 * Owns: what happens after a commit: publishing outbox rows, the journal and live hints, starting and aborting model
 * calls, the next event of the mailbox, wake-ups. Every outcome returns as a new command.
 *
 * Rows for tool requests and approvals stay until there is evidence (claim, result, receipt, decision); responses
 * and dead letters are cleared after a successful publish by the next commit: the guard repeats what was lost.
 *
 * The guard's reminder is for a host that dies; the process that made the last commit watches the session itself, so that
 * neither a late scheduler nor one that has stopped firing holds anything up.
 */
import type { JournalEntry } from "../../contracts/journal.js";
import type { Clock } from "../../platform/clock.js";
import { errorFields, type Logger } from "../../platform/log.js";
import { effectsOf } from "../core/effects.js";
import { GUARD_BUSY_MS, GUARD_PARKED_MS } from "../core/limits.js";
import { guardIsIdle } from "../core/rest.js";
import type { OpenSession, OutboxRow, SessionState } from "../core/state.js";
import { Announcer, type Pace } from "./announcer.js";
import type { ModelRunner } from "./model-runner.js";
import type { Bus, GrantSigner } from "./ports.js";
import type { Guards } from "./guard.js";
import { publicationOf } from "./publications.js";
import type { Traces } from "./traces.js";
import type { TurnOutcome } from "./turn.js";

const ABORT_PATIENCE_MS = 500;
/** A wake-up in memory makes due work prompt; the guard makes it certain. Farther ones are left to the guard. */
const MAX_WAKE_MS = 60_000;

export interface EffectsDeps {
  readonly host: string;
  readonly bus: Bus;
  readonly traces: Pick<Traces, "parentOf">;
  readonly guards: Guards;
  readonly signer: GrantSigner;
  readonly runner: ModelRunner;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly pace: Pace;
  readonly entries: (actorId: string, fromRev: number, toRev: number) => Promise<JournalEntry[]>;
  readonly readBlob: (key: string) => Promise<string | undefined>;
  readonly tick: (actorId: string) => Promise<SessionState>;
  readonly takeNext: (actorId: string) => Promise<void>;
}

export class Effects {
  /** Published rows that no commit has cleared yet. */
  readonly #published = new Map<string, Set<string>>();
  /** Sessions with a guard that were quiet since: looked at after a guard's period. */
  readonly #watches = new Map<string, NodeJS.Timeout>();
  readonly #wakes = new Map<string, { atMs: number; timer: NodeJS.Timeout }>();
  #stopped = false;

  readonly #announcer: Announcer;

  constructor(private readonly deps: EffectsDeps) {
    this.#announcer = new Announcer(deps);
  }

  /** Runs the effects of a commit. Resolves when its publications were tried; never rejects. */
  async run(outcome: TurnOutcome): Promise<void> {
    const { entry, after } = outcome;
    if (entry === undefined || after.status === "NEW") return;
    this.#forgetCleared(after.actorId, entry);
    const announced = this.#announcer.announce(after, entry);
    // Should this process die first, the guard's tick on another host says it; without a guard it is said before the acknowledgement.
    const work: Promise<void>[] = after.guard.armed ? [] : [announced];
    if (outcome.before.status !== "NEW") this.#releaseGuard(outcome.before, after);
    this.#watch(after);
    let aborted: Promise<void> | undefined;
    for (const effect of effectsOf(outcome.before, outcome.events, after)) {
      switch (effect.type) {
        case "CallModel": this.deps.runner.start(after, effect); break;
        case "AbortModel": aborted = this.deps.runner.abort(after.actorId); break;
        case "Publish": work.push(this.#publishRow(after, effect.rowId)); break;
        case "WakeAt": this.#wakeAt(after.actorId, effect.atMs); break;
        case "TakeNext": this.#later("takeNext", after.actorId, () => this.#takeNext(after.actorId, aborted)); break;
      }
    }
    await Promise.all(work);
  }

  /** Rows that are out and may be cleared. */
  published(actorId: string): readonly string[] {
    return [...this.#published.get(actorId) ?? []];
  }

  /** Says the latest entry again, for readers who missed it. `foreign`: only where another host committed it, which may have died before it had said so. */
  async announceHead(state: OpenSession, whose: "any" | "foreign" = "any"): Promise<void> {
    for (const entry of await this.deps.entries(state.actorId, state.rev, state.rev)) {
      if (whose === "any" || entry.host !== this.deps.host) await this.#announcer.announce(state, entry);
    }
  }

  /** Puts every open question before the console again: one whose database is new does not know what is to be shown of them. */
  async askAgain(state: OpenSession): Promise<void> {
    const atMs = this.deps.clock.nowMs();
    for (const { approvalId, version } of state.approvals) {
      await this.#publish(state, { rowId: `approval:${approvalId}:${String(version)}`, kind: "approval_pending", rev: state.rev, subject: approvalId, publication: atMs, publishedAtMs: atMs });
    }
  }

  /** Forgets timers at shutdown, since what they were for is the guard's; resolves when the last announcements are out. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const timer of [...this.#watches.values(), ...[...this.#wakes.values()].map(({ timer }) => timer)]) clearTimeout(timer);
    this.#wakes.clear();
    this.#watches.clear();
    await this.#announcer.said();
  }

  /** What an interrupted call had said is context for the message that interrupted it: it is recorded first, if it comes at once. */
  async #takeNext(actorId: string, aborted: Promise<void> | undefined): Promise<void> {
    if (aborted !== undefined) {
      let timer: NodeJS.Timeout | undefined;
      await Promise.race([aborted, new Promise<void>((resolve) => { timer = setTimeout(resolve, ABORT_PATIENCE_MS); })]);
      clearTimeout(timer);
    }
    await this.deps.takeNext(actorId);
  }

  async #publishRow(state: OpenSession, rowId: string): Promise<void> {
    const row = state.outbox.find((candidate) => candidate.rowId === rowId);
    if (row === undefined) return;
    await this.#publish(state, row);
  }

  async #publish(state: OpenSession, row: OutboxRow): Promise<void> {
    const { rowId } = row;
    try {
      const publication = await publicationOf(state, row, { entries: (from, to) => this.deps.entries(state.actorId, from, to), readBlob: this.deps.readBlob, signer: this.deps.signer, traceOf: (run, about) => this.deps.traces.parentOf(state, run, about) });
      if (publication !== undefined) await this.deps.bus.publish(publication.channel, publication.envelope);
      if (row.kind === "response" || row.kind === "dead_letter") this.#notePublished(state.actorId, rowId);
    } catch (error) {
      this.deps.logger.warn({ actorId: state.actorId, rowId, ...errorFields(error) }, "a publication failed; the guard repeats it");
    }
  }

  /** The next commit of the session clears the row; where none comes soon, the watch makes one. */
  #notePublished(actorId: string, rowId: string): void {
    const waiting = this.#published.get(actorId);
    if (waiting === undefined) this.#published.set(actorId, new Set([rowId]));
    else waiting.add(rowId);
  }

  /** A guard that was released or replaced. A fast one's reminder is removed by its next tick, which finds it stale: soon, and never while it is due. */
  #releaseGuard({ actorId, guard }: OpenSession, after: OpenSession): void {
    if (!guard.armed || (after.guard.armed && after.guard.generation === guard.generation)) return;
    if (guard.periodMs === GUARD_PARKED_MS) this.deps.guards.release(actorId, guard.generation);
    else this.deps.guards.forget(actorId, guard.generation);
  }

  /** Ticks a session whose guard is armed when it has been quiet for a period; farther deadlines are the reminder's. */
  #watch(state: OpenSession): void {
    clearTimeout(this.#watches.get(state.actorId));
    this.#watches.delete(state.actorId);
    const { guard, actorId } = state;
    if (this.#stopped || !guard.armed || (guard.periodMs === GUARD_PARKED_MS && !guardIsIdle(state))) return;
    this.#watches.set(actorId, setTimeout(() => {
      this.#watches.delete(actorId);
      this.#later("watch", actorId, async () => {
        try {
          const after = await this.deps.tick(actorId);
          if (after.status !== "NEW") this.#watch(after);
        } catch (error) {
          this.#watch(state);
          throw error;
        }
      });
    }, Math.min(guard.periodMs, GUARD_BUSY_MS)));
  }

  #forgetCleared(actorId: string, entry: JournalEntry): void {
    for (const event of entry.events) if (event.type === "PublicationsCleared") this.#forget(actorId, event.rowIds);
  }

  #forget(actorId: string, rowIds: readonly string[]): void {
    const waiting = this.#published.get(actorId);
    for (const rowId of rowIds) waiting?.delete(rowId);
    if (waiting?.size === 0) this.#published.delete(actorId);
  }

  #wakeAt(actorId: string, atMs: number): void {
    const delayMs = atMs - this.deps.clock.nowMs();
    if (delayMs > MAX_WAKE_MS || this.#stopped) return;
    const earlier = this.#wakes.get(actorId);
    if (earlier !== undefined && earlier.atMs <= atMs) return;
    if (earlier !== undefined) clearTimeout(earlier.timer);
    const timer = setTimeout(() => {
      this.#wakes.delete(actorId);
      this.#later("wake", actorId, async () => { await this.deps.tick(actorId); });
    }, Math.max(10, delayMs + 5));
    this.#wakes.set(actorId, { atMs, timer });
  }

  /** Runs beside the turn; a failure is the guard's to repair. */
  #later(what: string, actorId: string, run: () => Promise<void>): void {
    if (this.#stopped) return;
    run().catch((error: unknown) => {
      this.deps.logger.warn({ actorId, what, ...errorFields(error) }, "follow-up failed; the guard repeats it");
    });
  }
}
