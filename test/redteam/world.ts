/**
 * Owns: what an attacker can reach, and where one can look afterwards: requests to console and gateway, bytes on a topic, calls of the actor; journals, effects, logs.
 * Two worlds are made of it: all apps in one process (memory-world.ts), and the real stack (stack-world.ts). Attacks know only this.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ChannelName } from "../../src/contracts/channels.js";
import type { JournalEntry, SessionEvent } from "../../src/contracts/journal.js";
import type { NewApiKey } from "../../src/platform/apikeys.js";
import type { Signer, SigningApp } from "../../src/platform/keys.js";
import { noticesText, type Receiver } from "../support/notices.js";

export const GITHUB_SECRET = "github-secret-of-the-red-team";
export const STRIPE_SECRET = "stripe-secret-of-the-red-team";
/** Agent, tools, policy and script of both worlds. */
export const RED_FOLDER = join(import.meta.dirname, "../fixtures/red-agent");
/** People behind Slack users: `slack-1` to `slack-300` are approvers, each for one signature. */
export const RED_NOTICES = noticesText({ signIn: "high-risk", people: [
  ...Array.from({ length: 300 }, (_, n) => `  - { principal: slack-${String(n + 1)}, roles: [approver], slack: U0RED${String(n + 1)} }`),
  "  - { principal: rita, roles: [approver, operator], slack: U0RITA }", "  - { principal: stranger, tenant: other, roles: [approver], slack: U0OTHER }", "  - { principal: gone, key: 0000abcd, slack: U0GONE }",
  ...["lena", "lee"].map((name) => `  - { principal: ${name}, roles: [approver] }`),
].join("\n") });

export type App = "console" | "gateway";
export interface Call { readonly method: string; readonly path: string; readonly headers: Readonly<Record<string, string>>; readonly text?: string }
export interface Reply { readonly status: number; readonly text: string; readonly body: Record<string, unknown>; readonly headers: Headers }
export interface Effect { readonly tool: string; readonly args: string }
export type LogLine = Readonly<Record<string, unknown>>;
export type KeyAbout = Partial<NewApiKey>;

/** An approver of the tenant `default` who may do all that approvers may, unless `about` says otherwise. */
export function redKey(id: string, about: KeyAbout): NewApiKey {
  return { tenant: "default", principalId: id, class: "person", roles: ["approver"], scopes: ["*"], ...about };
}

export abstract class RedWorld {
  /** Keys by the id they were made for. */
  readonly keys = new Map<string, string>();
  readonly signers = new Map<SigningApp, Signer>();
  /** How long a thing that must come is waited for. */
  abstract readonly patienceMs: number;
  abstract readonly pollMs: number;
  /** The key that only session hosts hold. */
  abstract readonly actorKey: string;
  /** What tools have done so far. */
  abstract readonly effects: readonly Effect[];
  /** What the gateway has logged of refusals: all of them; those for want of rights are in the audit too. */
  abstract readonly gatewayLog: readonly LogLine[];
  /** And the console, of requests that would have changed nothing: those are not in the audit. */
  abstract readonly consoleLog: readonly LogLine[];
  /** Where notices arrive. */
  abstract readonly outside: Receiver;

  abstract url(app: App): string;
  /** Makes a key that both apps know. */
  abstract key(id: string, about?: KeyAbout): Promise<string>;
  abstract revoke(key: string): Promise<void>;
  /** Bytes on a topic, as whoever may publish there could send them. */
  abstract publish(channel: ChannelName, text: string): Promise<void>;
  abstract readonly callActor: (method: string, actorId: string, body: object) => Promise<Record<string, unknown>>;
  abstract journal(sessionId: string, tenant?: string): JournalEntry[];
  /** Sends what the gateway has refused to the console, now or soon. */
  abstract flushRefusals(): Promise<void>;
  abstract close(): Promise<void>;

  /** The people whom attacks know by name. */
  async populate(): Promise<this> {
    await Promise.all([
      this.key("rita", { roles: ["approver", "operator"] }), this.key("admin", { roles: ["admin"] }), this.key("viewer", { roles: ["viewer"] }),
      this.key("stranger", { tenant: "other", roles: ["approver", "operator"] }), this.key("other-admin", { tenant: "other", roles: ["admin"] }),
    ]);
    return this;
  }

  events<T extends SessionEvent["type"]>(sessionId: string, type: T, tenant?: string): Extract<SessionEvent, { type: T }>[] {
    return this.journal(sessionId, tenant).flatMap((entry) => entry.events).filter((event): event is Extract<SessionEvent, { type: T }> => event.type === type);
  }

  async http(app: App, call: Call): Promise<Reply> {
    const reply = await fetch(`${this.url(app)}${call.path}`, { method: call.method, headers: call.headers, redirect: "manual", ...(call.text === undefined ? {} : { body: call.text }) });
    const text = reply.headers.get("content-type")?.startsWith("text/event-stream") === true ? (await reply.body?.cancel(), "") : await reply.text();
    let body: unknown = {};
    try { body = JSON.parse(text); } catch { /* a page, or nothing */ }
    return { status: reply.status, text, body: body as Record<string, unknown>, headers: reply.headers };
  }
}

/** Files of lines that are JSON objects; those that are not are passed over. */
export function jsonLinesOf(file: string): Record<string, unknown>[] {
  let text: string;
  try { text = readFileSync(file, "utf8"); } catch { return []; }
  return text.split("\n").flatMap((line) => { try { return [JSON.parse(line) as Record<string, unknown>]; } catch { return []; } });
}
