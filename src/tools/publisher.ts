/** Owns: signing a stored result and getting it to the session. */
import { argsDigest } from "../contracts/ids.js";
import type { ToolClaim } from "../contracts/tools.js";
import { pause } from "./clock.js";
import type { Log, Results, ResultSigner, WorkerClock } from "./ports.js";
import type { StoredResult } from "./record.js";

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 15_000;

export class Publisher {
  constructor(private readonly deps: { readonly results: Results; readonly signer: ResultSigner; readonly clock: WorkerClock; readonly log: Log }) {}

  /** Throws where the broker did not take it. */
  async publish(result: StoredResult, traceparent?: string): Promise<void> {
    const proof = await this.deps.signer.sign({
      iss: "docket/tools", aud: "docket/sessions", sub: result.actorId, jti: result.callId, try: result.try,
      outcome: result.outcome, outputDigest: argsDigest(result.output), iat: Math.floor(this.deps.clock.nowMs() / 1000),
    });
    await this.deps.results.completed({ ...result, proof }, traceparent);
  }

  /** Tries until it is published or `end` aborts; what is not published then is asked for again by the session's guard. Never throws. */
  async publishUntilTaken(result: StoredResult, end: AbortSignal, traceparent?: string): Promise<void> {
    await untilDone("a result could not be published", { ...this.deps, end, callId: result.callId }, () => this.publish(result, traceparent));
  }

  /** A lost claim is said again when the session asks again. Never throws. */
  async announce(claim: ToolClaim): Promise<void> {
    try {
      await this.deps.results.claimed(claim);
    } catch (error) {
      this.deps.log("warn", "a claim could not be published", { callId: claim.callId, error: error instanceof Error ? error.message : String(error) });
    }
  }
}

/** Repeats `attempt` with growing pauses until it does not throw; undefined when `end` aborted first. */
export async function untilDone<T>(
  what: string, around: { readonly clock: WorkerClock; readonly log: Log; readonly end: AbortSignal; readonly callId: string }, attempt: () => Promise<T>,
): Promise<T | undefined> {
  for (let delayMs = FIRST_PAUSE_MS; ; delayMs = Math.min(delayMs * 2, LONGEST_PAUSE_MS)) {
    try {
      return await attempt();
    } catch (error) {
      around.log("warn", what, { callId: around.callId, error: error instanceof Error ? error.message : String(error), retryInMs: delayMs });
    }
    await pause(around.clock, delayMs, around.end);
    if (around.end.aborted) return undefined;
  }
}
