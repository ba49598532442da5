/** The wire language: digits survive, ids never collide, and nothing from outside makes a reader throw untyped (I5, I14). */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CHANNELS } from "../../../src/contracts/channels.js";
import { parseEnvelope, principalOf, serializeEnvelope, MAX_EVENT_BYTES } from "../../../src/contracts/cloudevent.js";
import { actorIdOf, eventKeyOf, runIdOf } from "../../../src/contracts/ids.js";
import { canonicalize, MAX_JSON_DEPTH, parseForUse, parseLossless, stringifyLossless } from "../../../src/contracts/json.js";
import { busyModeOf } from "../../../src/contracts/messages.js";
import { Problem, PROBLEMS } from "../../../src/contracts/problems.js";

describe("JSON text", () => {
  it("keeps the digits it came with, whatever the key order", () => {
    const text = '{"b":9007199254740993,"a":[1.0,1e300,-0],"ü":"\\u2028"}';
    expect(canonicalize(text)).toBe('{"a":[1.0,1e300,-0],"b":9007199254740993,"ü":"\u2028"}');
    expect(canonicalize('{"a":1,"b":2}')).toBe(canonicalize('{ "b" : 2, "a" : 1 }'));
    expect(stringifyLossless(parseLossless(text))).toContain("9007199254740993");
  });

  it("canonical text is a fixed point, and says the same as what it came from", () => {
    fc.assert(fc.property(fc.json(), (text) => {
      const canonical = canonicalize(text);
      expect(canonicalize(canonical)).toBe(canonical);
      expect(JSON.parse(canonical)).toEqual(JSON.parse(text));
    }));
  });

  it("hands large integers over as bigint and others as numbers", () => {
    expect(parseForUse('[9007199254740993, 9007199254740991, 0.5]')).toEqual([9007199254740993n, 9007199254740991, 0.5]);
  });

  it("refuses numbers that no sidecar can read, at any depth", () => {
    for (const digits of ["1e400", "-1e400", "9".repeat(400)]) {
      expect(() => parseLossless(`{"a":[${digits}]}`)).toThrow(/beyond the range/);
      expect(() => parseForUse(`{"a":[${digits}]}`)).toThrow(/beyond the range/);
      expect(() => parseEnvelope(`{"specversion":"1.0","id":"1","source":"s","type":"t","data":{"n":${digits}}}`)).toThrow(Problem);
    }
    expect(canonicalize("[1e-400]")).toBe("[1e-400]");
  });

  it("refuses a bomb and a key that is said twice", () => {
    expect(() => parseLossless(`${"[".repeat(MAX_JSON_DEPTH + 1)}${"]".repeat(MAX_JSON_DEPTH + 1)}`)).toThrow(SyntaxError);
    expect(() => parseLossless('{"a":1,"a":2}')).toThrow();
    expect(Object.getPrototypeOf(parseLossless('{"__proto__":{"x":1}}'))).toBe(Object.prototype);
  });
});

describe("ids", () => {
  it("any two sessions have different actors, and every actor id is safe for Dapr", () => {
    const session = fc.oneof(fc.string({ minLength: 1, maxLength: 80 }), fc.stringMatching(/^[a-zA-Z0-9_/#?%|.-]{1,90}$/));
    const tenant = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,20}$/);
    fc.assert(fc.property(tenant, session, tenant, session, (tenantA, a, tenantB, b) => {
      const idA = actorIdOf(tenantA, a);
      expect(idA).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      if (tenantA !== tenantB || a !== b) expect(idA).not.toBe(actorIdOf(tenantB, b));
    }), { numRuns: 1000 });
    expect(actorIdOf("a", "b_c")).not.toBe(actorIdOf("a_b", "c"));
  });

  it("source and id together identify an event", () => {
    expect(eventKeyOf("a", "b\nc")).not.toBe(eventKeyOf("a\nb", "d"));
    expect(runIdOf("x", eventKeyOf("s", "1"))).toBe(runIdOf("x", eventKeyOf("s", "1")));
  });
});

describe("the envelope", () => {
  it("survives a round trip with its digits", () => {
    const text = '{"specversion":"1.0","id":"1","source":"s","type":"t","subject":"x","custom":"y","data":{"id":9007199254740993}}';
    const envelope = parseEnvelope(text);
    expect(envelope.data).toBe('{"id":9007199254740993}');
    expect(parseEnvelope(serializeEnvelope(envelope))).toEqual({ ...envelope, datacontenttype: "application/json" });
  });

  it("drops a trace parent that would crash an older sidecar", () => {
    expect(parseEnvelope('{"specversion":"1.0","id":"1","source":"s","type":"t","traceparent":42}').traceparent).toBeUndefined();
    expect(parseEnvelope('{"specversion":"1.0","id":"1","source":"s","type":"t","traceparent":"00-0"}').traceparent).toBeUndefined();
  });

  it("refuses everything else with a Problem, never with another error", () => {
    const almost = fc.record({ specversion: fc.anything(), id: fc.anything(), source: fc.anything(), type: fc.anything(), subject: fc.anything(), data: fc.anything(), data_base64: fc.anything() }, { requiredKeys: [] });
    fc.assert(fc.property(fc.oneof(fc.string(), fc.json(), almost.map((value) => { try { return JSON.stringify(value); } catch { return ""; } })), (text) => {
      try {
        expect(typeof parseEnvelope(text).data).toBe("string");
      } catch (error) {
        expect(error).toBeInstanceOf(Problem);
      }
    }), { numRuns: 2000 });
    expect(() => parseEnvelope(`"${"x".repeat(MAX_EVENT_BYTES)}"`)).toThrow(/limit/);
  });

  it("takes no principal from a broken extension", () => {
    for (const principal of ["", "null", "{}", "[1]", '{"id":"x","class":"god"}', "not json"]) {
      expect(principalOf({ specversion: "1.0", id: "1", source: "s", type: "t", principal })).toBeUndefined();
    }
  });
});

describe("the tables", () => {
  it("give each channel one component and one topic of its own", () => {
    const channels = Object.values(CHANNELS);
    expect(new Set(channels.map((channel) => channel.topic)).size).toBe(channels.length);
    expect(new Set(channels.map((channel) => channel.component)).size).toBe(channels.length);
    // Kubernetes object names.
    for (const { component } of channels) expect(component).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
  });

  it("give each problem a status that HTTP knows", () => {
    for (const [code, { status }] of Object.entries(PROBLEMS)) expect(status, code).toSatisfy((value: number) => value >= 200 && value < 600);
    expect(new Problem("rate_limited", "slow down", { hint: "wait" }).toDocument("/x")).toMatchObject({ status: 429, retryable: true, hint: "wait", instance: "/x" });
  });

  it("read an unknown busy mode as enqueue", () => {
    expect(busyModeOf("steer")).toBe("steer");
    expect(busyModeOf("whatever")).toBe("enqueue");
    expect(busyModeOf(undefined)).toBe("enqueue");
  });
});
