/**
 * Owns: the spans of a run, folded from its journal entries. Pure: what a run did is told by the journal, so the same spans with the same ids come
 * out on whichever host commits the entry that ends them, whatever died in between (I7, docs/telemetry.md).
 *
 * S1 `invoke_agent` spans are stretches of work. A run that waits for people alone has no open span: the stretch ends, and the next one links to it
 *    and to the questions that were asked.
 * S2 every span's parent is a stretch of the same run; a stretch's parent is what brought the event in.
 * S3 a span is complete with the entry that ends it, and comes out for that entry only.
 */
import type { JournalEntry, SessionEvent, SessionEventOf, Usage } from "../../contracts/journal.js";
import { redacted } from "../../platform/telemetry/redact.js";
import { spanIdOf, type Attributes, type SpanFact, type SpanLink } from "../../platform/telemetry/trace.js";

/** What is the same for all spans of a run. */
export interface RunFacts {
  readonly runId: string;
  readonly traceId: string;
  /** The span that brought the event in. */
  readonly parentId: string | undefined;
  readonly tenant: string; readonly sessionId: string; readonly agent: string; readonly agentVersion: string;
  readonly provider: string; readonly model: string;
  /** Prompts and arguments too. */
  readonly content: boolean;
}

interface Stretch { readonly number: number; readonly spanId: string; readonly startMs: number; readonly links: readonly SpanLink[] }
interface Chat { readonly startMs: number; readonly host: string; parentId?: string }
interface Tool { readonly startMs: number; tries: number; parentId?: string }

type Handler<T extends SessionEvent["type"]> = (event: SessionEventOf<T>, atMs: number) => void;
/** What events mean for spans; others mean nothing. */
type Handlers = { readonly [T in SessionEvent["type"]]?: Handler<T> };

export interface RunSpans {
  /** Those that end with the last entry. */
  readonly ended: readonly SpanFact[];
  /** The stretch of work that is open, or was the last. */
  readonly stretchId: string | undefined;
}

/** Folds the entries of a run from the one that starts it; other runs' events in them are left out. */
export function runSpans(facts: RunFacts, entries: readonly JournalEntry[]): RunSpans {
  const fold = new Fold(facts);
  for (const entry of entries) fold.take(entry);
  return { ended: fold.ended, stretchId: fold.stretchId };
}

class Fold {
  ended: SpanFact[] = [];
  stretchId: string | undefined;
  #started = false;
  #over = false;
  #stretch: Stretch | undefined;
  #stretches = 0;
  #input = "";
  readonly #chats = new Map<string, Chat>();
  readonly #tools = new Map<string, Tool>();
  readonly #proposed = new Map<string, string>();
  /** Calls that are out, or are to go out again by themselves. */
  readonly #busy = new Set<string>();
  #modelBusy = false;
  readonly #questions = new Set<string>();
  /** What the next stretch links to, besides the last one. */
  #causes: SpanLink[] = [];

  constructor(private readonly facts: RunFacts) {}

