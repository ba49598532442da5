/** Owns: a tool's context outside a worker, for tests of single tools. */
import type { ToolContext } from "../../../src/agent/definition.js";

export function toolContext(overrides: Partial<ToolContext> = {}): ToolContext {
  return {
    tenant: "default", sessionId: "s-1", runId: "run_1", callId: "call_1", idempotencyKey: "key-1", try: 1, fence: 1, signal: new AbortController().signal,
    workspace: "/nonexistent", argsText: "{}", secret: (name) => { throw new Error(`no secret ${name}`); }, log: () => undefined, ...overrides,
  };
}
