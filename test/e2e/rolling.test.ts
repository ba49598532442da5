/**
 * A rolling update of everything under load, as an orchestrator does it: of each app one copy after the other leaves the balancer, ends, and
 * comes back. Two gateways, two hosts, two workers. No client repeats anything, and no request of theirs fails.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApiKey, writeApiKeyFile } from "../../src/platform/apikeys.js";
import { eventsOf, startDocket, type Docket } from "../support/docket.js";
import { Balancer, replaceCopy, startTalking, urlOf } from "../support/rolling.js";

const CLIENTS = 6;
const COPIES = ["gateway", "gateway-2", "sessions", "sessions-2", "tools", "tools-2"] as const;

let home: string;
let docket: Docket;
let keys: string[];
let balancer: Balancer;
let base: string;
beforeAll(async () => {
  // Each client is a principal of its own: the limit of requests is each one's.
  const dataDir = join(home = mkdtempSync(join(tmpdir(), "docket-rolling-")), "data");
  const made = Array.from({ length: CLIENTS }, (_, n) => createApiKey({ tenant: "default", principalId: `client-${String(n)}`, class: "person", roles: ["operator"], scopes: ["*"] }));
  keys = made.map(({ key }) => key);
  mkdirSync(join(dataDir, "keys"), { recursive: true });
  await writeApiKeyFile(join(dataDir, "keys", "api-keys.json"), made.map(({ record }) => record));
  docket = await startDocket({ dataDir, gatewayReplicas: 2, sessionsReplicas: 2, toolsReplicas: 2 });
  balancer = new Balancer(["gateway", "gateway-2"].map((name) => urlOf(docket, name)));
  base = await balancer.listen();
});
afterAll(async () => {
  await balancer.close();
  await docket.close();
  rmSync(home, { recursive: true, force: true });
});

describe("a rolling update under load", () => {
  it("fails no request, loses nothing, doubles nothing, and keeps each session's order", async () => {
    const { failed, stop } = startTalking(base, keys, { prefix: "rolled" });
    for (const copy of COPIES) await replaceCopy(docket, balancer, copy);
    const ended = await stop();

    expect(failed).toEqual([]);
    for (const { id, sent } of ended) {
      const journal = await docket.journal(id);
      expect(eventsOf(journal, "EventReceived").map(({ id: eventId }) => eventId)).toEqual(sent.map(({ eventId }) => eventId));
      expect(eventsOf(journal, "RunEnded").map(({ outcome }) => outcome)).toEqual(sent.map(() => "completed"));
      // A call that its host's end cut off is made again; a run never is.
      expect(new Set(docket.modelCalls(id).map(({ runId }) => runId))).toEqual(new Set(sent.map(({ runId }) => runId)));
    }
    // There was work while each copy was replaced.
    expect(ended.flatMap(({ sent }) => sent).length).toBeGreaterThan(COPIES.length * 2);
    expect(await docket.deadLetters()).toEqual([]);
  });
});
