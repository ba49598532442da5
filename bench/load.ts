/** Owns: load on the whole path: in each session one user sends the next event when the answer to the last one is there. */
import { Users, type Sent } from "./client.js";
import { textOf } from "./outside.js";
import type { Rig } from "./rig.js";

/** One turn, by the clock of `performance`. */
export interface Turn { readonly startedAtMs: number; readonly endedAtMs: number }

export interface Load {
  /** Those that have ended so far. */
  readonly turns: readonly Turn[];
  /** Lets every open turn end. */
  stop(): Promise<void>;
}

/** What was sent, and what failed, is noted in `book`. */
export function startLoad(rig: Rig, about: { readonly prefix: string; readonly sessions: number }, book: { readonly sent: Sent[]; readonly failures: string[] }): Load {
  const users = new Users(rig.gateway, rig.keys, (error) => { book.failures.push(error.message); });
  const turns: Turn[] = [];
  let working = true;
  const work = Promise.all(Array.from({ length: about.sessions }, async (_, n) => {
    const sessionId = `${about.prefix}-${String(n)}`;
    const session = users.open(sessionId);
    for (let turn = 0; working; turn += 1) {
      const startedAtMs = performance.now();
      const name = `${sessionId}.${String(turn)}`;
      const said = await session.say(name, textOf(name));
      book.sent.push(said.sent);
      const outcome = await said.ended;
      turns.push({ startedAtMs, endedAtMs: performance.now() });
      if (outcome !== "completed") book.failures.push(`${name} ended ${outcome}`);
    }
    session.close();
  })).catch((error: unknown) => { book.failures.push(error instanceof Error ? error.message : String(error)); });
  return {
    turns,
    stop: async () => {
      working = false;
      await work;
      await users.close();
    },
  };
}

/** How long the turns took that ended in this span, sorted. */
export function tookIn(turns: readonly Turn[], fromMs: number, toMs: number): number[] {
  return turns.filter(({ endedAtMs }) => endedAtMs > fromMs && endedAtMs <= toMs).map(({ startedAtMs, endedAtMs }) => endedAtMs - startedAtMs).sort((a, b) => a - b);
}

/** Of sorted values. */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

export function passed(seconds: number): Promise<void> {
  return new Promise((resolve) => { setTimeout(resolve, seconds * 1000); });
}
