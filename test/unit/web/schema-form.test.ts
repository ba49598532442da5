/** The form from a tool's schema: types and digits are kept, what does not fit is said, what is not understood is left to JSON. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { canonicalText, inline, parseLossless, pathText, pretty, removeAt, setAt, visible, wordsOf } from "../../../web/src/lib/json.js";
import { emptyOf, faultsOf, readJson, readNumber, shapeOf, type Schema } from "../../../web/src/lib/schema-form.js";

const BIG = "9223372036854775807";
const schema: Schema = {
  type: "object", additionalProperties: false, required: ["id", "to"],
  properties: {
    id: { type: "integer", maximum: 9_300_000_000_000_000_000, minimum: 1 }, rate: { type: "number" }, fast: { type: "boolean", default: true }, kind: { enum: ["a", 1, null] },
    to: { $ref: "#/$defs/address" }, tags: { type: "array", items: { type: "string", minLength: 2 } }, note: { anyOf: [{ type: "string" }, { type: "null" }] }, free: { type: "object" }, pair: { type: "array", prefixItems: [{}] },
  },
  $defs: { address: { type: "object", properties: { street: { type: "string", maxLength: 10 } }, required: ["street"] } },
};
const value = parseLossless(`{"id":${BIG},"to":{"street":"Elbe 1"},"tags":["aa"],"kind":1,"note":null}`);
const at = (name: string): Schema => (schema["properties"] as Record<string, Schema>)[name] ?? {};

describe("the shape of a field", () => {
  it.each([
    ["id", BIG, { kind: "number", integer: true }], ["rate", "1.50", { kind: "number", integer: false }], ["fast", "false", { kind: "boolean" }], ["note", '"x"', { kind: "text", long: false }],
    ["note", "null", { kind: "json" }], ["free", "{}", { kind: "json" }], ["pair", "[1]", { kind: "json" }], ["id", '"7"', { kind: "json" }], ["fast", '"true"', { kind: "json" }],
  ])("%s with %s", (name, text, expected) => { expect(shapeOf(at(name), parseLossless(text), schema)).toEqual(expected); });

  it("follows references, lists properties with what is there and what is needed, and shows unknown ones", () => {
    expect(shapeOf(at("to"), parseLossless('{"street":"x","extra":1}'), schema)).toMatchObject({ kind: "object", properties: [{ name: "street", required: true, present: true }, { name: "extra", required: false, present: true }] });
    const shape = shapeOf(schema, value, schema);
    expect(shape.kind === "object" ? shape.properties.filter((property) => !property.present).map((property) => property.name) : []).toEqual(["rate", "fast", "free", "pair"]);
  });

  it("choices keep their type", () => {
    const shape = shapeOf(at("kind"), parseLossless("1"), schema);
    expect(shape.kind === "choice" ? shape.options.map(inline) : []).toEqual(['"a"', "1", "null"]);
  });

  it("an endless reference ends", () => {
    const loop: Schema = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } };
    expect(shapeOf(loop, "x", loop)).toEqual({ kind: "text", long: false });
  });
});

describe("editing", () => {
  it("changes one place and keeps every other digit", () => {
    const read = readNumber("9007199254740993", true);
    const edited = setAt(value, ["to", "number"], read.ok ? read.value : undefined);
    expect(canonicalText(edited)).toBe(`{"id":${BIG},"kind":1,"note":null,"tags":["aa"],"to":{"number":9007199254740993,"street":"Elbe 1"}}`);
    expect(canonicalText(value)).not.toContain("number");
    expect(canonicalText(removeAt(setAt(value, ["tags"], ["aa", "bb", "cc"]), ["tags", 1]))).toContain('"tags":["aa","cc"]');
    expect(canonicalText(removeAt(value, ["kind"]))).not.toContain("kind");
  });

  it("every integer that is typed arrives as it was typed", () => {
    fc.assert(fc.property(fc.bigInt(), (number) => {
      const read = readNumber(String(number), true);
      return read.ok && canonicalText(read.value) === String(number);
    }));
  });

  it.each([["", false], ["01", false], ["1x", false], ["0x10", false], ["1e400", false], ["NaN", false], ["1.5", false], [" 7 ", true], ["-3", true]])("reads %j as an integer: %s", (text, ok) => { expect(readNumber(text, true).ok).toBe(ok); });
  it.each([["1.50", "1.50"], ["-0", "-0"], ["1e3", "1e3"]])("keeps the digits of %s", (text, expected) => { const read = readNumber(text, false); expect(read.ok && canonicalText(read.value)).toBe(expected); });
  it("says why JSON cannot be read", () => { expect(readJson('{"a":1,"a":2}').ok).toBe(false); expect(readJson("{").ok).toBe(false); });

  it.each([["id", "0"], ["fast", "true"], ["to", '{"street":""}'], ["tags", "[]"], ["kind", '"a"'], ["note", '""']])("begins %s with %s", (name, expected) => { expect(canonicalText(emptyOf(at(name), schema))).toBe(expected); });
});

describe("what does not fit", () => {
  const faults = (text: string): string[] => faultsOf(schema, parseLossless(text));
  it("is nothing where it fits", () => { expect(faultsOf(schema, value)).toEqual([]); });
  it.each([
    ['{"to":{"street":"x"}}', "id: is required"], ['{"id":"7","to":{"street":"x"}}', "id: expected an integer, got a string"], ['{"id":1.5,"to":{"street":"x"}}', "id: expected an integer, got a number"],
    ['{"id":0,"to":{"street":"x"}}', "id: 0 is below 1"], ['{"id":9300000000000000001,"to":{"street":"x"}}', "id: 9300000000000000001 is above 9300000000000000000"], ['{"id":1,"to":{"street":"12345678901"}}', "to.street: has 11 characters, expected at most 10"],
    ['{"id":1,"to":{"street":"x"},"tags":["a"]}', "tags[0]: has 1 character, expected at least 2"], ['{"id":1,"to":{"street":"x"},"kind":"b"}', 'kind: expected one of "a", 1, null'], ['{"id":1,"to":{"street":"x"},"other":1}', "other: is unknown here"],
  ])("%s", (text, expected) => { expect(faults(text)).toEqual([expected]); });
});

describe("text for people", () => {
  it("shows what an eye cannot see, in JSON as the same JSON", () => {
    const text = JSON.stringify({ to: "a\u202eb\u200bc\u0007" });
    expect(pretty(text)).toBe('{\n  "to": "a\\u202eb\\u200bc\\u0007"\n}');
    expect(JSON.parse(pretty(text))).toEqual(JSON.parse(text));
    expect(visible("ok\n\ttab ✅ ❤️ ü")).toBe("ok\n\ttab ✅ ❤️ ü");
    expect(visible("\u{e0041}\ufe0f")).toBe("\\udb40\\udc41\\ufe0f");
  });
  it("keeps digits, and what is no JSON", () => { expect(pretty(`[${BIG},1.10]`)).toBe(`[\n  ${BIG},\n  1.10\n]`); expect(pretty("{no")).toBe("{no"); });
  it("names places", () => { expect(pathText(["a", 2, "b c"])).toBe('a[2]["b c"]'); expect(pathText([])).toBe("(whole)"); });
  it("takes the words out of a prompt, and nothing else", () => { expect(wordsOf('{"text":"hi"}')).toBe("hi"); expect(wordsOf('{"text":"hi","x":1}')).toBe('{"text":"hi","x":1}'); expect(wordsOf("hi")).toBe("hi"); });
});
