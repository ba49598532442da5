/** Owns: the word that goes with a number: one call, two calls. */

export function wordFor(n: number, one: string, many = `${one}s`): string { return n === 1 ? one : many; }

/** `1,200 calls`. */
export function plural(n: number, one: string, many = `${one}s`): string { return `${count(n)} ${wordFor(n, one, many)}`; }

export function count(n: number): string { return n.toLocaleString("en-US"); }
