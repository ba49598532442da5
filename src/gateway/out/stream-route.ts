/** Owns: letting a stream in: rights, limits, resume position, waiting for a session that is about to appear, and cleaning up. */
import { Router, type Request, type Response } from "express";
import { z } from "zod";
import type { JournalPage } from "../../contracts/api.js";
import { actorIdOf } from "../../contracts/ids.js";
import { Problem, zodErrors } from "../../contracts/problems.js";
import type { Clock } from "../../platform/clock.js";
import type { Logger } from "../../platform/log.js";
import type { GatewayConfig } from "../config.js";
import { readSessionId } from "../in/accept.js";
import { callerKey, callerOf, scoped } from "../in/caller.js";
import type { Inbox, Sessions } from "../ports.js";
import type { FeedHandle, Feeds } from "./feeds.js";
import { sessionNotFound } from "./reads.js";
import { SseWriter } from "./sse.js";
import { Alarm, SessionStream, type RunEnd } from "./stream.js";

const MAX_TIMER_MS = 2_147_483_647;
/** A session that is waited for is asked for this often. */
const APPEAR_MS = 250;

const Rev = z.string().regex(/^\d{1,15}$/, "expected a journal revision").transform(Number);
const StreamQuery = z.object({
  after: Rev.optional(),
  wait: z.enum(["0", "1"]).optional(),
  until: z.string().regex(/^run:run_[0-9a-f]{24}$/, "expected run:<runId>").transform((text) => text.slice(4)).optional(),
});

export interface StreamDeps {
  readonly sessions: Sessions;
  /** Tells of the awaited run that it will never begin. */
  readonly inbox: Pick<Inbox, "find">;
  readonly feeds: Feeds;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly config: GatewayConfig["stream"];
}

/** The streams of this process. */
export class StreamRoutes {
  readonly router = Router({ caseSensitive: true });
  readonly #open = new Map<string, number>();
  readonly #writers = new Set<SseWriter>();

