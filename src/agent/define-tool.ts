/**
 * Owns: `defineTool`, which refuses at definition time whatever could only fail later, and the tool's manifest.
 */
import { z } from "zod";
import { DecisionKind, MAX_OUTPUT_BYTES, Risk, ToolEffects, ToolManifest, ToolName } from "../contracts/tools.js";
import { definitionProblem, faultsOf, isFunction } from "./definition-error.js";
import type { Reconciled, Tool, ToolContext, ToolDefinition } from "./definition.js";
import { inputSchemaOf } from "./tool-schema.js";

const DEFAULTS = { timeoutMs: 30_000, outputCapBytes: 16 * 1024, maxTries: 3, critical: false } as const;
const RISK_OF_EFFECTS = { none: "low", idempotent: "medium", once: "high" } as const satisfies Record<ToolEffects, Risk>;
const DEFAULT_DECISIONS: readonly DecisionKind[] = ["approve", "modify", "reject"];

const Shape = z.strictObject({
  name: ToolName,
  title: z.string().min(1).max(200).optional(),
  description: z.string("expected a text that tells the model what the tool does and when to use it").min(1, "tell the model what the tool does and when to use it").max(4000),
  input: z.unknown(),
  effects: ToolEffects,
  critical: z.boolean().optional(),
  timeoutMs: z.number().int().min(1).max(24 * 3_600_000).optional(),
  outputCapBytes: z.number().int().min(64).max(MAX_OUTPUT_BYTES).optional(),
  maxTries: z.number().int().min(1).max(10).optional(),
  risk: Risk.optional(),
  allowedDecisions: z.array(DecisionKind).min(1).optional(),
  approvers: z.strictObject(ToolManifest.shape.approvers.unwrap().shape).optional(),
  defaultVerdict: z.enum(["allow", "ask", "deny"]).optional(),
  run: z.custom(isFunction, "expected an async function (args, context)"),
  reconcile: z.custom(isFunction, "expected an async function (args, context)").optional(),
});

/** What everybody but the worker sees of a tool. Throws Problem `config_invalid` naming every fault. */
export function toManifest<S extends z.ZodType>(definition: ToolDefinition<S>): ToolManifest {
  const shape = Shape.safeParse(definition);
  const input = inputSchemaOf((definition as Partial<ToolDefinition<S>> | undefined)?.input);
  const faults = [...(shape.success ? [] : faultsOf(shape.error, Object.keys(Shape.shape))), ...(input.ok ? [] : input.faults)];
  if (!shape.success || !input.ok) throw definitionProblem("tool", (definition as { name?: unknown } | undefined)?.name, faults);
  const { effects } = definition;
  return ToolManifest.parse({
    name: definition.name,
    ...(definition.title === undefined ? {} : { title: definition.title }),
    description: definition.description,
    inputSchema: input.schema,
    effects,
    critical: definition.critical ?? DEFAULTS.critical,
    reconcilable: definition.reconcile !== undefined,
    timeoutMs: definition.timeoutMs ?? DEFAULTS.timeoutMs,
    outputCapBytes: definition.outputCapBytes ?? DEFAULTS.outputCapBytes,
    maxTries: definition.maxTries ?? DEFAULTS.maxTries,
    risk: definition.risk ?? RISK_OF_EFFECTS[effects],
    allowedDecisions: definition.allowedDecisions ?? DEFAULT_DECISIONS,
    ...(definition.approvers === undefined ? {} : { approvers: definition.approvers }),
    ...(definition.defaultVerdict === undefined ? {} : { defaultVerdict: definition.defaultVerdict }),
  });
}

/** A tool with its code. The types of `run`'s arguments come from `input`. Throws Problem `config_invalid`. */
export function defineTool<S extends z.ZodType>(definition: ToolDefinition<S>): Tool {
  const manifest = toManifest(definition);
  const { input, reconcile } = definition;
  // The arguments were validated against the very schema that gives the type, so the casts are checked ones.
  const typed = (args: unknown): z.output<S> => args as z.output<S>;
  return Object.freeze({
    kind: "docket.tool" as const,
    manifest,
    violations: async (args: unknown) => {
      const parsed = await input.safeParseAsync(args);
      return parsed.success ? [] : parsed.error.issues.map((issue) => `${issue.path.map(String).join(".") || "(whole)"}: ${issue.message}`);
    },
    run: (args: unknown, context: ToolContext) => Promise.resolve().then(() => definition.run(typed(args), context)),
    ...(reconcile === undefined ? {} : { reconcile: async (args: unknown, context: ToolContext): Promise<Reconciled> => reconcile(typed(args), context) }),
  });
}

/** Whether a value came from `defineTool` (of this or another copy of the module). */
export function isTool(value: unknown): value is Tool {
  return typeof value === "object" && value !== null && (value as { kind?: unknown }).kind === "docket.tool";
}
