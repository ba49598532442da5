/**
 * Owns: the life of a tool request in this process (DESIGN 6): receive -> judge the grant -> look at the record -> claim ->
 * answer the broker -> run detached -> store the result -> publish it, signed.
 *
 * Does not own: what the record means (decide.ts), one run of a tool (execute.ts), the lock (lease.ts).
 *
 * - W1 (I4, I5) no tool runs without a grant for exactly this call and argument text.
 * - W2 (I6) the claim is committed before the run; of all workers one at most holds it. The result is stored before it is published.
 * - W3 the broker is answered within one read and one write of the store, never after the tool.
 * - W4 (I14) `handleRequest` never throws. Failures of the way (store, broker) are RETRY; everything else is settled here and SUCCESS.
 */
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Tool } from "../agent/definition.js";
import type { DeliveryStatus } from "../contracts/messages.js";
import type { ToolClaim, ToolRequest } from "../contracts/tools.js";
import { logsAbout } from "../platform/log-context.js";
import { watch } from "../platform/telemetry/metrics.js";
import { pause } from "./clock.js";
import { holds, withClaim, write, type Found } from "./claims.js";
import { decide, type Action } from "./decide.js";
import { execute } from "./execute.js";
import { runClaimed, type ClaimedRun } from "./run-claimed.js";
import type { CallStore, DeadLetters, GrantVerifier, Log, Results, ResultSigner, Secrets, WorkerClock } from "./ports.js";
import { Publisher } from "./publisher.js";
import { judgeGrant, readRequest, requestLetter, type Received, type Refusal } from "./receive.js";
import type { Workspace } from "./workspace.js";
import { claimOf, emptyRecord, resultOf, withTry, type ClaimedTry } from "./record.js";

export interface WorkerDeps {
  readonly tools: ReadonlyMap<string, Tool>;
  readonly store: CallStore; readonly results: Results; readonly grants: GrantVerifier; readonly signer: ResultSigner;
  readonly deadLetters: DeadLetters; readonly secrets: Secrets; readonly clock: WorkerClock; readonly log: Log;
  /** Opens the session's folder for a run. */
  readonly workspace: (actorId: string) => Promise<Workspace>;
}

export interface WorkerOptions {
  /** Name of this worker in claims and results: unique per process. */
  readonly worker: string;
  /** Tools that run at once; what comes beyond is answered RETRY before it is claimed. Default 16. */
  readonly maxConcurrent?: number;
  /** Default 12 s, renewed every 3 s. Must be over when the session asks again: 13 s after the last sign of life, then ever less often. */
  readonly lockMs?: number;
  readonly renewEveryMs?: number;
  /** What a tool gets after its deadline to say how it ended. Default 5 s. */
  readonly graceMs?: number;
  readonly reconcileTimeoutMs?: number;
  /**
   * A run that has not ended after this long is announced; the result of a shorter one says all that its claim would. Well below
   * the 15 s after which a session asks again. Default 1 s.
   */
  readonly announceAfterMs?: number;
  /** How long `drain` waits before it aborts the tools that still run. Default 10 s. */
  readonly drainMs?: number;
  /** Least life of a record; it also outlives the grant. Default 24 h. */
  readonly recordTtlMs?: number;
}

export interface Worker {
  /** One delivery: the raw CloudEvent text. Never throws. */
  handleRequest(text: string): Promise<DeliveryStatus>;
  /** Takes nothing new, waits for running tools, then aborts them; resolves when results are stored and published, or time is up. */
  drain(): Promise<void>;
  /** Tools that run now. */
  running(): number;
}

type Settings = Required<WorkerOptions>;
const DEFAULTS = { maxConcurrent: 16, lockMs: 12_000, renewEveryMs: 3_000, graceMs: 5_000, reconcileTimeoutMs: 15_000, announceAfterMs: 1_000, drainMs: 10_000, recordTtlMs: 24 * 3_600_000 } as const;
/** Records outlive the grant by this much (W2). */
const GRANT_MARGIN_MS = 3_600_000;
const MAX_LOOKS = 8;
const MAX_REMEMBERED = 1000;
/** After the tools are aborted: for storing and publishing what they said. */
const FLUSH_MS = 3_000;

export function createWorker(deps: WorkerDeps, options: WorkerOptions): Worker {
  return new ToolWorker(deps, { ...DEFAULTS, ...options });
}

type Readable = Received & { ok: true };
interface Looked { readonly found: Found | undefined; readonly action: Action; readonly refusal?: Refusal; readonly ttlSeconds: number }

