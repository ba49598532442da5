/**
 * Owns: do the arguments fit the tool's schema? Checked twice and never changed (I5): by JSON Schema, as the session did,
 * and by the tool's own zod schema, which also knows refinements that JSON Schema cannot say.
 */
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { Tool } from "../agent/definition.js";
import { parseForUse } from "../contracts/json.js";

const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: false, useDefaults: false, coerceTypes: false, removeAdditional: false });
const compiled = new WeakMap<Tool, ValidateFunction>();

export type Validated = { readonly ok: true; readonly args: unknown } | { readonly ok: false; readonly message: string };

/** The arguments as the tool gets them (large integers as bigint), or why they do not fit. Never throws. */
export async function validateArgs(tool: Tool, argsText: string): Promise<Validated> {
  try {
    const validate = compiled.get(tool) ?? ajv.compile(tool.manifest.inputSchema);
    compiled.set(tool, validate);
    // JSON Schema's `integer` does not know bigint: it looks at the doubles, the tool gets all digits.
    if (!validate(JSON.parse(argsText))) return refuse(tool, ajv.errorsText(validate.errors, { dataVar: "args" }));
    const args = parseForUse(argsText);
    const violations = await tool.violations(args);
    return violations.length === 0 ? { ok: true, args } : refuse(tool, violations.join("; "));
  } catch (error) {
    return refuse(tool, error instanceof Error ? error.message : String(error));
  }
}

function refuse(tool: Tool, why: string): Validated {
  return { ok: false, message: `the arguments of ${tool.manifest.name} do not fit its schema: ${why}`.slice(0, 2000) };
}
