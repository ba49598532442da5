/** Fakes around the console: sessions that judge decisions as the actor does, recording publishers, and a clock that tests turn. */
import { once } from "node:events";
import type { Express, Request, Response } from "express";
import { DecisionMade, type ApprovalRecord, type PendingApproval } from "../../src/contracts/decisions.js";
import type { DecisionOutcome, EventOutcome, JournalPage, SessionView } from "../../src/contracts/api.js";
import { serializeEnvelope, type Envelope } from "../../src/contracts/cloudevent.js";
import { actorIdOf } from "../../src/contracts/ids.js";
import { JOURNAL_APPENDED, type JournalEntry, type SessionEvent, type SessionSummary } from "../../src/contracts/journal.js";
import { Problem } from "../../src/contracts/problems.js";
import { createApiKey, createApiKeys } from "../../src/platform/apikeys.js";
import { ConsoleConfig } from "../../src/console/config.js";
import { createConsole, type Console } from "../../src/console/console.js";
import type { Installed, Publisher, Sessions } from "../../src/console/ports.js";
import { listen, type Listening } from "../../src/platform/http.js";
import { createLogger } from "../../src/platform/log.js";
import type { Signer, Trust } from "../../src/platform/keys.js";
import { signAuditHead, signDecision, verifyAuditHead, verifyDecision } from "../../src/platform/signing.js";
import { noticeSignerOf } from "./notices.js";
import { compilePolicy } from "../../src/session/core/policy/compile.js";

export const START_MS = 1_800_000_000_000;
const PATIENCE_MS = 5_000;

export class FakePublisher implements Publisher {
  readonly sent: Envelope[] = [];
  down = false;
  onSend: (envelope: Envelope) => void = () => undefined;
  async publish(envelope: Envelope): Promise<void> {
    if (this.down) throw new Problem("broker_unavailable", "the broker is down (fake)");
    this.sent.push(envelope);
    this.onSend(envelope);
  }
}

/** Sessions by actor id, as their actors would answer. `judge` is the actor's way with decisions (I10). */
export class FakeSessions implements Sessions {
  readonly views = new Map<string, SessionView>();
  readonly journals = new Map<string, JournalEntry[]>();
  readonly verdicts = new Map<string, string>();
  down = false;
  journalReads = 0;
  /** Refuses every decision, as a session does. */
  refuseWith: { readonly code: string; readonly message?: string } | undefined;
  readonly #why = new Map<string, string>();

