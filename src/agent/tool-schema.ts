/**
 * Owns: from a tool's zod schema to the JSON Schema that everybody else sees (draft 2020-12, input side).
 *
 * What people approve is the text of the arguments (I5), so a schema may check it and never change it: transforms,
 * pipes, coercion, `.trim()` and the like are refused here, at definition. `.default()` is fine: the session applies
 * defaults before it seals. Objects are closed (unknown keys are refused), because stripping them would be a change.
 */
import { z } from "zod";
import type { Fault } from "./definition-error.js";

/** The part of zod's internals that is read here. */
interface Node { readonly _zod: { readonly def: Record<string, unknown> & { readonly type: string } } }

const REFUSED: Readonly<Record<string, string>> = {
  pipe: "a transform or pipe would change sealed arguments; transform inside `run`",
  transform: "a transform would change sealed arguments; transform inside `run`",
  catch: ".catch() would replace sealed arguments; use .optional() or .default()",
  prefault: ".prefault() is not supported; use .default()",
  intersection: "intersections cannot be closed; use .extend() on one object",
  bigint: "z.bigint() has no JSON form; use bigInteger() of src/agent, or z.string()",
  date: "z.date() has no JSON form; use z.iso.datetime()",
  map: "z.map() has no JSON form; use z.record()",
  set: "z.set() has no JSON form; use z.array()",
};

/** A JSON Schema for the input, or every reason why there is none. */
export function inputSchemaOf(schema: unknown): { ok: true; schema: Record<string, unknown> } | { ok: false; faults: Fault[] } {
  if (!isNode(schema)) return { ok: false, faults: [{ path: "input", message: "expected a zod 4 schema" }] };
  if (schema._zod.def.type !== "object") {
    return { ok: false, faults: [{ path: "input", message: `expected z.object({...}), got z.${schema._zod.def.type}; models send named arguments` }] };
  }
  const faults: Fault[] = [];
  walk(schema, "input", faults, new Set());
  if (faults.length > 0) return { ok: false, faults };
  try {
    const converted = z.toJSONSchema(schema as unknown as z.ZodType, { io: "input", target: "draft-2020-12", override: closeObject });
    // Through text: what is left is plain JSON, exactly as the manifest file will hold it.
    const plain = JSON.parse(JSON.stringify(converted)) as Record<string, unknown>;
    delete plain["$schema"];
    return { ok: true, schema: plain };
  } catch (error) {
    return { ok: false, faults: [{ path: "input", message: `has no JSON Schema: ${error instanceof Error ? error.message : String(error)}` }] };
  }
}

/**
 * An integer that keeps all its digits: `number` where a double holds it, else `bigint`. For ids and amounts of other
 * systems that exceed 2^53; `z.number().int()` refuses those.
 */
export function bigInteger(): z.ZodType<number | bigint> {
  return z.unknown().refine(isInteger, "expected an integer").meta({ type: "integer" }) as unknown as z.ZodType<number | bigint>;
}

function isInteger(value: unknown): boolean {
  return typeof value === "bigint" || Number.isInteger(value);
}

function closeObject(context: { zodSchema: unknown; jsonSchema: Record<string, unknown> }): void {
  const node = context.zodSchema as Node;
  if (node._zod.def.type === "object" && node._zod.def["catchall"] === undefined) context.jsonSchema["additionalProperties"] = false;
}

function walk(node: Node, path: string, faults: Fault[], seen: Set<Node>): void {
  if (seen.has(node)) return;
  seen.add(node);
  const { def } = node._zod;
  const refusal = REFUSED[def.type];
  if (refusal !== undefined) {
    faults.push({ path, message: refusal });
    return;
  }
  if (def["coerce"] === true) faults.push({ path, message: "coercion would change sealed arguments; use the plain type" });
  if (changesValue(def["checks"])) faults.push({ path, message: ".trim(), .toLowerCase() and other overwrites would change sealed arguments; do it inside `run`" });
  for (const [step, child] of childrenOf(def)) walk(child, step === "" ? path : `${path}.${step}`, faults, seen);
}

function changesValue(checks: unknown): boolean {
  return Array.isArray(checks) && checks.some((check) => isNode(check) && (check._zod.def as Record<string, unknown>)["check"] === "overwrite");
}

function childrenOf(def: Record<string, unknown>): [string, Node][] {
  const children: [string, unknown][] = [];
  if (typeof def["shape"] === "object" && def["shape"] !== null) children.push(...Object.entries(def["shape"]));
  for (const list of ["options", "items"]) if (Array.isArray(def[list])) children.push(...(def[list] as unknown[]).map((child): [string, unknown] => ["", child]));
  for (const one of ["element", "innerType", "keyType", "valueType", "rest", "catchall"]) children.push(["", def[one]]);
  if (typeof def["getter"] === "function") children.push(["", (def["getter"] as () => unknown)()]);
  return children.filter((entry): entry is [string, Node] => isNode(entry[1]));
}

function isNode(value: unknown): value is Node {
  if (typeof value !== "object" || value === null || !("_zod" in value)) return false;
  const internals = value._zod;
  return typeof internals === "object" && internals !== null && "def" in internals;
}
