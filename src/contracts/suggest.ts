/** Owns: "did you mean": the known name nearest to an unknown one, where it is near enough to be a slip of the pen. */
import { distance } from "fastest-levenshtein";

/** The nearest of `known`, or undefined where none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const ranked = known.map((name) => ({ name, edits: distance(word.toLowerCase(), name.toLowerCase()) })).sort((a, b) => a.edits - b.edits);
  const best = ranked[0];
  return best !== undefined && best.edits <= Math.max(2, Math.floor(word.length / 3)) ? best.name : undefined;
}

/** ` (did you mean "x"?)`, or nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const found = nearest(word, known);
  return found === undefined ? "" : ` (did you mean "${found}"?)`;
}

/** `; did you mean "x"?`, or the known names, or nothing. */
export function suggestion(word: string, known: readonly string[]): string {
  const found = nearest(word, known);
  if (found !== undefined) return `; did you mean "${found}"?`;
  return known.length > 0 ? `; known: ${[...known].sort().join(", ")}` : "";
}
