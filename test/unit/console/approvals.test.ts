import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { APPROVAL_PENDING, APPROVAL_TEND, DECISION_MADE } from "../../../src/contracts/decisions.js";
import { ensureDevKeys, loadSigner, loadTrust, type Signer, type Trust } from "../../../src/platform/keys.js";
import { verifyDecision } from "../../../src/platform/signing.js";
import { ACTOR, entryOf, journalMessage, messageOf, pendingOf, recordOf, START_MS, startConsole, viewOf, type ConsoleWorld } from "../../support/console-fakes.js";

let dir: string;
let keys: { signer: Signer; trust: Trust };
let world: ConsoleWorld;
let approver: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "docket-console-"));
  await ensureDevKeys(dir);
  keys = { signer: await loadSigner(dir, "console"), trust: await loadTrust(dir) };
});
afterAll(() => rm(dir, { recursive: true }));
beforeEach(async () => {
  world = await startConsole(keys);
  approver = world.key(["approver"]);
  world.sessions.views.set(ACTOR, viewOf());
  expect(await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf()))).toBe("SUCCESS");
});
afterEach(() => world.close());

const seen = { version: 1, argsDigest: "sha256:ab" };
const decide = (body: unknown, key = approver, path = "/v1/approvals/apr_1/decisions") => world.call("POST", path, { key, body });

