/**
 * Owns: the guard's reminders: one periodic reminder per busy period (a generation), named `guard-<generation>`.
 *
 * A guard is registered before the commit that relies on it. A scheduler that does not answer (it needs up to 25 s after
 * a crash, and one of 1.14 that stood still takes none until it is restarted) must not stop every new session: the first commit that
 * meets it waits a moment, the others go on at once, and one loop registers what is wanted when it is back. Until then this process and the console's nudges are the net.
 *
 * A reminder is removed a while after a tick that found it released, never while one may be due, and never set a second time
 * under its name: while the scheduler of 1.14 (go-etcd-cron 0.2.3) waits for the answer to a tick, up to 45 s, a change of that
 * reminder holds up all others. After an outage missed ticks come one right after the other. A removal that meets the very moment at which
 * a tick is due can lock that scheduler for good (docs/dapr-facts.md), so it is made between two whole seconds, at which that scheduler fires,
 * and a host that stood still begins to wait anew.
 *
 * Nor is a reminder ever removed twice at once: the second request can take the scheduler a lock that nobody gives back, and then no
 * reminder that is registered later fires any more (docs/dapr-facts.md). So a removal that gets no answer is waited for, not repeated.
 */
import { z } from "zod";
import { errorFields, type Logger } from "../../platform/log.js";
import type { Reminders } from "./ports.js";

const GuardData = z.object({ purpose: z.literal("guard"), generation: z.number().int(), name: z.string() });
const PATIENCE_MS = 1_000;
const RETRY_MS = 250;
const RECOVER_MS = 1_000;
/** Well inside the shortest period (5 s), and longer than the ticks of a caught-up outage are apart. */
const REMOVE_AFTER_MS = 2_000;
const REMOVE_AGAIN_MS = 5_000;
/** A timer that is so late has waited for a process, or a machine, that stood still. */
const LATE_MS = 500;
const REMOVE_TRIES = 60;
/** At once: a scheduler that hangs does not take all connections to the sidecar. */
const MOST_REMOVALS = 16;

