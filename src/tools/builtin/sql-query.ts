/** Owns: what a database driver is asked, and what it gives back. */

export interface SqlQuery { readonly text: string; readonly params: readonly (string | number | boolean | null)[]; readonly maxRows: number; readonly timeoutMs: number; readonly signal: AbortSignal }
/** `rows` are JSON texts, so that digits stay as the database gave them. */
export interface SqlRows { readonly rows: readonly string[]; readonly more: boolean }

/** A row's JSON text beyond this is cut. */
export const MAX_ROW_BYTES = 64 * 1024;
