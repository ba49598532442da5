/** Owns: the table of signed-in browsers. It outlives a restart, so that nobody has to sign in again because the console was updated. */
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { sha256Hex } from "../../contracts/ids.js";
import type { ReadModel } from "./database.js";

/** Who came through the identity provider: the claims that count, and the token that signing out there asks for. */
const Person = z.object({ claims: z.record(z.string(), z.unknown()), idToken: z.string() });
type Person = z.infer<typeof Person>;

/** `keyId`: the API key that was exchanged, or for a person of the identity provider the name that stands in its place. */
export interface SignedIn { readonly keyId: string; readonly expiresAtMs: number; readonly person: Person | undefined }

/** Makes a token for a browser; only its hash is kept. */
export async function addBrowser(db: ReadModel, who: { readonly keyId: string; readonly person?: Person }, nowMs: number, expiresAtMs: number): Promise<string> {
  const token = randomBytes(32).toString("base64url");
  await db.insertInto("browsers").values({ token_hash: sha256Hex(token), key_id: who.keyId, signed_in_at: nowMs, expires_at: expiresAtMs, person: who.person === undefined ? null : JSON.stringify(who.person) }).execute();
  return token;
}

/** Who a token was given to, while it is valid. */
export async function findBrowser(db: ReadModel, token: string, nowMs: number): Promise<SignedIn | undefined> {
  const row = await db.selectFrom("browsers").selectAll().where("token_hash", "=", sha256Hex(token)).where("expires_at", ">", nowMs).executeTakeFirst();
  return row === undefined ? undefined : { keyId: row.key_id, expiresAtMs: row.expires_at, person: row.person === null ? undefined : Person.parse(JSON.parse(row.person)) };
}

export async function removeBrowser(db: ReadModel, token: string): Promise<void> {
  await db.deleteFrom("browsers").where("token_hash", "=", sha256Hex(token)).execute();
}