  constructor(private readonly deps: StreamDeps) {
    // Express would answer HEAD by opening a stream that nobody reads.
    this.router.head("/v1/sessions/:id/stream", scoped("sessions:read"), (_req, res) => { res.status(204).end(); });
    this.router.get("/v1/sessions/:id/stream", scoped("sessions:read"), async (req: Request<{ id: string }>, res) => { await this.#stream(req, res); });
  }

  /** Open streams. */
  get size(): number { return this.#writers.size; }

  /** Ends all streams in order; clients come back with their last id. */
  stop(): void {
    for (const writer of this.#writers) writer.end();
  }

  async #stream(req: Request<{ id: string }>, res: Response): Promise<void> {
    const sessionId = readSessionId(req.params.id);
    const query = readQuery(req);
    const caller = callerOf(res);
    const actorId = actorIdOf(caller.tenant, sessionId);
    const release = this.#claim(callerKey(res));
    const alarm = new Alarm();
    let stream: SessionStream | undefined;
    const feed = this.deps.feeds.open(actorId, { wake: (news) => { if (stream === undefined) alarm.ring(); else stream.hear(news); }, delta: (delta) => stream?.delta(delta) });
    try {
      const head = await this.#firstPage(res, feed, alarm, { sessionId, ...query });
      if (head === "gone") return;
      if ("headRev" in head && query.after > head.headRev) throw new Problem("bad_request", `revision ${query.after} is beyond the session's head ${head.headRev}`, { hint: "Last-Event-ID is the id of an event of this session's stream" });
      const ended = "outcome" in head ? head : query.untilRun === undefined || query.after === 0 ? undefined : await this.#endedBefore(actorId, query.untilRun, query.after);
      const writer = new SseWriter(res, this.deps.config);
      stream = new SessionStream({ writer, feed, alarm, afterRev: query.after, untilRun: query.untilRun, deadRun: (runId) => this.#deadRun(runId), logger: this.deps.logger });
      await this.#run(stream, writer, { ended, expiresAtMs: caller.expiresAtMs });
    } finally {
      feed.close();
      release();
    }
  }

  async #run(stream: SessionStream, writer: SseWriter, until: { ended: RunEnd | undefined; expiresAtMs: number | undefined }): Promise<void> {
    this.#writers.add(writer);
    const expiry = this.#endAtExpiry(writer, until.expiresAtMs);
    try {
      if (until.ended === undefined) await stream.run();
      else await writer.send({ event: "end", data: until.ended });
    } finally {
      writer.end();
      clearTimeout(expiry);
      this.#writers.delete(writer);
    }
  }

  /** Read before the head is sent, so that what fails is a problem document. A run that died before its session appeared has ended. */
  async #firstPage(res: Response, feed: FeedHandle, alarm: Alarm, ask: { sessionId: string; after: number; wait: boolean; untilRun: string | undefined }): Promise<JournalPage | RunEnd | "gone"> {
    const deadlineMs = performance.now() + (ask.wait ? this.deps.config.waitMs : 0);
    res.once("close", () => { alarm.ring(); });
    for (;;) {
      if (res.destroyed) return "gone";
      let failure: unknown = sessionNotFound(ask.sessionId);
      try {
        const page = await feed.read(ask.after);
        if (page !== undefined) return page;
      } catch (error) {
        failure = error;
      }
      const dead = ask.untilRun === undefined ? undefined : await this.#deadRun(ask.untilRun);
      if (dead !== undefined) return dead;
      if (performance.now() >= deadlineMs) throw failure;
      await alarm.wait(APPEAR_MS);
    }
  }

  /** The run's end, where the client's position is behind it: it would wait for ever. */
  async #endedBefore(actorId: string, runId: string, afterRev: number): Promise<RunEnd | undefined> {
    const view = await this.deps.sessions.readSession(actorId);
    const run = view?.recentRuns.find((candidate) => candidate.runId === runId && candidate.rev <= afterRev);
    return run === undefined ? undefined : { runId, outcome: run.outcome, ...(run.code === undefined ? {} : { code: run.code }), rev: run.rev };
  }

  async #deadRun(runId: string): Promise<RunEnd | undefined> {
    const found = await this.deps.inbox.find(runId);
    return found === undefined || found === "waiting" ? undefined : { runId, outcome: "dead_lettered", ...found, rev: 0 };
  }

  #claim(key: string): () => void {
    const open = this.#open.get(key) ?? 0;
    if (open >= this.deps.config.perPrincipal) throw new Problem("rate_limited", `this principal has ${open} streams open; the limit is ${this.deps.config.perPrincipal}`, { hint: "close one" });
    const total = [...this.#open.values()].reduce((sum, one) => sum + one, 0);
    if (total >= this.deps.config.total) throw new Problem("rate_limited", "this gateway has as many streams open as it takes", { hint: "try again later" });
    this.#open.set(key, open + 1);
    return () => {
      const left = (this.#open.get(key) ?? 1) - 1;
      if (left > 0) this.#open.set(key, left);
      else this.#open.delete(key);
    };
  }

  /** A key that expires takes its streams with it. */
  #endAtExpiry(writer: SseWriter, expiresAtMs: number | undefined): NodeJS.Timeout | undefined {
    if (expiresAtMs === undefined) return undefined;
    return setTimeout(() => { writer.end(); }, Math.min(Math.max(expiresAtMs - this.deps.clock.nowMs(), 0), MAX_TIMER_MS));
  }
}

function readQuery(req: Request): { after: number; wait: boolean; untilRun: string | undefined } {
  const parsed = StreamQuery.safeParse(req.query);
  if (!parsed.success) throw new Problem("bad_request", "the stream's query is not usable", { errors: zodErrors(parsed.error) });
  const lastId = req.header("last-event-id");
  const resumed = lastId === undefined || lastId === "" ? undefined : Rev.safeParse(lastId);
  if (resumed?.success === false) throw new Problem("bad_request", "Last-Event-ID is no id of this stream", { hint: "it is a journal revision: digits" });
  return { after: resumed?.data ?? parsed.data.after ?? 0, wait: parsed.data.wait === "1", untilRun: parsed.data.until };
}
