/**
 * Owns: the format of a script, the data that drives `scripted:<name>`. See docs/models.md for the words. Scripts are
 * plain JSON (large integers as bigint), so they can be written in YAML, stored and compared.
 */
import { z } from "zod";
import { Problem, zodErrors } from "../contracts/problems.js";

const count = z.number().int().min(1);
const oneOrMore = <T extends z.ZodType>(item: T) => z.union([z.array(item).min(1), item.transform((value) => [value])]);
/** `/regex/flags`, or text that is looked for as it stands. */
const Pattern = z.string().min(1).refine((text) => patternProblem(text) === undefined, { error: (issue) => patternProblem(String(issue.input)) ?? "not a pattern" });

const When = z.strictObject({
  /** Pattern on the last user message. */
  user: Pattern.optional(),
  /** Name of a tool whose result is in the last message; `*` for any. */
  tool: oneOrMore(z.string().min(1)).optional(),
  /** Pattern on that result. */
  result: Pattern.optional(),
  /** Whether that result is an error. */
  status: z.enum(["ok", "error"]).optional(),
  /** Step number of the run, as the session counts. */
  step: oneOrMore(count).optional(),
  /** 1 for the first answer to a user message, 2 for the one after its first tool results … */
  round: oneOrMore(count).optional(),
});

const Fail = z.strictObject({
  kind: z.enum(["transient", "permanent"]),
  /** Attempts 1 to this number fail; without it, all do. Counted by the session's attempt number, so it survives restarts. */
  attempts: count.optional(),
  message: z.string().optional(),
  retryAfterMs: z.number().int().min(0).optional(),
  /** Characters of `say` that are streamed before it fails. */
  afterChars: z.number().int().min(0).default(0),
});

const Call = z.strictObject({
  tool: z.string().min(1),
  /** A value with placeholders in its strings, or JSON text with placeholders. */
  args: z.unknown().default({}),
});
export type ScriptCall = z.output<typeof Call>;

const Rule = z.strictObject({
  when: When.default({}),
  say: z.string().default(""),
  call: oneOrMore(Call).optional(),
  /** Forces a stop reason; default: `tool_use` with calls, else `end`. */
  stop: z.enum(["end", "max_tokens", "refusal"]).optional(),
  /** Wait before the first delta. */
  delayMs: z.number().int().min(0).default(0),
  fail: Fail.optional(),
});
export type ScriptRule = z.output<typeof Rule>;

export const Script = z.strictObject({
  /** Default: the agent's folder. */
  name: z.string().regex(/^[a-z0-9][a-z0-9-]*$/, "expected lower-case letters, digits and dashes").optional(),
  /** How text is cut into deltas. */
  stream: z.strictObject({ chars: count.default(16), everyMs: z.number().int().min(0).default(0) }).prefault({}),
  /** The first rule that fits answers. */
  rules: z.array(Rule).min(1),
});
export type Script = z.output<typeof Script>;

/** Checks a script. Throws Problem `config_invalid` naming the place of every mistake. */
export function parseScript(value: unknown, where: string): Script {
  const parsed = Script.safeParse(value);
  if (parsed.success) return parsed.data;
  const errors = zodErrors(parsed.error);
  throw new Problem("config_invalid", `the script ${where} is not usable: ${errors.map((e) => `${e.path || "(whole)"}: ${e.message}`).join("; ")}`,
    { errors, hint: "docs/models.md has the script format", cause: parsed.error });
}

/** The regular expression that a pattern stands for. Text is matched as it stands, case and all. */
export function patternOf(text: string): RegExp {
  const written = /^\/(.*)\/([dimsuv]*)$/s.exec(text);
  return written === null ? new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")) : new RegExp(written[1] ?? "", written[2]);
}

function patternProblem(text: string): string | undefined {
  try {
    patternOf(text);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : "not a pattern";
  }
}

/** `scripted:echo`: always there, says what it was told. */
export const ECHO_SCRIPT: Script = Script.parse({
  name: "echo",
  rules: [{ when: { tool: "*" }, say: "{{tool}} answered: {{result}}" }, { say: "You said: {{user}}" }],
});
