/** Owns: lists that stay still under the pointer: while held, rows keep their places and only their content changes. */

export interface Held<T> { readonly rows: readonly T[]; /** New or moved rows that a release will bring. */ readonly waiting: number }

/** `shown`: rows on the screen. `hold`: somebody points at them. Rows that are gone stay until the release. */
export function heldOrder<T>(shown: readonly T[], fresh: readonly T[], idOf: (row: T) => string, hold: boolean): Held<T> {
  if (!hold || shown.length === 0) return { rows: fresh, waiting: 0 };
  const byId = new Map(fresh.map((row) => [idOf(row), row]));
  const ids = new Set(shown.map(idOf));
  return { rows: shown.map((row) => byId.get(idOf(row)) ?? row), waiting: fresh.filter((row) => !ids.has(idOf(row))).length };
}
