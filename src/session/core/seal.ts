/**
 * Owns: sealing of a call's arguments (I5). What the model wrote becomes one canonical text: schema defaults filled in,
 * keys sorted, digits kept. Its digest is what policy judges, people approve and the worker verifies. Nothing after
 * the seal transforms the text again; sealing a sealed text gives the same text.
 *
 * Defaults are filled in under `properties`, `items`, `prefixItems`, `allOf` and local `$ref`s. Under `anyOf` and `oneOf` they are not:
 * which branch holds is only known after validation.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from "ajv/dist/2020.js";
import { argsDigest } from "../../contracts/ids.js";
import { canonicalText, LosslessNumber, parseLossless } from "../../contracts/json.js";
import { pathText } from "../../contracts/json-edit.js";
import type { ToolManifest } from "../../contracts/tools.js";

/** Largest argument text, before and after defaults. */
export const MAX_ARGS_BYTES = 32 * 1024;
const SHOWN_ERRORS = 5;
/** Below MAX_JSON_DEPTH, so that what defaults add can always be read again. */
const MAX_SCHEMA_DEPTH = 60;

/** A place in the arguments (`to.items[2]`), and what is wrong there. */
export interface ArgumentFault { readonly path: string; readonly message: string }
export type Sealed = { readonly ok: true; readonly text: string; readonly digest: string } | { readonly ok: false; readonly message: string; readonly faults: readonly ArgumentFault[] };
type Schema = Record<string, unknown>;
type Tree = Record<string, unknown>;

