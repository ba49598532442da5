/**
 * Owns: putting the console together: read model, intake of its three subscriptions, API, and the periodic work (nudges, gaps
 * in journals and lost ends of them, notices, forgetting). It looks on: nothing here holds a session's state, and losing the file loses only lists, dead
 * letters and the audit.
 */
import type { Express } from "express";
import { rateLimit } from "express-rate-limit";
import { Problem } from "../contracts/problems.js";
import { createHttpApp, finishRoutes, rawBody } from "../platform/http.js";
import type { ApiKeyRecord } from "../platform/apikeys.js";
import { errorFields } from "../platform/log.js";
import { alikeRoutes } from "./api/alike.js";
import { approvalRoutes } from "./api/approvals.js";
import { createAuditGuard, type AuditGuard } from "./api/audit-guard.js";
import { auditRoutes } from "./api/audit.js";
import type { ApiContext } from "./api/context.js";
import { costRoutes } from "./api/costs.js";
import { deadLetterRoutes } from "./api/dead-letters.js";
import { discardRoutes } from "./api/discard.js";
import { historyRoutes } from "./api/history.js";
import { installedRoutes } from "./api/installed.js";
import { messageRoutes } from "./api/messages.js";
import { overviewRoutes } from "./api/overview.js";
import { rebuildRoutes } from "./api/rebuild.js";
import { redriveRoutes } from "./api/redrive.js";
import { sessionRoutes } from "./api/sessions.js";
import { systemRoutes } from "./api/system.js";
import { tendingRoutes } from "./api/tending.js";
import { linkRoutes } from "./api/links.js";
import { noticeRoutes } from "./api/notices.js";
import { slackRoutes } from "./api/slack.js";
import { createAuditKeeper, type AuditKeeper } from "./audit-keeper.js";
import { viewRoutes } from "./api/views.js";
import type { ConsoleConfig } from "./config.js";
import { compactLong, expireIdle } from "./expiry.js";
import { createIntake, type Intake } from "./intake/intake.js";
import { createProjector } from "./intake/projector.js";
import { createIdentityProvider } from "./oidc/provider.js";
import { oidcRoutes } from "./oidc/routes.js";
import { watchConsole } from "./measures.js";
import { metricsRoute } from "./metrics.js";
import { createNotices } from "./notices/service.js";
import { nudgeOverdue } from "./nudger.js";
import { resendRedrives } from "./redrive-sweeper.js";
import type { ConsoleDeps } from "./ports.js";
import { addAudit } from "./read-model/audit.js";
import { openReadModel } from "./read-model/open.js";
import { forgetOld } from "./read-model/retention.js";
import { browserCookies, signInRoutes } from "./web/signed-in.js";
import { CONTENT_POLICY, siteRoutes } from "./web/site.js";

export interface Console extends Intake {
  /** For the public port. */
  readonly publicApp: Express;
  /** Starts the periodic work, with what the console may have missed while it was away. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Writes into the audit that API keys came or went: that happens in a file, by `docket key`. */
  keysChanged(change: { readonly added: readonly KeyFacts[]; readonly removed: readonly KeyFacts[] }): Promise<void>;
  /** One round of the periodic work, now (tests turn the clock). */
  lookAround(): Promise<void>;
}

type KeyFacts = Omit<ApiKeyRecord, "hash">;

