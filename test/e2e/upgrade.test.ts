/**
 * From one build to the next under load, one copy after the other, both side by side for a while. The two differ in what they store of a session, in
 * the versions of their agents, in a tool and in a policy: test/support/builds.ts, and below. Readers go first (console, gateway), then those who write.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApprovalListItem } from "../../src/contracts/api.js";
import { createApiKey, writeApiKeyFile } from "../../src/platform/apikeys.js";
import { makeBuilds, type Builds, type Files } from "../support/builds.js";
import { foldCheck, outcomeProblems, overlapProblems } from "../support/checks.js";
import { REPO_ROOT } from "../support/cluster.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { Balancer, replaceCopy, startTalking, urlOf, type Talk } from "../support/rolling.js";
import { StoreView } from "../support/store-view.js";

const CLIENTS = 4;
const WAIT_MS = 60_000;

const agentFile = (about: object): string => `import { defineAgent } from "DIST/src/agent/index.js";
export const agent = defineAgent(${JSON.stringify({ description: "of the upgrade test", instructions: "Do what is asked.", tools: [], triggers: [], ...about })});
`.replace("DIST", "../../dist");
const toolsFile = (sends: string): string => `import { appendFileSync } from "node:fs";
import { z } from "zod";
import { defineTool } from "../../../dist/src/agent/index.js";
const tool = (name, description) => defineTool({ name, description, input: z.strictObject({ order: z.string() }), effects: "idempotent", defaultVerdict: "ask", run: (_args, context) => {
  appendFileSync(context.secret("BOOK"), JSON.stringify({ name, args: context.argsText, session: context.sessionId }) + "\\n");
  return "done";
} });
export const pay = tool("pay", "Pays an order.");
export const wire = tool("wire", "Wires the price of an order.");
export const send = tool("send", ${JSON.stringify(sends)});
`;
const policy = (quorum: number): string => JSON.stringify({ version: 1, rules: [{ id: "wires", match: { tools: ["wire"] }, verdict: "ask", reason: "moves money", approvers: { quorum } }] });
const desk: Files = { "agents/desk/agent.js": agentFile({ name: "desk", version: "1", model: "scripted:desk", tools: ["pay", "wire", "send"] }) };

const FILES: Readonly<Record<1 | 2, Files>> = {
  1: {
    ...desk, "agents/desk/tools/desk.js": toolsFile("Sends an order by post."), "policies/p.yaml": policy(1),
    "agents/mover/agent.js": agentFile({ name: "mover", version: "1", model: "scripted:words-1" }),
    "agents/keeper/agent.js": agentFile({ name: "keeper", version: "1", model: "scripted:words-1" }),
  },
  2: {
    ...desk, "agents/desk/tools/desk.js": toolsFile("Sends an order by courier, and bills it."), "policies/p.yaml": policy(2),
    "agents/mover/agent.js": agentFile({ name: "mover", version: "2", model: "scripted:words-2" }),
    "agents/keeper/agent.js": agentFile({ name: "keeper", version: "2", model: "scripted:words-2", sessions: "keep" }),
    "agents/keeper/versions/v1.js": agentFile({ name: "keeper", version: "1", model: "scripted:words-1" }).replace("../../dist", "../../../dist"),
  },
};
const SCRIPTS: Files = {
  "scripts/words-1/script.yaml": "rules:\n  - say: words of version 1\n",
  "scripts/words-2/script.yaml": "rules:\n  - say: words of version 2\n",
  "scripts/desk/script.yaml": `rules:\n${["pay", "wire", "send"].map((tool) => `  - when: { tool: ${tool} }\n    say: "{{result}}"\n  - when: { user: '/${tool} (?<order>\\d+)/' }\n    call: { tool: ${tool}, args: { order: "{{order}}" } }\n`).join("")}  - say: nothing to do\n`,
};

let home: string;
let builds: Builds;
let docket: Docket;
let balancer: Balancer;
let keys: string[];
const parked = { pay: freshSession("pay"), wire: freshSession("wire"), send: freshSession("send") };
const kept = freshSession("kept");
let talks: Talk[] = [];
let failed: readonly string[] = [];
/** Versions of agents that opened sessions while both builds ran. */
const openedBy = new Set<string>();

