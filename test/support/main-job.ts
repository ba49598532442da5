/**
 * Owns: the behaviours that every pair of broker and state store must show, as one suite (`npm run matrix` makes docs/matrix.md
 * of its results: titles are its rows). Reads everything from the outside: replies, journals, the tools' own books.
 */
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { CHANNELS, STATE_STORES } from "../../src/contracts/channels.js";
import type { Accepted } from "../../src/contracts/api.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import type { ProfileName } from "../../src/launcher/profiles.js";
import { locateDapr } from "../../src/launcher/runtime/locate.js";
import type { TestBroker } from "./brokers.js";
import { foldCheck, outcomeProblems, overlapProblems } from "./checks.js";
import { REPO_ROOT } from "./cluster.js";
import { createDatabase, type TestDatabase } from "./database.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "./docket.js";
import { workspaceLines } from "./kills.js";
import { hasPostgres } from "./tools/postgres.js";

export type StoreKind = "PostgreSQL v2" | "SQLite";

export interface Pair {
  readonly broker: string;
  readonly store: StoreKind;
  /** Whose pub/sub components are taken, and whose broker variables are set. */
  readonly profile: ProfileName;
  readonly sessionHosts: number;
  /** Said under the table: what the pair promises less, and why. */
  readonly limits?: string;
  /** Why the pair cannot be tried on this machine. */
  readonly missing?: string | undefined;
  startBroker(): Promise<TestBroker>;
}

const BURST = 40;
const DUPLICATES = 20;
const SLOW_MS = 60_000;

/** The suite on one pair. */
export function describeMainJob(pair: Pair): void {
  const missing = pair.missing ?? (pair.store === "PostgreSQL v2" && !hasPostgres() ? "no PostgreSQL on this machine" : undefined);
  const about: Record<string, unknown> = { broker: pair.broker, store: pair.store, sessionHosts: pair.sessionHosts, limits: pair.limits };

  describe.skipIf(missing !== undefined)(`${pair.broker} and ${pair.store}${missing === undefined ? "" : ` (not run: ${missing})`}`, () => {
    let broker: TestBroker | undefined;
    let database: TestDatabase | undefined;
    let resources: string | undefined;
    let docket: Docket;

    beforeAll(async () => {
      const startedAtMs = Date.now();
      broker = await pair.startBroker();
      database = pair.store === "PostgreSQL v2" ? await createDatabase() : undefined;
      resources = componentsOf(pair);
      const { version } = await locateDapr({ root: REPO_ROOT, report: () => undefined });
      Object.assign(about, { brokerVersion: broker.version, storeVersion: database === undefined ? `SQLite inside daprd ${version}` : `PostgreSQL ${database.version}, fsync off`, dapr: version });
      docket = await startDocket({
        profile: pair.profile, resources, sessionsReplicas: pair.sessionHosts,
        env: { ...process.env, ...broker.env, ...(database === undefined ? {} : { DOCKET_POSTGRES_URL: database.address }) },
      });
      about["startMs"] = Date.now() - startedAtMs;
    });
    beforeEach(({ task }) => { Object.assign(task.meta, { matrix: about }); });
    afterAll(async () => {
      // Not started after a failure of beforeAll.
      await (docket as Docket | undefined)?.close();
      await broker?.drop();
      await database?.drop();
      if (resources !== undefined) rmSync(resources, { recursive: true, force: true });
    });

    it("an approved call runs once, and the answer comes back", async () => {
      const session = freshSession("refund");
      const accepted = await docket.prompt(session, "refund 1200 cents of order 1001");
      const item = await docket.openApproval(session);
      expect(await docket.decide(item, "approve")).toMatchObject({ status: 200 });
      expect((await docket.ended(accepted)).outcome).toBe("completed");
      expect(workspaceLines(docket.dataDir, session, "refunds.jsonl")).toMatchObject([{ orderId: "1001", amountCents: 1200 }]);
      expect(eventsOf(await docket.journal(session), "ToolCallDispatched")).toHaveLength(1);
    });

    it(`${String(BURST)} events to one session, half over HTTP, half on the topic, are handled one at a time, each way in the order they were sent, each once`, async () => {
      const session = freshSession("burst");
      const ids = Array.from({ length: BURST }, (_, n) => `evt-${String(n)}`);
      const { stack } = docket.test;
      const hosts = stack.instances.filter(({ appId }) => appId === "sessions").map(({ name }) => name);
      // The hosts stand still meanwhile, so that the broker has a pile to hand out: a reader that keeps up shows no order.
      for (const host of hosts) stack.freeze(host);
      try {
        for (const [n, id] of ids.entries()) await (n % 2 === 0 ? overHttp : onTopic)(docket, promptEvent(session, id, `question ${id}`));
      } finally {
        for (const host of hosts) stack.thaw(host);
      }
      const journal = await rested(docket, session, BURST);
      // The gateway keeps the order of its 202s, the broker that of the topic; between the two there is none.
      const received = eventsOf(journal, "EventReceived").map(({ id }) => id);
      for (const way of [0, 1]) expect(received.filter((id) => ids.indexOf(id) % 2 === way)).toEqual(ids.filter((_, n) => n % 2 === way));
      expect(received).toHaveLength(BURST);
      expect(eventsOf(journal, "RunStarted").map((run) => run.key)).toEqual(eventsOf(journal, "EventReceived").map((received) => received.key));
      expect([...outcomeProblems(journal), ...overlapProblems(journal)]).toEqual([]);
      expect(docket.modelCalls(session)).toHaveLength(BURST);
    });

    it(`one event delivered ${String(DUPLICATES)} times has one outcome and one model call`, async () => {
      const session = freshSession("twenty");
      const event = promptEvent(session, "evt-1", "hello");
      await Promise.all(Array.from({ length: DUPLICATES }, (_, n) => (n % 2 === 0 ? overHttp : onTopic)(docket, event)));
      // Behind all copies: once it has been handled, so have they.
      await onTopic(docket, promptEvent(session, "evt-2", "hello again"));
      const journal = await rested(docket, session, 2);
      expect(eventsOf(journal, "EventReceived").map((received) => received.id)).toEqual(["evt-1", "evt-2"]);
      expect(outcomeProblems(journal)).toEqual([]);
      expect(docket.modelCalls(session)).toHaveLength(2);
    });

    it("a tool that fails three times ends in one dead letter", async () => {
      const session = freshSession("failing");
      await docket.cloudEvent({
        specversion: "1.0", id: `${session}-1`, source: "https://matrix.example", type: "com.acme.order.created", subject: session, agent: "order-triage",
        datacontenttype: "application/json", data: { orderId: "ord-1002", customer: "C. Lovelace", totalCents: 4_500 },
      });
      const journal = await rested(docket, session, 1);
      expect(eventsOf(journal, "ToolTryFailed").map((failed) => failed.try)).toEqual([1, 2, 3]);
      const letters = await eventually("the dead letter", async () => {
        const found = (await docket.deadLetters()).filter(({ letter }) => letter.sessionId === session);
        return found.length > 0 ? found : undefined;
      });
      expect(letters).toHaveLength(1);
    });

    it("kill -9 of a session host amid a burst: every accepted event has exactly one outcome", async () => {
      const sessions = Array.from({ length: 6 }, () => freshSession("killed"));
      const accepted: Accepted[] = [];
      let killed: Promise<void> | undefined;
      const queue = sessions.flatMap((session) => Array.from({ length: 5 }, (_, n) => promptEvent(session, `${session}-${String(n)}`, n % 2 === 0 ? "hello" : "where is order 1001?")));
      await Promise.all(Array.from({ length: 6 }, async () => {
        for (let event = queue.shift(); event !== undefined; event = queue.shift()) {
          accepted.push(await acceptedAtLast(docket, event));
          if (accepted.length >= 12) killed ??= docket.test.stack.restart("sessions");
        }
      }));
      await killed;
      for (const answer of accepted) await docket.ended(answer, SLOW_MS);
      for (const session of sessions) {
        const journal = await rested(docket, session, 5);
        expect([...outcomeProblems(journal), ...overlapProblems(journal)]).toEqual([]);
        expect(new Set(eventsOf(journal, "EventReceived").map((received) => received.key))).toEqual(new Set(accepted.filter((answer) => answer.sessionId === session).map((answer) => answer.eventKey)));
      }
      const letters = (await docket.deadLetters()).filter(({ letter }) => sessions.includes(letter.sessionId ?? ""));
      expect(letters).toEqual([]);
    });

    it("fold(journal) = state for every session", () => {
      const report = foldCheck(docket, database?.address);
      expect(report.problems).toEqual([]);
      expect(report.sessions).toBeGreaterThanOrEqual(10);
    });
  });
}

