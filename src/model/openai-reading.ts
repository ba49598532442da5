/** Owns: what has been read of one chat completion stream, and how its gaps are filled (see openai-compatible.ts). */
import type OpenAI from "openai";
import { callIdOf } from "../contracts/ids.js";
import type { Usage } from "../contracts/journal.js";
import type { ModelAnswer, ModelRequest } from "./model.js";
import { costUsd, type Price } from "./pricing.js";
import { DeltaSink } from "./transcript.js";

/** A piece of a call as servers really send it: the index is missing with some, the id and name come once. */
interface CallPiece { readonly index?: number | undefined; readonly id?: string | undefined; readonly function?: { readonly name?: string | undefined; readonly arguments?: string | undefined } | undefined }
interface OpenCall { id: string; name: string; args: string }

const NOTHING_REPORTED: Usage = { inputTokens: 0, outputTokens: 0, cacheReadTokens: 0, cacheWriteTokens: 0 };

export class ChatReading {
  readonly said: DeltaSink;
  usage: Usage | undefined;
  readonly #request: ModelRequest;
  readonly #calls = new Map<number, OpenCall>();
  #model: string;
  #finish: string | null = null;
  #refused = false;
  #last = -1;

  constructor(request: ModelRequest) {
    this.#request = request;
    this.#model = request.model;
    this.said = new DeltaSink(request.onDelta);
  }

  take(chunk: OpenAI.ChatCompletionChunk): void {
    if (chunk.model !== "") this.#model = chunk.model;
    // `prompt_tokens` counts cached tokens too; Docket's `inputTokens` does not.
    if (chunk.usage !== null && chunk.usage !== undefined) this.usage = usageOf(chunk.usage);
    const choice = chunk.choices[0];
    if (choice === undefined) return;
    this.#finish = choice.finish_reason ?? this.#finish;
    this.said.push(choice.delta.content ?? "");
    if (choice.delta.refusal !== undefined && choice.delta.refusal !== null && choice.delta.refusal !== "") {
      this.#refused = true;
      this.said.push(choice.delta.refusal);
    }
    for (const piece of choice.delta.tool_calls ?? []) this.#extend(piece);
  }

  answer(price: Price | null): ModelAnswer {
    if (this.#finish === null) throw new Error("the stream ended before the answer did");
    const calls = [...this.#calls.entries()].sort(([a], [b]) => a - b).map(([index, call]) => ({ ...call, id: this.#idOf(call.id, index) }));
    return {
      model: this.#model, text: this.said.text, calls, stop: this.#stopOf(calls.length),
      usage: this.usage ?? NOTHING_REPORTED, costUsd: this.usage === undefined ? null : costUsd(this.usage, price),
    };
  }

  #extend(piece: CallPiece): void {
    const index = this.#indexOf(piece);
    const call = this.#calls.get(index) ?? { id: "", name: "", args: "" };
    if (call.id === "") call.id = piece.id ?? "";
    if (call.name === "") call.name = piece.function?.name ?? "";
    call.args += piece.function?.arguments ?? "";
    this.#calls.set(index, call);
    this.#last = index;
  }

  /** Without an index, a new id or a second name starts the next call. */
  #indexOf(piece: CallPiece): number {
    if (piece.index !== undefined) return piece.index;
    const open = this.#calls.get(this.#last);
    const isNext = open === undefined || (piece.id !== undefined && piece.id !== "" && piece.id !== open.id) || (piece.function?.name !== undefined && piece.function.name !== "" && piece.function.name !== open.name);
    return isNext ? this.#last + 1 : this.#last;
  }

  /** A call without an id, or with one that another call of this answer has, gets one that is the same on every attempt. */
  #idOf(id: string, index: number): string {
    const taken = [...this.#calls.entries()].some(([other, call]) => other < index && call.id === id);
    return id === "" || taken ? callIdOf(this.#request.context.runId, this.#request.context.step, index) : id;
  }

  #stopOf(calls: number): ModelAnswer["stop"] {
    if (this.#refused || this.#finish === "content_filter") return "refusal";
    if (this.#finish === "length") return "max_tokens";
    // Ollama and others say "stop" beside tool calls.
    return calls > 0 ? "tool_use" : "end";
  }
}

function usageOf(usage: OpenAI.CompletionUsage): Usage {
  const cacheReadTokens = usage.prompt_tokens_details?.cached_tokens ?? 0;
  return { inputTokens: Math.max(0, usage.prompt_tokens - cacheReadTokens), outputTokens: usage.completion_tokens, cacheReadTokens, cacheWriteTokens: 0 };
}
