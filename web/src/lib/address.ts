/** Owns: values in the address that a page does not know. It shows what it would show without them, and says so: what stands there, what was expected, what is shown. */
import { visible } from "./json.js";

const SHOWN_LENGTH = 60;

/** Undefined: nothing stands there, or one of `expected`. */
export function oddChoice(query: URLSearchParams, name: string, { expected, shown }: { readonly expected: readonly string[]; readonly shown: string }): string | undefined {
  const value = query.get(name) ?? "";
  return value === "" || expected.includes(value) ? undefined : sentence(name, value, { expected: expected.length === 1 ? expected.join("") : `one of ${expected.join(", ")}`, shown });
}

/** Undefined: nothing stands there, or a whole number of the range. */
export function oddNumber(query: URLSearchParams, name: string, { from, to, shown }: { readonly from: number; readonly to: number; readonly shown: string }): string | undefined {
  const value = query.get(name) ?? "";
  return value === "" || numberIn(query, name, from, to) !== undefined ? undefined : sentence(name, value, { expected: `a whole number from ${String(from)} to ${String(to)}`, shown });
}

/** Undefined where it is none of the range. */
export function numberIn(query: URLSearchParams, name: string, from: number, to: number): number | undefined {
  const value = query.get(name) ?? "";
  const number = Number(value);
  return /^\d{1,15}$/.test(value) && number >= from && number <= to ? number : undefined;
}

function sentence(name: string, value: string, { expected, shown }: { expected: string; shown: string }): string {
  const whole = visible(value);
  return `The address has ${name}=${whole.length > SHOWN_LENGTH ? `${whole.slice(0, SHOWN_LENGTH)}…` : whole}, expected ${expected}. Shown: ${shown}.`;
}
