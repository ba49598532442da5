/**
 * A decision at an odd time has one outcome, on the real stack: before its approval is there, after expiry, twice, for a session whose host is gone, while no host or no
 * broker is there, and under a policy that has changed meanwhile (I8, I10). The table of them: docs/policies.md. Kill of everything: survives.test.ts.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ApprovalListItem } from "../../src/contracts/api.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import { foldCheck } from "../support/checks.js";
import { REPO_ROOT } from "../support/cluster.js";
import { eventsOf, eventually, freshSession, startDocket, type Docket } from "../support/docket.js";
import { StoreView } from "../support/store-view.js";

let home: string;
let docket: Docket;
const HOSTS = ["sessions", "sessions-2"] as const;
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "docket-odd-"));
  cpSync(join(REPO_ROOT, "policies"), join(home, "policies"), { recursive: true });
  writeFileSync(join(home, "policies/odd.yaml"), "version: 1\nrules:\n  - { id: soon-over, match: { tools: [issue_refund] }, when: args.amountCents == 5, verdict: ask, reason: small, expiresIn: 2s, onExpiry: reject }\n");
  docket = await startDocket({ dataDir: join(home, "data"), sessionsReplicas: 2, extraEnv: { all: { DOCKET_POLICIES_DIR: join(home, "policies") } } });
});
afterAll(async () => {
  await docket.close();
  rmSync(home, { recursive: true, force: true });
});

/** A session that waits for a decision on its refund. */
async function asked(cents: number): Promise<{ session: string; item: ApprovalListItem }> {
  const session = freshSession("odd");
  await docket.prompt(session, `refund ${String(cents)} cents of order 1001`);
  const record = await eventually("the question", () => eventsOf(journal(session), "ApprovalOpened")[0]?.record, 60_000);
  // One that is soon over may be over before any list of open ones is looked at.
  const item = await eventually("the console to have it", async () => { const { status, body } = await docket.console("GET", `/v1/approvals/${record.approvalId}`); return status === 200 ? body as ApprovalListItem : undefined; }, 60_000);
  return { session, item };
}
/** From the file: also while everything that could be asked is dead. */
const journal = (session: string) => new StoreView(docket.dataDir).journal(session);
const refunds = (session: string): number => {
  try {
    return readFileSync(join(docket.dataDir, "workspaces", actorIdOf("default", session), "refunds.jsonl"), "utf8").trim().split("\n").length;
  } catch {
    return 0;
  }
};
const refunded = (session: string) => eventually("the refund", () => (refunds(session) > 0 ? true : undefined), 60_000);
const outcome = ({ status, body }: { status: number; body: unknown }): string => {
  const { code, verdict } = body as { code?: string; verdict?: string };
  return `${String(status)} ${String(code ?? verdict)}`;
};
/** The same click again, until the session has said what came of it. */
const settled = (item: ApprovalListItem, decisionId: string, kind = "approve", more: object = {}) => eventually("the session's verdict", async () => {
  const said = outcome(await docket.decide(item, kind, { decisionId, ...more }));
  return said === "202 not_known_yet" || said.startsWith("503") ? undefined : said;
}, 90_000);
const audited = async (approvalId: string): Promise<string[]> => {
  const { body } = await docket.console("GET", "/v1/audit?limit=200");
  return (body as { items: { action: string; outcome: string; target: string }[] }).items.filter(({ target, action }) => target === approvalId && action.startsWith("approval.")).map(({ outcome: said }) => said).reverse();
};
const killBoth = async (names: readonly string[]): Promise<void> => { await Promise.all(names.flatMap((name) => [docket.test.stack.kill(name), docket.test.stack.kill(`${name}-daprd`)])); };
const startBoth = async (names: readonly string[]): Promise<void> => { await Promise.all(names.flatMap((name) => [docket.test.stack.start(`${name}-daprd`), docket.test.stack.start(name)])); };

