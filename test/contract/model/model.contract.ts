/**
 * Owns: what every Model must do, whoever is behind it. A subject stages what its service answers next; a real service
 * cannot be staged, so its requests ask for the behaviour in words and what cannot be asked for is not registered.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Usage } from "../../../src/contracts/journal.js";
import { parseForUse } from "../../../src/contracts/json.js";
import { ModelError, type Model, type ModelAnswer, type ModelMessage, type ModelRequest, type ModelTool } from "../../../src/model/model.js";

export interface StagedCall { readonly name: string; readonly args: string }

/** What the service does with the next request. */
export type Scene =
  | { readonly kind: "answer"; readonly text: string; readonly calls?: readonly StagedCall[]; readonly stop?: "max_tokens" | "refusal"; readonly usage?: Usage }
  | { readonly kind: "refuse"; readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly type: string; readonly message: string }
  | { readonly kind: "break"; readonly after: string; readonly how: "reset" | "close" | "stall" | "overloaded" };

/** What the service was sent, in its own order. */
export interface Seen {
  readonly rounds: readonly { readonly calls: readonly { readonly id: string; readonly name: string; readonly args: string }[]; readonly results: readonly { readonly id: string; readonly text: string }[] }[];
  readonly requests: number;
}

export interface Subject {
  readonly model: Model;
  readonly name: string;
  /** The same service, reached with a key that it does not know. */
  readonly wrongKey?: Model;
  /** Absent: a real service. */
  readonly stage?: (scene: Scene) => void;
  readonly seen?: () => Seen;
  /** Breaks a staged `reset`, now that all that was staged has arrived. */
  readonly cut?: () => void;
  /** `staged`: usage is what the scene said; `some`: it is above zero. */
  readonly usage: "staged" | "some";
  /** Whether the model has a price. */
  readonly priced: boolean;
  readonly close: () => Promise<void>;
}

export type Clause =
  | "text" | "big integers" | "parallel calls" | "round trip" | "429" | "429 in ms" | "529" | "500" | "reset" | "early close"
  | "overloaded inside" | "bad request" | "wrong key" | "abort" | "abort before" | "usage" | "max_tokens" | "refusal" | "listener" | "one request";

const BIG = "9007199254740993";
const REFUND: ModelTool = {
  name: "refund", description: "Refunds an order. Copy every argument exactly as the user gave it.",
  inputSchema: { type: "object", properties: { order: { type: "object", properties: { id: { type: "integer" }, lines: { type: "array", items: { type: "string" } } }, required: ["id", "lines"] } }, required: ["order"] },
};
const LOOK_UP: ModelTool = { name: "look_up", description: "Looks up one city's weather.", inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } };
const USAGE: Usage = { inputTokens: 120, outputTokens: 34, cacheReadTokens: 1000, cacheWriteTokens: 0 };

