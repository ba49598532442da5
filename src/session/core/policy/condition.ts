/**
 * Owns: conditions in CEL. Names and types are checked when the policy is loaded; what only arguments can tell (`args`
 * is dynamic) shows at run time, and `judge` then fails closed.
 *
 * JSON numbers are doubles in CEL, integers beyond 2^53 are ints: compare them with either, but add and multiply with
 * decimals (`args.amount * 2.0`).
 */
import { Environment } from "@marcbachmann/cel-js";
import { didYouMean } from "../../../contracts/suggest.js";
import type { PolicyVariables } from "./policy.js";

const FIELDS = {
  tool: { name: "string", effects: "string", risk: "string", critical: "bool", reconcilable: "bool" },
  session: { id: "string", tenant: "string", agent: "string" },
  principal: { id: "string", class: "string", roles: "list<string>" },
  budget: { spentUsd: "double", budgetUsd: "double" },
} as const;
const VARIABLES = [...Object.keys(FIELDS), "args"];

const environment = new Environment({ limits: { maxAstNodes: 1000, maxDepth: 40 } }).registerVariable("args", "map<string, dyn>");
for (const [name, schema] of Object.entries(FIELDS)) environment.registerVariable({ name, schema });

export type Condition = { readonly ok: true; readonly holds: (variables: PolicyVariables) => unknown } | { readonly ok: false; readonly message: string };

/** Compiles one condition. The message of a failure has the expression with a caret under the place. */
export function compileCondition(expression: string): Condition {
  const checked = environment.check(expression);
  if (!checked.valid) return { ok: false, message: explain(checked.error, expression) };
  if (checked.type !== "bool" && checked.type !== "dyn") return { ok: false, message: `the condition is of type ${String(checked.type)}, expected bool\n\n>    1 | ${expression}` };
  const compiled = environment.parse(expression);
  return { ok: true, holds: (variables) => compiled({ ...variables }) as unknown };
}

/** First line of a run-time error, without the drawing. */
export function shortError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.split("\n")[0] ?? text;
}

function explain(error: Error | undefined, expression: string): string {
  const text = error?.message ?? "it does not compile";
  const [first = text, ...drawing] = text.split("\n");
  const variable = /^Unknown variable: (\S+)/.exec(first)?.[1];
  if (variable !== undefined) return [`${first}${didYouMean(variable, VARIABLES)}; there are ${VARIABLES.join(", ")}`, ...drawing].join("\n");
  const key = /^No such key: (\S+)/.exec(first)?.[1];
  if (key === undefined) return text;
  const owner = Object.entries(FIELDS).find(([name]) => expression.includes(`${name}.${key}`));
  const known = owner === undefined ? Object.values(FIELDS).flatMap((fields) => Object.keys(fields)) : Object.keys(owner[1]);
  return [`${first}${didYouMean(key, known)}${owner === undefined ? "" : `; ${owner[0]} has ${known.join(", ")}`}`, ...drawing].join("\n");
}
