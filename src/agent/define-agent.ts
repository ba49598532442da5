/** Owns: `defineAgent`, which refuses at definition time whatever could only fail later. */
import { z } from "zod";
import { RESERVED_TYPE_PREFIX } from "../contracts/messages.js";
import { ToolName } from "../contracts/tools.js";
import { definitionProblem, faultsOf, isFunction } from "./definition-error.js";
import type { AgentDefinition } from "./definition.js";

const TypePattern = z.string().min(1).max(300)
  .refine((type) => !type.slice(0, -1).includes("*"), "a `*` may only stand at the end")
  .refine((type) => !type.startsWith(RESERVED_TYPE_PREFIX), `types under ${RESERVED_TYPE_PREFIX} are Docket's own; a prompt reaches an agent by its name or as the default agent`);

const Count = z.number().int().min(1);
const Limits = z.strictObject({
  maxSteps: Count.max(1000), budgetUsd: z.number().positive(), maxReflections: z.number().int().min(0).max(100), maxMailbox: Count.max(10_000),
  runTimeoutMs: Count, approvalTtlMs: Count, windowRounds: Count, windowBytes: Count.min(1024),
}).partial();

const Shape = z.strictObject({
  name: z.string().regex(/^[a-z][a-z0-9-]{0,63}$/, "expected lower-case letters, digits and dashes, beginning with a letter, 64 at most"),
  version: z.string().min(1).max(100),
  sessions: z.enum(["move", "keep"], "expected move (sessions of earlier versions go over to this one) or keep (they stay with theirs)").optional(),
  description: z.string().min(1).max(4000),
  instructions: z.string().min(1, "tell the model who it is and what to do").max(200_000),
  model: z.string().regex(/^[a-z][a-z0-9-]*:\S+$/, "expected provider:model, e.g. anthropic:claude-sonnet-4-5").optional(),
  maxOutputTokens: Count.optional(),
  tools: z.array(ToolName).max(128).refine((names) => new Set(names).size === names.length, "names a tool twice"),
  triggers: z.array(z.strictObject({
    types: z.array(TypePattern).min(1, "name at least one event type"),
    session: z.custom(isFunction, "expected a function (event) => session id").optional(),
  })),
  check: z.custom(isFunction, "expected a function (event) => { ok: true } or { ok: false, code, message }").optional(),
  input: z.custom(isFunction, "expected a function (event) => text").optional(),
  limits: Limits.optional(),
});

/** An agent as data and plain functions. Throws Problem `config_invalid` naming every fault. */
export function defineAgent(definition: AgentDefinition): AgentDefinition {
  const parsed = Shape.safeParse(definition);
  if (!parsed.success) throw definitionProblem("agent", (definition as { name?: unknown } | undefined)?.name, faultsOf(parsed.error, Object.keys(Shape.shape)));
  return Object.freeze({ ...definition });
}
