/** Owns: what every app builds the same way around its sidecar. */
import type { DaprBus } from "../dapr/bus.js";
import { closeRoutes, createListener, listen, type DeliveryHandler } from "../dapr/listener.js";
import { Sidecar } from "../dapr/sidecar.js";
import type { ChannelName } from "../contracts/channels.js";
import { DEAD_LETTERED, type DeadLetter } from "../contracts/messages.js";
import { required, type Config } from "../platform/config.js";
import { packed } from "../platform/letter-parcel.js";
import type { Stoppable } from "../platform/lifecycle.js";
import type { Logger } from "../platform/log.js";

/** The app's own sidecar. */
export function sidecarOf(config: Config): Sidecar {
  return new Sidecar({ baseUrl: `http://127.0.0.1:${String(config.daprHttpPort)}`, apiToken: config.daprApiToken });
}

/** Listens for deliveries (apps without actors). */
export async function listenForSidecar(config: Config, logger: Logger, subscriptions: Partial<Record<ChannelName, DeliveryHandler>>): Promise<Stoppable> {
  const app = createListener({ host: config.appHost, port: required(config, "appPort"), appToken: config.appApiToken, subscriptions, logger });
  closeRoutes(app, logger);
  const server = await listen(app, config.appHost, required(config, "appPort"));
  return { stop: () => new Promise((resolve) => { server.close(() => { resolve(); }); server.closeIdleConnections(); }) };
}

/** The dead-letter channel as `record(letter)`. */
export function deadLettersOf(bus: DaprBus, app: string): { record(letter: DeadLetter): Promise<void> } {
  return {
    record: (letter) => bus.publish("deadLetters", {
      specversion: "1.0", id: letter.deadLetterId, source: `docket://${app}`, type: DEAD_LETTERED, data: JSON.stringify(packed(letter)),
      ...(letter.sessionId === undefined ? {} : { subject: letter.sessionId }),
    }),
  };
}

/** Waits for the sidecar, which may come up after the app: repeats while the failure is one that passes, for 30 s. */
export async function untilReady(probe: () => Promise<void>): Promise<void> {
  const deadline = Date.now() + 30_000;
  for (;;) {
    try {
      await probe();
      return;
    } catch (error) {
      if (Date.now() > deadline || (error as { retryable?: boolean }).retryable !== true) throw error;
      await new Promise((resolve) => { setTimeout(resolve, 250); });
    }
  }
}