describe("a decision", () => {
  it("answers with the session's verdict, signed by the console for the person who made it", async () => {
    const answer = await decide({ ...seen, kind: "approve" });
    expect(answer).toMatchObject({ status: 200, body: { approvalId: "apr_1", verdict: "approved", rev: 7 } });
    const [sent] = world.decisions.sent;
    expect(sent).toMatchObject({ type: DECISION_MADE, subject: "ord-1", tenant: "default", partitionkey: "default_ord-1" });
    const claims = await verifyDecision(keys.trust, (JSON.parse(sent!.data) as { decision: string }).decision, START_MS);
    expect(claims).toMatchObject({ sub: ACTOR, jti: answer.body["decisionId"], kind: "approve", version: 1, argsDigest: "sha256:ab", principal: { id: "ann", class: "person", roles: ["approver"] }, via: "api" });
    expect(claims.exp - claims.iat).toBe(300);
  });

  it("to modify carries canonical arguments, digits kept", async () => {
    expect(await decide({ ...seen, kind: "modify", args: '{ "id": 9007199254740993, "amount": 40.00 }' })).toMatchObject({ status: 200, body: { verdict: "modified" } });
    const claims = await verifyDecision(keys.trust, (JSON.parse(world.decisions.sent[0]!.data) as { decision: string }).decision, START_MS);
    expect(claims.args).toBe('{"amount":40.00,"id":9007199254740993}');
  });

  it.each([
    ["other arguments", { ...seen, kind: "approve", argsDigest: "sha256:other" }, 409, "digest_mismatch"],
    ["an older version", { ...seen, kind: "approve", version: 0 }, 409, "version_mismatch"],
    ["an answer that is not offered", { ...seen, kind: "respond", text: "yes" }, 403, "decision_not_allowed"],
    ["modify without arguments", { ...seen, kind: "modify" }, 422, "validation_failed"],
    ["reject without a reason", { ...seen, kind: "reject" }, 422, "validation_failed"],
    ["reject with nothing but blanks for a reason", { ...seen, kind: "reject", text: " \n" }, 422, "validation_failed"],
    ["approve with arguments", { ...seen, kind: "approve", args: "{}" }, 422, "validation_failed"],
    ["arguments that are not JSON", { ...seen, kind: "modify", args: "{oops" }, 422, "arguments_invalid"],
    ["a principal smuggled in", { ...seen, kind: "approve", principal: { id: "root" } }, 422, "validation_failed"],
    ["no digest", { version: 1, kind: "approve" }, 422, "validation_failed"],
    ["an unknown kind", { ...seen, kind: "allow" }, 422, "validation_failed"],
  ])("for %s is refused", async (_name, body, status, code) => {
    expect(await decide(body)).toMatchObject({ status, body: { code, status } });
    expect(world.sessions.views.get(ACTOR)!.approvals).toHaveLength(1);
  });

  it("that the session refuses is answered in the session's own words; one of an older version gives the code's title", async () => {
    world.sessions.refuseWith = { code: "arguments_invalid", message: "/amount: got \"x\" (a string), expected: it must be integer" };
    expect(await decide({ ...seen, kind: "modify", args: '{"amount":"x"}' })).toMatchObject({ status: 422, body: { code: "arguments_invalid", detail: 'the session refused the decision on apr_1: /amount: got "x" (a string), expected: it must be integer' } });
    world.sessions.refuseWith = { code: "arguments_invalid" };
    expect((await decide({ ...seen, kind: "modify", args: '{"amount":"y"}' })).body["detail"]).toBe("the session refused the decision on apr_1: the arguments do not fit the tool's schema");
  });

  it.each([
    ["a viewer", { roles: ["viewer"] }, 403, "not_an_approver"], ["an operator", { roles: ["operator"] }, 403, "not_an_approver"], ["somebody without a role", { roles: [] }, 403, "forbidden"],
    ["a machine", { roles: ["approver"], class: "machine" as const }, 403, "not_an_approver"], ["an agent with every role", { roles: ["viewer", "approver", "admin"], class: "agent" as const }, 403, "not_an_approver"],
    ["another tenant", { roles: ["approver"], tenant: "other" }, 404, "approval_not_found"], ["a key without the scope", { roles: ["approver"], scopes: ["sessions:read"] }, 403, "forbidden"],
  ])("by %s changes nothing", async (_name, { roles, ...more }, status, code) => {
    expect(await decide({ ...seen, kind: "approve" }, world.key(roles, more))).toMatchObject({ status, body: { code } });
    expect(world.decisions.sent).toEqual([]);
  });

  it("without or with a wrong key is unauthenticated", async () => {
    for (const key of [undefined, "dk_abcd1234_0123456789abcdef0123456789abcdef"]) {
      expect(await world.call("POST", "/v1/approvals/apr_1/decisions", { ...(key === undefined ? {} : { key }), body: { ...seen, kind: "approve" } })).toMatchObject({ status: 401, body: { code: "unauthenticated" } });
    }
  });

  it("after expiry is 410, and one on a decided approval 409", async () => {
    world.sessions.views.set(ACTOR, viewOf([recordOf({ expiresAtMs: START_MS - 1 })]));
    expect(await decide({ ...seen, kind: "approve" })).toMatchObject({ status: 410, body: { code: "approval_expired" } });
    world.sessions.views.set(ACTOR, viewOf([]));
    expect(await decide({ ...seen, kind: "reject", text: "no" })).toMatchObject({ status: 409, body: { code: "already_decided" } });
  });

  it("made twice by the same click is one decision with one answer", async () => {
    const click = { ...seen, kind: "approve", decisionId: "click-0001" };
    const [first, second] = await Promise.all([decide(click), decide(click)]);
    const third = await decide(click);
    expect(first).toMatchObject({ status: 200, body: { verdict: "approved" } });
    expect([second.body, third.body]).toEqual([first.body, first.body]);
    expect(new Set(world.decisions.sent.map((e) => e.id)).size).toBe(1);
  });

  it("a click id reused by somebody else, or for something else, is another decision", async () => {
    await decide({ ...seen, kind: "approve", decisionId: "click-0001" });
    const other = await decide({ ...seen, kind: "approve", decisionId: "click-0001" }, world.key(["approver"], { id: "eve" }));
    expect(other).toMatchObject({ status: 409, body: { code: "already_decided" } });
    expect(await decide({ ...seen, kind: "reject", text: "no", decisionId: "click-0001" })).toMatchObject({ status: 409, body: { code: "already_decided" } });
  });

  it("whose verdict is not known in time is 202, never a success", async () => {
    world.patience(100);
    world.decisions.onSend = () => undefined;
    expect(await decide({ ...seen, kind: "approve" })).toMatchObject({ status: 202, body: { verdict: "not_known_yet" } });
    world.sessions.down = true;
    expect(await decide({ ...seen, kind: "approve" })).toMatchObject({ status: 202, body: { verdict: "not_known_yet" } });
  });

  it("that the broker does not take is 503, and can be sent again", async () => {
    world.decisions.down = true;
    expect(await decide({ ...seen, kind: "approve" })).toMatchObject({ status: 503, body: { code: "broker_unavailable", retryable: true } });
    world.decisions.down = false;
    expect(await decide({ ...seen, kind: "approve" })).toMatchObject({ status: 200 });
  });

  it("leaves two audit rows, refusals included: what was asked and what came of it", async () => {
    await decide({ ...seen, kind: "approve" }, world.key(["viewer"], { id: "vic" }));
    await decide({ ...seen, kind: "approve", argsDigest: "sha256:other" });
    const audit = await world.call("GET", "/v1/audit", { key: world.key(["admin"]) });
    const rows = (audit.body["items"] as { principalId: string; action: string; target: string; outcome: string }[]).map((r) => `${r.principalId} ${r.action} ${r.target} ${r.outcome}`).sort();
    expect(rows).toEqual(["ann approval.approve apr_1 digest_mismatch", "ann approval.approve apr_1 requested", "vic approval.approve apr_1 not_an_approver", "vic approval.approve apr_1 requested"]);
    expect(await world.call("GET", "/v1/audit", { key: approver })).toMatchObject({ status: 403 });
  });
});

