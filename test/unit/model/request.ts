/** Owns: a request to start from in tests. */
import type { ModelRequest } from "../../../src/model/model.js";

export function request(over: Partial<ModelRequest> = {}): ModelRequest {
  return {
    model: "m", instructions: "Be brief.", tools: [], messages: [{ role: "user", text: "hello" }], maxOutputTokens: 100, signal: new AbortController().signal,
    context: { sessionId: "s-1", runId: "run_1", step: 1, attempt: 1 }, ...over,
  };
}

/** What a promise was rejected with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(() => { throw new Error("expected a rejection"); }, (error: unknown) => error);
}
