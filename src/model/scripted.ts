/**
 * Owns: the provider `scripted`, which needs no key: it answers from scripts, the same every time, in deltas, abortable.
 * What it does depends on the request alone (the attempt number included), never on what this process did before, so a
 * restart changes nothing. Usage is one token for each four characters; it costs nothing.
 */
import { appendFileSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { setImmediate as yieldToOthers, setTimeout as wait } from "node:timers/promises";
import { sha256Hex } from "../contracts/ids.js";
import type { Usage } from "../contracts/journal.js";
import { ModelError, type Model, type ModelAnswer, type ModelRequest } from "./model.js";
import { didYouMean } from "../contracts/suggest.js";
import { ECHO_SCRIPT, type Script, type ScriptRule } from "./script.js";
import { fillArgs, fillText, matchRule, situationOf, type Match } from "./script-match.js";
import { DeltaSink } from "./transcript.js";

export interface ScriptedOptions {
  /** By name. Looked at on every call, so it may be filled later. */
  readonly scripts?: ReadonlyMap<string, Script>;
  /** File that gets one JSON line per call, before anything else happens, so that other processes can count calls. */
  readonly callLog?: string;
}

/** A line of the call log. */
export interface CallLogLine { readonly at: string; readonly sessionId: string; readonly runId: string; readonly step: number; readonly attempt: number; readonly model: string }

/** The provider `scripted`; `scripted:echo` is always there. */
export class ScriptedModel implements Model {
  readonly provider = "scripted";
  /** Calls that this instance got. */
  calls = 0;
  readonly #scripts: ReadonlyMap<string, Script>;
  readonly #callLog: string | undefined;

  constructor(options: ScriptedOptions = {}) {
    this.#scripts = options.scripts ?? new Map();
    this.#callLog = options.callLog;
  }

  reserveUsd(): number {
    return 0;
  }

  async answer(request: ModelRequest): Promise<ModelAnswer> {
    this.calls += 1;
    this.#log(request);
    const said = new DeltaSink(request.onDelta);
    try {
      request.signal.throwIfAborted();
      const script = this.#scriptOf(request.model);
      const match = matchRule(script.rules, request);
      if (match === undefined) throw noRule(request);
      return await play(script, match, request, said);
    } catch (error) {
      if (error instanceof ModelError) throw error;
      if (request.signal.aborted) throw new ModelError("aborted", `the call to scripted:${request.model} was aborted`, { partialText: said.text, cause: error });
      throw new ModelError("permanent", `the script ${request.model} failed: ${error instanceof Error ? error.message : String(error)}`, { partialText: said.text, cause: error });
    }
  }

  #scriptOf(name: string): Script {
    const script = this.#scripts.get(name) ?? (name === "echo" ? ECHO_SCRIPT : undefined);
    if (script !== undefined) return script;
    const known = [...new Set(["echo", ...this.#scripts.keys()])];
    throw new ModelError("permanent", `there is no script "${name}"${didYouMean(name, known)}; known: ${known.join(", ")}`);
  }

  #log({ context, model }: ModelRequest): void {
    if (this.#callLog === undefined) return;
    const line: CallLogLine = { at: new Date().toISOString(), sessionId: context.sessionId, runId: context.runId, step: context.step, attempt: context.attempt, model };
    try {
      mkdirSync(dirname(this.#callLog), { recursive: true });
      appendFileSync(this.#callLog, `${JSON.stringify(line)}\n`);
    } catch (error) {
      throw new ModelError("permanent", `the call log ${this.#callLog} cannot be written: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
    }
  }
}

async function play(script: Script, { rule, values }: Match, request: ModelRequest, said: DeltaSink): Promise<ModelAnswer> {
  const full = fillText(rule.say, values);
  const fail = rule.fail !== undefined && request.context.attempt <= (rule.fail.attempts ?? Infinity) ? rule.fail : undefined;
  const cut = request.maxOutputTokens * 4;
  const text = fail === undefined ? full.slice(0, cut) : full.slice(0, fail.afterChars);
  if (rule.delayMs > 0) await wait(rule.delayMs, undefined, { signal: request.signal });
  await stream(text, script, request.signal, said);
  if (fail !== undefined) {
    throw new ModelError(fail.kind, fail.message ?? `scripted ${fail.kind} failure on attempt ${request.context.attempt}`,
      { partialText: said.text, ...(fail.retryAfterMs === undefined ? {} : { retryAfterMs: fail.retryAfterMs }) });
  }
  const truncated = full.length > cut;
  const calls = truncated ? [] : (rule.call ?? []).map((call, index) => ({ id: callId(request, index), name: call.tool, args: fillArgs(call, values) }));
  return { model: request.model, text, calls, stop: truncated ? "max_tokens" : stopOf(rule, calls.length), usage: usageOf(request, text, calls), costUsd: 0 };
}

async function stream(text: string, script: Script, signal: AbortSignal, said: DeltaSink): Promise<void> {
  const { chars, everyMs } = script.stream;
  const points = Array.from(text); // whole characters, so that no delta ends inside one
  for (let at = 0; at < points.length; at += chars) {
    await (everyMs > 0 && at > 0 ? wait(everyMs, undefined, { signal }) : yieldToOthers(undefined, { signal }));
    said.push(points.slice(at, at + chars).join(""));
  }
  signal.throwIfAborted();
}

function stopOf(rule: ScriptRule, calls: number): ModelAnswer["stop"] {
  return rule.stop ?? (calls > 0 ? "tool_use" : "end");
}

/** The same on every attempt, and unlike any other call's of the session. */
function callId(request: ModelRequest, index: number): string {
  return `scr_${sha256Hex(`${request.context.runId}\n${request.context.step}\n${index}`).slice(0, 20)}`;
}

function usageOf(request: ModelRequest, text: string, calls: ModelAnswer["calls"]): Usage {
  const tokens = (...texts: string[]): number => Math.ceil(texts.join("").length / 4);
  return {
    inputTokens: tokens(request.instructions, JSON.stringify(request.tools), JSON.stringify(request.messages)),
    outputTokens: tokens(text, ...calls.map((call) => call.name + call.args)), cacheReadTokens: 0, cacheWriteTokens: 0,
  };
}

function noRule(request: ModelRequest): ModelError {
  const { user, lastResults, round } = situationOf(request.messages);
  const heard = lastResults.length > 0 ? `results of ${lastResults.map((result) => `${result.name} (${result.isError ? "error" : "ok"})`).join(", ")}` : `the user text ${JSON.stringify(user.slice(0, 120))}`;
  return new ModelError("permanent", `no rule of the script "${request.model}" fits ${heard} at step ${request.context.step}, round ${round}; add a rule, or one with an empty \`when\` at the end`);
}