describe("the approval list", () => {
  it("shows the newest version of what is asked: new arguments under a quorum are a new question", async () => {
    await world.console.handleJournal(journalMessage(entryOf(1, [{ type: "ApprovalOpened", record: recordOf() }])));
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(recordOf({ version: 2, argsDigest: "sha256:cd" }), { args: '{"amount":60}' }), { id: "p2" }));
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(), { id: "p3" }));
    expect((await world.call("GET", "/v1/approvals/apr_1", { key: approver })).body).toMatchObject({ state: "open", pending: { args: '{"amount":60}', record: { version: 2, argsDigest: "sha256:cd" } } });
  });

  it("shows what is open, soonest expiry first, page by page", async () => {
    for (let i = 2; i <= 5; i += 1) await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(recordOf({ approvalId: `apr_${String(i)}`, expiresAtMs: START_MS + (10 - i) * 1000 }))));
    const ids: string[] = [];
    let cursor = "";
    do {
      const page = await world.call("GET", `/v1/approvals?limit=2${cursor}`, { key: approver });
      ids.push(...(page.body["items"] as { pending: { record: { approvalId: string } } }[]).map((i) => i.pending.record.approvalId));
      cursor = typeof page.body["nextCursor"] === "string" ? `&cursor=${page.body["nextCursor"]}` : "";
    } while (cursor !== "");
    expect(ids).toEqual(["apr_5", "apr_4", "apr_3", "apr_2", "apr_1"]);
  });

  it("an approval is shown with the signatures that the session has by now", async () => {
    world.sessions.views.set(ACTOR, viewOf([recordOf({ signatures: [{ principalId: "bob", decisionId: "d", atMs: 1 }] })]));
    expect((await world.call("GET", "/v1/approvals/apr_1", { key: approver })).body).toMatchObject({ state: "open", pending: { args: '{"amount":50}', record: { signatures: [{ principalId: "bob" }] } } });
    world.sessions.down = true;
    expect((await world.call("GET", "/v1/approvals/apr_1", { key: approver })).body).toMatchObject({ state: "open", pending: { record: { signatures: [] } } });
  });

  it.each([["/v1/approvals/nope", 404, "approval_not_found"], ["/v1/approvals?state=maybe", 422, "validation_failed"], ["/v1/approvals?stat=open", 422, "validation_failed"], ["/v1/approvals?cursor=rubbish", 400, "bad_request"],
    ["/v1/approvals?limit=0", 422, "validation_failed"], ["/nowhere", 404, "not_found"], ["/v1/approvals/%E0%A4%A", 400, "bad_request"]])("GET %s is a problem document", async (path, status, code) => {
    const answer = await world.call("GET", path, { key: approver });
    expect(answer).toMatchObject({ status, body: { code, type: `urn:docket:problem:${code}` } });
    expect(answer.headers.get("content-type")).toMatch(/application\/problem\+json/);
  });
});

describe("what was decided before", () => {
  const decided = (id: string, more: object) => ({ type: "DecisionRecorded", approvalId: id, decisionId: `d-${id}`, kind: "approve", principal: { id: "ben", class: "person", roles: ["approver"] as string[] }, via: "web", final: true, ...more }) as const;
  it("has the arguments that were let run, those that were asked for, and why; the approval's history has the refusals in words", async () => {
    await world.console.handleJournal(journalMessage(entryOf(1, [{ type: "ApprovalOpened", record: recordOf({ approvalId: "apr_old" }) }])));
    await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(recordOf({ approvalId: "apr_old" })), { id: "p-old" }));
    await world.console.handleJournal(journalMessage(entryOf(2, [{ type: "DecisionRefused", approvalId: "apr_old", decisionId: "d0", code: "arguments_invalid", message: "/amount: expected: it must be >= 1", via: "web" }])));
    await world.console.handleJournal(journalMessage(entryOf(3, [decided("apr_old", { kind: "modify", args: '{"amount":40}', argsDigest: "sha256:40", text: "the shipping was free" })])));
    const { body } = await world.call("GET", "/v1/approvals/apr_1/similar", { key: approver });
    expect(body["items"]).toMatchObject([{ state: "decided", decision: "modify", decidedBy: "ben", decidedAtMs: START_MS + 3, pending: { args: '{"amount":50}' }, modifiedArgs: '{"amount":40}', reason: "the shipping was free" }]);
    expect((await world.call("GET", "/v1/approvals/apr_old", { key: approver })).body["history"]).toMatchObject([{ what: "opened" }, { what: "refused", detail: "arguments_invalid", text: "/amount: expected: it must be >= 1" }, { what: "decided", detail: "modify", text: "the shipping was free", args: '{"amount":40}' }]);
  });

  it("an approval and a change may have a reason, which is in the audit and goes to the session", async () => {
    expect((await decide({ ...seen, kind: "approve", text: "checked with the customer" })).status).toBe(200);
    const claims = await verifyDecision(keys.trust, (JSON.parse(world.decisions.sent[0]!.data) as { decision: string }).decision, START_MS);
    expect(claims.text).toBe("checked with the customer");
    const rows = (await world.call("GET", "/v1/audit", { key: world.key(["admin"]) })).body["items"] as { action: string; reason: string }[];
    expect(rows.map(({ action, reason }) => [action, reason])).toEqual([["approval.approve", "checked with the customer"], ["approval.approve", "checked with the customer"]]);
  });
});

