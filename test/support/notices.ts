/** Owns: stand-ins around notices: a server that takes them as Slack, Discord and webhook receivers do and keeps what came, and clicks as Slack signs them. */
import { createHmac } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { readNotices, type NoticeSettings } from "../../src/console/notices/settings.js";
import type { NoticeSigner } from "../../src/console/ports.js";
import type { Signer, Trust } from "../../src/platform/keys.js";
import { signButton, signLink, verifyButton, verifyLink } from "../../src/platform/signing.js";

export function noticeSignerOf({ signer, trust }: { readonly signer: Signer; readonly trust: Trust }): NoticeSigner {
  return {
    signLink: (claims) => signLink(signer, claims), verifyLink: (jws, nowMs) => verifyLink(trust, jws, nowMs),
    signButton: (claims) => signButton(signer, claims), verifyButton: (jws, nowMs) => verifyButton(trust, jws, nowMs),
  };
}

export interface Received { readonly path: string; readonly method: string; readonly headers: Readonly<Record<string, string>>; readonly text: string; readonly body: Readonly<Record<string, unknown>> }
interface Reply { readonly status: number; readonly text?: string; readonly headers?: Readonly<Record<string, string>> }
export interface Receiver {
  readonly url: string; readonly port: number; readonly received: Received[];
  /** What it answers; by default what the real ones do. */
  answer: (request: Received) => Reply | Promise<Reply>;
  /** The newest one that fits, waited for. */
  until(what: string, fits: (request: Received) => boolean, ms?: number): Promise<Received>;
  close(): Promise<void>;
}

const usual = ({ path, method }: Received): Reply => (path.startsWith("/discord") && method === "POST" ? { status: 200, text: '{"id":"424242"}', headers: { "content-type": "application/json" } } : { status: 200, text: "ok" });

export async function startReceiver(port = 0): Promise<Receiver> {
  const received: Received[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const headers = Object.fromEntries(Object.entries(req.headers).map(([name, value]) => [name, String(value)]));
      let body: Record<string, unknown> = {};
      try { body = JSON.parse(text) as Record<string, unknown>; } catch { /* no JSON */ }
      const request = { path: req.url ?? "", method: req.method ?? "", headers, text, body };
      received.push(request);
      void Promise.resolve(receiver.answer(request)).then((reply) => { res.writeHead(reply.status, reply.headers ?? {}).end(reply.text ?? ""); });
    });
  });
  await new Promise<void>((resolve) => { server.listen(port, "127.0.0.1", resolve); });
  const { port: taken } = server.address() as AddressInfo;
  const receiver: Receiver = {
    url: `http://127.0.0.1:${String(taken)}`, port: taken, received, answer: usual,
    async until(what, fits, ms = 20_000) {
      const deadline = Date.now() + ms;
      for (;;) {
        const found = received.findLast(fits);
        if (found !== undefined) return found;
        if (Date.now() > deadline) throw new Error(`did not come: ${what}; there is ${received.map(({ method, path }) => `${method} ${path}`).join(", ")}`);
        await pause(20);
      }
    },
    close: () => new Promise((resolve) => { server.close(() => { resolve(); }); server.closeAllConnections(); }),
  };
  return receiver;
}

export const SLACK_SECRET = "slack-signing-secret-of-the-tests";
export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
export const TEAM = "T0DOCKET";

/** A notices file for tests: Slack with all buttons, Discord, and a webhook with links for Ann. */
export function noticesText(more: { readonly people?: string; readonly signIn?: string; readonly routes?: string } = {}): string {
  return `version: 1
channels:
  ops: { kind: slack, urlFrom: SLACK_URL, buttons: all }
  chat: { kind: discord, urlFrom: DISCORD_URL }
  hook: { kind: webhook, urlFrom: HOOK_URL, signingSecret: HOOK_SECRET, links: [ann] }
${more.routes ?? "routes:\n  - { to: [ops, chat, hook] }"}
slack: { signingSecret: SLACK_SIGNING, team: ${TEAM} }
links: { signIn: ${more.signIn ?? "never"}, lastHours: 24 }
people:
  - { principal: ann, roles: [approver], slack: U0ANN }
  - { principal: vic, roles: [viewer], slack: U0VIC }
${more.people ?? ""}`;
}

/** The settings of a notices file whose receivers are one server. */
export function settingsFor(text: string, receiver: Pick<Receiver, "url">, consoleUrl: string): NoticeSettings {
  const secrets: Readonly<Record<string, string>> = { SLACK_URL: `${receiver.url}/slack/services/T0/B0/secret-path`, DISCORD_URL: `${receiver.url}/discord/api/webhooks/1/secret-path`, HOOK_URL: `${receiver.url}/hook`, HOOK_SECRET: WEBHOOK_SECRET, SLACK_SIGNING: SLACK_SECRET };
  return { ...readNotices(text, { from: "notices.yaml", consoleUrl, secret: (name) => secrets[name] }), slackOrigins: [receiver.url] };
}

type Block = { readonly type: string; readonly elements?: readonly { readonly action_id?: string; readonly value?: string; readonly url?: string }[] };
/** The signed value of a button on a Slack card. */
export function buttonOf({ body }: Pick<Received, "body">, action: string): string | undefined {
  return (body["blocks"] as readonly Block[] | undefined)?.find((block) => block.type === "actions")?.elements?.find((one) => one.action_id === action)?.value;
}

let clicks = 0;
/** What Slack sends for a click. */
export function slackPayload(about: { readonly user: string; readonly action: string; readonly value: string; readonly responseUrl: string; readonly team?: string; readonly reason?: string; readonly actionTs?: string }): object {
  clicks += 1;
  return {
    type: "block_actions", api_app_id: "A0", user: { id: about.user, username: "somebody", team_id: about.team ?? TEAM }, team: { id: about.team ?? TEAM, domain: "docket" }, container: { type: "message" }, trigger_id: `${String(clicks)}.trigger`,
    response_url: about.responseUrl, actions: [{ type: "button", block_id: "decide", action_id: about.action, value: about.value, action_ts: about.actionTs ?? `17000000${String(clicks)}.0001` }],
    state: { values: about.reason === undefined ? {} : { reason: { reason: { type: "plain_text_input", value: about.reason } } } },
  };
}

/** Body and headers of a callback, signed as Slack signs. */
export function slackCall(payload: object, { secret = SLACK_SECRET, atS = Math.floor(Date.now() / 1000) }: { readonly secret?: string; readonly atS?: number } = {}): { readonly text: string; readonly headers: Record<string, string> } {
  const text = new URLSearchParams({ payload: JSON.stringify(payload) }).toString();
  const signature = `v0=${createHmac("sha256", secret).update(`v0:${String(atS)}:${text}`).digest("hex")}`;
  return { text, headers: { "content-type": "application/x-www-form-urlencoded", "x-slack-signature": signature, "x-slack-request-timestamp": String(atS) } };
}
