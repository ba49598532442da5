import { describe, expect, it } from "vitest";
import { modelErrorOf, retryAfterMsOf, type ProviderFailure } from "../../../src/model/failure.js";

const at = { provider: "p", model: "m", signal: new AbortController().signal, stalledMs: undefined, partialText: "so far", usage: undefined, apiKey: "sk-secret" };
const kind = (failure: Partial<ProviderFailure>): string => modelErrorOf(new Error("x"), { status: undefined, type: undefined, code: undefined, message: "x", headers: undefined, ...failure }, at).kind;

describe("what a failure means", () => {
  it.each([408, 409, 425, 429, 500, 502, 503, 504, 529, 599])("%i may be tried again", (status) => expect(kind({ status })).toBe("transient"));
  it.each([301, 400, 401, 402, 403, 404, 413, 422, 451, 501])("%i may not", (status) => expect(kind({ status })).toBe("permanent"));
  it.each(["overloaded_error", "api_error", "timeout_error", "rate_limit_error", undefined])("%s inside a stream may be tried again", (type) => expect(kind({ type })).toBe("transient"));
  it.each(["invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error"])("%s inside a stream may not", (type) => expect(kind({ type })).toBe("permanent"));
  it.each(["insufficient_quota", "enforced_spend_limit_reached", "linked_organization_billing_unavailable"])("429 %s needs a person", (code) => expect(kind({ status: 429, code })).toBe("permanent"));

  it("is the network's doing where the provider said nothing, with the cause told", () => {
    const error = modelErrorOf(new TypeError("fetch failed", { cause: new Error("ECONNREFUSED") }), undefined, at);
    expect(error).toMatchObject({ kind: "transient", partialText: "so far", message: expect.stringContaining("ECONNREFUSED") as string });
  });

  it("is an abort when the caller aborted, whatever came out of it", () => {
    expect(modelErrorOf(new Error("x"), { status: 500, type: undefined, code: undefined, message: "", headers: undefined }, { ...at, signal: AbortSignal.abort() }).kind).toBe("aborted");
  });

  it("never tells the key, and cuts long messages", () => {
    const error = modelErrorOf(new Error("x"), { status: 401, type: undefined, code: undefined, message: `key sk-secret is wrong ${"x".repeat(9000)}`, headers: undefined }, at);
    expect(error.message).not.toContain("sk-secret");
    expect(error.message.length).toBeLessThan(2200);
  });
});

describe("retry-after", () => {
  const now = Date.parse("2026-11-24T12:00:00Z");
  it.each<[Record<string, string>, number | undefined]>([
    [{ "retry-after": "2" }, 2000], [{ "retry-after": "0.5" }, 500], [{ "retry-after": "0" }, 0], [{ "retry-after-ms": "1500.2", "retry-after": "9" }, 1501],
    [{ "retry-after": "Tue, 24 Nov 2026 12:00:30 GMT" }, 30_000], [{ "retry-after": "Tue, 24 Nov 2026 11:00:00 GMT" }, 0],
    [{ "retry-after": "soon" }, undefined], [{ "retry-after-ms": "-5" }, undefined], [{}, undefined],
  ])("%o is %s ms", (headers, expected) => expect(retryAfterMsOf(new Headers(headers), now)).toBe(expected));
});
