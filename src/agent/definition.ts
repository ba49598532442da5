/**
 * Owns: what a user writes. `defineAgent` describes an agent (no tool code), `defineTool` a tool with its code.
 * agents/<name>/agent.ts exports `agent`; agents/<name>/tools/*.ts export tools. An agent names its tools; only the
 * worker imports them, everybody else reads the manifests that `npm run build` extracts.
 */
import type { z } from "zod";
import type { DecisionKind, Risk, ToolEffects, ToolManifest } from "../contracts/tools.js";

/** An event as an agent's plain functions see it. `data` is parsed JSON (large integers as bigint). */
export interface AgentEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  readonly subject?: string;
  readonly time?: string;
  readonly data: unknown;
}

export interface Trigger {
  /** Event types this agent takes: exact, or with a trailing `*` (`com.github.issues.*`). */
  readonly types: readonly string[];
  /** Session id of the event. Default: its `subject`. Return undefined to refuse. Must be pure. */
  readonly session?: (event: AgentEvent) => string | undefined;
}

export type CheckResult = { readonly ok: true } | { readonly ok: false; readonly code: string; readonly message: string };

export interface AgentDefinition {
  readonly name: string;
  readonly version: string;
  /**
   * What becomes of sessions that an earlier version began, from their next run on: `move` (default) takes them over, `keep` leaves them to
   * their own version, which must stay installed in agents/<name>/versions. A run that is under way ends under the version it began with, where that is installed.
   */
  readonly sessions?: "move" | "keep";
  readonly description: string;
  readonly instructions: string;
  /** `provider:model`, e.g. `anthropic:claude-sonnet-4-5`, `openai:meta/llama-3.3`, `scripted:order-triage`. Default from configuration. */
  readonly model?: string;
  readonly maxOutputTokens?: number;
  /** Names of tools (own ones and built-in ones). */
  readonly tools: readonly string[];
  readonly triggers: readonly Trigger[];
  /** Business rule before any model call. Plain and pure; throwing counts as a refusal with code `check_failed`. */
  readonly check?: (event: AgentEvent) => CheckResult;
  /** The user message for the model. Default: `data.text` where it is a string, else the event as JSON. */
  readonly input?: (event: AgentEvent) => string;
  readonly limits?: {
    readonly maxSteps?: number; readonly budgetUsd?: number; readonly maxReflections?: number; readonly maxMailbox?: number;
    readonly runTimeoutMs?: number; readonly approvalTtlMs?: number; readonly windowRounds?: number; readonly windowBytes?: number;
  };
}

export interface ToolContext {
  readonly tenant: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly callId: string;
  /** Give this to the outside system: the same for every try of this call. */
  readonly idempotencyKey: string;
  readonly try: number;
  /**
   * Grows with every claim of this call. Write it with the effect, and refuse an effect under an older one than was written: a worker
   * that stood still for longer than its lock then cannot bring about what a newer one has denied (examples/ledger-tool).
   */
  readonly fence: number;
  /** Aborted at the deadline. */
  readonly signal: AbortSignal;
  /** Per-session scratch folder. */
  readonly workspace: string;
  /** Canonical argument text, digits kept. */
  readonly argsText: string;
  readonly secret: (name: string) => string;
  readonly log: (message: string, fields?: Record<string, unknown>) => void;
}

/** Answer of `reconcile`: did key K happen? */
export type Reconciled = { readonly happened: true; readonly output: unknown } | { readonly happened: false } | { readonly happened: "unknown" };

export interface ToolDefinition<S extends z.ZodType = z.ZodType> {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly input: S;
  readonly effects: ToolEffects;
  readonly critical?: boolean;
  readonly timeoutMs?: number;
  readonly outputCapBytes?: number;
  readonly maxTries?: number;
  readonly risk?: Risk;
  readonly allowedDecisions?: readonly DecisionKind[];
  /** Who may decide on its calls, whatever policy says besides: one of the roles, in one of the groups. */
  readonly approvers?: { readonly roles?: readonly string[]; readonly groups?: readonly string[] };
  readonly defaultVerdict?: "allow" | "ask" | "deny";
  /** Gives what the model is to see: a text, or a value that is shown as JSON; at once or as a promise. Failures: throw ToolFailure. */
  readonly run: (args: z.output<S>, context: ToolContext) => unknown;
  /** Asked when a run ended without a word. Must have no effect itself, but for its fence. */
  readonly reconcile?: (args: z.output<S>, context: ToolContext) => Reconciled | Promise<Reconciled>;
}

/**
 * What `defineTool` makes: a tool whose argument type is no longer visible, so that tools of all kinds go in one list.
 * `violations` runs the zod schema as a check only: its output is thrown away, since sealed arguments are never changed (I5).
 */
export interface Tool {
  readonly kind: "docket.tool";
  readonly manifest: ToolManifest;
  readonly violations: (args: unknown) => Promise<readonly string[]>;
  readonly run: (args: unknown, context: ToolContext) => Promise<unknown>;
  readonly reconcile?: (args: unknown, context: ToolContext) => Promise<Reconciled>;
}
