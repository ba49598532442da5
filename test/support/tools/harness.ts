/** Owns: a worker with hand-driven surroundings: store, broker, signatures and time are the test's. */
import { z } from "zod";
import { defineTool } from "../../../src/agent/define-tool.js";
import type { Tool, ToolDefinition } from "../../../src/agent/definition.js";
import { serializeEnvelope } from "../../../src/contracts/cloudevent.js";
import { actorIdOf, argsDigest } from "../../../src/contracts/ids.js";
import type { DeadLetter, DeliveryStatus } from "../../../src/contracts/messages.js";
import { Problem } from "../../../src/contracts/problems.js";
import type { GrantClaims} from "../../../src/contracts/tools.js";
import { TOOL_REQUESTED, type ResultClaims, type ToolClaim, type ToolRequest, type ToolResult } from "../../../src/contracts/tools.js";
import type { CallStore } from "../../../src/tools/ports.js";
import { createWorker, type Worker, type WorkerOptions } from "../../../src/tools/worker.js";
import { flush, TestClock } from "./clock.js";
import { MemoryCallStore } from "./memory-call-store.js";

/** Not a signature: the text says what a verifier would have found. */
const fakeJws = (claims: unknown): string => `signed.${Buffer.from(JSON.stringify(claims)).toString("base64url")}`;
export const readFakeJws = (jws: string): unknown => JSON.parse(Buffer.from(jws.replace(/^signed\./, ""), "base64url").toString("utf8"));
const verifier = {
  verify: (jws: string): Promise<GrantClaims> => (jws.startsWith("signed.")
    ? Promise.resolve(readFakeJws(jws) as GrantClaims)
    : Promise.reject(new Problem("bad_signature", "the signature is not over this text"))),
};

/** A tool that counts its effects. */
export function countingTool(overrides: Partial<ToolDefinition<z.ZodObject<{ order: z.ZodString }>>> = {}): { tool: Tool; effects: () => number; keys: string[] } {
  let count = 0;
  const keys: string[] = [];
  const tool = defineTool({
    name: "refund", description: "Refunds an order.", input: z.object({ order: z.string() }), effects: "once",
    run: async ({ order }, context) => {
      count += 1;
      keys.push(context.idempotencyKey);
      return { refunded: order };
    },
    ...overrides,
  });
  return { tool, effects: () => count, keys };
}

export interface Harness {
  readonly clock: TestClock; readonly store: MemoryCallStore; readonly claims: ToolClaim[]; readonly results: ToolResult[]; readonly letters: DeadLetter[];
  readonly broker: { failing: boolean };
  readonly logs: { level: string; message: string; fields: Record<string, unknown> }[];
  worker(name?: string, options?: Partial<WorkerOptions>): Worker;
}

export function harness(tools: readonly Tool[], shared: { clock?: TestClock; store?: MemoryCallStore; /** The store as the worker reaches it. */ reach?: CallStore; secrets?: Record<string, string> } = {}): Harness {
  const clock = shared.clock ?? new TestClock();
  const store = shared.store ?? new MemoryCallStore(() => clock.nowMs());
  const claims: ToolClaim[] = [];
  const results: ToolResult[] = [];
  const letters: DeadLetter[] = [];
  const logs: Harness["logs"] = [];
  const broker = { failing: false };
  const orFail = (take: () => void): Promise<void> => {
    if (broker.failing) return Promise.reject(new Error("the broker does not answer"));
    take();
    return Promise.resolve();
  };
  return {
    clock, store, claims, results, letters, broker, logs,
    worker: (name = "w1", options = {}) => createWorker({
      tools: new Map(tools.map((tool) => [tool.manifest.name, tool])), store: shared.reach ?? store, clock, grants: verifier,
      signer: { sign: (sealed: ResultClaims) => Promise.resolve(fakeJws(sealed)) },
      results: { claimed: (claim) => orFail(() => claims.push(claim)), completed: (result) => orFail(() => results.push(result)) },
      deadLetters: { record: (letter) => orFail(() => letters.push(letter)) },
      secrets: { find: (secret) => shared.secrets?.[secret] },
      log: (level, message, fields = {}) => logs.push({ level, message, fields }),
      workspace: (actorId) => Promise.resolve({ path: `/tmp/${actorId}`, close: () => Promise.resolve() }),
    }, { worker: name, ...options }),
  };
}

export interface RequestOptions { readonly request?: Partial<ToolRequest>; readonly grant?: Partial<GrantClaims> | string; readonly nowMs?: number }

/** A request with a grant for exactly it; `grant` then falsifies the grant, `request` falsifies both. */
export function requestFor(clock: TestClock, options: RequestOptions = {}): ToolRequest {
  const tenant = options.request?.tenant ?? "default";
  const sessionId = options.request?.sessionId ?? "order-1";
  const args = options.request?.args ?? "{\"order\":\"ord-1\"}";
  const base = {
    tenant, sessionId, actorId: actorIdOf(tenant, sessionId), agent: "order-triage", runId: "run_1", callId: "call_1", tool: "refund",
    args, argsDigest: argsDigest(args), try: 1, publication: 1, idempotencyKey: "key-1", deadlineAtMs: clock.nowMs() + 60_000, ...options.request,
  };
  const claims: GrantClaims = {
    iss: "docket/sessions", aud: "docket/tools", sub: base.actorId, jti: base.callId, tool: base.tool, digest: base.argsDigest,
    iat: Math.floor(clock.nowMs() / 1000), exp: Math.floor(clock.nowMs() / 1000) + 3600,
    ...(typeof options.grant === "object" ? options.grant : {}),
  };
  return { ...base, grant: typeof options.grant === "string" ? options.grant : fakeJws(claims) };
}

export function eventOf(request: ToolRequest | Record<string, unknown>, attributes: Record<string, string> = {}): string {
  return serializeEnvelope({
    specversion: "1.0", id: "evt-1", source: "/docket/sessions", type: TOOL_REQUESTED, subject: "order-1", ...attributes, data: JSON.stringify(request),
  });
}

/** Delivers and lets everything that needs no time happen. */
export async function deliver(worker: Worker, request: ToolRequest): Promise<DeliveryStatus> {
  const status = await worker.handleRequest(eventOf(request));
  await flush();
  return status;
}