/** What a reminder's data says of it (its handler gets no name); undefined where it is not ours. */
export function guardOf(data: string): { readonly generation: number; readonly name: string } | undefined {
  try {
    const parsed = GuardData.safeParse(JSON.parse(data));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

export interface GuardPlan {
  readonly generation: number;
  readonly dueMs: number;
  readonly periodMs: number;
  /** Registered a second time, by a name of its own: a change of a reminder that is just firing stops the scheduler of 1.14. */
  readonly again?: true;
}

export class Guards {
  /** Guards that are wanted and not yet known to be registered, by actor; as many as sessions that became busy in an outage. */
  readonly #wanted = new Map<string, GuardPlan>();
  /** Released reminders that are about to be removed, by actor and generation. */
  readonly #removals = new Map<string, NodeJS.Timeout>();
  /** Removals that are under way. */
  readonly #removing = new Set<string>();
  /** Plans that were released or replaced while they were being registered. */
  readonly #released = new WeakSet<GuardPlan>();
  /** The scheduler has used up our patience; nobody waits for it until it has taken a guard again. */
  #away = false;
  #recovering = false;
  #stopped = false;

  /** `isOver`: no commit of the session will rely on this generation any more, as the store has it now. */
  constructor(private readonly reminders: Reminders, private readonly logger: Logger, private readonly isOver: (actorId: string, generation: number) => Promise<boolean>) {}

  /** Resolves when the reminder is registered, or when the scheduler has used up our patience. Never rejects. */
  async arm(actorId: string, plan: GuardPlan): Promise<void> {
    const replaced = this.#wanted.get(actorId);
    if (replaced !== undefined && replaced.generation !== plan.generation) this.#released.add(replaced);
    this.#wanted.set(actorId, plan);
    this.#cancelRemoval(removalKey(actorId, nameOf(plan)));
    if (this.#away) {
      this.#goOnWithout();
      return;
    }
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<"late">((resolve) => { timer = setTimeout(resolve, PATIENCE_MS, "late"); });
    const outcome = await Promise.race([this.#register(actorId, plan), patience]);
    clearTimeout(timer);
    if (outcome === "late") this.#goOnWithout();
  }

  /** Removes a generation's reminder soon; each further tick of it puts that off. What a dying host leaves behind removes itself at its next tick. */
  release(actorId: string, generation: number, name = nameOf({ generation })): void {
    this.forget(actorId, generation);
    this.#removeAfter(REMOVE_AFTER_MS, actorId, name, 1);
  }

  /** A generation that was released is not registered any more; a reminder that is there is left to its next tick. */
  forget(actorId: string, generation: number): void {
    const plan = this.#wanted.get(actorId);
    if (plan?.generation !== generation) return;
    this.#released.add(plan);
    this.#wanted.delete(actorId);
  }

  stop(): void {
    this.#stopped = true;
    this.#wanted.clear();
    for (const timer of this.#removals.values()) clearTimeout(timer);
    this.#removals.clear();
  }

  /** A generation that no commit has used is armed again by the next one. */
  #cancelRemoval(key: string): void {
    clearTimeout(this.#removals.get(key));
    this.#removals.delete(key);
  }

  #removeAfter(delayMs: number, actorId: string, name: string, attempt: number): void {
    if (this.#stopped) return;
    const key = removalKey(actorId, name);
    this.#cancelRemoval(key);
    const dueAtMs = betweenTicks(Date.now() + delayMs);
    this.#removals.set(key, setTimeout(() => {
      this.#removals.delete(key);
      // Who stood still does not know when the next tick is due any more: those that were missed come first, and each puts this off.
      if (Date.now() - dueAtMs > LATE_MS) this.#removeAfter(REMOVE_AFTER_MS, actorId, name, attempt);
      else this.#remove(actorId, name, attempt);
    }, dueAtMs - Date.now()).unref());
  }

  /** Beside whatever is going on: daprd answers only after a running callback of the reminder has returned. A slow guard's next tick may be days away, so an outage is waited out. */
  #remove(actorId: string, name: string, attempt: number): void {
    const key = removalKey(actorId, name);
    if (this.#removing.has(key)) return;
    if (this.#removing.size >= MOST_REMOVALS) {
      this.#removeAfter(REMOVE_AGAIN_MS, actorId, name, attempt);
      return;
    }
    this.#removing.add(key);
    this.reminders.remove(actorId, name).catch((error: unknown) => {
      this.logger.warn({ actorId, name, attempt, ...errorFields(error) }, "a released guard's reminder was not removed; trying on, or its next tick does it");
      if (attempt < REMOVE_TRIES) this.#removeAfter(REMOVE_AGAIN_MS, actorId, name, attempt + 1);
    }).finally(() => { this.#removing.delete(key); });
  }

  /** Its removal may have come before its registration, and a slow guard's next tick is days away. */
  #removeReleased(actorId: string, plan: GuardPlan): void {
    if (this.#released.has(plan)) this.#removeAfter(REMOVE_AFTER_MS, actorId, nameOf(plan), 1);
  }

  async #register(actorId: string, plan: GuardPlan): Promise<void> {
    while (!this.#stopped && !this.#away && await this.#set(actorId, plan) === "failed") await pause(RETRY_MS);
  }

  #goOnWithout(): void {
    this.#away = true;
    if (!this.#recovering) void this.#recover();
  }

  /** One request at a time, so that a scheduler that hangs does not take all connections to the sidecar. */
  async #recover(): Promise<void> {
    this.#recovering = true;
    for (let [next] = this.#wanted; next !== undefined && !this.#stopped; [next] = this.#wanted) {
      const [actorId, plan] = next;
      const outcome = await this.#set(actorId, plan);
      if (outcome === "registered") this.#away = false;
      if (outcome !== "failed") continue;
      // To the end of the line: what fails for its own reasons must not keep the others waiting.
      if (this.#wanted.get(actorId) === plan) {
        this.#wanted.delete(actorId);
        this.#wanted.set(actorId, plan);
      }
      await pause(RECOVER_MS);
    }
    // Where nothing is wanted any more it may be away all the same: the next guard is registered beside its commit, and shows.
    this.#recovering = false;
  }

  async #set(actorId: string, plan: GuardPlan): Promise<"registered" | "unwanted" | "failed"> {
    const { generation, dueMs, periodMs } = plan;
    const name = nameOf(plan);
    if (this.#wanted.get(actorId) !== plan) return "unwanted";
    const startedAtMs = Date.now();
    try {
      await this.reminders.set(actorId, name, { dueMs: Math.ceil(dueMs / 1000) * 1000, periodMs, data: JSON.stringify({ purpose: "guard", generation, name }) });
    } catch (error) {
      this.logger.warn({ actorId, generation, waiting: this.#wanted.size, ...errorFields(error) }, "the scheduler did not take a guard; trying on");
      this.#removeReleased(actorId, plan);
      return "failed";
    }
    this.#removeReleased(actorId, plan);
    if (this.#away || Date.now() - startedAtMs >= PATIENCE_MS) void this.#removeIfOver(actorId, plan);
    if (this.#wanted.get(actorId) === plan) this.#wanted.delete(actorId);
    return "registered";
  }

  /** Registered after its commit has gone on: another host may have the session by now, and may have released the guard before it was there. */
  async #removeIfOver(actorId: string, plan: GuardPlan): Promise<void> {
    try {
      if (await this.isOver(actorId, plan.generation)) this.#removeAfter(REMOVE_AFTER_MS, actorId, nameOf(plan), 1);
    } catch (error) {
      this.logger.warn({ actorId, generation: plan.generation, ...errorFields(error) }, "whether a guard that was registered late is still wanted could not be read; its next tick tells");
    }
  }
}

/**
 * The next half of a second. That scheduler counts from whole seconds, so that with dues and periods of whole seconds it fires at
 * the beginning of one (`now.Truncate(time.Second)` in its `builder.go`).
 */
function betweenTicks(atMs: number): number { return Math.ceil((atMs - 500) / 1000) * 1000 + 500; }

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, ms).unref(); });
}

function removalKey(actorId: string, name: string): string { return `${actorId} ${name}`; }

/** Reminder name of a generation: `[A-Za-z0-9_-]{1,64}` (DESIGN 7.5). */
export function nameOf({ generation, again }: Pick<GuardPlan, "generation" | "again">): string { return `guard-${String(generation)}${again === true ? "-again" : ""}`; }