/** Registers the suite. `cannot` names the clauses that this subject cannot show, each with its reason. */
export function describeModelContract(name: string, factory: () => Promise<Subject>, cannot: Partial<Record<Clause, string>> = {}): void {
  describe(`model contract: ${name}`, () => {
    let subject: Subject;
    let abort: AbortController;
    beforeAll(async () => { subject = await factory(); });
    beforeEach(() => { abort = new AbortController(); });
    afterEach(() => abort.abort());
    afterAll(() => subject.close());
    for (const [clause, reason] of Object.entries(cannot)) console.info(`model contract: ${name}: "${clause}" is not checked: ${reason}`);

    const clause = (id: Clause, says: string, check: () => Promise<void>): void => {
      if (cannot[id] === undefined) it(says, check);
    };
    const ask = (user: string, options: Partial<ModelRequest> = {}): ModelRequest => ({
      model: subject.name, instructions: "You are a test fixture. Do exactly what you are told, briefly.", tools: [], messages: [{ role: "user", text: user }],
      maxOutputTokens: 2000, signal: abort.signal, context: { sessionId: "s-1", runId: "run_1", step: 1, attempt: 1 }, ...options,
    });
    const failure = async (request: ModelRequest, model: Model = subject.model): Promise<ModelError> => {
      const outcome: unknown = await model.answer(request).then((answer) => answer, (error: unknown) => error);
      expect(outcome).toBeInstanceOf(ModelError);
      return outcome as ModelError;
    };

    clause("text", "streams deltas that add up to the text", async () => {
      subject.stage?.({ kind: "answer", text: "Grüße 🦊 from the wire, in more than one piece." });
      const deltas: string[] = [];
      const answer = await subject.model.answer(ask("Say a sentence of ten words.", { onDelta: (text) => deltas.push(text) }));
      expect(deltas.join("")).toBe(answer.text);
      if (subject.stage !== undefined) expect(answer.text).toBe("Grüße 🦊 from the wire, in more than one piece.");
      expect(deltas.length).toBeGreaterThan(1);
      expect(answer).toMatchObject({ stop: "end", calls: [] });
    });

    clause("big integers", "keeps nested arguments as the model wrote them, digits of 64-bit integers too", async () => {
      const args = `{"order": {"id": ${BIG}, "lines": ["a \\"quoted\\" line", "ü"], "note": null}}`;
      subject.stage?.({ kind: "answer", text: "", calls: [{ name: "refund", args }] });
      const answer = await subject.model.answer(ask(`Call refund for order id ${BIG} with the lines "a" and "b".`, { tools: [REFUND] }));
      expect(answer.stop).toBe("tool_use");
      expect(answer.calls.map((call) => call.name)).toEqual(["refund"]);
      expect(answer.calls[0]!.id).not.toBe("");
      expect(answer.calls[0]!.args).toContain(BIG);
      expect(parseForUse(answer.calls[0]!.args)).toMatchObject({ order: { id: BigInt(BIG) } });
      if (subject.usage === "staged") expect(answer.calls[0]!.args).toBe(args);
    });

    clause("parallel calls", "returns calls made side by side in order, each with its own id and arguments", async () => {
      subject.stage?.({ kind: "answer", text: "Looking up both.", calls: [{ name: "look_up", args: '{"city":"Bern"}' }, { name: "look_up", args: '{"city":"Oslo"}' }] });
      const answer = await subject.model.answer(ask("Call look_up for Bern and for Oslo, both in this one answer.", { tools: [LOOK_UP] }));
      expect(answer.calls.map((call) => parseForUse(call.args))).toEqual([{ city: "Bern" }, { city: "Oslo" }]);
      expect(new Set(answer.calls.map((call) => call.id)).size).toBe(2);
      if (subject.stage !== undefined) expect(answer.text).toBe("Looking up both.");
    });

    clause("round trip", "pairs every call with its result on the way back, digits kept", async () => {
      const call = { id: "call_1", name: "refund", args: `{"order":{"id":${BIG},"lines":[]}}` };
      const other = { id: "call:2/odd id that is far longer than the forty characters which some take", name: "refund", args: "not json" };
      const results: ModelMessage = { role: "tool_results", results: [{ id: call.id, name: "refund", text: '{"done":true}', isError: false }, { id: other.id, name: "refund", text: "arguments_invalid: not JSON", isError: true }] };
      subject.stage?.({ kind: "answer", text: "The refund is done." });
      const answer = await subject.model.answer(ask("", { tools: [REFUND], messages: [{ role: "user", text: `Refund order ${BIG}.` }, { role: "assistant", text: "On it.", calls: [call, other] }, results, { role: "user", text: "Say whether it worked, in one sentence." }] }));
      expect(answer.text).not.toBe("");
      const rounds = subject.seen?.().rounds;
      if (rounds === undefined) return;
      expect(rounds).toHaveLength(1);
      expect(rounds[0]!.calls.map(({ id }) => id)).toEqual(rounds[0]!.results.map(({ id }) => id));
      expect(rounds[0]!.calls[0]).toMatchObject({ id: "call_1", name: "refund" });
      expect(parseForUse(rounds[0]!.calls[0]!.args)).toEqual({ order: { id: BigInt(BIG), lines: [] } });
      expect(parseForUse(rounds[0]!.calls[1]!.args)).toEqual({ unparsed_arguments: "not json" });
      expect(rounds[0]!.results[1]!.text).toContain("arguments_invalid");
    });

    const refusals: [Clause, string, Extract<Scene, { kind: "refuse" }>, Partial<ModelError>][] = [
      ["429", "takes 429 with retry-after as transient, with the wait", { kind: "refuse", status: 429, headers: { "retry-after": "7" }, type: "rate_limit_error", message: "slow down" }, { kind: "transient", retryAfterMs: 7000 }],
      ["429 in ms", "prefers retry-after-ms", { kind: "refuse", status: 429, headers: { "retry-after": "7", "retry-after-ms": "250" }, type: "rate_limit_error", message: "slow down" }, { kind: "transient", retryAfterMs: 250 }],
      ["529", "takes 529 as transient", { kind: "refuse", status: 529, type: "overloaded_error", message: "Overloaded" }, { kind: "transient", retryAfterMs: undefined }],
      ["500", "takes 500 as transient", { kind: "refuse", status: 500, type: "api_error", message: "Internal server error" }, { kind: "transient" }],
      ["bad request", "takes 400 as permanent", { kind: "refuse", status: 400, type: "invalid_request_error", message: "max_tokens: must be positive" }, { kind: "permanent" }],
    ];
    for (const [id, says, scene, expected] of refusals) {
      clause(id, says, async () => {
        subject.stage?.(scene);
        const error = await failure(ask("Say hello.", id === "bad request" ? { maxOutputTokens: -1 } : {}));
        expect(error).toMatchObject({ partialText: "", ...expected });
      });
    }

    clause("wrong key", "takes 401 as permanent and does not tell the key", async () => {
      subject.stage?.({ kind: "refuse", status: 401, type: "authentication_error", message: "invalid key wrong-key-0123456789" });
      const error = await failure(ask("Say hello."), subject.wrongKey ?? subject.model);
      expect(error.kind).toBe("permanent");
      expect(error.message).not.toContain("wrong-key-0123456789");
    });

    for (const [id, how] of [["reset", "reset"], ["early close", "close"], ["overloaded inside", "overloaded"]] as const) {
      clause(id, `keeps what was said when the stream breaks (${how}): transient`, async () => {
        subject.stage?.({ kind: "break", after: "Half of a sen", how });
        let heard = "";
        const error = await failure(ask("Say hello.", { onDelta: (text) => {
          heard += text;
          if (heard === "Half of a sen") subject.cut?.();
        } }));
        expect(error).toMatchObject({ kind: "transient", partialText: "Half of a sen" });
      });
    }

    clause("abort", "stops at once when aborted, and keeps what was said", async () => {
      subject.stage?.({ kind: "break", after: "Once upon a time", how: "stall" });
      let deltas = "";
      let abortedAt = 0;
      const error = await failure(ask("Count from 1 to 500, one number per line.", { onDelta: (text) => {
        deltas += text;
        if (subject.stage !== undefined && deltas !== "Once upon a time") return;
        abortedAt = Date.now();
        abort.abort();
      } }));
      expect(Date.now() - abortedAt).toBeLessThan(5_000);
      expect(error).toMatchObject({ kind: "aborted", partialText: deltas });
      expect(deltas).not.toBe("");
    });

    clause("abort before", "asks nobody when it is aborted already", async () => {
      const before = subject.seen?.().requests;
      abort.abort();
      expect(await failure(ask("Say hello."))).toMatchObject({ kind: "aborted", partialText: "" });
      expect(subject.seen?.().requests).toBe(before);
    });

    clause("usage", "reports the provider's usage and its cost", async () => {
      subject.stage?.({ kind: "answer", text: "Counted.", usage: USAGE });
      const answer = await subject.model.answer(ask("Say hello."));
      if (subject.usage === "staged") expect(answer.usage).toEqual(USAGE);
      expect(answer.usage.inputTokens + answer.usage.cacheReadTokens + answer.usage.cacheWriteTokens).toBeGreaterThan(0);
      expect(answer.usage.outputTokens).toBeGreaterThan(0);
      if (subject.priced) expect(answer.costUsd).toBeGreaterThanOrEqual(subject.model.provider === "scripted" ? 0 : 1e-9);
      else expect(answer.costUsd).toBeNull();
      if (subject.stage === undefined) expect(subject.model.reserveUsd(ask("Say hello."))).toBeGreaterThanOrEqual(answer.costUsd ?? 0);
    });

    const stops: [Clause, Extract<ModelAnswer["stop"], "max_tokens" | "refusal">, string][] = [["max_tokens", "max_tokens", "Count from 1 to 500."], ["refusal", "refusal", "Say hello."]];
    for (const [id, stop, prompt] of stops) {
      clause(id, `says that it stopped for ${stop}`, async () => {
        subject.stage?.({ kind: "answer", text: "One, two,", stop });
        expect((await subject.model.answer(ask(prompt, stop === "max_tokens" ? { maxOutputTokens: 24 } : {}))).stop).toBe(stop);
      });
    }

    clause("listener", "survives a listener that throws", async () => {
      subject.stage?.({ kind: "answer", text: "Still here, all of it." });
      const answer = await subject.model.answer(ask("Say hello.", { onDelta: () => { throw new Error("the live topic is down"); } }));
      expect(answer.text).not.toBe("");
    });

    clause("one request", "makes one request per call: the session retries, nobody else", async () => {
      const before = subject.seen!().requests;
      subject.stage?.({ kind: "refuse", status: 500, headers: { "x-should-retry": "true" }, type: "api_error", message: "Internal server error" });
      await failure(ask("Say hello."));
      expect(subject.seen!().requests).toBe(before + 1);
    });
  });
}
