/** Owns: the nearest known name to one that is not known, for error messages. */

/** ` (did you mean "x"?)` where a known name is near enough to be meant, else nothing. */
export function didYouMean(word: string, known: readonly string[]): string {
  const ranked = known.map((name) => ({ name, distance: editDistance(word.toLowerCase(), name.toLowerCase()) })).sort((a, b) => a.distance - b.distance);
  const best = ranked[0];
  return best !== undefined && best.distance <= Math.max(2, Math.floor(word.length / 3)) ? ` (did you mean "${best.name}"?)` : "";
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const swap = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(swap, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
