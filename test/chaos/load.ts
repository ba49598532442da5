/** Owns: the clients and the person of a chaos run: they send what is planned until it is accepted, cancel, decide, and watch streams. */
import { Accepted, ApprovalPage, type ApprovalListItem } from "../../src/contracts/api.js";
import { StreamClient } from "../support/sse.js";
import type { Docket } from "../support/docket.js";
import type { SentEvent } from "./evidence.js";
import { modifiedArgs, textOf, type PlannedEvent, type PlannedSession } from "./stories.js";
import type { Stores } from "./stores.js";

const SENDERS = 8;
const ACCEPT_MS = 120_000;
const DECIDE_AGAIN_MS = 12_000;

export class Load {
  readonly sent: SentEvent[] = [];
  readonly decided = new Map<string, { kind: string; args: string }>();
  readonly asked = new Set<string>();
  readonly streams: { sessionId: string; revs: number[] }[] = [];
  readonly #clients = new Map<string, StreamClient>();
  readonly #planned = new Map<string, PlannedEvent>();
  readonly #triedAtMs = new Map<string, number>();
  #running = true;
  #deciding: Promise<void> | undefined;

  constructor(private readonly docket: Docket, private readonly stores: Stores) {}

  start(): void { this.#deciding = this.#decideAll(); }

  async stop(): Promise<void> {
    this.#running = false;
    for (const sessionId of [...this.#clients.keys()]) this.unwatch(sessionId);
    await this.#deciding;
  }

  /** Sends the sessions' events: several sessions at once, the events of one in order. Resolves when all are accepted. */
  async send(round: number, sessions: readonly PlannedSession[], senders = SENDERS): Promise<void> {
    const queue = [...sessions];
    await Promise.all(Array.from({ length: senders }, async () => {
      for (let next = queue.shift(); next !== undefined && this.#running; next = queue.shift()) await this.#sendSession(round, next);
    }));
  }

  watch(sessionId: string): void {
    const client = new StreamClient(`${this.docket.test.stack.urls.gateway ?? ""}/v1/sessions/${sessionId}/stream?wait=1`, this.docket.apiKey);
    client.start();
    this.#clients.set(sessionId, client);
  }

  /** Sessions whose stream is still open, with the revisions that came. */
  watched(): { sessionId: string; revs: number[] }[] { return [...this.#clients].map(([sessionId, client]) => ({ sessionId, revs: client.revs() })); }

  unwatch(sessionId: string): void {
    const client = this.#clients.get(sessionId);
    if (client === undefined) return;
    client.close();
    this.#clients.delete(sessionId);
    this.streams.push({ sessionId, revs: client.revs() });
  }

  async isEnded({ accepted, sessionId }: SentEvent): Promise<boolean> {
    if (accepted === undefined) return false;
    return (await this.stores.session(sessionId))?.recentRuns.some((run) => run.key === accepted.eventKey) ?? false;
  }

  async #sendSession(round: number, { sessionId, story, events }: PlannedSession): Promise<void> {
    for (const planned of events) {
      const event: SentEvent = { round, sessionId, story, planned };
      this.sent.push(event);
      this.#planned.set(planned.token, planned);
      const expirytime = planned.expiresInMs === undefined ? {} : { expirytime: new Date(Date.now() + planned.expiresInMs).toISOString() };
      const accepted = await this.#until202(`event ${planned.token}`, () => this.docket.gateway("POST", "/v1/events", {
        specversion: "1.0", id: planned.token, source: "https://chaos.example", type: "com.docket.prompt.received.v1", subject: sessionId, agent: "mixed",
        datacontenttype: "application/json", data: { text: textOf(planned) }, ...expirytime,
      }, { "content-type": "application/cloudevents+json" }), planned.expiresInMs);
      if (accepted === undefined) continue;
      Object.assign(event, { accepted, acceptedAtMs: Date.now() });
      if (planned.cancelled === true) await this.#cancel(event);
    }
  }

  /** As a client does that must not lose anything: the same event again until it has a 202. Undefined: it expired before anybody took it. */
  async #until202(what: string, send: () => Promise<{ status: number; body: unknown }>, expiresInMs: number | undefined): Promise<Accepted | undefined> {
    const deadline = Date.now() + ACCEPT_MS;
    while (this.#running) {
      const reply = await send().catch((error: unknown) => ({ status: 0, body: String(error) }));
      if (reply.status === 202) return Accepted.parse(reply.body);
      if (reply.status === 404) return undefined;
      const last = `${String(reply.status)} ${JSON.stringify(reply.body)}`;
      if (expiresInMs !== undefined && reply.status === 410) return undefined;
      if (reply.status >= 400 && reply.status < 500 && reply.status !== 429) throw new Error(`${what} was refused: ${last}`);
      if (Date.now() > deadline) throw new Error(`${what} was not accepted within ${String(ACCEPT_MS)} ms; last: ${last}`);
      await new Promise((next) => setTimeout(next, reply.status === 429 ? 1_000 : 100));
    }
    return undefined;
  }

  /** Once the run is open; where it has ended by then, the cancel comes too late and changes nothing. */
  async #cancel(event: SentEvent): Promise<void> {
    const deadline = Date.now() + 10_000;
    while (this.#running && Date.now() < deadline) {
      const state = await this.stores.session(event.sessionId);
      if (state !== undefined && "run" in state && state.run.runId === event.accepted?.runId) break;
      if (await this.isEnded(event)) return;
      await new Promise((next) => setTimeout(next, 100));
    }
    await this.#until202(`the cancel of ${event.planned.token}`, () => this.docket.gateway("POST", `/v1/sessions/${event.sessionId}/cancel`, { runId: event.accepted?.runId, reason: "changed my mind" }, { "idempotency-key": `cancel-${event.planned.token}` }), undefined);
  }

