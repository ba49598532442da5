/**
 * Owns: a proxy between daprd and its app that mistreats chosen requests as brokers and other Dapr runtimes do: repeats them
 * (also while the first still runs, as runtimes from 1.15 on do with a cut turn), holds them back, swaps them, acks them without
 * giving them to the app (DESIGN 7.10), or loses the app's answer. What no rule chooses goes through as it is. Keeps a log. It fits
 * between an app and its sidecar as well.
 */
import { Agent, createServer, request as httpRequest, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as pause } from "node:timers/promises";

export const MISTREATMENTS = ["duplicate", "delay", "drop", "lose-answer", "reorder"] as const;
export type Mistreatment = (typeof MISTREATMENTS)[number];
/** What other runtimes than the pinned one do on purpose. */
type RuntimeHabit = "cut-and-repeat" | "refuse" | "ack-errors" | "hold";

export interface ProxyRule {
  /** Which requests; `/channels/tasks`, `/actors/SessionActor/x/method/deliver`. */
  readonly path: RegExp;
  /**
   * `duplicate`: given to the app twice, the second copy `ms` after the first was sent, whether that has ended or not; the first answer counts.
   * `delay`: held back for `ms`. `reorder`: held back until the next one has been answered, for `ms` at most.
   * `drop`: `dropped` is answered, the app gets nothing. `lose-answer`: the app's answer never arrives.
   * `cut-and-repeat`: what is not answered in `ms` is cut off and asked for again, while the app still works on it; every second time of
   * the app at `elsewhere`, where the actor is said to have moved. `refuse`: 500, the app gets nothing. `ack-errors`: what the app did
   * not settle is acked all the same. `hold`: nothing gets through until the rule is lifted.
   * Of `cut-and-repeat` and `ack-errors` only those count as hits that were cut or acked.
   */
  readonly do: Mistreatment | RuntimeHabit;
  readonly ms?: number;
  /** How many are mistreated; default all. */
  readonly times?: number;
  /** What a drop answers; default the ack of a delivery. An empty text is daprd's 200 for an actor call that failed. */
  readonly dropped?: string;
  /** Of `cut-and-repeat`: another copy of the app, and what it wants in the headers. */
  readonly elsewhere?: { readonly port: number; readonly headers: Readonly<Record<string, string>> };
}

/** One request as it came through. */
export interface Passed { readonly atMs: number; readonly path: string; readonly body: string; readonly rule: ProxyRule["do"] | undefined; readonly status: number | "cut" }

interface Incoming { readonly method: string; readonly path: string; readonly headers: IncomingHttpHeaders; readonly body: Buffer }
const HABITS_COUNTED_LATE: readonly ProxyRule["do"][] = ["cut-and-repeat", "ack-errors"];
const ACK = { status: 200, headers: { "content-type": "application/json" }, body: Buffer.from('{"status":"SUCCESS"}') };

/** Where a request goes instead, and what cuts it off. */
interface Way { readonly port?: number; readonly headers?: Readonly<Record<string, string>>; readonly signal?: AbortSignal }
interface Answer { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: Buffer }

