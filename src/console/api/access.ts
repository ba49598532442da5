/**
 * Owns: who may do what on the console's API. Roles: `viewer` reads, `operator` also cancels and redrives, `approver` also
 * decides, `admin` does all. A key needs the scope as well, so that a key for a script can be made narrower than its owner.
 */
import type { Request } from "express";
import { z } from "zod";
import { parseLossless } from "../../contracts/json.js";
import { Problem } from "../../contracts/problems.js";
import { requireScope, type Authenticated } from "../../platform/apikeys.js";
import { bodyText } from "../../platform/http.js";
import { noteCaller, signedInCaller } from "./caller.js";
import type { Authenticator } from "../ports.js";
import { readCursor, type PageRequest } from "../read-model/page.js";

export type Right = "read" | "operate" | "decide" | "administer" | "audit" | "metrics";

const ROLES: Readonly<Record<Right, readonly string[]>> = {
  read: ["viewer", "operator", "approver", "admin"], operate: ["operator", "admin"], decide: ["approver", "admin"], administer: ["admin"], audit: ["admin"], metrics: ["admin"],
};

/** The caller, if it has the right. Throws Problem `unauthenticated`, `forbidden`. */
export function callerWith(authenticator: Authenticator, req: Request, right: Right): Authenticated {
  const caller = signedInCaller(req) ?? authenticator.authenticate(req.header("authorization"));
  noteCaller(req, caller);
  requireScope(caller, `console:${right}`);
  requireRight(caller, right);
  return caller;
}

export function requireRight(caller: Authenticated, right: Right): void {
  if (caller.principal.roles.some((role) => ROLES[right].includes(role))) return;
  throw new Problem(right === "decide" ? "not_an_approver" : "forbidden", `${caller.principal.id} has the roles ${caller.principal.roles.join(", ") || "none"}; expected one of ${ROLES[right].join(", ")}`);
}

/** What the caller may do here, by role and scope. */
export function rightsOf(caller: Authenticated): Right[] {
  return (["read", "operate", "decide", "administer", "audit"] as const).filter((right) => caller.principal.roles.some((role) => ROLES[right].includes(role)) && hasScope(caller, right));
}

/** A decision needs `console:read` only; its right is the role's, and the session checks both again. */
function hasScope({ scopes }: Authenticated, right: Right): boolean {
  return scopes.includes("*") || scopes.includes(`console:${right === "decide" ? "read" : right}`);
}

export function isAdmin(caller: Authenticated): boolean { return caller.principal.roles.includes("admin"); }

/** The JSON body as the schema has it. Throws Problem `not_json`, `validation_failed`. */
export function readBody<T>(req: Request, schema: z.ZodType<T>): T {
  let raw: unknown;
  try {
    const text = bodyText(req);
    // A key that is there twice with two values means one thing here and another to whoever looked before.
    if (text !== "") parseLossless(text);
    raw = text === "" ? {} : JSON.parse(text);
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem("not_json", `the body is not JSON: ${error instanceof Error ? error.message : String(error)}`);
  }
  return checked(schema, raw, "the body");
}

/** Query parameters as the schema has them; unknown ones are refused, since a misspelt filter would show everything. */
export function readQuery<S extends z.ZodRawShape>(req: Request, shape: S): z.output<z.ZodObject<S>> {
  return checked(z.strictObject(shape), req.query, "the query");
}

export const PAGE_QUERY = { limit: z.coerce.number().int().min(1).max(200).default(50), cursor: z.string().max(2000).optional() };
export function pageRequest(query: { readonly limit: number; readonly cursor?: string | undefined }): PageRequest { return { limit: query.limit, after: readCursor(query.cursor) }; }

/** A path parameter. */
export function pathId(req: Request): string {
  const { id } = req.params;
  if (typeof id !== "string" || id === "") throw new Problem("bad_request", "the path has no id");
  return id;
}

function checked<T>(schema: z.ZodType<T>, raw: unknown, what: string): T {
  const parsed = schema.safeParse(raw);
  if (parsed.success) return parsed.data;
  const errors = parsed.error.issues.map((issue) => ({ path: issue.path.map(String).join("."), message: issue.message }));
  throw new Problem("validation_failed", `${what} does not fit: ${errors.map((e) => `${e.path === "" ? "(whole)" : e.path}: ${e.message}`).join("; ")}`, { errors });
}