  take(entry: JournalEntry): void {
    this.ended = [];
    for (const event of entry.events) if (!this.#over) (this.#on[event.type] as Handler<SessionEvent["type"]> | undefined)?.(event, entry.atMs);
    if (!this.#started) {
      this.ended = [];
      return;
    }
    const waits = !this.#modelBusy && this.#busy.size === 0 && this.#questions.size > 0;
    if (this.#stretch === undefined && !waits && !this.#over) this.#open(entry.atMs);
    for (const open of [...this.#chats.values(), ...this.#tools.values()]) open.parentId ??= this.stretchId ?? "";
    if (this.#stretch !== undefined && waits && !this.#over) this.#close(entry.atMs, { "docket.ended_by": "waits_for_people", "docket.questions": this.#questions.size });
    // Parents of what began and ended in this very entry.
    this.ended = this.ended.map((span) => (span.parentId === "" ? { ...span, parentId: this.stretchId } : span));
  }

  readonly #on: Handlers = {
    RunStarted: ({ runId, input }, atMs) => {
      if (runId !== this.facts.runId) return;
      this.#started = true;
      this.#input = input;
      this.#open(atMs);
    },
    ModelCallStarted: ({ step, attempt, host }, atMs) => {
      this.#modelBusy = true;
      this.#chats.set(`${String(step)}.${String(attempt)}`, { startMs: atMs, host, ...this.#under() });
    },
    ModelAnswered: (event, atMs) => {
      this.#modelBusy = false;
      for (const call of event.calls) this.#proposed.set(call.callId, call.args);
      this.#chat(event, atMs, answerAttributes(event, this.facts.content));
    },
    ModelCallFailed: (event, atMs) => {
      this.#modelBusy = event.retryAtMs !== undefined;
      this.#chat(event, atMs, {}, event.kind);
    },
    ToolCallDispatched: (event, atMs) => { this.#dispatched(event, atMs); },
    ToolTryFailed: ({ callId, retryAtMs }) => {
      // A call whose outcome was unknown waits for its next try again when a late answer says that it failed.
      if (retryAtMs === undefined) this.#busy.delete(callId);
      else this.#busy.add(callId);
    },
    ToolOutcomeUnknown: ({ callId }) => { this.#busy.delete(callId); },
    ToolResultRecorded: (event, atMs) => { this.#tool(event, atMs); },
    ApprovalOpened: (event, atMs) => { this.#asked(event, atMs); },
    Escalated: (event, atMs) => {
      // A question about the run, not about a call: the model's next try waits for its answer.
      if (event.record.callId === undefined) this.#modelBusy = false;
      this.#asked(event, atMs);
    },
    DecisionRecorded: ({ decisionId, kind, approvalId, final }) => {
      this.#causes.push({ spanId: spanIdOf("decide", decisionId), attributes: { "docket.link": "decision", "docket.decision": kind } });
      if (final) this.#questions.delete(approvalId);
    },
    ApprovalExpired: ({ approvalId }) => { this.#questions.delete(approvalId); },
    ApprovalWithdrawn: ({ approvalId }) => { this.#questions.delete(approvalId); },
    RunEnded: (event, atMs) => { if (event.runId === this.facts.runId) this.#end(event, atMs); },
  };

  #under(): { parentId?: string } { return this.#stretch === undefined ? {} : { parentId: this.#stretch.spanId }; }

  #open(atMs: number): void {
    this.#stretches += 1;
    const before: SpanLink[] = this.stretchId === undefined ? [] : [{ spanId: this.stretchId, attributes: { "docket.link": "before_the_wait" } }];
    this.#stretch = { number: this.#stretches, spanId: spanIdOf("run", this.facts.runId, this.#stretches), startMs: atMs, links: [...before, ...this.#causes] };
    this.stretchId = this.#stretch.spanId;
    this.#causes = [];
  }

  #close(atMs: number, attributes: Attributes, error?: string): void {
    const { agent, agentVersion, content } = this.facts;
    const stretch = this.#stretch;
    if (stretch === undefined) return;
    this.#stretch = undefined;
    const input = content && stretch.number === 1 ? { "gen_ai.input.messages": messages("user", this.#input), "input.value": redacted(this.#input) } : {};
    this.ended.push(this.#span({
      name: `invoke_agent ${agent}`, kind: "internal", spanId: stretch.spanId, parentId: this.facts.parentId, startMs: stretch.startMs, endMs: atMs, links: stretch.links, error,
      attributes: { "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.version": agentVersion, "docket.stretch": stretch.number, ...attributes, ...input, ...readersOf("AGENT") },
    }));
  }

  #end({ outcome, code, text }: SessionEventOf<"RunEnded">, atMs: number): void {
    if (this.#stretch === undefined) this.#open(atMs);
    const output = this.facts.content ? { "gen_ai.output.messages": messages("assistant", text), "output.value": redacted(text) } : {};
    this.#close(atMs, { "docket.ended_by": "end", "docket.run.outcome": outcome, "docket.run.code": code, ...output }, outcome === "failed" || outcome === "expired" ? code ?? outcome : undefined);
    this.#over = true;
    this.#questions.clear();
  }

  #chat({ step, attempt }: { step: number; attempt: number }, atMs: number, attributes: Attributes, error?: string): void {
    const key = `${String(step)}.${String(attempt)}`;
    const chat = this.#chats.get(key);
    if (chat === undefined) return;
    this.#chats.delete(key);
    const { provider, model } = this.facts;
    this.ended.push(this.#span({
      name: `chat ${model}`, kind: "client", spanId: spanIdOf("chat", this.facts.runId, step, attempt), parentId: chat.parentId ?? "", startMs: chat.startMs, endMs: atMs, error,
      attributes: { "gen_ai.operation.name": "chat", "gen_ai.provider.name": provider, "gen_ai.request.model": model, "llm.model_name": model, "docket.step": step, "docket.attempt": attempt, "docket.host": chat.host, ...attributes, ...readersOf("LLM") },
    }));
  }

  #dispatched({ callId, try: number }: SessionEventOf<"ToolCallDispatched">, atMs: number): void {
    this.#busy.add(callId);
    const known = this.#tools.get(callId);
    if (known === undefined) this.#tools.set(callId, { startMs: atMs, tries: number, ...this.#under() });
    else known.tries = number;
  }

  #tool({ callId, providerCallId, tool, status, content }: SessionEventOf<"ToolResultRecorded">, atMs: number): void {
    this.#busy.delete(callId);
    const call = this.#tools.get(callId);
    if (call === undefined) return; // it never went out
    this.#tools.delete(callId);
    const args = this.#proposed.get(callId);
    const said = this.facts.content ? {
      ...(args === undefined ? {} : { "gen_ai.tool.call.arguments": redacted(args), "input.value": redacted(args), "tool.parameters": redacted(args) }),
      "gen_ai.tool.call.result": redacted(content.text), "output.value": redacted(content.text),
    } : {};
    this.ended.push(this.#span({
      name: `execute_tool ${tool}`, kind: "internal", spanId: spanIdOf("tool", callId), parentId: call.parentId ?? "", startMs: call.startMs, endMs: atMs, error: status === "succeeded" || status === "responded" ? undefined : status,
      attributes: { "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool, "gen_ai.tool.call.id": providerCallId, "gen_ai.tool.type": "function", "tool.name": tool, "docket.call.id": callId, "docket.tool.status": status, "docket.tries": call.tries, ...said, ...readersOf("TOOL") },
    }));
  }

  /** The question itself takes no time; the wait for its answer is a link of the next stretch. */
  #asked({ record }: SessionEventOf<"ApprovalOpened"> | SessionEventOf<"Escalated">, atMs: number): void {
    this.#questions.add(record.approvalId);
    const spanId = spanIdOf("ask", record.approvalId);
    this.#causes.push({ spanId, attributes: { "docket.link": "question" } });
    this.ended.push(this.#span({
      name: record.kind === "escalation" ? `ask ${record.escalation ?? "escalation"}` : `ask ${record.tool ?? "approval"}`, kind: "internal", spanId, parentId: this.#stretch?.spanId ?? "", startMs: atMs, endMs: atMs,
      attributes: { "docket.approval.id": record.approvalId, "docket.approval.kind": record.kind, "docket.approval.risk": record.risk, "docket.approval.rule": record.rule, "gen_ai.tool.name": record.tool, ...readersOf("CHAIN") },
    }));
  }

