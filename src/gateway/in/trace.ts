/** Owns: the trace parent at the edge: a valid one is kept, anything else is replaced by a new trace (DESIGN 7.7). */
import { randomBytes } from "node:crypto";

/** Valid W3C trace parent of the candidates, the first that is one; else a new, sampled one. */
export function traceParentOf(...candidates: readonly (string | undefined)[]): string {
  const valid = candidates.find((candidate) => candidate !== undefined && isTraceParent(candidate));
  return valid ?? `00-${randomBytes(16).toString("hex")}-${randomBytes(8).toString("hex")}-01`;
}

function isTraceParent(text: string): boolean {
  const match = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/.exec(text);
  return match !== null && match[1] !== "ff" && !/^0+$/.test(match[2] ?? "") && !/^0+$/.test(match[3] ?? "");
}
