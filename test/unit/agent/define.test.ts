/** A wrong definition fails when it is read, names every fault, and says what to do. */
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { defineAgent } from "../../../src/agent/define-agent.js";
import { defineTool, toManifest } from "../../../src/agent/define-tool.js";
import type { AgentDefinition, ToolDefinition } from "../../../src/agent/definition.js";
import { bigInteger } from "../../../src/agent/tool-schema.js";

const tool = (overrides: Record<string, unknown> = {}): ToolDefinition => ({
  name: "refund", description: "Refunds an order.", input: z.object({ order: z.string() }), effects: "once", run: async () => "ok", ...overrides,
});
const agent = (overrides: Record<string, unknown> = {}): AgentDefinition => ({
  name: "order-triage", version: "1", description: "d", instructions: "i", tools: ["refund"], triggers: [], ...overrides,
});

describe("defineTool", () => {
  it.each([["none", "low"], ["idempotent", "medium"], ["once", "high"]])("fills in defaults, effects %s: risk %s", (effects, risk) => {
    expect(toManifest(tool({ effects }))).toEqual({
      name: "refund", description: "Refunds an order.", effects, risk, critical: false, reconcilable: false, timeoutMs: 30_000, outputCapBytes: 16_384, maxTries: 3,
      allowedDecisions: ["approve", "modify", "reject"],
      inputSchema: { type: "object", properties: { order: { type: "string" } }, required: ["order"], additionalProperties: false },
    });
  });

  it("keeps what the author says", () => {
    const own = { title: "Refund", critical: true, timeoutMs: 5, outputCapBytes: 100, maxTries: 1, risk: "low", allowedDecisions: ["approve"], defaultVerdict: "deny" };
    expect(toManifest(tool({ ...own, reconcile: async () => ({ happened: false }) }))).toMatchObject({ ...own, reconcilable: true });
  });

  it("leaves types to the author's own schema", async () => {
    const typed = defineTool({ ...tool(), input: z.object({ n: z.int().default(3), note: z.string().optional() }), run: async ({ n, note }) => n + (note?.length ?? 0) });
    expect(typed.manifest.inputSchema).toMatchObject({ properties: { n: { default: 3 } } });
    expect(typed.manifest.inputSchema).not.toHaveProperty("required");
    expect(await typed.violations({ n: "x" })).toHaveLength(1);
  });

  it.each([
    ["transform", z.object({ a: z.string().transform(Number) }), /input\.a: a transform or pipe/],
    ["pipe", z.object({ a: z.string().pipe(z.string()) }), /input\.a/],
    ["preprocess", z.object({ a: z.preprocess((x) => x, z.string()) }), /input\.a/],
    ["codec", z.object({ a: z.stringbool() }), /input\.a/],
    ["coercion", z.object({ a: z.coerce.number() }), /input\.a: coercion/],
    ["trim", z.object({ a: z.string().trim() }), /input\.a: \.trim\(\)/],
    ["lower case", z.object({ a: z.array(z.string().toLowerCase()) }), /input\.a/],
    ["catch", z.object({ a: z.string().catch("x") }), /input\.a/],
    ["prefault", z.object({ a: z.string().prefault("x") }), /input\.a/],
    ["bigint", z.object({ a: z.bigint() }), /bigInteger\(\)/],
    ["date", z.object({ a: z.date().optional() }), /z\.iso\.datetime/],
    ["map", z.object({ a: z.map(z.string(), z.string()) }), /z\.record/],
    ["intersection", z.object({ a: z.object({ x: z.string() }).and(z.object({ y: z.string() })) }), /\.extend\(\)/],
    ["deep inside", z.object({ a: z.record(z.string(), z.tuple([z.union([z.string(), z.object({ b: z.number().nullable().transform(String) })])])) }), /input\.a\.b/],
    ["lazy", z.object({ a: z.lazy(() => z.string().trim()) }), /input\.a/],
    ["function", z.object({ a: z.custom(() => true) }), /input/],
    ["no object", z.string(), /expected z\.object/],
    ["a union", z.union([z.object({}), z.object({})]), /expected z\.object/],
    ["no schema", { type: "object" }, /expected a zod 4 schema/],
  ])("refuses a schema that changes or cannot be shown: %s", (_, input, message) => {
    expect(() => defineTool(tool({ input }))).toThrow(message);
  });

  it("takes what only checks", () => {
    interface Tree { name: string; children: Tree[] }
    const tree: z.ZodType<Tree> = z.lazy(() => z.object({ name: z.string(), children: z.array(tree) }));
    const input = z.object({ a: z.email().min(3), b: z.enum(["x", "y"]).default("x"), c: z.literal(1), d: z.iso.datetime().optional(), e: z.discriminatedUnion("t", [z.object({ t: z.literal("p") }), z.looseObject({ t: z.literal("q") })]),
      f: z.record(z.string(), z.unknown()), g: bigInteger(), h: z.string().refine((s) => s !== "no"), i: z.string().nullable(), tree });
    const { inputSchema } = defineTool(tool({ input })).manifest;
    expect(inputSchema).toMatchObject({ additionalProperties: false, properties: { g: { type: "integer" } } });
    expect(JSON.stringify(inputSchema)).toContain("\"$ref\"");
  });

  it("names every fault at once, with the nearest key", () => {
    expect(() => defineTool(tool({ name: "2 bad", timeoutMS: 5, effects: "twice", run: "x" }))).toThrow(/tool "2 bad" is not usable: name: .*; effects: .*; run: .*; timeoutMS: unknown key; did you mean "timeoutMs"\?/);
  });

  it.each([[{ timeoutMs: 0 }], [{ maxTries: 11 }], [{ outputCapBytes: 1.5 }], [{ allowedDecisions: [] }], [{ risk: "extreme" }], [{ description: "" }]])("refuses %j", (overrides) => {
    expect(() => defineTool(tool(overrides))).toThrow(/is not usable/);
  });

  it.each([[undefined], [null], [{}], ["x"]])("refuses %j", (nothing) => {
    expect(() => defineTool(nothing as never)).toThrow(/a tool without a name is not usable/);
  });
});

describe("defineAgent", () => {
  it("gives back the definition, frozen", () => {
    const defined = defineAgent(agent());
    expect(defined).toEqual(agent());
    expect(Object.isFrozen(defined)).toBe(true);
  });

  it.each([
    [{ name: "Order Triage" }, /name: expected lower-case/], [{ version: "" }, /version/], [{ instructions: "" }, /instructions: tell the model/], [{ model: "claude" }, /expected provider:model/],
    [{ tools: ["a", "a"] }, /names a tool twice/], [{ tools: ["no tool"] }, /tools\.0/], [{ triggers: [{ types: [] }] }, /at least one event type/],
    [{ triggers: [{ types: ["com.*.x"] }] }, /only stand at the end/], [{ triggers: [{ types: ["com.docket.prompt.received.v1"] }] }, /Docket's own/],
    [{ triggers: [{ types: ["a"], sesion: () => "x" }] }, /triggers\.0\.sesion: unknown key/], [{ check: true }, /check: expected a function/], [{ limits: { maxStep: 1 } }, /limits\.maxStep: unknown key/],
    [{ limits: { budgetUsd: -1 } }, /limits\.budgetUsd/], [{ instruction: "x" }, /did you mean "instructions"\?/],
  ])("refuses %j", (overrides, message) => {
    expect(() => defineAgent(agent(overrides))).toThrow(message);
  });
});
