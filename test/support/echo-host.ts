/** Owns: a session host in this process with one agent that echoes, on a state store that the test hands in; broker and scheduler take everything and do nothing. */
import { defineAgent } from "../../src/agent/index.js";
import { RUN_ENDED } from "../../src/contracts/messages.js";
import { DaprSessionStore } from "../../src/dapr/session-store.js";
import type { DaprState } from "../../src/dapr/state.js";
import { createModels } from "../../src/model/registry.js";
import { systemClock, type Clock } from "../../src/platform/clock.js";
import { createLogger } from "../../src/platform/log.js";
import { compilePolicy } from "../../src/session/core/policy/compile.js";
import type { SessionState } from "../../src/session/core/state.js";
import { SessionService } from "../../src/session/host/service.js";

export interface EchoHost { readonly service: SessionService; readonly store: DaprSessionStore<SessionState> }

/** `windowRounds`: rounds that the conversation keeps; default the product's own. */
export function echoHost(state: DaprState, options: { readonly onEnded?: () => void; readonly clock?: Clock; readonly windowRounds?: number } = {}): EchoHost {
  const { onEnded, clock = systemClock, windowRounds } = options;
  const store = new DaprSessionStore<SessionState>(state, (document) => document as SessionState);
  const agent = defineAgent({
    name: "echo", version: "1", description: "Echoes.", instructions: "Echo.", model: "scripted:echo", tools: [], triggers: [],
    ...(windowRounds === undefined ? {} : { limits: { windowRounds } }),
  });
  const refuse = () => Promise.reject(new Error("no decisions or results in this test"));
  const models = createModels({});
  const service = new SessionService({
    host: "test-host", store, bus: { publish: (_channel, envelope) => { if (envelope.type === RUN_ENDED) onEnded?.(); return Promise.resolve(); } }, reminders: { set: () => Promise.resolve(), remove: () => Promise.resolve() },
    heartbeats: { isAlive: () => Promise.resolve(true) }, grantSigner: { sign: refuse }, decisions: { verify: refuse }, results: { verify: refuse },
    catalog: { agents: new Map([["echo", agent]]), manifests: new Map(), policy: compilePolicy([]), defaultModel: "scripted:echo", defaultAgent: "echo" },
    resolveModel: (name) => models.resolve(name), clock, random: Math.random, logger: createLogger("test", "silent"),
  });
  return { service, store };
}