/** `message` is for the model: where, what was there, what was expected; `faults` is the same for people, one by one. Never throws. */
export function sealArguments(manifest: ToolManifest, rawJsonText: string): Sealed {
  const size = Buffer.byteLength(rawJsonText);
  if (size > MAX_ARGS_BYTES) return refuse(`the arguments of ${manifest.name} have ${String(size)} bytes; the limit is ${String(MAX_ARGS_BYTES)}. Send less, or a reference.`);
  let tree: unknown;
  try {
    tree = parseLossless(rawJsonText.trim() === "" ? "{}" : rawJsonText);
  } catch (error) {
    return refuse(`the arguments of ${manifest.name} are not valid JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isTree(tree)) return refuse(`the arguments of ${manifest.name} are ${kindOf(tree)}; expected a JSON object`);
  const validate = validatorOf(manifest.inputSchema);
  if (typeof validate === "string") return refuse(`the schema of ${manifest.name} cannot be used (${validate}); nothing can be called with it until it is fixed`);
  if (!fillDefaults(tree, manifest.inputSchema, { root: manifest.inputSchema, depth: 0 })) return refuse(`the schema of ${manifest.name} cannot be used (its defaults never end)`);
  if (!validate(plainCopy(tree))) {
    const errors = validate.errors ?? [];
    return { ok: false, message: describe(manifest.name, tree, errors), faults: errors.slice(0, SHOWN_ERRORS).map((error) => faultOf(tree, error)) };
  }
  const text = canonicalText(tree);
  const sealedSize = Buffer.byteLength(text);
  if (sealedSize > MAX_ARGS_BYTES) return refuse(`the arguments of ${manifest.name} have ${String(sealedSize)} bytes with defaults; the limit is ${String(MAX_ARGS_BYTES)}`);
  return { ok: true, text, digest: argsDigest(text) };
}

const manifestDigests = new WeakMap<ToolManifest, string>();

/** Of all that is known of a tool without its code: what a person was shown of it. */
export function manifestDigest(manifest: ToolManifest): string {
  const known = manifestDigests.get(manifest);
  if (known !== undefined) return known;
  const digest = argsDigest(canonicalText(manifest));
  manifestDigests.set(manifest, digest);
  return digest;
}

const validators = new WeakMap<Schema, ValidateFunction | string>();

/** The compiled validator, or why there is none; kept as long as the schema object lives. */
function validatorOf(schema: Schema): ValidateFunction | string {
  const cached = validators.get(schema);
  if (cached !== undefined) return cached;
  let made: ValidateFunction | string;
  try {
    // `$async` would make the validator answer with a promise, which counts as true; the other two name nothing that is needed here.
    const body = Object.fromEntries(Object.entries(schema).filter(([key]) => !["$schema", "$async", "$id"].includes(key)));
    // ownProperties: a key that is only inherited must not satisfy `required`. Formats are left to the worker's own schema.
    made = new Ajv2020({ allErrors: true, strict: false, ownProperties: true, validateFormats: false, logger: false, verbose: true }).compile(body);
  } catch (error) {
    made = error instanceof Error ? error.message : String(error);
  }
  validators.set(schema, made);
  return made;
}

interface Walk { readonly root: Schema; readonly depth: number }

/** Adds the keys that are missing and have a default. What the model wrote is never changed. `false`: the schema refers to itself without end. */
function fillDefaults(value: unknown, schema: unknown, walk: Walk): boolean {
  if (value === null || typeof value !== "object" || !isTree(schema)) return true;
  if (walk.depth > MAX_SCHEMA_DEPTH) return false;
  const deeper: Walk = { root: walk.root, depth: walk.depth + 1 };
  if (typeof schema["$ref"] === "string" && !fillDefaults(value, localRef(walk.root, schema["$ref"]), deeper)) return false;
  const parts: unknown[] = Array.isArray(schema["allOf"]) ? schema["allOf"] : [];
  if (!parts.every((part) => fillDefaults(value, part, deeper))) return false;
  if (Array.isArray(value)) {
    const prefix: unknown[] = Array.isArray(schema["prefixItems"]) ? schema["prefixItems"] : [];
    return value.every((item, index) => fillDefaults(item, prefix[index] ?? schema["items"], deeper));
  }
  return !isTree(value) || !isTree(schema["properties"]) || fillProperties(value, schema["properties"], deeper);
}

function fillProperties(value: Tree, properties: Tree, walk: Walk): boolean {
  return Object.entries(properties).every(([key, property]) => {
    if (!Object.hasOwn(value, key) && isTree(property) && property["default"] !== undefined) {
      // defineProperty: assignment to `__proto__` would set the prototype instead of a key.
      Object.defineProperty(value, key, { value: parseLossless(JSON.stringify(property["default"])), enumerable: true, configurable: true, writable: true });
    }
    return !Object.hasOwn(value, key) || fillDefaults(value[key], property, walk);
  });
}

function localRef(root: Schema, ref: string): unknown {
  if (!ref.startsWith("#/")) return ref === "#" ? root : undefined;
  let at: unknown = root;
  for (const part of ref.slice(2).split("/")) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isTree(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

/** What Ajv sees. Large integers are rounded here, in the copy only. */
function plainCopy(value: unknown): unknown {
  if (value instanceof LosslessNumber) return Number(value.value);
  if (Array.isArray(value)) return value.map(plainCopy);
  if (!isTree(value)) return value;
  const copy = Object.create(null) as Tree;
  for (const [key, item] of Object.entries(value)) copy[key] = plainCopy(item);
  return copy;
}

function describe(tool: string, tree: Tree, errors: readonly ErrorObject[]): string {
  const lines = errors.slice(0, SHOWN_ERRORS).map((error) => {
    const path = error.instancePath === "" ? "(whole)" : error.instancePath;
    return `${path}: got ${shown(valueAt(tree, error.instancePath))}, expected: it ${expectation(error)}`;
  });
  const more = errors.length > SHOWN_ERRORS ? [`and ${String(errors.length - SHOWN_ERRORS)} more`] : [];
  return `the arguments do not fit the schema of ${tool}. ${[...lines, ...more].join("; ")}`;
}

function faultOf(tree: Tree, error: ErrorObject): ArgumentFault {
  const params = error.params as Record<string, unknown>;
  const at = keysOf(error.instancePath).reduce<{ value: unknown; path: (string | number)[] }>(({ value, path }, key) => {
    const step = Array.isArray(value) ? Number(key) : key;
    return { value: childOf(value, key), path: [...path, step] };
  }, { value: tree, path: [] });
  if (error.keyword === "required") return { path: pathText([...at.path, String(params["missingProperty"])]), message: "is missing" };
  if (error.keyword === "additionalProperties") return { path: pathText([...at.path, String(params["additionalProperty"])]), message: "is no argument of this tool" };
  return { path: pathText(at.path), message: `got ${shown(at.value)}, expected: it ${expectation(error)}` };
}

function expectation(error: ErrorObject): string {
  const params = error.params as Record<string, unknown>;
  if (error.keyword === "enum" || error.keyword === "const") return `is one of ${JSON.stringify(params["allowedValues"] ?? [params["allowedValue"]])}`;
  if (error.keyword === "additionalProperties") return `has no key ${JSON.stringify(params["additionalProperty"])}`;
  return error.message ?? `satisfies ${error.keyword}`;
}

function valueAt(tree: unknown, pointer: string): unknown { return keysOf(pointer).reduce(childOf, tree); }

/** The keys of a JSON pointer. */
function keysOf(pointer: string): string[] { return pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~")); }

function childOf(at: unknown, key: string): unknown {
  if (Array.isArray(at)) return at[Number(key)];
  return isTree(at) && Object.hasOwn(at, key) ? at[key] : undefined;
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  const text = canonicalText(value);
  return `${text.length > 80 ? `${text.slice(0, 77)}...` : text} (${kindOf(value)})`;
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (value instanceof LosslessNumber) return "a number";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

function isTree(value: unknown): value is Tree {
  return value !== null && typeof value === "object" && !Array.isArray(value) && !(value instanceof LosslessNumber);
}

function refuse(message: string): Sealed { return { ok: false, message, faults: [] }; }
