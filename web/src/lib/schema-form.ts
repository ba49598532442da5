/**
 * Owns: a form from a tool's JSON Schema (draft 2020-12). What the form knows is edited field by field with its type kept; what it
 * does not know (unions that the value does not choose between, free-form objects) is edited as JSON. The session validates again.
 */
import { canonicalText, inline, isObject, kindOf, LosslessNumber, parseLossless, pathText, type JsonObject, type Path } from "./json.js";
import { plural } from "./words.js";

export type Schema = Readonly<Record<string, unknown>>;

export interface Property { readonly name: string; readonly schema: Schema; readonly required: boolean; readonly present: boolean }
export type Shape =
  | { readonly kind: "object"; readonly properties: readonly Property[] }
  | { readonly kind: "array"; readonly items: Schema; readonly length: number }
  | { readonly kind: "choice"; readonly options: readonly unknown[] }
  | { readonly kind: "text"; readonly long: boolean }
  | { readonly kind: "number"; readonly integer: boolean }
  | { readonly kind: "boolean" }
  | { readonly kind: "json" };

const MAX_REFS = 20;

/** How a value is edited. `root` is where `$ref` looks. */
export function shapeOf(schema: Schema, value: unknown, root: Schema): Shape {
  const own = resolved(schema, value, root);
  const options = optionsOf(own);
  if (options !== undefined) return { kind: "choice", options };
  switch (typeOf(own, value)) {
    case "object": return isObject(value) && (own["properties"] !== undefined || Object.keys(value).length > 0) ? { kind: "object", properties: propertiesOf(own, value) } : { kind: "json" };
    case "array": return Array.isArray(value) && own["prefixItems"] === undefined ? { kind: "array", items: asSchema(own["items"]), length: value.length } : { kind: "json" };
    case "string": return typeof value === "string" ? { kind: "text", long: value.length > 60 || value.includes("\n") || numberAt(own, "maxLength", 0) > 200 } : { kind: "json" };
    case "integer": return kindOf(value) === "number" ? { kind: "number", integer: true } : { kind: "json" };
    case "number": return kindOf(value) === "number" ? { kind: "number", integer: false } : { kind: "json" };
    case "boolean": return typeof value === "boolean" ? { kind: "boolean" } : { kind: "json" };
    case undefined: default: return { kind: "json" };
  }
}

/** What people are told about a field. */
export function describe(schema: Schema, value: unknown, root: Schema): { readonly title: string | undefined; readonly about: string; readonly limits: string } {
  const own = resolved(schema, value, root);
  const text = (key: string): string | undefined => (typeof own[key] === "string" ? own[key] : undefined);
  const word = (key: string, prefix: string): string[] => (own[key] === undefined ? [] : [`${prefix}${inline(own[key])}`]);
  const limits = [...word("minimum", "≥ "), ...word("exclusiveMinimum", "> "), ...word("maximum", "≤ "), ...word("exclusiveMaximum", "< "), ...word("minLength", "at least "), ...word("maxLength", "at most "), ...word("format", ""), ...word("pattern", "like ")];
  return { title: text("title"), about: text("description") ?? "", limits: [typeName(own, value), ...limits].join(", ") };
}

/** A value to start from, for a property or item that is added. */
export function emptyOf(schema: Schema, root: Schema): unknown {
  const own = resolved(schema, undefined, root);
  if (own["default"] !== undefined) return parseLossless(JSON.stringify(own["default"]));
  const [first] = optionsOf(own) ?? [];
  if (first !== undefined) return first;
  switch (typeOf(own, undefined)) {
    case "object": return Object.fromEntries(propertiesOf(own, {}).filter((property) => property.required).map((property) => [property.name, emptyOf(property.schema, root)]));
    case "array": return [];
    case "number": case "integer": return new LosslessNumber("0");
    case "boolean": return false;
    case "string": return "";
    case undefined: default: return null;
  }
}

export type Read = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly message: string };

/** A number as it was typed, every digit kept. */
export function readNumber(text: string, integer: boolean): Read {
  const trimmed = text.trim();
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(trimmed)) return { ok: false, message: trimmed === "" ? "is empty; expected a number" : `${trimmed} is not a JSON number` };
  if (integer && !/^-?\d+$/.test(trimmed)) return { ok: false, message: `${trimmed} is not a whole number` };
  if (!Number.isFinite(Number(trimmed))) return { ok: false, message: `${trimmed} is beyond the range of a double` };
  return { ok: true, value: new LosslessNumber(trimmed) };
}

/** JSON as it was typed. */
export function readJson(text: string): Read {
  try {
    return { ok: true, value: parseLossless(text) };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : "it is not JSON" };
  }
}

/** What plainly does not fit, said before it is sent: types, missing and unknown keys, choices, limits. The session has the last word. */
export function faultsOf(schema: Schema, value: unknown, root: Schema = schema, path: Path = []): string[] {
  const own = resolved(schema, value, root);
  const at = (message: string): string => `${pathText(path)}: ${message}`;
  const options = optionsOf(own);
  if (options !== undefined) return options.some((option) => canonicalText(option) === canonicalText(value)) ? [] : [at(`expected one of ${options.map(inline).join(", ")}`)];
  const type = typeOf(own, value);
  if (type !== undefined && !fitsType(type, value)) return [at(`expected ${article(type)}, got ${article(kindOf(value))}`)];
  if (isObject(value)) return objectFaults(own, value, root, path);
  if (Array.isArray(value)) return own["items"] === undefined ? [] : value.flatMap((item, index) => faultsOf(asSchema(own["items"]), item, root, [...path, index]));
  if (typeof value === "string") return textFaults(own, value).map(at);
  return kindOf(value) === "number" ? numberFaults(own, String(value)).map(at) : [];
}

