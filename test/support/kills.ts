/**
 * Owns: mixed work for fault tests, and what must hold of it afterwards, seen from the outside: the clients' 202s, the
 * stores' files, the model's call log, the tools' own books, the clients' streams. Shares no decision with the product.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Accepted, ApprovalListItem } from "../../src/contracts/api.js";
import { Accepted as AcceptedSchema, ApprovalPage } from "../../src/contracts/api.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import type { OpenSession } from "../../src/session/core/state.js";
import { outcomeProblems, overlapProblems } from "./checks.js";
import { eventsOf, type Docket } from "./docket.js";
import { agentsWith } from "./fixture-agents.js";
import { StreamClient } from "./sse.js";
import { StoreView } from "./store-view.js";

/** The real agents and the `chaos` one. */
export function chaosAgents(home: string): Promise<{ agentsDir: string; scriptsDir: string }> {
  return agentsWith(home, [{ folder: "chaos-agent", name: "chaos" }], ["assistant", "order-triage"]);
}

export const KINDS = ["plain", "status", "refund", "order", "failing-order", "parallel", "think", "effect"] as const;
export type Kind = (typeof KINDS)[number];
export interface Sent { readonly burst: string; readonly kind: Kind; readonly sessionId: string; readonly id: string; readonly event: object; accepted?: Accepted }

