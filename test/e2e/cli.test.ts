/** The operator's commands on the real runtime: ask, look, decide, follow. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/cluster.js";
import { docket as runDocket, type Ran, type RunOptions } from "../support/cli-fakes.js";
import { freshSession, startDocket, type Docket } from "../support/docket.js";

let stack: Docket;
beforeAll(async () => { stack = await startDocket(); });
afterAll(async () => { await stack.close(); });

const cli = (args: string[], key = stack.apiKey, options: RunOptions = {}): Promise<Ran> => runDocket(args, { ...options, env: { DOCKET_GATEWAY_URL: stack.test.stack.urls.gateway, DOCKET_CONSOLE_URL: stack.test.stack.urls.console, DOCKET_API_KEY: key } });

describe("docket", () => {
  it("sends, waits and prints the answer alone", async () => {
    const session = freshSession("cli-status");
    expect(await cli(["session", "send", session, "where is order 1001?", "--wait", "--timeout", "60"])).toMatchObject({ code: 0, out: "Order 1001 is the espresso machine, 24900 cents, delivered.\n" });
    expect((await cli(["session", "tail", session, "--until-end", "--timeout", "30"])).out).toMatch(/session opened[\s\S]*order_status[\s\S]*completed/);
    expect((await cli(["session", "list", "--search", session])).out).toContain(session);
    expect((await cli(["session", "show", session])).out).toMatch(/status +IDLE/);
  });

  it("approves a refund with the arguments shown; the second decision and a stranger are refused", async () => {
    const session = freshSession("cli-refund");
    const sent = cli(["session", "send", session, "refund 1200 cents of order 1001", "--wait", "--timeout", "90"]);
    const item = await stack.openApproval(session);
    const { approvalId, argsDigest } = item.pending.record;
    expect((await cli(["approval", "list"])).out).toContain(approvalId);
    expect((await cli(["approval", "show", approvalId])).out).toContain(argsDigest);
    expect((await cli(["approval", "approve", approvalId, "--yes"], "dk_000000000000_0123456789012345678901234567890123456789012")).code).toBe(5);
    expect((await cli(["approval", "approve", approvalId, "--yes", "--digest", argsDigest])).code).toBe(0);
    expect((await cli(["approval", "reject", approvalId, "--yes", "--reason", "too late"])).code).toBe(4);
    const { code, err } = await sent;
    expect(code).toBe(0);
    expect(err).toContain(`a person is needed: docket approval show ${approvalId}`);
  });

  it("modify runs the changed arguments", async () => {
    const session = freshSession("cli-modify");
    const sent = cli(["session", "send", session, "refund 1200 cents of order 1001", "--wait", "--timeout", "90"]);
    const item = await stack.openApproval(session);
    const { approvalId } = item.pending.record;
    const wrong = await cli(["approval", "modify", approvalId, "--yes", "--args", '{"orderId":"1001","amountCents":"many","reason":"r"}']);
    expect([wrong.code, wrong.err]).toEqual([6, expect.stringContaining("arguments_invalid")]);
    expect((await cli(["approval", "modify", approvalId, "--yes", "--args", '{"orderId":"1001","amountCents":900,"reason":"r"}'])).code).toBe(0);
    expect((await sent).code).toBe(0);
    const args = (await stack.journal(session)).flatMap((entry) => entry.events).flatMap((event) => event.type === "DecisionRecorded" ? [event.args] : []);
    expect(args).toEqual(['{"amountCents":900,"orderId":"1001","reason":"r"}']);
  });

  it("a watched queue shows an approval come and go; --set keeps what it does not name, and the session's refusal names the place that does not fit", async () => {
    const session = freshSession("cli-watch");
    const ctrlC = new AbortController();
    let seen = "";
    const watching = cli(["approval", "list", "--session", session, "--watch", "--every", "0.2", "-o", "jsonl"], stack.apiKey, { interrupted: ctrlC.signal, onOut: (text) => { seen += text; } });
    const sent = cli(["session", "send", session, "refund 1200 cents of order 1001", "--wait", "--timeout", "120"]);
    const item = await stack.openApproval(session);
    const { approvalId } = item.pending.record;
    await eventually("the approval in the watched queue", () => seen.includes(approvalId) || undefined, 60_000);
    const wrong = await cli(["approval", "modify", approvalId, "--yes", "--set", 'amountCents="many"']);
    expect([wrong.code, wrong.err]).toEqual([6, expect.stringContaining('  amountCents: got "many" (a string), expected: it must be integer\n')]);
    expect(wrong.err).toContain(`page:  ${stack.test.stack.urls.console ?? ""}/approvals/${approvalId}\n`);
    const right = await cli(["approval", "modify", approvalId, "--yes", "--set", "amountCents=900", "--reason", "agreed on the phone"]);
    expect([right.code, right.err]).toEqual([0, expect.stringMatching(/amountCents +1200 -> 900\n/)]);
    expect((await sent).code).toBe(0);
    const decided = (await stack.journal(session)).flatMap((entry) => entry.events).flatMap((event) => event.type === "DecisionRecorded" ? [event] : []);
    expect(decided).toMatchObject([{ kind: "modify", text: "agreed on the phone" }]);
    expect(JSON.parse(decided[0]?.args ?? "{}")).toEqual({ ...(JSON.parse(item.pending.args) as object), amountCents: 900 });
    await eventually("that it has left the queue", () => seen.includes(`{"gone":"${approvalId}"}`) || undefined, 60_000);
    ctrlC.abort();
    expect(await watching).toMatchObject({ code: 130 });
  });
});
