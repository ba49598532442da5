/** Owns: what every app builds the same way around its sidecar. */
import type { DaprBus } from "../dapr/bus.js";
import type { DaprState } from "../dapr/state.js";
import { closeRoutes, createListener, listen, type DeliveryHandler } from "../dapr/listener.js";
import { Sidecar } from "../dapr/sidecar.js";
import type { ChannelName } from "../contracts/channels.js";
import { DEAD_LETTERED, type DeadLetter, type LetterReceived } from "../contracts/messages.js";
import { systemClock } from "../platform/clock.js";
import { required, type Config } from "../platform/config.js";
import { LetterBox, letterReceiptIn } from "../platform/letter-box.js";
import { packed } from "../platform/letter-parcel.js";
import type { AppContext, Stoppable } from "../platform/lifecycle.js";
import type { Logger } from "../platform/log.js";

/** The app's own sidecar. */
export function sidecarOf(config: Config): Sidecar {
  return new Sidecar({ baseUrl: `http://127.0.0.1:${String(config.daprHttpPort)}`, apiToken: config.daprApiToken });
}

/** Listens for deliveries (apps without actors). */
export async function listenForSidecar({ config, logger, logLevel }: Pick<AppContext, "config" | "logger" | "logLevel">, subscriptions: Partial<Record<ChannelName, DeliveryHandler>>): Promise<Stoppable> {
  const app = createListener({ host: config.appHost, port: required(config, "appPort"), appToken: config.appApiToken, subscriptions, logger, logLevel });
  closeRoutes(app, logger);
  const server = await listen(app, config.appHost, required(config, "appPort"));
  return { stop: () => new Promise((resolve) => { server.close(() => { resolve(); }); server.closeIdleConnections(); }) };
}

/** The app's dead letters, kept in its own store until the console has them. */
export function letterBoxOf(bus: DaprBus, store: DaprState, logger: Logger): LetterBox {
  return new LetterBox({ store, publish: (envelope) => bus.publish("deadLetters", envelope), clock: systemClock, logger });
}

/** A letter box as `record(letter)`. */
export function deadLettersOf(letters: Pick<LetterBox, "post">, app: string): { record(letter: DeadLetter): Promise<void> } {
  return {
    record: (letter) => letters.post({
      specversion: "1.0", id: letter.deadLetterId, source: `docket://${app}`, type: DEAD_LETTERED, data: JSON.stringify(packed(letter)),
      ...(letter.sessionId === undefined ? {} : { subject: letter.sessionId }),
    }),
  };
}

/** Takes the console's receipts for letters out of a channel; everything else goes to `handler`. */
export function besideReceipts(received: (receipt: LetterReceived, text: string) => Promise<void>, handler: DeliveryHandler): DeliveryHandler {
  return async (text, bytes) => {
    const receipt = letterReceiptIn(text);
    if (receipt === undefined) return await handler(text, bytes);
    await received(receipt, text);
    return "SUCCESS";
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
