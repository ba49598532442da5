/**
 * Real input that nobody here wrote: every delivery of @octokit/webhooks-examples, signed as GitHub signs them, to the real
 * gateway. All are accepted or refused with a reason, none crashes anything, and the session is repository and number of
 * the verified body.
 */
import { createHmac, randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Accepted } from "../../src/contracts/api.js";
import { foldCheck } from "../support/checks.js";
import { eventually, startDocket, type Docket } from "../support/docket.js";

interface Example { readonly repository?: { readonly full_name: string }; readonly issue?: { readonly number: number }; readonly pull_request?: { readonly number: number } }
interface Definition { readonly name: string; readonly examples: readonly Example[] }

const SECRET = "it-is-a-secret-of-this-test";
const definitions = createRequire(import.meta.url)("@octokit/webhooks-examples") as Definition[];
const deliveries = definitions.flatMap(({ name, examples }) => examples.map((example) => ({ name, example })));

let docket: Docket;
beforeAll(async () => { docket = await startDocket({ extraEnv: { gateway: { DOCKET_GITHUB_WEBHOOK_SECRETS: SECRET } } }); });
afterAll(async () => { await docket.close(); });

async function deliver(name: string, body: string, signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`): Promise<{ status: number; body: unknown }> {
  return await docket.gateway("POST", "/webhooks/github", body, { "x-github-event": name, "x-github-delivery": randomUUID(), "x-hub-signature-256": signature });
}

describe("GitHub's own example deliveries", () => {
  it("are all accepted or refused with a reason, and lead to sessions of repository and number", async () => {
    expect(deliveries.length).toBeGreaterThan(100);
    const accepted: Accepted[] = [];
    for (let at = 0; at < deliveries.length; at += 8) {
      const replies = await Promise.all(deliveries.slice(at, at + 8).map(async ({ name, example }) => ({ name, example, reply: await deliver(name, JSON.stringify(example)) })));
      for (const { name, example, reply } of replies) {
        const number = example.issue?.number ?? example.pull_request?.number;
        if (reply.status === 202) {
          const answer = Accepted.parse(reply.body);
          expect(answer.sessionId).toBe(`${example.repository?.full_name ?? "?"}#${String(number)}`);
          accepted.push(answer);
        } else {
          expect(reply, name).toMatchObject({ status: 200, body: { ignored: expect.any(String) as string } });
        }
      }
    }
    expect(accepted.length).toBeGreaterThan(20);
    for (const answer of accepted) expect((await docket.ended(answer, 60_000)).outcome).toBe("completed");
    expect((await docket.deadLetters()).map((item) => item.letter.reason)).toEqual([]);
  });

  it("are refused when one byte differs from what was signed", async () => {
    const { name, example } = deliveries[0]!;
    const body = JSON.stringify(example);
    const signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
    expect(await deliver(name, `${body} `, signature)).toMatchObject({ status: 401, body: { code: "bad_signature" } });
  });

  it("leave everything alive, with journals that fold to their states", async () => {
    for (const app of ["gateway", "sessions", "tools", "console"]) expect((await docket.test.callApp(app, "/healthz")).status).toBe(200);
    await eventually("all sessions at rest", async () => {
      const page = await docket.console("GET", "/v1/sessions?limit=200");
      return (page.body as { items: { status: string }[] }).items.every((item) => item.status === "IDLE") ? true : undefined;
    });
    expect(foldCheck(docket).problems).toEqual([]);
  });
});
