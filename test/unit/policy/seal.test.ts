import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { argsDigest } from "../../../src/contracts/ids.js";
import { parseForUse } from "../../../src/contracts/json.js";
import { MAX_ARGS_BYTES, sealArguments, type Sealed } from "../../../src/session/core/seal.js";
import { manifestOf } from "../../support/manifests.js";

const orderSchema = {
  type: "object", required: ["orderId", "amount", "currency"], additionalProperties: false,
  properties: {
    orderId: { type: "string" }, amount: { type: "number", exclusiveMinimum: 0 }, currency: { enum: ["EUR", "USD"], default: "EUR" },
    notify: { type: "object", properties: { mail: { type: "boolean", default: true }, copies: { type: "integer", default: 1 } }, default: {} },
    lines: { type: "array", items: { type: "object", properties: { qty: { type: "integer", default: 1 } } } },
  },
};
const order = manifestOf({ inputSchema: orderSchema });
const anything = manifestOf({ inputSchema: { type: "object" } });
const textOf = (sealed: Sealed): string => { if (!sealed.ok) throw new Error(sealed.message); return sealed.text; };
const messageOf = (sealed: Sealed): string => { if (sealed.ok) throw new Error(`sealed ${sealed.text}`); return sealed.message; };

describe("sealing", () => {
  it("fills in missing defaults at every level, sorts keys and keeps digits", () => {
    const sealed = sealArguments(order, '{"orderId":"o1","amount":10.00,"lines":[{},{"qty":3}]}');
    expect(textOf(sealed)).toBe('{"amount":10.00,"currency":"EUR","lines":[{"qty":1},{"qty":3}],"notify":{"copies":1,"mail":true},"orderId":"o1"}');
    expect(sealed).toMatchObject({ digest: argsDigest(textOf(sealed)) });
  });

  it("takes no arguments as an empty object", () => {
    for (const text of ["", "  \n", "{}"]) expect(textOf(sealArguments(anything, text))).toBe("{}");
  });

  it("never replaces what was written, null included", () => {
    expect(textOf(sealArguments(manifestOf({ inputSchema: { type: "object", properties: { note: { type: ["string", "null"], default: "x" } } } }), '{"note":null}'))).toBe('{"note":null}');
  });

  it("tells the model where, what was there and what was expected", () => {
    const message = messageOf(sealArguments(order, '{"orderId":7,"amount":"ten","currency":"GBP","extra":1}'));
    expect(message).toContain("/orderId: got 7 (a number), expected: it must be string");
    expect(message).toContain('/currency: got "GBP" (a string), expected: it is one of ["EUR","USD"]');
    expect(message).toContain('has no key "extra"');
  });

  it.each([["not json", "{oops", /not valid JSON/], ["an array", "[1]", /expected a JSON object/], ["a number", "7", /expected a JSON object/], ["two values", '{"a":1,"a":2}', /Duplicate key/],
    ["a bomb", "[".repeat(100_000).slice(0, 30_000), /nests deeper/], ["too much", JSON.stringify({ a: "x".repeat(MAX_ARGS_BYTES) }), /the limit is 32768/], ["too much of nothing", `{${" ".repeat(MAX_ARGS_BYTES)}}`, /the limit is 32768/]])("refuses %s", (_name, text, reason) => {
    expect(messageOf(sealArguments(anything, text))).toMatch(reason);
  });

  it("refuses what only defaults make too large", () => {
    const large = manifestOf({ inputSchema: { type: "object", properties: { a: { type: "string", default: "x".repeat(MAX_ARGS_BYTES) } } } });
    expect(messageOf(sealArguments(large, "{}"))).toMatch(/bytes with defaults; the limit is 32768/);
  });

  it.each([["broken", { type: "strnig" }], ["with a remote reference", { $ref: "https://example.com/schema" }],
    ["endless", { type: "object", $defs: { n: { type: "object", properties: { child: { $ref: "#/$defs/n", default: {} } } } }, $ref: "#/$defs/n" }],
    ["that refers to itself", { $ref: "#" }]])("refuses everything for a schema that is %s", (_name, inputSchema) => {
    expect(messageOf(sealArguments(manifestOf({ inputSchema }), "{}"))).toMatch(/cannot be used/);
  });

  it("an asynchronous schema still validates", () => {
    expect(messageOf(sealArguments(manifestOf({ inputSchema: { $async: true, type: "object", required: ["a"] } }), "{}"))).toMatch(/do not fit/);
  });

  it("takes schemas of older drafts and with equal ids", () => {
    const schema = () => ({ $schema: "http://json-schema.org/draft-07/schema#", $id: "urn:x", type: "object" });
    expect(sealArguments(manifestOf({ inputSchema: schema() }), "{}").ok).toBe(true);
    expect(sealArguments(manifestOf({ inputSchema: schema() }), "{}").ok).toBe(true);
  });

  it("`__proto__` is a key like any other: it is shown, and lends nothing to `required`", () => {
    const text = '{"__proto__":{"orderId":"o1","polluted":true}}';
    expect(textOf(sealArguments(anything, text))).toBe(text);
    expect(messageOf(sealArguments(manifestOf({ inputSchema: { type: "object", required: ["orderId"] } }), text))).toMatch(/orderId/);
    expect(messageOf(sealArguments(manifestOf({ inputSchema: { type: "object", required: ["toString"] } }), "{}"))).toMatch(/toString/);
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

/** JSON objects with awkward keys, and numbers written with their own digits. */
const json = fc.letrec((tie) => ({
  key: fc.oneof(fc.string(), fc.constantFrom("__proto__", "constructor", "a", "é", "\ud83d\ude00", "")),
  number: fc.oneof(fc.bigInt().map(String), fc.tuple(fc.integer(), fc.nat()).map(([a, b]) => `${String(a)}.${String(b)}0`), fc.constantFrom("1e5", "-0", "1.0", "9007199254740993", "0.1000000000000000055")),
  value: fc.oneof({ maxDepth: 4 }, fc.string().map((s) => JSON.stringify(s)), tie("number"), fc.constantFrom("null", "true", "false"), tie("array"), tie("object")),
  array: fc.array(tie("value"), { maxLength: 4 }).map((items) => `[${items.map(String).join(",")}]`),
  entries: fc.uniqueArray(fc.tuple(tie("key"), tie("value")), { maxLength: 5, selector: ([key]) => String(key) }),
  object: tie("entries").map((entries) => `{${(entries as [string, string][]).map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(",")}}`),
}));

describe("properties of the seal", () => {
  it("sealing a sealed text changes nothing, and what is sealed passes the same schema untransformed", () => {
    fc.assert(fc.property(json.object, (text) => {
      const once = sealArguments(anything, text);
      expect(sealArguments(anything, textOf(once))).toEqual(once);
    }));
    fc.assert(fc.property(fc.record({ orderId: fc.string(), amount: fc.double({ min: 0.01, noNaN: true, noDefaultInfinity: true }), notify: fc.option(fc.record({ mail: fc.boolean() }, { requiredKeys: [] }), { nil: undefined }) }), (args) => {
      const once = sealArguments(order, JSON.stringify(args));
      expect(sealArguments(order, textOf(once))).toEqual(once);
    }));
  });

  it("the order of keys and white space make no difference to the digest", () => {
    fc.assert(fc.property(json.entries as fc.Arbitrary<[string, string][]>, (entries) => {
      const write = (list: [string, string][], gap: string): string => `{${list.map(([key, value]) => `${gap}${JSON.stringify(key)}${gap}:${gap}${value}`).join(",")}}`;
      expect(sealArguments(anything, write(entries, ""))).toEqual(sealArguments(anything, write([...entries].reverse(), " \n")));
    }));
  });

  it("every number keeps its digits", () => {
    fc.assert(fc.property(json.number, (digits) => {
      expect(textOf(sealArguments(anything, `{"n":${digits}}`))).toBe(`{"n":${digits}}`);
    }));
  });

  it("an integer beyond 2^53 passes an integer schema and reaches the tool exactly", () => {
    const text = textOf(sealArguments(manifestOf({ inputSchema: { type: "object", properties: { id: { type: "integer" } } } }), '{"id":9007199254740993}'));
    expect(parseForUse(text)).toEqual({ id: 9007199254740993n });
  });
});