  async readSession(actorId: string): Promise<SessionView | undefined> { this.#check(); return this.views.get(actorId); }
  async readJournal(actorId: string, afterRev: number, limit: number): Promise<JournalPage | undefined> {
    this.#check();
    this.journalReads += 1;
    const all = this.journals.get(actorId);
    return all === undefined ? undefined : { entries: all.filter((entry) => entry.rev > afterRev).slice(0, limit), headRev: all.length };
  }
  async readDecision(_actorId: string, decisionId: string): Promise<DecisionOutcome> {
    this.#check();
    const verdict = this.verdicts.get(decisionId);
    const message = this.#why.get(decisionId);
    return verdict === undefined ? { known: false } : { known: true, verdict, rev: 7, ...(message === undefined ? {} : { message }) };
  }
  /** What sessions say of every event. */
  outcome: EventOutcome = { state: "unknown" };
  async readOutcome(_actorId: string, _key: string): Promise<EventOutcome> { this.#check(); return this.outcome; }
  #check(): void { if (this.down) throw new Problem("actor_unavailable", "the actor does not answer (fake)"); }

  /** Judges what came over the decisions channel, as the actor does: signature, digest, version, roles, expiry, state. */
  async judge(trust: Trust, envelope: Envelope, nowMs: number): Promise<void> {
    const made = DecisionMade.parse(JSON.parse(envelope.data));
    const claims = await verifyDecision(trust, made.decision, nowMs).catch(() => undefined);
    if (claims === undefined || this.verdicts.has(claims.jti)) return;
    if (this.refuseWith !== undefined) {
      this.verdicts.set(claims.jti, this.refuseWith.code);
      if (this.refuseWith.message !== undefined) this.#why.set(claims.jti, this.refuseWith.message);
      return;
    }
    const record = this.views.get(claims.sub)?.approvals.find((one) => one.approvalId === claims.approvalId);
    const refusal = record === undefined ? "already_decided"
      : claims.version !== record.version ? "version_mismatch"
      : claims.argsDigest !== record.argsDigest ? "digest_mismatch"
      : !record.allowed.includes(claims.kind) ? "decision_not_allowed"
      : record.approvers.roles.length > 0 && !claims.principal.roles.some((role) => record.approvers.roles.includes(role)) ? "not_an_approver"
      : record.expiresAtMs !== undefined && record.expiresAtMs <= nowMs ? "approval_expired" : undefined;
    this.verdicts.set(claims.jti, refusal ?? (claims.kind === "modify" ? "modified" : `${claims.kind.replace(/e$/, "")}ed`));
    const view = this.views.get(claims.sub);
    if (refusal === undefined && view !== undefined) this.views.set(claims.sub, { ...view, approvals: view.approvals.filter((one) => one !== record) });
  }
}

/** One agent, one risky tool, one rule. */
const INSTALLED: Installed = {
  agents: [{ name: "orders", version: "1", description: "Handles orders.", instructions: "Be careful.", model: "scripted:orders", tools: ["refund"], triggers: ["com.shop.*"], limits: { maxSteps: 20 } }],
  tools: [{
    name: "refund", description: "Pays money back.", inputSchema: { type: "object", properties: { amount: { type: "integer", minimum: 1 }, note: { type: "string", default: "" } }, required: ["amount"], additionalProperties: false },
    effects: "once", critical: false, reconcilable: false, timeoutMs: 1_000, outputCapBytes: 1_000, maxTries: 1, risk: "high", allowedDecisions: ["approve", "modify", "reject"],
  }],
  policy: compilePolicy([{ file: "test.yaml", text: "version: 1\nrules:\n  - { id: large, when: 'args.amount > 1000', verdict: deny, reason: too much }\n  - { id: money, match: { tools: ['*refund*'] }, verdict: ask, reason: moves money }\n" }]),
};

export interface ConsoleWorld {
  readonly console: Console; readonly http: Listening; readonly sessions: FakeSessions; readonly tasks: FakePublisher; readonly decisions: FakePublisher; readonly receipts: FakePublisher;
  readonly clock: { ms: number; nowMs(): number };
  /** API keys: `key(...roles)` makes one. */
  key(roles: readonly string[], more?: { tenant?: string; class?: "person" | "machine" | "agent"; id?: string; scopes?: string[] }): string;
  /** How long a request waits for a verdict. Long, unless a test waits it out: a busy machine is no missing verdict. */
  patience(ms?: number): void;
  /** No key is known any more. */
  revokeKeys(): void;
  call(method: string, path: string, options?: { key?: string; body?: unknown; text?: string; headers?: Record<string, string> }): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }>;
  close(): Promise<void>;
}

type ConsoleSettings = Partial<Record<string, unknown>>;

export async function startConsole(keys: { signer: Signer; trust: Trust }, config: ConsoleSettings | ((url: string) => ConsoleSettings) = {}): Promise<ConsoleWorld> {
  // The address is known before the console is made: what signs in elsewhere must say where to come back to.
  const door: { app?: Express } = {};
  const http = await listen(((req: Request, res: Response) => { door.app?.(req, res); }) as unknown as Express, { host: "127.0.0.1", port: 0 });
  const settings = typeof config === "function" ? config(http.url) : config;
  const clock = { ms: START_MS, nowMs() { return this.ms; } };
  const sessions = new FakeSessions(), tasks = new FakePublisher(), decisions = new FakePublisher(), receipts = new FakePublisher();
  decisions.onSend = (envelope) => { void sessions.judge(keys.trust, envelope, clock.nowMs()); };
  const records: ReturnType<typeof createApiKey>["record"][] = [];
  const authenticator = createApiKeys(records, clock);
  const parsed = ConsoleConfig.parse({ database: ":memory:", verdictWaitMs: PATIENCE_MS, verdictPollMs: 10, ...settings });
  const console = createConsole({ sessions, tasks, decisions, receipts, authenticator, clock, installed: INSTALLED, parts: [{ name: "sidecar", about: "a fake", check: async () => { if (sessions.down) throw new Error("no answer (fake)"); return "healthy"; } }], logger: createLogger("console", "silent"), signer: { sign: (claims) => signDecision(keys.signer, claims) },
    noticeSigner: noticeSignerOf(keys),
    auditSigner: { sign: (claims) => signAuditHead(keys.signer, claims), verify: (jws, nowMs) => verifyAuditHead(keys.trust, jws, nowMs) } },
    parsed);
  door.app = console.publicApp;
  return {
    console, http, sessions, tasks, decisions, receipts, clock,
    key(roles, more = {}) {
      const made = createApiKey({ tenant: more.tenant ?? "default", principalId: more.id ?? "ann", class: more.class ?? "person", roles, scopes: more.scopes ?? ["*"] });
      records.push(made.record);
      authenticator.replace(records);
      return made.key;
    },
    patience(ms = PATIENCE_MS) { parsed.verdictWaitMs = ms; },
    revokeKeys() { authenticator.replace([]); },
    async call(method, path, options = {}) {
      const body = options.text ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
      const response = await fetch(`${http.url}${path}`, { method, ...(body === undefined ? {} : { body }), headers: { ...(options.key === undefined ? {} : { authorization: `Bearer ${options.key}` }), ...options.headers } });
      const text = await response.text();
      return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>, headers: response.headers };
    },
    async close() {
      const closed = once(http.server, "close");
      await http.close(0);
      await closed.catch(() => undefined);
      await console.stop();
    },
  };
}

