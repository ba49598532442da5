/** Owns: reading JSON bodies against a schema, with problems that say what is wrong. */
import type { Request } from "express";
import type { z } from "zod";
import { parseForUse, parseLossless } from "../../contracts/json.js";
import { Problem, zodErrors } from "../../contracts/problems.js";
import { bodyText } from "../../platform/http.js";

/** Any JSON, digits kept. Throws Problem `not_json`. */
export function parseBodyJson(text: string): unknown {
  try {
    return parseLossless(text);
  } catch (error) {
    throw notJson(error);
  }
}

/** The body as a value of the schema. An empty body counts as `{}`. Throws Problem `not_json`, `validation_failed`. */
export function readBody<S extends z.ZodType>(req: Request, schema: S): z.output<S> {
  const text = bodyText(req);
  let raw: unknown;
  try {
    raw = parseForUse(text === "" ? "{}" : text);
  } catch (error) {
    throw notJson(error);
  }
  const parsed = schema.safeParse(raw);
  if (!parsed.success) throw new Problem("validation_failed", `the body does not fit: ${parsed.error.issues.map((issue) => `${issue.path.map(String).join(".") || "(whole)"}: ${issue.message}`).join("; ").slice(0, 500)}`, { errors: zodErrors(parsed.error) });
  return parsed.data;
}

function notJson(error: unknown): Problem {
  return new Problem("not_json", `the body is not JSON: ${error instanceof Error ? error.message.slice(0, 200) : "unreadable"}`, { cause: error });
}