export class FaultProxy {
  /** What was done to how many requests since the rule was set. */
  hits = 0;
  /** Requests of the paths that are logged, in the order in which they were given to the app. */
  readonly log: Passed[] = [];
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 256 });
  #rule: ProxyRule | undefined;
  #nextPassed: (() => void) | undefined;
  readonly #held: (() => void)[] = [];

  constructor(private readonly options: { readonly targetPort: number; /** Default: nothing is logged. */ readonly logPath?: RegExp }) {
    this.#server = createServer((req, res) => { this.#serve(req, res).catch(() => { res.destroy(); }); });
    this.#server.keepAliveTimeout = 120_000;
  }

  listen(port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, "127.0.0.1", resolve);
    });
  }

  /** Mistreats from now on; undefined: nothing any more. */
  set(rule: ProxyRule | undefined): void {
    this.#rule = rule;
    this.hits = 0;
    for (const go of this.#held.splice(0)) go();
  }

  async close(): Promise<void> {
    this.set(undefined);
    this.#agent.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => { this.#server.close(resolve); });
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of req) pieces.push(piece as Buffer);
    const incoming: Incoming = { method: req.method ?? "GET", path: req.url ?? "/", headers: req.headers, body: Buffer.concat(pieces) };
    const rule = this.#take(incoming.path);
    const answer = await this.#treat(incoming, rule);
    if (answer === undefined) {
      res.destroy();
      return;
    }
    res.writeHead(answer.status, answer.headers);
    res.end(answer.body);
  }

  #take(path: string): ProxyRule | undefined {
    const rule = this.#rule;
    if (rule === undefined || !rule.path.test(path) || this.hits >= (rule.times ?? Infinity)) return undefined;
    if (!HABITS_COUNTED_LATE.includes(rule.do)) this.hits += 1;
    return rule;
  }

  /** Undefined: the caller sees its connection break. */
  async #treat(incoming: Incoming, rule: ProxyRule | undefined): Promise<Answer | undefined> {
    switch (rule?.do) {
      case undefined: return this.#pass(incoming, undefined);
      case "delay":
        await pause(rule.ms ?? 1_000);
        return this.#pass(incoming, rule);
      case "reorder": return this.#swap(incoming, rule);
      case "drop": return rule.dropped === undefined ? ACK : { ...ACK, body: Buffer.from(rule.dropped) };
      case "refuse": return { status: 500, headers: { "content-type": "application/json" }, body: Buffer.from('{"errorCode":"ERR_FAULT_PROXY"}') };
      case "hold":
        await new Promise<void>((resolve) => { this.#held.push(resolve); });
        return this.#pass(incoming, rule);
      case "ack-errors": return this.#ackErrors(incoming, rule);
      case "cut-and-repeat": return this.#cutAndRepeat(incoming, rule);
      case "lose-answer":
        await this.#pass(incoming, rule);
        return undefined;
      case "duplicate": {
        const second = pause(rule.ms ?? 0).then(() => this.#pass(incoming, rule));
        const first = await this.#pass(incoming, rule);
        // Both copies are handled before the broker hears anything, so that no third one comes of it.
        await second;
        return first;
      }
    }
  }

  async #ackErrors(incoming: Incoming, rule: ProxyRule): Promise<Answer | undefined> {
    const answer = await this.#pass(incoming, rule);
    if (answer?.status === 200 && !answer.body.includes("RETRY")) return answer;
    this.hits += 1;
    return ACK;
  }

  async #cutAndRepeat(incoming: Incoming, rule: ProxyRule): Promise<Answer | undefined> {
    const cut = new AbortController();
    const timer = setTimeout(() => { cut.abort(); }, rule.ms ?? 2_000);
    const answer = await this.#pass(incoming, rule, { signal: cut.signal });
    clearTimeout(timer);
    if (!cut.signal.aborted) return answer;
    this.hits += 1;
    return this.#pass(incoming, rule, this.hits % 2 === 0 ? rule.elsewhere ?? {} : {});
  }

  /** Lets the one behind go first. Where none comes in time, this one goes alone. */
  async #swap(incoming: Incoming, rule: ProxyRule): Promise<Answer | undefined> {
    const release = this.#nextPassed;
    if (release !== undefined) {
      this.#nextPassed = undefined;
      const answer = await this.#pass(incoming, rule);
      release();
      return answer;
    }
    await Promise.race([new Promise<void>((resolve) => { this.#nextPassed = resolve; }), pause(rule.ms ?? 2_000)]);
    this.#nextPassed = undefined;
    return this.#pass(incoming, rule);
  }

  async #pass(incoming: Incoming, rule: ProxyRule | undefined, to: Way = {}): Promise<Answer | undefined> {
    const atMs = Date.now();
    const answer = await this.#forward(incoming, to);
    if (this.options.logPath?.test(incoming.path) === true) this.log.push({ atMs, path: incoming.path, body: incoming.body.toString("utf8"), rule: rule?.do, status: answer?.status ?? "cut" });
    return answer;
  }

  #forward(incoming: Incoming, { port = this.options.targetPort, headers: more, signal }: Way): Promise<Answer | undefined> {
    const { connection: _hopByHop, "transfer-encoding": _length, ...headers } = incoming.headers;
    return new Promise((resolve) => {
      const out = httpRequest({ host: "127.0.0.1", port, agent: this.#agent, method: incoming.method, path: incoming.path, headers: { ...headers, ...more, "content-length": incoming.body.length }, ...(signal === undefined ? {} : { signal }) }, (reply) => {
        const pieces: Buffer[] = [];
        reply.on("data", (piece: Buffer) => pieces.push(piece));
        reply.on("end", () => {
          const { connection: _own, "transfer-encoding": _coding, ...rest } = reply.headers;
          resolve({ status: reply.statusCode ?? 502, headers: rest, body: Buffer.concat(pieces) });
        });
        reply.on("error", () => { resolve(undefined); });
      });
      out.on("error", () => { resolve(undefined); });
      out.end(incoming.body);
    });
  }
}