describe("a list of open approvals", () => {
  it("has the signatures and the steps of the chain as the session has them, in whatever order they were told", async () => {
    const chain = [{ atMs: START_MS + 1 }, { atMs: START_MS + 2, to: { roles: ["lead"], groups: [] } }];
    const record = recordOf({ approvalId: "apr_q", chain, approvers: { roles: [], quorum: 3, excludeRequester: false } });
    const signed = (id: string, more: object = {}) => ({ type: "DecisionRecorded", approvalId: "apr_q", decisionId: `d-${id}`, kind: "approve", principal: { id, class: "person", roles: ["approver"] as string[] }, via: "web", final: false, ...more }) as const;
    const entries = [entryOf(1, [{ type: "ApprovalOpened", record }]), entryOf(2, [signed("ann")]), entryOf(3, [{ type: "ApprovalReminded", approvalId: "apr_q", step: 0 }, signed("ben")])];
    for (const entry of [entries[2]!, entries[0]!, entries[1]!]) await world.console.handleJournal(journalMessage(entry));
    expect(await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(record)))).toBe("SUCCESS");
    const listed = async () => ((await world.call("GET", "/v1/approvals", { key: approver })).body["items"] as { pending: { record: { approvalId: string; chainDone?: number; signatures: { principalId: string }[] } } }[]).find(({ pending }) => pending.record.approvalId === "apr_q")?.pending.record;
    expect(await listed()).toMatchObject({ chainDone: 1, signatures: [{ principalId: "ann" }, { principalId: "ben" }] });
    await world.console.handleJournal(journalMessage(entryOf(4, [signed("cy", { policyVersion: "p-2" })])));
    expect((await listed())?.signatures.map(({ principalId }) => principalId), "under another policy earlier ones are void").toEqual(["cy"]);
    await world.console.handleJournal(journalMessage(entryOf(5, [{ type: "ApprovalAskedAgain", approvalId: "apr_q", toolDigest: "t2" }])));
    expect((await listed())?.signatures, "of another tool all of them are void").toEqual([]);
  });

  it("says who signed after it was decided too, and counts no rejection", async () => {
    const decided = async (approvalId: string, kind: "approve" | "reject") => {
      const record = recordOf({ approvalId, approvers: { roles: [], quorum: 2, excludeRequester: false } });
      const by = (id: string, more: object) => ({ type: "DecisionRecorded", approvalId, decisionId: `d-${approvalId}-${id}`, kind: "approve", principal: { id, class: "person", roles: ["approver"] as string[] }, via: "web", final: false, ...more }) as const;
      const rev = kind === "approve" ? 1 : 4;
      const entries = [entryOf(rev, [{ type: "ApprovalOpened", record }]), entryOf(rev + 1, [by("ann", {})]), entryOf(rev + 2, [by("ben", { kind, final: true })])];
      for (const entry of entries) await world.console.handleJournal(journalMessage(entry));
      await world.console.handleApprovalPending(messageOf(APPROVAL_PENDING, pendingOf(record)));
      const { body } = await world.call("GET", `/v1/approvals/${approvalId}`, { key: approver });
      const { state, pending } = body as { state: string; pending: { record: { signatures: { principalId: string }[] } } };
      return [state, pending.record.signatures.map(({ principalId }) => principalId)];
    };
    expect(await decided("apr_yes", "approve")).toEqual(["decided", ["ann", "ben"]]);
    expect(await decided("apr_no", "reject")).toEqual(["decided", ["ann"]]);
  });
});

describe("whose turn it is", () => {
  it.each([["me", "ann"], ["nobody", null], [null, null], ["ben", "ben"]])("assigned to %j is sent as %j, as the list's filter reads the word", async (to, assignTo) => {
    world.tasks.onSend = ({ type }) => { if (type === APPROVAL_TEND) world.sessions.outcome = { state: "ended", outcome: "completed" }; };
    expect(await world.call("POST", "/v1/approvals/apr_1/assign", { key: approver, body: { to } })).toMatchObject({ status: 200 });
    expect(JSON.parse(world.tasks.sent.find(({ type }) => type === APPROVAL_TEND)!.data)).toMatchObject({ approvalId: "apr_1", assignTo });
  });
});
