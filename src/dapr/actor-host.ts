/**
 * Owns: hosting SessionActor through @dapr/dapr, with the SDK's traps closed (DESIGN 7.3, 7.14): methods by
 * allow-list, no throw reaches the SDK, a deactivation of an unknown actor is fine, reminders carry JSON text.
 * Does not own: what the methods do.
 */
import { AbstractActor, CommunicationProtocolEnum, DaprServer } from "@dapr/dapr";
import type { Express, NextFunction, Request, Response } from "express";
import type { Server } from "node:http";
import { SESSION_ACTOR_TYPE } from "../contracts/channels.js";
import { errorFields, type Logger } from "../platform/log.js";
import { closeRoutes, tuneServer } from "./listener.js";

/** One call of an actor: always an object in, always an object out (trap A5). */
export type ActorMethods = Readonly<Record<string, (actorId: string, body: unknown) => Promise<object>>>;

export interface ActorHostOptions {
  readonly app: Express;
  readonly host: string;
  readonly port: number;
  readonly daprHttpPort: number;
  readonly methods: ActorMethods;
  /** Reminder: `data` is the JSON text given at registration. Nobody waits for it, so reminders are periodic. */
  readonly onReminder: (actorId: string, data: string) => Promise<void>;
  readonly logger: Logger;
}

/** How long a call by the sidecar proves that an actor lives here. Well below its idle time, so that a busy actor is not put away. */
const PROOF_MS = 30_000;

/** The actors that live in this process, each with the time of the sidecar's last call of it. */
class ActiveActors {
  readonly #calledAtMs = new Map<string, number>();
  get size(): number { return this.#calledAtMs.size; }
  has(actorId: string): boolean { return this.#calledAtMs.has(actorId); }
  add(actorId: string): void { this.#calledAtMs.set(actorId, Date.now()); }
  delete(actorId: string): void { this.#calledAtMs.delete(actorId); }
  /** The sidecar, which knows the placement, has called it here a moment ago. */
  isProven(actorId: string): boolean { return Date.now() - (this.#calledAtMs.get(actorId) ?? 0) < PROOF_MS; }
}

export interface ActorHost {
  /**
   * True while a caller in this process may call the actor's methods without the sidecar. Should the actor have moved a moment ago,
   * two hosts serve it for up to PROOF_MS, as they also do around any move (DESIGN 3): the fence of the commit decides.
   */
  livesHere(actorId: string): boolean;
  /** How many actors live in this process. */
  active(): number;
  stop(): Promise<void>;
}

/** Starts the listener and registers the actor type; resolves when the sidecar has been reached. */
export async function startActorHost(options: ActorHostOptions): Promise<ActorHost> {
  const { app, host, port, methods, logger } = options;
  const active = new ActiveActors();
  guardActorRoutes(app, methods, active);
  bindTo(app, host);
  const server = new DaprServer({
    serverHost: host, serverPort: String(port), serverHttp: app,
    clientOptions: {
      daprHost: "127.0.0.1", daprPort: String(options.daprHttpPort), communicationProtocol: CommunicationProtocolEnum.HTTP,
      logger: { service: sdkLog(logger) },
      // Idle longer than any turn (trap 25); reminders wake a session that was put away.
      actor: { actorIdleTimeout: "10m", drainOngoingCallTimeout: "2s", drainRebalancedActors: true, reentrancy: { enabled: false } },
    },
  });
  await server.actor.init();
  await server.actor.registerActor(sessionActorClass(options, active));
  closeRoutes(app, logger);
  await server.start();
  return { livesHere: (actorId) => active.isProven(actorId), active: () => active.size, stop: () => server.stop() };
}

/** What the SDK says goes where our own lines go, one level down: its "info" is start-up chatter. */
function sdkLog(logger: Logger): Record<"error" | "warn" | "info" | "verbose" | "debug", (message: unknown, ...more: unknown[]) => void> {
  const at = (level: "error" | "warn" | "debug" | "trace") => (message: unknown, ...more: unknown[]): void => { logger[level]({ sdk: [message, ...more].map(String).join(" ") }, "dapr sdk"); };
  return { error: at("error"), warn: at("warn"), info: at("debug"), verbose: at("trace"), debug: at("trace") };
}

/** The SDK calls `app.listen(port)` and ignores the host (trap 22): bind where we say. */
function bindTo(app: Express, host: string): void {
  const listen = app.listen.bind(app) as (port: number, host: string) => Server;
  Object.defineProperty(app, "listen", { value: (port: number) => tuneServer(listen(port, host)) });
}

function guardActorRoutes(app: Express, methods: ActorMethods, active: ActiveActors): void {
  app.use("/actors/:type/:id/method/:method", (req: Request, res: Response, next: NextFunction) => {
    const method = String(req.params.method);
    if (method === "remind" || Object.hasOwn(methods, method)) { next(); return; }
    res.status(404).json({ error: `no such actor method: ${method}` });
  });
  // The SDK throws for an actor it does not know (trap 11), and daprd waits with a type-wide lock meanwhile.
  app.delete("/actors/:type/:id", (req: Request, res: Response, next: NextFunction) => {
    if (active.has(String(req.params.id))) next();
    else res.status(200).json({});
  });
}

function sessionActorClass({ methods, onReminder, logger }: ActorHostOptions, active: ActiveActors): new (...args: ConstructorParameters<typeof AbstractActor>) => AbstractActor {
  class SessionActor extends AbstractActor {
    override onActivate(): Promise<void> {
      active.add(this.getActorId().getId());
      return Promise.resolve();
    }
    override onDeactivate(): Promise<void> {
      active.delete(this.getActorId().getId());
      return Promise.resolve();
    }
    // Called by the SDK with the data only; the reminder's name is in the data (trap 14). Answered at once: the scheduler of 1.14
    // waits for the answer (45 s) with a lock, and a change of the same reminder meanwhile stops every other one (docs/dapr-facts.md).
    override receiveReminder(data: string): Promise<void> {
      const actorId = this.getActorId().getId();
      active.add(actorId);
      onReminder(actorId, typeof data === "string" ? data : JSON.stringify(data))
        .catch((error: unknown) => { logger.error({ actorId, ...errorFields(error) }, "reminder failed; the next tick tries again"); });
      return Promise.resolve();
    }
  }
  for (const [name, run] of Object.entries(methods)) {
    Object.defineProperty(SessionActor.prototype, name, {
      value: async function call(this: AbstractActor, body: unknown): Promise<object> {
        active.add(this.getActorId().getId());
        try {
          return await run(this.getActorId().getId(), body);
        } catch (error) {
          logger.error({ method: name, actorId: this.getActorId().getId(), ...errorFields(error) }, "actor method failed");
          return { ok: false, code: "internal", message: error instanceof Error ? error.message : String(error) };
        }
      },
    });
  }
  // The class name is the actor type (trap A4); it is stored with reminders.
  if (SessionActor.name !== SESSION_ACTOR_TYPE) throw new Error(`the actor class is named ${SessionActor.name}, expected ${SESSION_ACTOR_TYPE}: build without renaming classes`);
  return SessionActor;
}