/** Seeded, so that a run can be repeated: order of the events and moments of the kills. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items.map((item) => ({ item, at: random() })).sort((a, b) => a.at - b.at).map(({ item }) => item);
}

const DECIDE_AGAIN_MS = 12_000;

export class Load {
  readonly sent: Sent[] = [];
  readonly streams: { sessionId: string; client: StreamClient }[] = [];
  /** What a person decided, by session. */
  readonly decided = new Map<string, { kind: string; args: string }>();
  readonly view: StoreView;
  #approving = true;
  #serial = 0;
  /** When each approval was last decided: the console may show it a while longer. */
  readonly #triedAtMs = new Map<string, number>();

  constructor(readonly docket: Docket, private readonly prefix: string) {
    this.view = new StoreView(docket.dataDir);
  }

  /** Makes an event; it is sent by `send`. */
  event(burst: string, kind: Kind, text: string, options: { agent?: string; sessionId?: string } = {}): Sent {
    this.#serial += 1;
    const id = `${this.prefix}-${String(this.#serial)}`;
    const sessionId = options.sessionId ?? `${burst}-${kind}-${id}`;
    const event = {
      specversion: "1.0", id, source: "https://kills.example", type: "com.docket.prompt.received.v1", subject: sessionId, agent: options.agent ?? "assistant",
      datacontenttype: "application/json", data: { text },
    };
    return { burst, kind, sessionId, id, event };
  }

  order(burst: string, kind: "order" | "failing-order"): Sent {
    const prompt = this.event(burst, kind, "");
    const orderId = kind === "order" ? `ord-${prompt.id}` : "ord-1002";
    return { ...prompt, event: { ...prompt.event, agent: "order-triage", type: "com.acme.order.created", data: { orderId, customer: "C. Lovelace", totalCents: 4_500 } } };
  }

  /** The short form's burst: about thirty events in two dozen sessions. */
  burst(name: string): Sent[] {
    const many = (count: number, make: (n: number) => Sent): Sent[] => Array.from({ length: count }, (_, n) => make(n));
    const parallel = `${name}-parallel-${this.prefix}`;
    return [
      ...many(9, () => this.event(name, "plain", "hello")),
      ...many(6, () => this.event(name, "status", "where is order 1001?")),
      ...many(5, (n) => this.event(name, "refund", `refund ${String(1000 + n)} cents of order 1001`)),
      ...many(2, () => this.order(name, "order")),
      this.order(name, "failing-order"),
      ...many(5, (n) => this.event(name, "parallel", n % 2 === 0 ? "hello" : "where is order 1003?", { sessionId: parallel })),
    ];
  }

  /** Sends as a client does that must not lose anything: the same event again until it has a 202. */
  async send(sent: Sent, timeoutMs = 60_000): Promise<Sent> {
    this.sent.push(sent);
    const deadline = Date.now() + timeoutMs;
    for (;;) {
      let last: string;
      try {
        const reply = await this.docket.gateway("POST", "/v1/events", sent.event, { "content-type": "application/cloudevents+json" });
        if (reply.status === 202) {
          sent.accepted = AcceptedSchema.parse(reply.body);
          return sent;
        }
        last = `${String(reply.status)} ${JSON.stringify(reply.body)}`;
        if (reply.status < 500 && reply.status !== 429) throw new Refused(`event ${sent.id} was refused: ${last}`);
      } catch (error) {
        if (error instanceof Refused) throw error;
        last = String(error);
      }
      if (Date.now() > deadline) throw new Error(`event ${sent.id} was not accepted within ${String(timeoutMs)} ms; last: ${last}`);
      await new Promise((next) => setTimeout(next, 50));
    }
  }

  /** Sends all, eight at a time; `onAccepted` hears how many are in. */
  async sendAll(events: readonly Sent[], onAccepted: (count: number) => void = () => undefined): Promise<void> {
    let accepted = 0;
    const queue = [...events];
    await Promise.all(Array.from({ length: 8 }, async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        await this.send(next);
        accepted += 1;
        onAccepted(accepted);
      }
    }));
  }

  isEnded(sent: Sent): boolean {
    const { accepted } = sent;
    if (accepted === undefined) return false;
    const state = this.view.session(sent.sessionId);
    return state?.recentRuns.some((run) => run.key === accepted.eventKey) ?? false;
  }

  watch(sessionId: string): void {
    const client = new StreamClient(`${this.docket.test.stack.urls.gateway ?? ""}/v1/sessions/${sessionId}/stream?wait=1`, this.docket.apiKey);
    client.start();
    this.streams.push({ sessionId, client });
  }

  /** A person who decides whatever the console shows, every second refund with other arguments. Runs until `stop`. */
  async approveEverything(): Promise<void> {
    while (this.#approving) {
      const open = await this.docket.console("GET", "/v1/approvals?state=open&limit=200").then((reply) => ApprovalPage.parse(reply.body).items, () => []);
      await Promise.all(open.map((item) => this.#decide(item)));
      await new Promise((next) => setTimeout(next, 250));
    }
  }

  stop(): void {
    this.#approving = false;
    for (const { client } of this.streams) client.close();
  }

  async #decide(item: ApprovalListItem): Promise<void> {
    const { record, args, sessionId } = item.pending;
    // Escalations are left open: no good work may end in one.
    if (!record.allowed.includes("approve") || Date.now() - (this.#triedAtMs.get(record.approvalId) ?? 0) < DECIDE_AGAIN_MS) return;
    this.#triedAtMs.set(record.approvalId, Date.now());
    const parsed = JSON.parse(args) as { amountCents?: number };
    const kind = record.tool === "issue_refund" && (parsed.amountCents ?? 0) % 2 === 1 ? "modify" : "approve";
    const decided = kind === "modify" ? JSON.stringify({ ...parsed, amountCents: 7 }) : args;
    this.decided.set(sessionId, { kind, args: decided });
    try {
      await this.docket.decide(item, kind, kind === "modify" ? { args: decided } : {});
    } catch {
      // The console is away, so the decision may be lost: at once again when it is back.
      this.#triedAtMs.delete(record.approvalId);
    }
  }
}

class Refused extends Error {}

/** Undefined for a session that has nothing left to do and tells nobody to look at it. */
export function restProblem(view: StoreView, sessionId: string): string | undefined {
  return restProblemOf(view.session(sessionId), sessionId);
}

/** The same of a state that was read before. */
export function restProblemOf(state: OpenSession | undefined, sessionId: string): string | undefined {
  if (state === undefined) return `${sessionId}: does not exist`;
  const { status, mailbox, outbox, guard } = state;
  const isAtRest = (status === "IDLE" || status === "CLOSED") && mailbox.length === 0 && outbox.length === 0 && !guard.armed;
  const run = "run" in state ? state.run : undefined;
  const about = { mailbox: mailbox.length, outbox: outbox.map((row) => `${row.rowId}#${String(row.publication)}`), guard, model: "model" in state ? state.model : undefined, calls: run?.calls.map((call) => `${call.tool} ${JSON.stringify(call.life)}`), updatedMsAgo: Date.now() - state.updatedAtMs };
  return isAtRest ? undefined : `${sessionId}: ${status} ${JSON.stringify(about)}`;
}

/** Lines that a tool wrote in a session's workspace. */
export function workspaceLines(dataDir: string, sessionId: string, file: string): Record<string, unknown>[] {
  const path = join(dataDir, "workspaces", actorIdOf("default", sessionId), file);
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8").split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Record<string, unknown>);
}

/** Accepted events without exactly one outcome (I1), and runs that overlap (I3). */
export function lostEvents(load: Load): string[] {
  return [...new Set(load.sent.map((sent) => sent.sessionId))].flatMap((sessionId) => {
    const journal = load.view.journal(sessionId);
    const received = eventsOf(journal, "EventReceived").map((event) => event.key);
    const missing = load.sent.filter((sent) => sent.sessionId === sessionId && sent.accepted !== undefined && !received.includes(sent.accepted.eventKey));
    return [...missing.map((sent) => `${sessionId}: accepted event ${sent.id} was never received`), ...[...outcomeProblems(journal), ...overlapProblems(journal)].map((problem) => `${sessionId}: ${problem}`)];
  });
}

/** Effects that are doubled, missing, or not what was approved (I2, I4, I5, I6), and model attempts that were bought twice. */
export function effectProblems(load: Load): string[] {
  const problems: string[] = [];
  const { docket, view } = load;
  for (const { kind, sessionId, event } of load.sent) {
    if (kind === "refund" || kind === "effect") problems.push(...onceProblems(load, kind, sessionId));
    if (kind === "order") {
      const { orderId } = (event as { data: { orderId: string } }).data;
      const count = docket.acme.effects(`/orders/${orderId}/route`);
      if (count !== 1) problems.push(`${sessionId}: the order was routed with ${String(count)} keys`);
    }
    if (kind === "failing-order") {
      const tries = eventsOf(view.journal(sessionId), "ToolTryFailed").map((failed) => failed.try);
      if (tries.join() !== "1,2,3") problems.push(`${sessionId}: failed tries are ${tries.join()}, expected 1,2,3`);
    }
  }
  const attempts = docket.modelCalls().map(({ sessionId, runId, step, attempt }) => `${sessionId} ${runId} step ${String(step)} attempt ${String(attempt)}`);
  const twice = attempts.filter((line, index) => attempts.indexOf(line) !== index);
  return [...problems, ...twice.map((line) => `a model call was made twice: ${line}`)];
}

function onceProblems(load: Load, kind: "refund" | "effect", sessionId: string): string[] {
  const lines = workspaceLines(load.docket.dataDir, sessionId, kind === "refund" ? "refunds.jsonl" : "effects.jsonl");
  const effects = kind === "refund" ? lines : lines.filter((line) => line.phase === "effect");
  const decided = load.decided.get(sessionId);
  if (effects.length !== 1 || decided === undefined) return [`${sessionId}: ${String(effects.length)} effects, decided: ${JSON.stringify(decided)}`];
  if (kind === "effect") return [];
  const args = JSON.parse(decided.args) as { orderId: string; amountCents: number; reason: string };
  const [ran] = effects;
  return ran?.orderId === args.orderId && ran.amountCents === args.amountCents && ran.reason === args.reason ? [] : [`${sessionId}: decided was ${decided.args}, ran ${JSON.stringify(ran)}`];
}

/** Dead letters, other than the one that each failing order must have. */
export async function letterProblems(load: Load): Promise<string[]> {
  const letters = await load.docket.deadLetters();
  const failing = load.sent.filter((sent) => sent.kind === "failing-order").map((sent) => sent.sessionId);
  const good = letters.filter(({ letter }) => !failing.includes(letter.sessionId ?? "")).map(({ letter }) => `dead letter of a good event: ${JSON.stringify(letter)}`);
  const missing = failing.filter((sessionId) => letters.filter(({ letter }) => letter.sessionId === sessionId).length !== 1);
  return [...good, ...missing.map((sessionId) => `${sessionId}: ${String(letters.filter(({ letter }) => letter.sessionId === sessionId).length)} dead letters, expected one`)];
}

/** Streams that left something out, repeated it, or sent it in another order. */
export function streamProblems(load: Load): string[] {
  return load.streams.flatMap(({ sessionId, client }) => {
    const wanted = load.view.journal(sessionId).map((entry) => entry.rev);
    const got = client.revs();
    return got.join() === wanted.join() ? [] : [`${sessionId}: the stream had ${got.join()}, the journal ${String(wanted.length)} entries`];
  });
}

/** Sessions that the console shows otherwise than they are. */
export function shownProblems(load: Load): string[] {
  const shown = load.view.shown();
  return load.view.sessions().flatMap(({ sessionId, rev, status }) => {
    const seen = shown.get(sessionId);
    return seen?.rev === rev && seen.status === status ? [] : [`${sessionId}: is ${status} at ${String(rev)}, shown is ${seen === undefined ? "nothing" : `${seen.status} at ${String(seen.rev)}`}`];
  });
}

/** Reminders that outlived their guard. */
export async function reminderProblems(load: Load): Promise<string[]> {
  const wanted = load.view.sessions().flatMap(({ actorId, guard }) => Array.from({ length: guard.generation }, (_, n) => `${actorId}/reminders/guard-${String(n + 1)}`));
  const left: string[] = [];
  await Promise.all(Array.from({ length: 8 }, async () => {
    for (let next = wanted.shift(); next !== undefined; next = wanted.shift()) {
      const reply = await load.docket.test.callSidecar("sessions", `/v1.0/actors/SessionActor/${next}`);
      const text = await reply.text();
      if (reply.ok && text !== "") left.push(`${next} ${text}`);
    }
  }));
  return left;
}