interface PromptEvent { readonly id: string; readonly subject: string }

const promptEvent = (session: string, id: string, text: string): PromptEvent & Record<string, unknown> => ({
  specversion: "1.0", id, source: "https://matrix.example", type: "com.docket.prompt.received.v1", subject: session,
  datacontenttype: "application/json", agent: "assistant", data: { text },
});

async function overHttp(docket: Docket, event: PromptEvent): Promise<void> {
  await docket.cloudEvent(event);
}

/** As the gateway's own publisher does it: the session's actor id is the partition key. */
async function onTopic(docket: Docket, event: PromptEvent): Promise<void> {
  const { component, topic } = CHANNELS.tasks;
  const reply = await docket.test.callSidecar("gateway", `/v1.0/publish/${component}/${topic}?metadata.partitionKey=${actorIdOf("default", event.subject)}`, {
    method: "POST", body: JSON.stringify(event), headers: { "content-type": "application/cloudevents+json" },
  });
  if (reply.status !== 204) throw new Error(`publish answered ${String(reply.status)} ${await reply.text()}`);
}

/** Sends again, same id, until it is accepted. */
function acceptedAtLast(docket: Docket, event: PromptEvent): Promise<Accepted> {
  return eventually(`event ${event.id} is accepted`, () => docket.cloudEvent(event), SLOW_MS);
}

/** The journal of a session once it is idle and as many runs have ended. */
async function rested(docket: Docket, session: string, runs: number): ReturnType<Docket["journal"]> {
  return await eventually(`${String(runs)} ends in session ${session}`, async () => {
    const { summary } = await docket.session(session);
    if (summary.mailboxLength > 0 || summary.status !== "IDLE") return undefined;
    const entries = await docket.journal(session);
    return eventsOf(entries, "RunEnded").length >= runs ? entries : undefined;
  }, SLOW_MS);
}

/** The profile's channels over the asked state stores, as component files in a folder of their own. */
export function componentsOf(pair: Pick<Pair, "profile" | "store">): string {
  const folder = mkdtempSync(join(tmpdir(), "docket-matrix-"));
  cpSync(join(REPO_ROOT, "components", pair.profile), folder, { recursive: true });
  const stores = pair.store === "SQLite" ? "embedded" : "production";
  for (const store of Object.values(STATE_STORES)) cpSync(join(REPO_ROOT, "components", stores, `${store}.yaml`), join(folder, `${store}.yaml`));
  return folder;
}
