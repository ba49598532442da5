/** Owns: "did you mean": the nearest known name to a wrong one. */

/** The nearest of `known`, where it is near enough to be a slip of the pen. */
function nearest(word: string, known: readonly string[]): string | undefined {
  let best: { name: string; distance: number } | undefined;
  for (const name of known) {
    const distance = editDistance(word.toLowerCase(), name.toLowerCase());
    if (best === undefined || distance < best.distance) best = { name, distance };
  }
  return best !== undefined && best.distance <= Math.max(2, Math.floor(word.length / 3)) ? best.name : undefined;
}

/** `; did you mean "x"?`, or the known names, or nothing. */
export function suggestion(word: string, known: readonly string[]): string {
  const name = nearest(word, known);
  if (name !== undefined) return `; did you mean "${name}"?`;
  return known.length > 0 ? `; known: ${[...known].sort().join(", ")}` : "";
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