function objectFaults(schema: Schema, value: JsonObject, root: Schema, path: Path): string[] {
  if (schema["properties"] === undefined) return [];
  return propertiesOf(schema, value).flatMap((property) => {
    if (!property.present) return property.required ? [`${pathText([...path, property.name])}: is required`] : [];
    if (!Object.hasOwn(schema["properties"] as object, property.name) && schema["additionalProperties"] === false) return [`${pathText([...path, property.name])}: is unknown here`];
    return faultsOf(property.schema, value[property.name], root, [...path, property.name]);
  });
}

function textFaults(schema: Schema, value: string): string[] {
  const length = Array.from(value).length;
  return [
    ...(length < numberAt(schema, "minLength", 0) ? [`has ${plural(length, "character")}, expected at least ${String(schema["minLength"])}`] : []),
    ...(length > numberAt(schema, "maxLength", Infinity) ? [`has ${plural(length, "character")}, expected at most ${String(schema["maxLength"])}`] : []),
  ];
}

function numberFaults(schema: Schema, digits: string): string[] {
  const compare = (limit: number): number => (/^-?\d+$/.test(digits) && Number.isInteger(limit) ? Number(BigInt(digits) - BigInt(limit)) : Number(digits) - limit);
  return [
    ...(compare(numberAt(schema, "minimum", -Number.MAX_VALUE)) < 0 ? [`${digits} is below ${String(schema["minimum"])}`] : []),
    ...(compare(numberAt(schema, "maximum", Number.MAX_VALUE)) > 0 ? [`${digits} is above ${String(schema["maximum"])}`] : []),
  ];
}

function propertiesOf(schema: Schema, value: JsonObject): Property[] {
  const known = isObject(schema["properties"]) ? schema["properties"] : {};
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  const extra = Object.keys(value).filter((name) => !Object.hasOwn(known, name));
  return [
    ...Object.entries(known).map(([name, child]) => ({ name, schema: asSchema(child), required: required.includes(name), present: Object.hasOwn(value, name) })),
    ...extra.map((name) => ({ name, schema: asSchema(schema["additionalProperties"]), required: false, present: true })),
  ];
}

/** Follows `$ref`, and of a union takes the branch whose type the value has. */
function resolved(schema: Schema, value: unknown, root: Schema): Schema {
  let own = schema;
  for (let i = 0; i < MAX_REFS && typeof own["$ref"] === "string"; i += 1) {
    const target = own["$ref"].replace(/^#\/?/, "").split("/").filter((part) => part !== "").reduce<unknown>((at, part) => (isObject(at) ? at[part] : undefined), root);
    own = { ...asSchema(target), ...without(own, "$ref") };
  }
  const branches = own["anyOf"] ?? own["oneOf"];
  if (!Array.isArray(branches)) return own;
  const fitting = branches.map(asSchema).filter((branch) => { const type = typeOf(branch, value); return type !== undefined && (value === undefined || fitsType(type, value)); });
  const [only] = fitting;
  return only !== undefined && (fitting.length === 1 || value === undefined) ? { ...without(without(own, "anyOf"), "oneOf"), ...resolved(only, value, root) } : own;
}

function optionsOf(schema: Schema): unknown[] | undefined {
  const { enum: options } = schema;
  if (Array.isArray(options)) return options.map((option) => parseLossless(JSON.stringify(option)));
  return "const" in schema ? [parseLossless(JSON.stringify(schema["const"]))] : undefined;
}

/** The schema's type; of several the one that the value has; none given: that of the value. */
function typeOf(schema: Schema, value: unknown): string | undefined {
  const { type } = schema;
  if (typeof type === "string") return type;
  if (Array.isArray(type)) return type.find((name): name is string => typeof name === "string" && fitsType(name, value));
  if (schema["properties"] !== undefined) return "object";
  return value === undefined || schema["anyOf"] !== undefined || schema["oneOf"] !== undefined ? undefined : kindOf(value);
}

function typeName(schema: Schema, value: unknown): string { return typeOf(schema, value) ?? "JSON"; }

function fitsType(type: string, value: unknown): boolean {
  return type === "integer" ? kindOf(value) === "number" && Number.isInteger(Number(String(value))) : value !== undefined && kindOf(value) === type;
}

function article(type: string): string { return type === "null" ? "null" : `${/^[aeiou]/.test(type) ? "an" : "a"} ${type}`; }
function asSchema(value: unknown): Schema { return isObject(value) ? value : {}; }
function without(schema: Schema, key: string): Schema { return Object.fromEntries(Object.entries(schema).filter(([name]) => name !== key)); }
function numberAt(schema: Schema, key: string, fallback: number): number { const value = schema[key]; return typeof value === "number" ? value : fallback; }
