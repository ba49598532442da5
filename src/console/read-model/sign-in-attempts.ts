/**
 * Owns: sign-ins that have begun at the identity provider. Each is used once, by the browser that began it, within minutes; state and
 * browser are kept as hashes.
 */
import { sha256Hex } from "../../contracts/ids.js";
import { Problem } from "../../contracts/problems.js";
import type { AttemptRow, ReadModel } from "./database.js";

export interface Attempt { readonly state: string; readonly browser: string; readonly nonce: string; readonly verifier: string; readonly returnTo: string; readonly expiresAtMs: number }

const MOST_OPEN = 10_000;

/** Throws Problem `rate_limited` where too many have begun and not ended. */
export async function addAttempt(db: ReadModel, attempt: Attempt, nowMs: number): Promise<void> {
  await db.deleteFrom("sign_in_attempts").where("expires_at", "<=", nowMs).execute();
  const { open } = await db.selectFrom("sign_in_attempts").select(({ fn }) => fn.countAll<number>().as("open")).executeTakeFirstOrThrow();
  if (open >= MOST_OPEN) throw new Problem("rate_limited", "too many sign-ins have begun and not ended", { hint: "wait some minutes" });
  await db.insertInto("sign_in_attempts").values({
    state_hash: sha256Hex(attempt.state), browser_hash: sha256Hex(attempt.browser), nonce: attempt.nonce, verifier: attempt.verifier, return_to: attempt.returnTo, expires_at: attempt.expiresAtMs,
  }).execute();
}

/** Takes an attempt out: whoever comes second finds nothing. */
export async function takeAttempt(db: ReadModel, state: string, browser: string, nowMs: number): Promise<Omit<AttemptRow, "state_hash" | "browser_hash"> | undefined> {
  const row = await db.deleteFrom("sign_in_attempts").where("state_hash", "=", sha256Hex(state)).where("browser_hash", "=", sha256Hex(browser)).returningAll().executeTakeFirst();
  return row === undefined || row.expires_at <= nowMs ? undefined : row;
}