  #span(fact: Omit<SpanFact, "traceId">): SpanFact {
    const { runId, traceId, tenant, sessionId, agent } = this.facts;
    return { ...fact, traceId, attributes: { ...fact.attributes, ...idsOf({ tenant, sessionId, runId }), "gen_ai.agent.name": agent } };
  }
}

/** Names of a session and a run, as the conventions and the readers of docs/telemetry.md have them. */
export function idsOf({ tenant, sessionId, runId }: { readonly tenant: string; readonly sessionId: string; readonly runId: string }): Attributes {
  return { "gen_ai.conversation.id": sessionId, "session.id": sessionId, "langsmith.metadata.session_id": sessionId, "docket.run.id": runId, "docket.tenant": tenant };
}

const READERS = { AGENT: { langfuse: "agent", langsmith: "chain" }, LLM: { langfuse: "generation", langsmith: "llm" }, TOOL: { langfuse: "tool", langsmith: "tool" }, CHAIN: { langfuse: "span", langsmith: "chain" } } as const;

/** What a span is, in the words of Phoenix, Langfuse and LangSmith. */
function readersOf(kind: keyof typeof READERS): Attributes {
  return { "openinference.span.kind": kind, "langfuse.observation.type": READERS[kind].langfuse, "langsmith.span.kind": READERS[kind].langsmith };
}

const FINISH = { end: "stop", tool_use: "tool_calls", max_tokens: "length", refusal: "content_filter" } as const;

function answerAttributes({ model, stop, usage, costUsd, text, calls }: SessionEventOf<"ModelAnswered">, content: boolean): Attributes {
  return {
    "gen_ai.response.model": model, "gen_ai.response.finish_reasons": [FINISH[stop]], ...usageAttributes(usage),
    ...(costUsd === null ? {} : { "gen_ai.usage.cost": costUsd, "llm.cost.total": costUsd, "langfuse.observation.cost_details": JSON.stringify({ total: costUsd }) }),
    ...(content ? { "gen_ai.output.messages": messages("assistant", text, calls), "output.value": redacted(text) } : {}),
  };
}

function usageAttributes({ inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens }: Usage): Attributes {
  return {
    "gen_ai.usage.input_tokens": inputTokens, "gen_ai.usage.output_tokens": outputTokens, "gen_ai.usage.total_tokens": inputTokens + outputTokens,
    "gen_ai.usage.cache_read.input_tokens": cacheReadTokens, "gen_ai.usage.cache_creation.input_tokens": cacheWriteTokens,
    "llm.token_count.prompt": inputTokens, "llm.token_count.completion": outputTokens, "llm.token_count.total": inputTokens + outputTokens,
  };
}

function messages(role: "user" | "assistant", text: string, calls: readonly { readonly providerCallId: string; readonly tool: string; readonly args: string }[] = []): string {
  const parts = [...(text === "" ? [] : [{ type: "text", content: redacted(text) }]), ...calls.map((call) => ({ type: "tool_call", id: call.providerCallId, name: call.tool, arguments: redacted(call.args) }))];
  return JSON.stringify([{ role, parts }]);
}
