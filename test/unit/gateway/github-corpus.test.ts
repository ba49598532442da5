/** Every delivery of @octokit/webhooks-examples, signed as GitHub signs it, through a real HTTP server. */
import { createRequire } from "node:module";
import { sign } from "@octokit/webhooks-methods";
import { afterAll, beforeAll, expect, it } from "vitest";
import { agent, GITHUB_SECRET, startTestGateway, type TestGateway } from "../../support/gateway-fakes.js";

interface Definition { readonly name: string; readonly examples: readonly { readonly repository?: { readonly full_name: string }; readonly issue?: { readonly number: number }; readonly pull_request?: { readonly number: number }; readonly discussion?: { readonly number: number } }[] }
const require = createRequire(import.meta.url);
const SETS = ["api.github.com", "ghes-31", "ghes-32", "ghes-33", "ghes-34", "ghes-35"];

let gw: TestGateway;
beforeAll(async () => { gw = await startTestGateway({ agents: [agent("everything", [{ types: ["com.github.*"] }])] }); });
afterAll(async () => { await gw.close(); });

it.each(SETS)("%s: all are accepted or refused with a reason, none crashes anything", async (set) => {
  const definitions = require(`@octokit/webhooks-examples/${set}/index.json`) as Definition[];
  const counts = { accepted: 0, ignored: 0 };
  for (const { name, examples } of definitions) {
    for (const [index, example] of examples.entries()) {
      const body = JSON.stringify(example);
      const res = await fetch(`${gw.url}/webhooks/github`, {
        method: "POST", body,
        headers: { "content-type": "application/json", "user-agent": "GitHub-Hookshot/044aadd", "x-github-event": name, "x-github-delivery": `${set}-${name}-${index}`, "x-hub-signature-256": await sign(GITHUB_SECRET, body) },
      });
      if (example.repository !== undefined && name !== "ping") expect(res.status, `${name} ${index}`).toBe(202);
      const answer = (await res.json()) as { ignored?: string; detail?: string; sessionId?: string };
      if (res.status === 202) {
        counts.accepted += 1;
        const number = example.issue?.number ?? example.pull_request?.number ?? example.discussion?.number;
        expect(answer.sessionId).toBe(`${example.repository?.full_name ?? "?"}${number === undefined ? "" : `#${number}`}`);
      } else {
        expect(res.status, `${name} ${index}`).toBe(200);
        expect(answer.ignored).toBeTruthy();
        expect(answer.detail).toBeTruthy();
        counts.ignored += 1;
      }
    }
  }
  const total = definitions.reduce((sum, one) => sum + one.examples.length, 0);
  expect(counts.accepted + counts.ignored).toBe(total);
  expect(counts.accepted).toBeGreaterThan(total / 2);
  expect((await fetch(`${gw.url}/healthz`)).status).toBe(200);
});
