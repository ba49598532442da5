/** Owns: sessions that are put straight into the session store, because making them the long way would take hours. */
import { defineAgent } from "../src/agent/index.js";
import { actorIdOf } from "../src/contracts/ids.js";
import { createModels } from "../src/model/registry.js";
import { RUN_ENDED } from "../src/contracts/messages.js";
import { systemClock } from "../src/platform/clock.js";
import { createLogger } from "../src/platform/log.js";
import { compilePolicy } from "../src/session/core/policy/compile.js";
import { receiveEvent } from "../src/session/host/intake.js";
import { SessionService } from "../src/session/host/service.js";
import { MemorySessionStore } from "../test/support/memory-session-store.js";
import type { Rig } from "./rig.js";

/** The table of components/nats/session-store.yaml and its like. */
const INSERT = "INSERT INTO docket_sessions_state (key, value, etag) SELECT key, convert_to(value, 'UTF8'), gen_random_uuid() FROM unnest($1::text[], $2::text[]) AS row(key, value)";

/** A session of at least so many journal events, made by the product's own code over a store in memory, then stored. */
export async function seedLongSession(rig: Rig, sessionId: string, events: number): Promise<void> {
  const target = { tenant: "default", sessionId, actorId: actorIdOf("default", sessionId), agent: "bench" };
  const store = new CountingStore();
  let ended: () => void = () => undefined;
  const service = echoService(store, () => { ended(); });
  for (let n = 0; store.events < events; n += 1) {
    const run = new Promise<void>((resolve) => { ended = resolve; });
    await service.run(target.actorId, receiveEvent(service.source, target, { specversion: "1.0", id: `seed-${String(n)}`, source: "bench", type: "com.docket.prompt.received.v1", subject: sessionId, data: JSON.stringify({ text: `question ${String(n)}` }) }));
    await run;
  }
  await service.stop();
  const document = await store.load(target.actorId);
  const rows = [...store.journalOf(target.actorId).map((entry) => [`journal:${target.actorId}:${String(entry.rev).padStart(12, "0")}`, JSON.stringify(entry)]), [`session:${target.actorId}`, JSON.stringify(document?.state)]];
  await rig.sql.query(INSERT, [rows.map(([key]) => key), rows.map(([, value]) => value)]);
}

/** Copies of a parked session: its document and its journal under other names. */
export async function seedCopies(rig: Rig, sessionId: string, copies: number): Promise<void> {
  const id = actorIdOf("default", sessionId);
  await rig.sql.query(
    `INSERT INTO docket_sessions_state (key, value, etag)
     SELECT replace(key, $1, $1 || '-' || n), convert_to(replace(convert_from(value, 'UTF8'), $2, $2 || '-' || n), 'UTF8'), gen_random_uuid()
     FROM docket_sessions_state, generate_series(1, $3::int) AS n WHERE key = 'session:' || $1 OR key LIKE 'journal:' || $1 || ':%'`, [id, sessionId, copies]);
}

class CountingStore extends MemorySessionStore {
  events = 0;
  override async commit(write: Parameters<MemorySessionStore["commit"]>[0]): ReturnType<MemorySessionStore["commit"]> {
    this.events += write.entry.events.length;
    return await super.commit(write);
  }
}

function echoService(store: MemorySessionStore, onEnded: () => void): SessionService {
  const agent = defineAgent({ name: "bench", version: "1", description: "Echoes.", instructions: "Echo.", model: "scripted:echo", tools: [], triggers: [] });
  const refuse = (): Promise<never> => Promise.reject(new Error("the seed asks for no tools and no decisions"));
  const models = createModels({});
  return new SessionService({
    host: "bench-seed", store, bus: { publish: (_channel, envelope) => { if (envelope.type === RUN_ENDED) onEnded(); return Promise.resolve(); } }, reminders: { set: () => Promise.resolve(), remove: () => Promise.resolve() },
    heartbeats: { isAlive: () => Promise.resolve(true) }, grantSigner: { sign: refuse }, decisions: { verify: refuse }, results: { verify: refuse },
    catalog: { agents: new Map([["bench", agent]]), manifests: new Map(), policy: compilePolicy([]), defaultModel: "scripted:echo", defaultAgent: "bench" },
    resolveModel: (name) => models.resolve(name), clock: systemClock, random: Math.random, logger: createLogger("bench", "silent"),
  });
}