  async #decideAll(): Promise<void> {
    while (this.#running) {
      const open = await this.docket.console("GET", "/v1/approvals?state=open&limit=200").then(({ status, body }) => (status === 200 ? ApprovalPage.parse(body).items : []), () => []);
      await Promise.all(open.map((item) => this.#decide(item)));
      await new Promise((next) => setTimeout(next, 250));
    }
  }

  async #decide(item: ApprovalListItem): Promise<void> {
    const { record } = item.pending;
    if (Date.now() - (this.#triedAtMs.get(record.approvalId) ?? 0) < DECIDE_AGAIN_MS) return;
    const answer = record.kind === "escalation" ? this.#answerTo(item) : this.#decisionOn(item);
    if (answer === undefined) return;
    this.#triedAtMs.set(record.approvalId, Date.now());
    // The console is away, so the decision may be lost: at once again when it is back.
    await this.docket.decide(item, answer.kind, answer.more).catch(() => { this.#triedAtMs.delete(record.approvalId); });
  }

  #decisionOn({ pending }: ApprovalListItem): { kind: string; more: object } | undefined {
    const { token } = JSON.parse(pending.args) as { token: string };
    const kind = this.#planned.get(token)?.decision;
    if (kind === undefined || kind === "leave") return undefined;
    const args = kind === "modify" ? modifiedArgs(pending.args) : pending.args;
    this.decided.set(token, { kind, args });
    return { kind, more: kind === "modify" ? { args } : kind === "reject" ? { text: "not this one" } : {} };
  }

  /** A person looks the outcome up elsewhere and says it; whatever else came up is tried again. */
  #answerTo({ pending: { record, sessionId } }: ApprovalListItem): { kind: string; more: object } | undefined {
    if (record.escalation === "outcome_unknown") {
      for (const event of this.sent) if (event.sessionId === sessionId) this.asked.add(event.planned.token);
      return { kind: "respond", more: { text: "I have looked: it is settled." } };
    }
    return record.allowed.includes("retry") ? { kind: "retry", more: {} } : undefined;
  }
}
