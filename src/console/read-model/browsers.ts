/** Owns: the table of signed-in browsers. It outlives a restart, so that nobody has to sign in again because the console was updated. */
import { randomBytes } from "node:crypto";
import { sha256Hex } from "../../contracts/ids.js";
import type { ReadModel } from "./database.js";

export interface SignedIn { readonly keyId: string; readonly expiresAtMs: number }

/** Makes a token for a browser; only its hash is kept. */
export async function addBrowser(db: ReadModel, keyId: string, nowMs: number, expiresAtMs: number): Promise<string> {
  const token = randomBytes(32).toString("base64url");
  await db.insertInto("browsers").values({ token_hash: sha256Hex(token), key_id: keyId, signed_in_at: nowMs, expires_at: expiresAtMs }).execute();
  return token;
}

/** Who a token was given to, while it is valid. */
export async function findBrowser(db: ReadModel, token: string, nowMs: number): Promise<SignedIn | undefined> {
  const row = await db.selectFrom("browsers").selectAll().where("token_hash", "=", sha256Hex(token)).where("expires_at", ">", nowMs).executeTakeFirst();
  return row === undefined ? undefined : { keyId: row.key_id, expiresAtMs: row.expires_at };
}

export async function removeBrowser(db: ReadModel, token: string): Promise<void> {
  await db.deleteFrom("browsers").where("token_hash", "=", sha256Hex(token)).execute();
}
