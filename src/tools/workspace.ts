/**
 * Owns: one scratch folder per session, below one root, and their end (I9). Actor ids are `[A-Za-z0-9_-]{1,64}`: safe as a folder's name.
 *
 * A folder's own time says when it was last used: it is set when a run begins and when it ends. A folder goes when it was not used for
 * as long as the rule says, or when its session was deleted after its last use; never while a run of this process is in it. Workers
 * that share a root see each other's use by the time alone, so the rule must be longer than the longest run: a day at least. A folder is
 * moved away before it is emptied: whoever opens it meanwhile gets a new one, and one that was opened in that very moment is put back.
 */
import { randomUUID } from "node:crypto";
import { existsSync, renameSync, statSync } from "node:fs";
import { mkdir, readdir, realpath, rm, utimes } from "node:fs/promises";
import { join } from "node:path";
import { Problem } from "../contracts/problems.js";

/** Folders that one sweep removes. */
const MAX_SWEPT = 500;
const GONE = ".gone-";

/** A session's folder while a run is in it. */
export interface Workspace {
  readonly path: string;
  /** The run has ended. */
  close(): Promise<void>;
}

export class Workspaces {
  /** Runs of this process in each folder. */
  readonly #inUse = new Map<string, number>();

  constructor(private readonly root: string, private readonly nowMs: () => number = Date.now) {}

  /** Makes the folder where it is missing. Throws Problem where the name is not usable. */
  async open(actorId: string): Promise<Workspace> {
    assertName(actorId);
    // Before anything is waited for: from here on no sweep of this process takes it.
    this.#inUse.set(actorId, (this.#inUse.get(actorId) ?? 0) + 1);
    try {
      const path = await this.#make(join(this.root, actorId));
      return { path, close: once(() => this.#close(actorId)) };
    } catch (error) {
      this.#release(actorId);
      throw error;
    }
  }

  /** Removes what was not used for `unusedMs`, a bounded number. Returns how many. */
  async sweep(unusedMs: number): Promise<number> {
    let removed = 0;
    for (const entry of await entriesOf(this.root)) {
      if (removed >= MAX_SWEPT) break;
      // Left by a process that was killed in the middle.
      if (entry.startsWith(GONE)) await rm(join(this.root, entry), { recursive: true, force: true });
      else if (/^[A-Za-z0-9_-]{1,64}$/.test(entry) && await this.#remove(entry, this.nowMs() - unusedMs)) removed += 1;
    }
    return removed;
  }

  /** The session was deleted at that time; a use that came later is a new life's. Returns whether the folder is gone. */
  async forget(actorId: string, deletedAtMs: number): Promise<boolean> {
    assertName(actorId);
    return await this.#remove(actorId, deletedAtMs);
  }

  /** Nothing is waited for between the last look and the move. */
  async #remove(actorId: string, lastUseBeforeMs: number): Promise<boolean> {
    const folder = join(this.root, actorId);
    const gone = join(this.root, `${GONE}${randomUUID()}`);
    const usedAtMs = usedAt(folder);
    if (usedAtMs === undefined || usedAtMs > lastUseBeforeMs || this.#inUse.has(actorId)) return false;
    renameSync(folder, gone);
    if ((usedAt(gone) ?? 0) > lastUseBeforeMs && !existsSync(folder)) {
      renameSync(gone, folder);
      return false;
    }
    await rm(gone, { recursive: true, force: true });
    return true;
  }

  /** Again where another worker moved it away meanwhile. */
  async #make(folder: string): Promise<string> {
    for (let again = 0; ; again += 1) {
      try {
        if (!await this.#touch(folder)) {
          await mkdir(folder, { recursive: true, mode: 0o700 });
          await this.#touch(folder);
        }
        return await realpath(folder);
      } catch (error) {
        if (again >= 3 || (error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
    }
  }

  async #close(actorId: string): Promise<void> {
    try {
      await this.#touch(join(this.root, actorId));
    } finally {
      this.#release(actorId);
    }
  }

  #release(actorId: string): void {
    const left = (this.#inUse.get(actorId) ?? 1) - 1;
    if (left > 0) this.#inUse.set(actorId, left);
    else this.#inUse.delete(actorId);
  }

  /** False where there is no such folder. */
  async #touch(folder: string): Promise<boolean> {
    const now = new Date(this.nowMs());
    try {
      await utimes(folder, now, now);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
      throw error;
    }
  }
}

function assertName(actorId: string): void {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(actorId)) throw new Problem("bad_request", `the actor id ${JSON.stringify(actorId.slice(0, 100))} is not usable as a folder's name`);
}

function usedAt(folder: string): number | undefined {
  return statSync(folder, { throwIfNoEntry: false })?.mtimeMs;
}

async function entriesOf(root: string): Promise<string[]> {
  try {
    return await readdir(root);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return []; // no tool has run yet
    throw error;
  }
}

function once(run: () => Promise<void>): () => Promise<void> {
  let ran: Promise<void> | undefined;
  return () => { ran ??= run(); return ran; };
}