export const ACTOR = actorIdOf("default", "ord-1");

export function summaryOf(overrides: Partial<SessionSummary> = {}): SessionSummary {
  return {
    tenant: "default", sessionId: "ord-1", actorId: ACTOR, agent: "orders", agentVersion: "1", status: "AWAITING_APPROVAL", rev: 1, createdAtMs: START_MS, updatedAtMs: START_MS,
    waitingFor: "approval of refund", mailboxLength: 0, openApprovals: 1, modelCalls: 1, toolCalls: 1, inputTokens: 10, outputTokens: 5, costUsd: 0.01, ...overrides,
  };
}

export function recordOf(overrides: Partial<ApprovalRecord> = {}): ApprovalRecord {
  return {
    approvalId: "apr_1", version: 1, kind: "tool_call", runId: "run_1", callId: "call_1", tool: "refund", argsRev: 1, argsDigest: "sha256:ab", risk: "high", rule: "money-moves", policyVersion: "p-1",
    question: "moves money", allowed: ["approve", "modify", "reject"], approvers: { roles: [], quorum: 1, excludeRequester: false }, requestedBy: "bob", openedAtMs: START_MS,
    expiresAtMs: START_MS + 3_600_000, onExpiry: "reject", signatures: [], ...overrides,
  };
}

export function pendingOf(record: ApprovalRecord = recordOf(), overrides: Partial<PendingApproval> = {}): PendingApproval {
  return { tenant: "default", sessionId: "ord-1", actorId: ACTOR, agent: "orders", record, args: '{"amount":50}', rationale: "the parcel is lost", trigger: "where is my parcel", ...overrides };
}

export function viewOf(approvals: ApprovalRecord[] = [recordOf()], summary = summaryOf()): SessionView {
  return { summary, approvals, recentRuns: [], unknownCalls: [] };
}

export function entryOf(rev: number, events: SessionEvent[], actorId = ACTOR): JournalEntry {
  return { v: 1, actorId, rev, commitId: `c${String(rev)}`, atMs: START_MS + rev, command: "Test", host: "h", digest: `d${String(rev)}`, events };
}

export function messageOf(type: string, data: unknown, overrides: Partial<Envelope> = {}): string {
  return serializeEnvelope({ specversion: "1.0", id: "m1", source: "/docket/sessions", type, subject: "ord-1", tenant: "default", data: JSON.stringify(data), ...overrides });
}

export function journalMessage(entry: JournalEntry, summary: Partial<SessionSummary> = {}): string {
  return messageOf(JOURNAL_APPENDED, { appended: [{ entry, summary: summaryOf({ rev: entry.rev, updatedAtMs: entry.atMs, actorId: entry.actorId, ...summary }) }] });
}
