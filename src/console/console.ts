/**
 * Owns: putting the console together: read model, intake of its three subscriptions, API, and the periodic work (nudges, gaps
 * in journals and lost ends of them, forgetting). It looks on: nothing here holds a session's state, and losing the file loses only lists, dead
 * letters and the audit.
 */
import type { Express } from "express";
import { rateLimit } from "express-rate-limit";
import { Problem } from "../contracts/problems.js";
import { createHttpApp, finishRoutes, rawBody, sendProblem } from "../platform/http.js";
import { errorFields } from "../platform/log.js";
import { approvalRoutes } from "./api/approvals.js";
import type { ApiContext } from "./api/context.js";
import { deadLetterRoutes } from "./api/dead-letters.js";
import { discardRoutes } from "./api/discard.js";
import { installedRoutes } from "./api/installed.js";
import { messageRoutes } from "./api/messages.js";
import { overviewRoutes } from "./api/overview.js";
import { redriveRoutes } from "./api/redrive.js";
import { sessionRoutes } from "./api/sessions.js";
import type { ConsoleConfig } from "./config.js";
import { expireIdle } from "./expiry.js";
import { createIntake, type Intake } from "./intake/intake.js";
import { createProjector } from "./intake/projector.js";
import { metricsRoute } from "./metrics.js";
import { nudgeOverdue } from "./nudger.js";
import { resendRedrives } from "./redrive-sweeper.js";
import type { ConsoleDeps } from "./ports.js";
import { openReadModel } from "./read-model/database.js";
import { forgetOld } from "./read-model/retention.js";
import { browserCookies, signInRoutes } from "./web/signed-in.js";
import { CONTENT_POLICY, siteRoutes } from "./web/site.js";

export interface Console extends Intake {
  /** For the public port. */
  readonly publicApp: Express;
  /** Starts the periodic work, with what the console may have missed while it was away. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** One round of the periodic work, now (tests turn the clock). */
  lookAround(): Promise<void>;
}

const GAPS_PER_LOOK = 20;

export function createConsole(deps: ConsoleDeps, config: ConsoleConfig): Console {
  const db = openReadModel(config.database);
  const projector = createProjector(db, deps.sessions, { logger: deps.logger, clock: deps.clock, quietMs: config.check.quietMs });
  const intake = createIntake(db, projector, deps);
  let forgottenAtMs = 0;
  const lookAround = async (): Promise<void> => {
    await nudgeOverdue(db, config.nudge, deps);
    await projector.repairGaps(GAPS_PER_LOOK);
    const nowMs = deps.clock.nowMs();
    if (nowMs - forgottenAtMs < config.retention.everyMs) return;
    await expireIdle(db, config.retention, deps);
    await forgetOld(db, config.retention, nowMs);
    forgottenAtMs = nowMs;
  };
  const periodic = [
    repeat("a look around", config.nudge.everyMs, lookAround, deps.logger),
    repeat("checking journals", config.check.everyMs, () => projector.checkHeads(config.check.batch), deps.logger),
    repeat("resending redrives", config.redrive.everyMs, () => resendRedrives(db, config.redrive, deps), deps.logger),
  ];
  return {
    ...intake,
    publicApp: publicAppOf({ db, deps, config, intake }),
    async lookAround() {
      await lookAround();
      await projector.checkHeads(config.check.batch);
      await resendRedrives(db, config.redrive, deps);
    },
    async start() {
      await projector.checkRecent(config.check.sinceMs);
      for (const { start } of periodic) start();
    },
    async stop() {
      await Promise.all(periodic.map(({ stop }) => stop()));
      await db.destroy();
    },
  };
}

/** Runs `work` again and again with a pause between; a failure is logged and the next round comes all the same. */
function repeat(what: string, everyMs: number, work: () => Promise<void>, logger: ConsoleDeps["logger"]): { readonly start: () => void; readonly stop: () => Promise<void> } {
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> = Promise.resolve();
  let stopped = false;
  const schedule = (): void => {
    if (stopped) return;
    timer = setTimeout(() => {
      working = work().catch((error: unknown) => { logger.warn(errorFields(error), `${what} failed`); }).then(schedule);
    }, everyMs).unref();
  };
  return {
    start: schedule,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await working;
    },
  };
}

function publicAppOf(context: ApiContext): Express {
  const { config, deps } = context;
  const app = createHttpApp({ csp: CONTENT_POLICY });
  app.set("etag", "weak"); // lists are polled: what has not changed is not sent again
  app.set("trust proxy", config.trustProxyHops);
  app.get("/healthz", (_req, res) => { res.json({ status: "ok" }); });
  app.use(rateLimit({
    windowMs: 60_000, limit: config.rateLimitPerMinute, standardHeaders: "draft-8", legacyHeaders: false,
    handler: (_req, res) => { sendProblem(res, new Problem("rate_limited", "too many requests from this address", { hint: "wait as long as Retry-After says" })); },
  }));
  app.use(rawBody(config.bodyLimitBytes));
  app.use(["/v1", "/session"], (_req, res, next) => { res.setHeader("cache-control", "no-store"); next(); }, browserCookies(context));
  signInRoutes(app, context);
  overviewRoutes(app, context);
  installedRoutes(app, context);
  sessionRoutes(app, context);
  messageRoutes(app, context);
  approvalRoutes(app, context);
  deadLetterRoutes(app, context);
  discardRoutes(app, context);
  redriveRoutes(app, context);
  metricsRoute(app, context);
  siteRoutes(app, config.webDir);
  finishRoutes(app, deps.logger);
  return app;
}
