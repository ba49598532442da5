/** Owns: how a wrong definition is reported: every fault at once, each with its place and what to do. */
import type { z } from "zod";
import { Problem } from "../contracts/problems.js";
import { suggestion } from "../contracts/suggest.js";

export interface Fault { readonly path: string; readonly message: string }

/** Problem `config_invalid` for an agent or a tool. */
export function definitionProblem(what: "agent" | "tool", name: unknown, faults: readonly Fault[]): Problem {
  const subject = typeof name === "string" && name !== "" ? `${what} "${name}"` : `an ${what} without a name`.replace("an tool", "a tool");
  const lines = faults.map((fault) => (fault.path === "" ? fault.message : `${fault.path}: ${fault.message}`));
  return new Problem("config_invalid", `${subject} is not usable: ${lines.join("; ")}`,
    { errors: [...faults], hint: `see docs/writing-an-agent.md` });
}

/** Issues of zod as faults; unknown keys get the nearest known one. */
export function faultsOf(error: z.ZodError, knownKeys: readonly string[]): Fault[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path.map(String).join(".");
    if (issue.code !== "unrecognized_keys") return [{ path, message: issue.message }];
    return issue.keys.map((key) => ({ path: path === "" ? key : `${path}.${key}`, message: `unknown key${path === "" ? suggestion(key, knownKeys) : ""}` }));
  });
}

/** A zod schema for a function; what it takes and gives is checked by TypeScript. */
export const isFunction = (value: unknown): boolean => typeof value === "function";