class ToolWorker implements Worker {
  readonly #publisher: Publisher;
  /** Runs, publications and announcements that no delivery waits for. */
  readonly #background = new Set<Promise<void>>();
  /** One delivery of a call at a time: duplicates then meet the claim instead of racing for it. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Claims whose write got no clear answer; should they be in the store after all, nothing has started under them. */
  readonly #neverStarted = new Set<string>();
  readonly #stopTools = new AbortController();
  readonly #end = new AbortController();
  #draining = false;
  #running = 0;

  constructor(private readonly deps: WorkerDeps, private readonly settings: Settings) {
    this.#publisher = new Publisher(deps);
    watch("docket.tools.running", () => [{ value: this.#running }]);
  }

  running(): number { return this.#running; }

  async handleRequest(text: string): Promise<DeliveryStatus> {
    if (this.#draining) return "RETRY";
    try {
      const received = readRequest(text, this.deps.clock.nowMs());
      if (received.ok) return await this.#inTurn(received.request.callId, () => this.#handle(text, received));
      await this.deps.deadLetters.record(received.letter);
      this.deps.log("warn", "a tool request was malformed", { reason: received.letter.reason, error: received.letter.message });
      return "SUCCESS";
    } catch (error) {
      this.deps.log("warn", "a tool request could not be handled; it will come again", { error: error instanceof Error ? error.message : String(error) });
      return "RETRY";
    }
  }

  async drain(): Promise<void> {
    this.#draining = true;
    await this.#settled(this.settings.drainMs);
    this.#stopTools.abort(new Error("the worker is stopping"));
    await this.#settled(this.settings.graceMs + FLUSH_MS);
    this.#end.abort();
  }

  async #handle(text: string, received: Readable): Promise<DeliveryStatus> {
    const { request, envelope } = received;
    const { actorId, callId, tenant, sessionId, runId } = request;
    logsAbout([callId], { tenant, sessionId, runId, ...(envelope.traceparent === undefined ? {} : { traceId: envelope.traceparent.slice(3, 35) }) });
    logsAbout([actorId], { tenant, sessionId });
    for (let look = 1; look <= MAX_LOOKS; look += 1) {
      const looked = await this.#look(request, { blind: look === 1 && request.try === 1 && request.publication === 1 });
      if (looked === "unreadable") {
        // Whether it ran is written there, so nothing may run; and to ask again would block the channel (I14).
        await this.#deadLetter(text, received, { code: "internal", message: `the record of call ${request.callId} is not readable by this version of the worker` });
        return "SUCCESS";
      }
      const answer = await this.#act(text, received, looked);
      if (answer !== "look again") return answer;
    }
    return "RETRY";
  }

  /** `blind`: nobody has seen this call before, most likely. Then nothing is read, for the create-only write of the claim asks the same question. */
  async #look(request: ToolRequest, { blind }: { readonly blind: boolean }): Promise<Looked | "unreadable"> {
    const { store, grants, clock, tools } = this.deps;
    const { refusal, expiresAtMs } = await judgeGrant(request, grants, clock.nowMs());
    const found = blind ? undefined : await store.read(request.callId).catch(unreadableOrThrow);
    if (found === "unreadable") return found;
    const nowMs = clock.nowMs();
    const action = decide({ request, record: found?.record, refusal, manifest: tools.get(request.tool)?.manifest, neverStarted: this.#neverStarted, nowMs });
    if (blind && action.do !== "run" && action.do !== "settle") return await this.#look(request, { blind: false });
    const ttlMs = Math.max(this.settings.recordTtlMs, expiresAtMs - nowMs + GRANT_MARGIN_MS);
    return { found, action, ttlSeconds: Math.ceil(ttlMs / 1000), ...(refusal === undefined ? {} : { refusal }) };
  }

  async #act(text: string, received: Readable, looked: Looked): Promise<DeliveryStatus | "look again"> {
    const { action } = looked;
    switch (action.do) {
      case "republish":
        await this.#publisher.publish(action.result);
        return "SUCCESS";
      case "announce":
        this.#detach(this.#publisher.announce(action.claim));
        return "SUCCESS";
      case "ignore":
        if (action.refusal !== undefined) await this.#deadLetter(text, received, action.refusal);
        this.deps.log("debug", "a tool request changes nothing", { callId: received.request.callId, try: received.request.try, why: action.why });
        return "SUCCESS";
      case "settle": return this.#settle(text, received, looked, action);
      case "run": return this.#claim(received, looked, action);
    }
  }

  async #settle(text: string, received: Readable, looked: Looked, action: Action & { do: "settle" }): Promise<DeliveryStatus | "look again"> {
    const { request } = received;
    // A tool that is missing here, or a spent deadline, is told to the session; a bad grant is also for people.
    if (looked.refusal !== undefined && action.refusal === looked.refusal) await this.#deadLetter(text, received, looked.refusal);
    const nowMs = this.deps.clock.nowMs();
    const result = resultOf({ ...request, try: action.try }, action.outcome, { worker: this.settings.worker, startedAtMs: nowMs, endedAtMs: nowMs });
    const effects = this.deps.tools.get(request.tool)?.manifest.effects ?? "once";
    const record = withTry(looked.found?.record ?? emptyRecord(request, effects), { state: "done", try: action.try, result });
    if (!(await write(this.deps.store, looked.found, record, looked.ttlSeconds))) return "look again";
    this.deps.log("info", "a tool call was settled without running", { callId: request.callId, try: action.try, tool: request.tool, outcome: result.outcome, kind: result.failure?.kind });
    await this.#publisher.publish(result);
    return "SUCCESS";
  }

  async #claim({ request, envelope: { traceparent } }: Readable, looked: Looked, action: Action & { do: "run" }): Promise<DeliveryStatus | "look again"> {
    const tool = this.deps.tools.get(request.tool);
    if (tool === undefined || this.#draining || this.#running >= this.settings.maxConcurrent) return "RETRY";
    this.#running += 1;
    const nowMs = this.deps.clock.nowMs();
    const claim: ClaimedTry = {
      state: "claimed", try: action.try, worker: this.settings.worker, claimId: randomUUID(), claimedAtMs: nowMs,
      lockUntilMs: nowMs + this.settings.lockMs, runs: action.runs, fence: (looked.found?.record.claims ?? 0) + 1,
    };
    let won = false;
    try {
      won = await this.#commit(looked, withClaim(looked.found, request, tool.manifest.effects, claim), claim);
    } finally {
      if (!won) this.#running -= 1;
    }
    if (!won) return "look again";
    this.#start({ ...request, try: action.try }, tool, claim, { reconcile: action.reconcile, ttlSeconds: looked.ttlSeconds, traceparent });
    return "SUCCESS";
  }

  /** True when the claim is ours. A write without a clear answer is looked up; what stays unclear never starts. */
  async #commit(looked: Looked, record: Found["record"], claim: ClaimedTry): Promise<boolean> {
    try {
      return await write(this.deps.store, looked.found, record, looked.ttlSeconds);
    } catch (error) {
      this.#remember(claim.claimId);
      if (!(await holds(this.deps.store, record.callId, claim))) throw error;
      this.#neverStarted.delete(claim.claimId);
      return true;
    }
  }

  #start(request: ToolRequest, tool: Tool, claim: ClaimedTry, how: Pick<ClaimedRun, "reconcile" | "ttlSeconds" | "traceparent">): void {
    const silence = new AbortController();
    this.#detach(this.#announceUnless(silence.signal, claimOf(request, claim)));
    this.#detach(runClaimed({
      ...this.deps, settings: this.settings, publisher: this.#publisher, execute, stop: this.#stopTools.signal, end: this.#end.signal,
      released: () => { this.#running -= 1; silence.abort(); }, later: (work) => { this.#detach(work); },
    }, { request, tool, claim, ...how }));
  }

  async #announceUnless(ended: AbortSignal, claim: ToolClaim): Promise<void> {
    await pause(this.deps.clock, this.settings.announceAfterMs, ended);
    if (!ended.aborted) await this.#publisher.announce(claim);
  }

  async #deadLetter(text: string, received: Readable, refusal: Refusal): Promise<void> {
    this.deps.log("warn", "a tool request was refused", { callId: received.request.callId, tool: received.request.tool, reason: refusal.code, error: refusal.message });
    await this.deps.deadLetters.record(requestLetter(text, received, refusal, this.deps.clock.nowMs()));
  }

  async #inTurn<T>(callId: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(callId) ?? Promise.resolve()).then(work, work);
    this.#turns.set(callId, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(callId) === turn) this.#turns.delete(callId);
    }
  }

  #detach(work: Promise<void>): void {
    const tracked = work.catch((error: unknown) => {
      this.deps.log("error", "background work failed", { error: error instanceof Error ? error.message : String(error) });
    }).finally(() => this.#background.delete(tracked));
    this.#background.add(tracked);
  }

  async #settled(withinMs: number): Promise<void> {
    const done = new AbortController();
    const quiet = (async () => {
      while (this.#background.size > 0 && !done.signal.aborted) await Promise.all(this.#background);
    })();
    await Promise.race([quiet, pause(this.deps.clock, withinMs, done.signal)]);
    done.abort();
  }

  #remember(claimId: string): void {
    if (this.#neverStarted.size >= MAX_REMEMBERED) {
      for (const oldest of this.#neverStarted) { this.#neverStarted.delete(oldest); break; }
    }
    this.#neverStarted.add(claimId);
  }
}

/** A record that does not parse is a fact, not a failure of the way. */
function unreadableOrThrow(error: unknown): "unreadable" {
  if (error instanceof z.ZodError || error instanceof SyntaxError) return "unreadable";
  throw error;
}