const stored = (): StoreView => new StoreView(docket.dataDir);
const say = async (id: string, text: string, agent: string): Promise<string> => {
  const accepted = await docket.prompt(id, text, { agent });
  await docket.ended(accepted, WAIT_MS);
  return eventsOf(stored().journal(id), "RunEnded").at(-1)?.text ?? "";
};
const written = (): { name: string; args: string; session: string }[] => (existsSync(join(home, "book.jsonl")) ? readFileSync(join(home, "book.jsonl"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as { name: string; args: string; session: string }) : []);
const isDecided = (reply: { body: unknown }): unknown => (reply.body as { verdict?: unknown }).verdict;

beforeAll(async () => {
  mkdirSync(join(REPO_ROOT, ".docket"), { recursive: true });
  home = mkdtempSync(join(REPO_ROOT, ".docket/upgrade-"));
  builds = makeBuilds(home, FILES, SCRIPTS);
  const dataDir = join(home, "data");
  mkdirSync(join(dataDir, "keys"), { recursive: true });
  const made = Array.from({ length: CLIENTS }, (_, n) => createApiKey({ tenant: "default", principalId: `client-${String(n)}`, class: "person", roles: ["operator", "approver"], scopes: ["*"] }));
  keys = made.map(({ key }) => key);
  await writeApiKeyFile(join(dataDir, "keys", "api-keys.json"), made.map(({ record }) => record));
  docket = await startDocket({ dataDir, gatewayReplicas: 2, sessionsReplicas: 2, commands: builds.commands, extraEnv: { all: builds.env, tools: { DOCKET_TOOL_SECRET_BOOK: join(home, "book.jsonl") } } });
  balancer = new Balancer(["gateway", "gateway-2"].map((name) => urlOf(docket, name)));
  const base = await balancer.listen();

  for (const [tool, id] of Object.entries(parked)) await docket.prompt(id, `${tool} 7`, { agent: "desk" });
  for (const id of Object.values(parked)) await docket.openApproval(id, WAIT_MS);
  expect(await say(kept, "hello", "keeper")).toBe("words of version 1");

  const load = startTalking(base, keys, { prefix: "moved", agent: "mover" });
  await load.onceMore();
  builds.goLive(2);
  for (const copy of ["console", "gateway", "gateway-2", "tools", "sessions"]) await replaceCopy(docket, balancer, copy);
  // One host of each build.
  await eventually("sessions are opened by both builds", async () => {
    const id = freshSession("between");
    await say(id, "hello", "mover");
    openedBy.add(eventsOf(stored().journal(id), "SessionOpened")[0]?.agentVersion ?? "");
    return openedBy.size === 2 ? true : undefined;
  }, WAIT_MS);
  await replaceCopy(docket, balancer, "sessions-2");
  // Who was with the last old host until then has had no run under the new build yet.
  await load.onceMore();
  talks = await load.stop();
  failed = load.failed;
}, 240_000);
afterAll(async () => {
  await balancer.close();
  await docket.close();
  if (process.env["DOCKET_KEEP_TEST_DATA"] !== "1") rmSync(home, { recursive: true, force: true });
});

describe("a new build under load, beside the old one for a while", () => {
  it("fails no request, loses no event, and keeps each session's order", async () => {
    expect(failed).toEqual([]);
    expect([...openedBy].sort()).toEqual(["1", "2"]);
    for (const { id, sent } of talks) {
      const journal = stored().journal(id);
      expect(eventsOf(journal, "EventReceived").map(({ id: eventId }) => eventId)).toEqual(sent.map(({ eventId }) => eventId));
      expect(eventsOf(journal, "RunEnded").map(({ outcome }) => outcome)).toEqual(sent.map(() => "completed"));
      expect([...outcomeProblems(journal), ...overlapProblems(journal)]).toEqual([]);
    }
    expect(await docket.deadLetters()).toEqual([]);
  });

  it("upcasts what the old build stored, and writes on in its own version; the journal still folds to the state", async () => {
    for (const { id } of talks) {
      expect(new Set(stored().journal(id).map(({ v }) => v))).toEqual(new Set([1, 2]));
      const { v, totals } = stored().session(id) as unknown as { v: number; totals: object };
      expect([v, Object.hasOwn(totals, "repeated"), Object.hasOwn(totals, "deduplicated")]).toEqual([2, true, false]);
    }
    expect(foldCheck(docket, undefined, join(builds.dirOf(2), "dist")).problems).toEqual([]);
  });

  it("takes sessions over to the agent's new version with their next run, where the agent says nothing else", () => {
    for (const { id } of talks) {
      const journal = stored().journal(id);
      expect(eventsOf(journal, "SessionOpened").map(({ agentVersion }) => agentVersion)).toEqual(["1"]);
      expect(eventsOf(journal, "RunStarted").filter(({ agentVersion }) => agentVersion === "2").length).toBeGreaterThan(0);
      expect([stored().session(id)?.agentVersion, eventsOf(journal, "RunEnded").at(-1)?.text]).toEqual(["2", "words of version 2"]);
    }
  });

  it("leaves sessions to the agent's old version where it says so; new ones get the new version", async () => {
    expect(await say(kept, "and again", "keeper")).toBe("words of version 1");
    expect(stored().session(kept)?.agentVersion).toBe("1");
    expect(await say(freshSession("kept"), "hello", "keeper")).toBe("words of version 2");
  });
});

describe("an approval that was asked for under the old build and is decided under the new one", () => {
  const ended = (id: string): Promise<true> => eventually(`the run of ${id} has ended`, () => (stored().session(id)?.status === "IDLE" ? true : undefined), WAIT_MS);
  const effects = (id: string): string[] => written().filter(({ session }) => session === id).map(({ name, args }) => `${name} ${args}`);
  const shown = (item: ApprovalListItem): string => item.pending.args;

  it("runs with the arguments that were approved", async () => {
    const item = await docket.openApproval(parked.pay);
    expect(isDecided(await docket.decide(item, "approve"))).toBe("approved");
    await ended(parked.pay);
    expect(effects(parked.pay)).toEqual([`pay ${shown(item)}`]);
  });

  it("waits for a second person where policy asks for two since then", async () => {
    const item = await docket.openApproval(parked.wire);
    expect(isDecided(await docket.decide(item, "approve"))).toBe("signed");
    const again = await eventually("it is open for a second signature", async () => {
      const { pending } = await docket.openApproval(parked.wire);
      return stored().session(parked.wire)?.approvals[0]?.approvers.quorum === 2 ? pending : undefined;
    }, WAIT_MS);
    expect([stored().session(parked.wire)?.status, effects(parked.wire)]).toEqual(["AWAITING_APPROVAL", []]);
    const { approvalId, version, argsDigest } = again.record;
    const second = await fetch(`${docket.test.stack.urls.console ?? ""}/v1/approvals/${approvalId}/decisions`, { method: "POST", headers: { authorization: `Bearer ${keys[0] ?? ""}`, "content-type": "application/json" }, body: JSON.stringify({ kind: "approve", version, argsDigest }) });
    expect(second.status).toBe(200);
    await ended(parked.wire);
    expect(effects(parked.wire)).toEqual([`wire ${shown(item)}`]);
  });

  it("is asked again where the tool is another one since then, and runs once it is approved as it is now", async () => {
    const item = await docket.openApproval(parked.send);
    expect(await docket.decide(item, "approve")).toMatchObject({ status: 409, body: { code: "version_mismatch" } });
    const again = await eventually("it is asked again", async () => {
      const open = await docket.openApproval(parked.send);
      return open.pending.record.version === 2 ? open : undefined;
    }, WAIT_MS);
    expect([effects(parked.send), shown(again)]).toEqual([[], shown(item)]);
    expect(isDecided(await docket.decide(again, "approve"))).toBe("approved");
    await ended(parked.send);
    expect(effects(parked.send)).toEqual([`send ${shown(item)}`]);
  });
});

describe("a host that is rolled back", () => {
  it("leaves alone what the newer build stored: nothing of it is lost, and it is done as soon as a host can read it", async () => {
    builds.goLive(1);
    await replaceCopy(docket, balancer, "sessions-2");
    const sent = await Promise.all(talks.map(({ id }) => docket.prompt(id, "after the roll back", { agent: "mover" })));
    const first = await Promise.race(sent.map((accepted) => docket.ended(accepted, WAIT_MS)));
    expect(first).toMatchObject({ outcome: "completed" });
    for (const { id } of talks) expect(stored().session(id)?.v).toBe(2);
    builds.goLive(2);
    await replaceCopy(docket, balancer, "sessions-2");
    for (const accepted of sent) expect(await docket.ended(accepted, WAIT_MS)).toMatchObject({ outcome: "completed" });
    for (const { id } of talks) expect([...outcomeProblems(stored().journal(id)), ...overlapProblems(stored().journal(id))]).toEqual([]);
    expect(foldCheck(docket, undefined, join(builds.dirOf(2), "dist")).problems).toEqual([]);
    expect(await docket.deadLetters()).toEqual([]);
  });
});
