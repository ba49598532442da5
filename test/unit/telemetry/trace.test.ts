/** Ids that every process computes alike, trace parents, what is redacted. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { redacted } from "../../../src/platform/telemetry/redact.js";
import { readTraceParent, spanIdOf, traceIdOf, traceParentText, tracing } from "../../../src/platform/telemetry/trace.js";
import { recordAccepted, traceOf } from "../../../src/gateway/in/trace.js";
import { collectSpans } from "../../support/spans.js";

const SENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

describe("ids", () => {
  it("are the same for the same thing, never zeros, and of the right length", () => {
    fc.assert(fc.property(fc.string(), fc.integer(), (id, number) => {
      expect(spanIdOf("run", id, number)).toBe(spanIdOf("run", id, number));
      expect(spanIdOf("run", id, number)).toMatch(/^[1-9a-f][0-9a-f]{15}$/);
      expect(traceIdOf(id)).toMatch(/^[1-9a-f][0-9a-f]{31}$/);
    }));
    expect(spanIdOf("chat", "run_1", 1, 1)).not.toBe(spanIdOf("chat", "run_1", 11));
  });

  it("of a trace parent come back as they were; what is none is none", () => {
    expect(traceParentText(readTraceParent(SENT)!)).toBe(SENT);
    for (const none of [undefined, "", "x", SENT.replace("00-", "ff-"), `00-${"0".repeat(32)}-00f067aa0ba902b7-01`, `00-4bf92f3577b34da6a3ce929d0e0e4736-${"0".repeat(16)}-01`, SENT.toUpperCase()]) expect(readTraceParent(none)).toBeUndefined();
  });
});

describe("an event's trace at the edge", () => {
  it("is its sender's where nobody takes spans, and goes on under its acceptance where somebody does", () => {
    expect(tracing()).toBe(false);
    expect(traceOf("run_1", SENT)).toBe(SENT);
    const seen = collectSpans();
    expect(traceOf("run_1", SENT)).toBe(`00-4bf92f3577b34da6a3ce929d0e0e4736-${spanIdOf("accept", "run_1")}-01`);
    expect(traceOf("run_1", "nonsense")).toBe(`00-${traceIdOf("run_1")}-${spanIdOf("accept", "run_1")}-01`);
    recordAccepted({ specversion: "1.0", id: "e", source: "s", type: "t", subject: "order-1", traceparent: traceOf("run_1", SENT), data: "null" }, { runId: "run_1", sender: SENT, startMs: 1, endMs: 3 });
    expect(seen.spans).toMatchObject([{ name: "accept t", parentId: "00f067aa0ba902b7", spanId: spanIdOf("accept", "run_1"), startMs: 1, endMs: 3 }]);
    seen.stop();
  });

  it("is not recorded where its sender or the sampler says so", () => {
    const seen = collectSpans({ sample: false });
    const unrecorded = traceOf("run_1", SENT.replace(/01$/, "00"));
    expect(unrecorded).toMatch(/-00$/);
    expect(traceOf("run_1", undefined)).toMatch(/-00$/);
    recordAccepted({ specversion: "1.0", id: "e", source: "s", type: "t", traceparent: unrecorded, data: "null" }, { runId: "run_1", sender: undefined, startMs: 1, endMs: 3 });
    expect(seen.spans).toEqual([]);
    seen.stop();
  });
});

describe("redaction", () => {
  it("takes out what is named or looks like a secret, and leaves the rest", () => {
    expect(redacted('{"apiKey":"abc","user_password": "p\\"q","orderId":"1001","token":12}')).toBe('{"apiKey":"[redacted]","user_password": "[redacted]","orderId":"1001","token":"[redacted]"}');
    expect(redacted("Authorization: Bearer abcdefghijkl")).not.toContain("abcdefghijkl");
    for (const secret of ["sk-ant-REDACTED", "ghp_abcdefghijklmnopqrst", "AKIAIOSFODNN7EXAMPLE", "eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJ4In0.c2ln", "4111 1111 1111 1111", "-----BEGIN PRIVATE KEY-----\nMIIB"]) expect(redacted(`see ${secret} there`), secret).not.toContain(secret.slice(0, 12));
    expect(redacted("postgres://app:hunter22@db/x")).toBe("postgres://app:[redacted]@db/x");
    expect(redacted("refund 1200 cents of order 1001")).toBe("refund 1200 cents of order 1001");
  });

  it("is bounded", () => {
    expect(redacted("x".repeat(100_000)).length).toBeLessThan(8_300);
  });
});