describe("a decision", () => {
  it("on an approval that is not there (yet): 404, audited, and the next one is asked as ever", async () => {
    const { session, item } = await asked(100);
    const early = { ...item, pending: { ...item.pending, record: { ...item.pending.record, approvalId: "apr_000000000000000000000000" } } };
    expect(outcome(await docket.decide(early, "approve"))).toBe("404 approval_not_found");
    expect(await audited("apr_000000000000000000000000")).toEqual(["requested", "approval_not_found"]);
    expect(eventsOf(journal(session), "ToolCallDispatched")).toEqual([]);
    expect(outcome(await docket.decide(item, "approve"))).toBe("200 approved");
  });

  it("after expiry: 410, audited and in the journal; the call's result is expired, not rejected", async () => {
    const { session, item } = await asked(5);
    await eventually("it has expired", () => eventsOf(journal(session), "ToolResultRecorded")[0], 90_000);
    expect(outcome(await docket.decide(item, "approve"))).toBe("410 approval_expired");
    expect(await audited(item.pending.record.approvalId)).toEqual(["requested", "approval_expired"]);
    expect(eventsOf(journal(session), "ToolResultRecorded").map(({ status }) => status)).toEqual(["expired"]);
    expect(refunds(session)).toBe(0);
  });

  it("twice: the same click counts once and has the same answer, another one is told that it came second", async () => {
    const { session, item } = await asked(100);
    const [decisionId, second] = [freshSession("click"), freshSession("click")];
    expect(outcome(await docket.decide(item, "approve", { decisionId }))).toBe("200 approved");
    expect(outcome(await docket.decide(item, "approve", { decisionId }))).toBe("200 approved");
    expect(outcome(await docket.decide(item, "approve", { decisionId: second }))).toBe("409 already_decided");
    await refunded(session);
    expect(refunds(session)).toBe(1);
    expect(eventsOf(journal(session), "DecisionRecorded")).toHaveLength(1);
  });

  it("for a session whose host has died: another host takes it", async () => {
    const { session, item } = await asked(100);
    const askedBy = journal(session).find((entry) => entry.events.some(({ type }) => type === "ApprovalOpened"))?.host ?? "";
    const dead = HOSTS.find((name) => askedBy.includes(`-${String(docket.test.stack.processes.get(name)?.pid)}-`)) ?? "none";
    await killBoth([dead]);
    expect(await settled(item, freshSession("click"))).toBe("200 approved");
    const decidedBy = journal(session).find((entry) => entry.events.some(({ type }) => type === "DecisionRecorded"))?.host;
    expect(decidedBy).not.toBe(askedBy);
    await startBoth([dead]);
    await refunded(session);
    expect(refunds(session)).toBe(1);
  });

  it("while no session host and no worker is there: 202, kept, and carried out once when they are back", async () => {
    const { session, item } = await asked(100);
    const decisionId = freshSession("click");
    await killBoth([...HOSTS, "tools"]);
    expect(outcome(await docket.decide(item, "approve", { decisionId }))).toBe("202 not_known_yet");
    expect(eventsOf(journal(session), "DecisionRecorded")).toEqual([]);
    await startBoth([...HOSTS, "tools"]);
    expect(await settled(item, decisionId)).toBe("200 approved");
    await refunded(session);
    expect(refunds(session)).toBe(1);
    expect(eventsOf(journal(session), "DecisionRecorded")).toHaveLength(1);
    expect((await audited(item.pending.record.approvalId)).slice(0, 2)).toEqual(["requested", "not_known_yet"]);
  });

  it("while the broker is gone: 503, audited, nothing decided; the same click counts when it is back", async () => {
    const { session, item } = await asked(100);
    const decisionId = freshSession("click");
    await docket.test.stack.kill("broker");
    expect(outcome(await docket.decide(item, "approve", { decisionId }))).toMatch(/^503 (broker|sidecar)_unavailable$/);
    expect(eventsOf(journal(session), "DecisionRecorded")).toEqual([]);
    await docket.test.stack.start("broker");
    expect(await settled(item, decisionId)).toBe("200 approved");
    await refunded(session);
    expect(refunds(session)).toBe(1);
    expect((await audited(item.pending.record.approvalId))[1]).toMatch(/^(broker|sidecar)_unavailable$/);
  });

  it("after an upgrade whose policy denies the call: an approval is refused, a rejection is not", async () => {
    const { session, item } = await asked(100);
    writeFileSync(join(home, "policies/odd.yaml"), "version: 1\nrules:\n  - { id: no-more, match: { tools: [issue_refund] }, verdict: deny, reason: no refunds any more }\n");
    for (const name of HOSTS) await docket.test.stack.restart(name);
    expect(await settled(item, freshSession("click"))).toBe("403 denied_by_policy");
    expect(await settled(item, freshSession("click"), "reject", { text: "no" })).toBe("200 rejected");
    expect(refunds(session)).toBe(0);
    expect(eventsOf(journal(session), "DecisionRefused")).toMatchObject([{ code: "denied_by_policy" }]);
  });
});

it("afterwards every journal folds to its state", () => { expect(foldCheck(docket).problems).toEqual([]); });