export function createConsole(given: ConsoleDeps, config: ConsoleConfig): Console {
  const db = openReadModel(config.database, (error) => { given.logger.warn(errorFields(error), "a connection to the read model's database broke; the next query makes a new one"); });
  const notices = createNotices(db, config, given);
  const deps: ConsoleDeps = notices.part === undefined ? given : { ...given, parts: [...given.parts, notices.part] };
  const projector = createProjector(db, deps.sessions, { logger: deps.logger, clock: deps.clock, quietMs: config.check.quietMs });
  const intake = createIntake(db, projector, deps);
  const context: ApiContext = { db, deps, config, intake, projector };
  watchConsole(db, { projector, clock: deps.clock, overdueMs: config.nudge.overdueMs });
  const keeper = createAuditKeeper(db, deps, config.audit);
  const guard = createAuditGuard(context);
  const lookAtAudit = async (): Promise<void> => {
    await guard.flush();
    await keeper.look();
  };
  let forgottenAtMs = 0;
  const lookAround = async (): Promise<void> => {
    await nudgeOverdue(db, config.nudge, deps);
    const nowMs = deps.clock.nowMs();
    if (nowMs - forgottenAtMs < config.retention.everyMs) return;
    await expireIdle(db, config.retention, deps);
    await compactLong(db, config.retention, deps);
    await forgetOld(db, config.retention, nowMs);
    forgottenAtMs = nowMs;
  };
  /** As long as it gets on: journals that are all read again are many gaps. */
  const repair = async (): Promise<void> => {
    for (let closed = config.check.gaps; !stopping && closed >= config.check.gaps;) closed = await projector.repairGaps(config.check.gaps);
  };
  let stopping = false;
  const periodic = [
    repeat("a look around", config.nudge.everyMs, lookAround, deps.logger),
    repeat("reading missing entries", config.check.everyMs, repair, deps.logger),
    repeat("checking journals", config.check.everyMs, () => projector.checkHeads(config.check.batch), deps.logger),
    repeat("looking at the audit", config.audit.everyMs, lookAtAudit, deps.logger),
    repeat("resending redrives", config.redrive.everyMs, () => resendRedrives(db, config.redrive, deps), deps.logger),
    ...notices.work.map(({ name, run }) => repeat(name, config.noticeTiming.everyMs, run, deps.logger)),
  ];
  return {
    ...intake,
    publicApp: publicAppOf(context, keeper, guard),
    async keysChanged({ added, removed }) {
      for (const [action, keys] of [["api-key.added", added], ["api-key.removed", removed]] as const) {
        for (const { id, tenant, principalId, class: kind, roles, scopes, expiresAt } of keys) {
          await addAudit(db, { atMs: deps.clock.nowMs(), tenant, principalId: "docket/console", keyId: "", action, target: id, outcome: "seen in the key file", reason: "", detail: { principalId, class: kind, roles, scopes, expiresAt }, ip: "" });
        }
      }
    },
    async lookAround() {
      await lookAround();
      await repair();
      await projector.checkHeads(config.check.batch);
      await resendRedrives(db, config.redrive, deps);
      for (const { run } of notices.work) await run();
      await lookAtAudit();
    },
    async start() {
      await projector.checkRecent(config.check.sinceMs);
      await notices.begin();
      for (const { start } of periodic) start();
    },
    async stop() {
      stopping = true;
      await Promise.all(periodic.map(({ stop }) => stop()));
      await keeper.sign().catch((error: unknown) => { deps.logger.warn(errorFields(error), "the last head of the audit could not be signed"); });
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

function publicAppOf(context: ApiContext, keeper: AuditKeeper, guard: AuditGuard): Express {
  const { config, deps } = context;
  const app = createHttpApp({ csp: CONTENT_POLICY });
  app.set("etag", "weak"); // lists are polled: what has not changed is not sent again
  app.set("trust proxy", config.trustProxyHops);
  app.get("/healthz", (_req, res) => { res.json({ status: "ok" }); });
  app.use(guard.before);
  app.use(rateLimit({
    windowMs: 60_000, limit: config.rateLimitPerMinute, standardHeaders: "draft-8", legacyHeaders: false,
    handler: (_req, _res, next) => { next(new Problem("rate_limited", "too many requests from this address", { hint: "wait as long as Retry-After says" })); },
  }));
  app.use(rawBody(config.bodyLimitBytes));
  app.use(["/v1", "/session"], (_req, res, next) => { res.setHeader("cache-control", "no-store"); next(); }, browserCookies(context));
  const provider = config.oidc === undefined ? undefined : createIdentityProvider(config.oidc);
  signInRoutes(app, context, provider);
  if (config.oidc !== undefined && provider !== undefined) oidcRoutes(app, context, config.oidc, provider);
  overviewRoutes(app, context);
  systemRoutes(app, context);
  installedRoutes(app, context);
  sessionRoutes(app, context);
  messageRoutes(app, context);
  historyRoutes(app, context);
  alikeRoutes(app, context);
  approvalRoutes(app, context);
  tendingRoutes(app, context);
  noticeRoutes(app, context);
  linkRoutes(app, context);
  slackRoutes(app, context);
  auditRoutes(app, context, keeper);
  deadLetterRoutes(app, context);
  discardRoutes(app, context);
  redriveRoutes(app, context);
  costRoutes(app, context);
  viewRoutes(app, context);
  rebuildRoutes(app, context);
  metricsRoute(app, context);
  siteRoutes(app, config.webDir);
  app.use(guard.refused);
  finishRoutes(app, deps.logger);
  return app;
}
