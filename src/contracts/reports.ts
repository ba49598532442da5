/**
 * Owns: what apps tell the console about themselves, on the channel of the dead letters, the one that every app may publish to. Nothing
 * depends on it but pages and the audit: a lost report is followed by the next one.
 */
import { z } from "zod";
import { APPS } from "./channels.js";

const Words = z.string().max(500);
const Names = z.array(z.string().max(200)).max(1_000);

export const APP_REPORTED = "com.docket.app.reported.v1";

/** A finding of an app about itself and its sidecar, with what to do. */
export const AppCheck = z.object({ name: z.string().max(100), status: z.enum(["ok", "warn", "fail"]), detail: Words, fix: Words.default("") });
export type AppCheck = z.infer<typeof AppCheck>;

/** Data of APP_REPORTED: one process. Again every `everyMs`; with `stopping` it takes its leave. */
export const AppReport = z.object({
  app: z.enum(APPS), instance: z.string().min(1).max(200), startedAtMs: z.number().int(), atMs: z.number().int(), everyMs: z.number().int().min(1), stopping: z.boolean().default(false),
  node: z.string().max(50), checks: z.array(AppCheck).max(50),
  /** Its sidecar's, where that says so. */
  runtime: z.string().max(50).optional(), components: Names.optional(), subscriptions: Names.optional(),
  /** Session hosts: actors that live here, agents that can be run, policy. */
  actors: z.number().int().min(0).optional(), agents: z.array(z.object({ name: z.string().max(64), version: z.string().max(100), tools: Names.default([]) })).max(1_000).optional(), policy: z.string().max(200).optional(),
  /** Session hosts: models that had no room, each with the latest time. */
  limited: z.array(z.object({ model: z.string().max(200), atMs: z.number().int(), count: z.number().int(), message: Words })).max(50).optional(),
  /** Workers: tools that can be run. */
  tools: Names.optional(),
});
export type AppReport = z.infer<typeof AppReport>;

export const REFUSALS_NOTED = "com.docket.refusals.noted.v1";

/** A request that an app refused. `count`: so many more of that address than get a line each. */
export const Refusal = z.object({
  refusalId: z.string().min(1).max(100), atMs: z.number().int(), code: z.string().max(100), method: z.string().max(20), path: z.string().max(300), ip: z.string().max(100), requestId: z.string().max(100),
  tenant: z.string().max(100).optional(), principalId: z.string().max(200).optional(), keyId: z.string().max(200).optional(), count: z.number().int().min(1).optional(),
});
export type Refusal = z.infer<typeof Refusal>;

/** Data of REFUSALS_NOTED. */
export const RefusalsNoted = z.object({ app: z.enum(APPS), refusals: z.array(Refusal).min(1).max(200) });
export type RefusalsNoted = z.infer<typeof RefusalsNoted>;
