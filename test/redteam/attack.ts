/**
 * Owns: what an attack is, and how one is carried out in any world. It breaks a rule of its own, by one field of a request that succeeds without it: `change` gets the
 * request and gives the path of that field and its evil value; whatever else differs fails it.
 */
import { expect } from "vitest";
import { atRest, type Family, type Json } from "./families.js";
import type { RedWorld } from "./world.js";

export type Change = readonly [path: string, value: unknown];
export interface Attack {
  readonly rule: string; readonly by: Family; readonly refusal: string;
  readonly change: (request: Json, w: RedWorld) => Change | Promise<Change>;
  /** A base of its own, where the family's does not break in the right way. */
  readonly base?: (w: RedWorld) => Promise<Json>;
  readonly good?: string;
}
/** An attack with its request and that of its twin. */
export interface Prepared { readonly attack: Attack; readonly twin: Json; readonly evil: Json }

/** The change of one field to one value. */
export const at = (path: string, value: unknown) => (): Change => [path, value];

/** Makes both requests, and checks that they differ in one field. */
export async function prepare(w: RedWorld, attack: Attack): Promise<Prepared> {
  const twin = await (attack.base ?? attack.by.base)(w);
  const [path, value] = await attack.change(twin, w);
  const evil = withValue(twin, path, value);
  expect(differences(twin, evil)).toEqual([`.${path}`]);
  return { attack, twin, evil };
}

/** The attack is refused, on record, and without effect; then its twin succeeds. One after the other in one world. */
export async function strike(w: RedWorld, { attack, twin, evil }: Prepared): Promise<void> {
  await atRest(w);
  const before = w.effects.length;
  expect(await attack.by.send(w, evil)).toEqual({ outcome: attack.refusal, recorded: true });
  await atRest(w);
  expect(w.effects.length, "the attack had an effect").toBe(before);
  expect((await attack.by.send(w, twin)).outcome, "its twin").toBe(attack.good ?? attack.by.good);
}

/** Members in which two requests differ. */
function differences(a: unknown, b: unknown, path = ""): string[] {
  if (isTree(a) && isTree(b)) return [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((key) => differences(a[key], b[key], `${path}.${key}`));
  return JSON.stringify(a) === JSON.stringify(b) ? [] : [path];
}
const isTree = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

function withValue(request: Json, path: string, value: unknown): Json {
  const copy = structuredClone(request);
  const keys = path.split(".");
  const last = keys.pop()!;
  let tree = copy;
  for (const key of keys) tree = tree[key] as Json;
  tree[last] = value;
  return copy;
}
