/** Owns: paging by cursor. A cursor is opaque to clients: the sort key and id of the last row that was shown. */
import { z } from "zod";
import { Problem } from "../../contracts/problems.js";

const Cursor = z.tuple([z.number(), z.string()]);
export type Cursor = z.infer<typeof Cursor>;
export interface PageRequest { readonly limit: number; readonly after: Cursor | undefined }
export interface Page<T> { readonly items: T[]; readonly nextCursor?: string }

/** Throws Problem `bad_request` for a cursor that was not given out here. */
export function readCursor(text: string | undefined): Cursor | undefined {
  if (text === undefined) return undefined;
  try {
    return Cursor.parse(JSON.parse(Buffer.from(text, "base64url").toString("utf8")));
  } catch (error) {
    throw new Problem("bad_request", "the cursor is not one that a list gave out", { hint: "send nextCursor of the page before, unchanged", cause: error });
  }
}

/** Makes a page of `limit + 1` rows: the one too many only says that there is more. */
export function pageOfRows<R, T>(rows: readonly R[], limit: number, item: (row: R) => T, key: (row: R) => Cursor): Page<T> {
  const shown = rows.slice(0, limit);
  const last = shown[shown.length - 1];
  return { items: shown.map(item), ...(rows.length > limit && last !== undefined ? { nextCursor: Buffer.from(JSON.stringify(key(last))).toString("base64url") } : {}) };
}
