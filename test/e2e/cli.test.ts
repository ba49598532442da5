/** The operator's commands on the real runtime: ask, look, decide, follow. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { docket as runDocket, type Ran } from "../support/cli-fakes.js";
import { freshSession, startDocket, type Docket } from "../support/docket.js";

let stack: Docket;
beforeAll(async () => { stack = await startDocket(); });
afterAll(async () => { await stack.close(); });

const cli = (args: string[], key = stack.apiKey): Promise<Ran> => runDocket(args, { env: { DOCKET_GATEWAY_URL: stack.test.stack.urls.gateway, DOCKET_CONSOLE_URL: stack.test.stack.urls.console, DOCKET_API_KEY: key } });

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
});
